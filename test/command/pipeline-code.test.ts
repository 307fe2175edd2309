import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { at, call, type Desk, desk, finishes, printed, textAt, turn } from "../support/command.ts";

const JSON_OUT = ["--output-format", "json"];
const PIPELINE = `import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
const work = stage({ prompt: "Do it.", allowedTools: ["Read", "Edit(src/**)", "Write(src/**)"], completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 5 });
export const mine = pipeline({ id: "mine", input: z.object({ task: z.string() }), stages: { work }, initial: "work", next: { work: ({ output }) => done(output.text) } });
`;
const HARMLESS = "export const a = 1;\n";

function marking(marker: string): string {
  return `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(marker)}, "");\n`;
}
/** What a model does that wants its own code to be loaded. */
function edits(file: string, marker: string) {
  const change = { file_path: file, old_string: HARMLESS, new_string: marking(marker) };
  return [turn(call("Read", { file_path: file })), turn(call("Edit", change))];
}
const run = async (here: Desk, name: string, model: string, ...flags: readonly string[]) =>
  await here.sluice(["run", name, "x", "--model", model, ...JSON_OUT, ...flags]);

describe("code that a pipeline imports", () => {
  test("from the project's own folders is trusted with it, and refused before anything is evaluated once it changed", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/rules.ts", HARMLESS);
    here.write(".sluice/pipelines/mine.ts", `import "../../src/rules.ts";\n${PIPELINE}`);
    const model = here.script({ work: [finishes()] });
    expect(printed(await run(here, "mine", model, "--trust")).output).toBe("done");
    expect(printed(await run(here, "mine", model)).output).toBe("done");
    here.write("src/rules.ts", marking(marker));
    const ended = await run(here, "mine", model);
    expect([ended.code, textAt(printed(ended), "error", "code")]).toEqual([2, "folder_untrusted"]);
    expect(textAt(printed(ended), "error", "message")).toContain("have changed since they were trusted: src/rules.ts");
    expect(existsSync(marker)).toBe(false);
  });

  test("from the project's own folders cannot be edited by a run of the project", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/rules.ts", HARMLESS);
    here.write(".sluice/pipelines/mine.ts", `import "../../src/rules.ts";\n${PIPELINE}`);
    const ended = await run(
      here,
      "mine",
      here.script({ work: [...edits("src/rules.ts", marker), finishes()] }),
      "--trust",
    );
    expect(at(printed(ended), "denied")).toMatchObject([{ tool: "Edit", cause: "limit" }]);
    expect(readFileSync(join(here.folder, "src/rules.ts"), "utf8")).toBe(HARMLESS);
  });

  test("from the trusted folder and from packages is loaded", async () => {
    const here = desk();
    here.write("node_modules/rules/package.json", '{ "name": "rules", "type": "module", "exports": "./index.js" }');
    here.write("node_modules/rules/index.js", 'import "./more.js";\n');
    here.write("node_modules/rules/more.js", HARMLESS);
    here.write(".sluice/pipelines/lib/first.ts", 'import "rules";\n');
    here.write(".sluice/pipelines/mine.ts", `import "./lib/first.ts";\n${PIPELINE}`);
    expect(printed(await run(here, "mine", here.script({ work: [finishes()] }), "--trust")).output).toBe("done");
  });

  test("of a file named by its path cannot be edited by its own run, nor can the file", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/rules.ts", HARMLESS);
    here.write("src/mine.ts", `import "./rules.ts";\n${PIPELINE}`);
    const ended = await run(here, "src/mine.ts", here.script({ work: [...edits("src/rules.ts", marker), finishes()] }));
    expect(at(printed(ended), "denied")).toMatchObject([{ tool: "Edit", cause: "limit" }]);
    expect(readFileSync(join(here.folder, "src/rules.ts"), "utf8")).toBe(HARMLESS);
    const rewrites = turn(
      call("Read", { file_path: "src/mine.ts" }),
      call("Write", { file_path: "src/mine.ts", content: "" }),
    );
    const second = await run(here, "src/mine.ts", here.script({ work: [rewrites, finishes()] }));
    expect(at(printed(second), "denied")).toMatchObject([{ tool: "Write", cause: "limit" }]);
  });

  test("cannot be put in the place of a package that its file imports", async () => {
    const here = desk();
    here.write("src/mine.ts", PIPELINE);
    const file_path = "src/node_modules/zod/index.js";
    const ended = await run(
      here,
      "src/mine.ts",
      here.script({ work: [turn(call("Write", { file_path, content: "" })), finishes()] }),
    );
    expect(at(printed(ended), "denied")).toMatchObject([{ tool: "Write", cause: "limit" }]);
  });

  test("is imported while the run is at work as it was before, and cannot be written by the model", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/late.ts", HARMLESS);
    const late = PIPELINE.replace(
      "({ output }) => done(output.text)",
      'async ({ output }) => { await import("./late.ts"); return done(output.text); }',
    );
    here.write("src/mine.ts", late);
    const ended = await run(here, "src/mine.ts", here.script({ work: [...edits("src/late.ts", marker), finishes()] }));
    expect(at(printed(ended), "denied")).toMatchObject([{ tool: "Edit", cause: "limit" }]);
    expect(printed(ended).status).toBe("completed");
    expect(existsSync(marker)).toBe(false);
  });

  test("is not imported while the run is at work if only a computed name leads to it", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/late.ts", HARMLESS);
    const late = PIPELINE.replace(
      "({ output }) => done(output.text)",
      'async ({ output }) => { await import("./".concat("late.ts")); return done(output.text); }',
    );
    here.write("src/mine.ts", late);
    const ended = await run(here, "src/mine.ts", here.script({ work: [...edits("src/late.ts", marker), finishes()] }));
    expect(printed(ended).status).toBe("failed");
    expect(existsSync(marker)).toBe(false);
  });

  test("that a hook imports later is compared on resume, too: a changed file is refused, the recorded one loads", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/late.ts", HARMLESS);
    const late = PIPELINE.replace(
      "({ output }) => done(output.text)",
      'async ({ output }) => { await import("./late.ts"); return done(output.text); }',
    );
    here.write("src/mine.ts", late);
    const model = here.script({ work: [turn(call("Write", { file_path: "x", content: "" })), finishes()] });
    const begun = async (): Promise<string> =>
      textAt(printed(await run(here, "src/mine.ts", model, "--wait=1ms")), "runId");
    const [first, second] = [await begun(), await begun()];
    const resumed = async (runId: string) => printed(await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT]));
    expect((await resumed(first)).status).toBe("completed");
    here.write("src/late.ts", marking(marker));
    expect((await resumed(second)).status).toBe("failed");
    expect(existsSync(marker)).toBe(false);
  });

  test("is compared on resume: a changed or a new file is refused before it is evaluated, unless trusted", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    here.write("src/rules.ts", HARMLESS);
    here.write("src/mine.ts", `import "./rules.ts";\n${PIPELINE}`);
    const model = here.script({ work: [turn(call("Write", { file_path: "x", content: "" })), finishes()] });
    const runId = textAt(printed(await run(here, "src/mine.ts", model, "--wait=1ms")), "runId");
    const resumed = async (...flags: readonly string[]) =>
      printed(await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT, ...flags]));
    here.write("src/rules.ts", marking(marker));
    expect(textAt(await resumed(), "error", "code")).toBe("pipeline_untrusted");
    here.write("src/rules.ts", 'import "./new.ts";\n');
    here.write("src/new.ts", marking(marker));
    expect(textAt(await resumed(), "error", "code")).toBe("pipeline_untrusted");
    expect(existsSync(marker)).toBe(false);
    expect((await resumed("--trust")).status).toBe("completed");
    expect(existsSync(marker)).toBe(true);
  });
});

test("a file that an adopted store names is loaded with --trust only", async () => {
  const here = desk();
  here.write("src/mine.ts", PIPELINE);
  const model = here.script({ work: [turn(call("Write", { file_path: "x", content: "" })), finishes()] });
  const runId = textAt(printed(await run(here, "src/mine.ts", model, "--wait=1ms")), "runId");
  const resumed = async (...flags: readonly string[]) =>
    printed(await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT, "--adopt-store", ...flags]));
  expect(textAt(await resumed(), "error", "code")).toBe("pipeline_untrusted");
  expect((await resumed("--trust")).status).toBe("completed");
});

test("a file that a store names is loaded only where the user named it: adopting the store by an answer says nothing of that", async () => {
  const here = desk();
  here.write("src/mine.ts", PIPELINE);
  const model = here.script({ work: [turn(call("Write", { file_path: "x", content: "" })), finishes()] });
  const runId = textAt(printed(await run(here, "src/mine.ts", model, "--wait=1ms")), "runId");
  const elsewhere = { env: { XDG_STATE_HOME: join(here.folder, "../other-state") } };
  const answered = await here.sluice(["answer", runId, "t1.c0", "deny", ...JSON_OUT, "--adopt-store"], elsewhere);
  expect(answered.code).toBe(0);
  const resumed = async (...flags: readonly string[]) =>
    printed(await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT, ...flags], elsewhere));
  expect(textAt(await resumed(), "error", "code")).toBe("pipeline_untrusted");
  expect((await resumed("--trust")).status).toBe("completed");
});

test("a file that a run's command named is not one that the user named", async () => {
  const here = desk();
  here.write("src/mine.ts", PIPELINE);
  const model = here.script({ work: [turn(call("Write", { file_path: "x", content: "" })), finishes()] });
  const args = ["run", "src/mine.ts", "x", "--model", model, ...JSON_OUT, "--wait=1ms"];
  const runId = textAt(printed(await here.sluice(args, { env: { SLUICE_RUN: "r1" } })), "runId");
  const resumed = printed(await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT]));
  expect(textAt(resumed, "error", "code")).toBe("pipeline_untrusted");
});

describe("a run grants no trust", () => {
  test.each(["--trust", "--adopt-store"])("%s is refused in a process that a run started", async (flag) => {
    const here = desk();
    here.write(".sluice/pipelines/mine.ts", PIPELINE);
    const args = ["run", "mine", "x", "--model", here.script({ work: [finishes()] }), ...JSON_OUT, flag];
    const ended = await here.sluice(args, { env: { SLUICE_RUN: "r1" } });
    expect([ended.code, textAt(printed(ended), "error", "code")]).toEqual([2, "inside_run"]);
    expect(existsSync(join(here.folder, "../state/sluice/trust.json"))).toBe(false);
  });
});

test("a .sluice that is a link is as protected as a folder, also one that leads to nothing yet", async () => {
  for (const exists of [true, false]) {
    const here = desk();
    if (exists) mkdirSync(join(here.folder, "src/data"), { recursive: true });
    symlinkSync("src/data", join(here.folder, ".sluice"));
    const plain = join(here.folder, "p.mjs");
    writeFileSync(plain, PIPELINE);
    const calls = ["src/data/pipelines/x.ts", ".sluice/pipelines/y.ts"].map((file_path) =>
      turn(call("Write", { file_path, content: "1" })),
    );
    const store = join(here.folder, "../store");
    const ended = await run(here, "p.mjs", here.script({ work: [...calls, finishes()] }), "--store", store);
    const denied = at(printed(ended), "denied");
    expect(denied).toMatchObject([{ cause: "limit" }, { cause: exists ? "limit" : expect.any(String) }]);
    expect(existsSync(join(here.folder, "src/data/pipelines"))).toBe(false);
  }
});
