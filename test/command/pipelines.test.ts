import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { done, pipeline, stage, systemClock } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, scriptedModel } from "@sluice/stages";
import { parseScript } from "@sluice/stages/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Desk, desk, finishes, PIPELINES, printed, textAt } from "../support/command.ts";

const writes = { calls: [{ tool: "Write", input: { file_path: "x", content: "" } }] };
const source = readFileSync(PIPELINES, "utf8");
/** A file with one pipeline, whose result says which one it is. */
function pipelineFile(text: string): string {
  return `import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
const work = stage({ prompt: "Do it.", allowedTools: [], completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 2 });
export const mine = pipeline({ id: "mine", input: z.object({ task: z.string() }), stages: { work }, initial: "work", next: { work: () => done(${JSON.stringify(text)}) } });
`;
}
const run = async (here: Desk, name: string, ...flags: readonly string[]) => {
  const model = here.script({ work: [finishes()] });
  return await here.sluice(["run", name, "x", "--model", model, "--output-format", "json", ...flags]);
};

describe("pipelines of a project", () => {
  test("are loaded only when the folder is trusted, which is remembered until one of its files changes", async () => {
    const here = desk();
    const marker = join(here.folder, "loaded");
    const file = `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(marker)}, "");\n${pipelineFile("one")}`;
    here.write(".sluice/pipelines/mine.ts", file);
    const before = await run(here, "mine");
    expect([before.code, textAt(printed(before), "error", "code")]).toEqual([2, "folder_untrusted"]);
    expect(before.stderr).toContain("--trust");
    expect([existsSync(marker), existsSync(here.store)]).toEqual([false, false]);

    expect(printed(await run(here, "mine", "--trust")).output).toBe("one");
    expect(printed(await run(here, "mine")).output).toBe("one");

    here.write(".sluice/pipelines/helper.js", "export const changed = true;");
    expect(textAt(printed(await run(here, "mine")), "error", "code")).toBe("folder_untrusted");
  });

  test("win over a bundled one of the same name, which is said; two of one name are an error", async () => {
    const here = desk();
    here.write(".sluice/pipelines/codeReview.mjs", pipelineFile("ours"));
    const ours = await run(here, "codeReview", "--trust");
    expect(printed(ours).output).toBe("ours");
    expect(ours.stderr).toContain("not the bundled one");
    here.write(".sluice/pipelines/codeReview.ts", pipelineFile("theirs"));
    expect(textAt(printed(await run(here, "codeReview", "--trust")), "error", "code")).toBe("pipeline_ambiguous");
  });

  test("need no trust when a bundled one is asked for that none of them hides", async () => {
    const here = desk();
    here.write(".sluice/pipelines/mine.ts", "throw new Error('loaded');");
    const ended = await run(here, "codeReview");
    expect(printed(ended)).toMatchObject({ status: "failed", error: { code: "model" } });
  });

  test("are suggested by name", async () => {
    const here = desk();
    here.write(".sluice/pipelines/release.ts", pipelineFile("x"));
    const { stderr } = await run(here, "relaese");
    expect(stderr).toContain("Did you mean release?");
  });

  test("a link among them is not trusted", async () => {
    const here = desk();
    here.write("elsewhere.ts", pipelineFile("x"));
    here.write(".sluice/pipelines/other.js", "");
    symlinkSync(join(here.folder, "elsewhere.ts"), join(here.folder, ".sluice/pipelines/mine.ts"));
    expect(textAt(printed(await run(here, "mine", "--trust")), "error", "code")).toBe("folder_untrusted");
  });
});

describe("a file named by its path", () => {
  test("is trusted by being named, in TypeScript and JavaScript, and needs no packages of its own", async () => {
    const here = desk();
    const ts = await run(here, here.write("a.ts", pipelineFile("typed")));
    here.write("b/c.mjs", pipelineFile("plain"));
    const js = await run(here, "b/c.mjs#mine");
    expect([printed(ts).output, printed(js).output]).toEqual(["typed", "plain"]);
  });
});

describe("sluice resume finds the pipeline again", () => {
  const suspended = async (here: Desk, name: string, ...flags: readonly string[]): Promise<string> => {
    const model = here.script({ work: [writes, finishes()] });
    const args = ["run", name, "x", "--model", model, "--wait=1ms", "--output-format", "json", ...flags];
    return textAt(printed(await here.sluice(args)), "runId");
  };

  test("by its file, and continues with the model, the mode and the workspace it was started with", async () => {
    const here = desk();
    const runId = await suspended(here, `${here.write("p.ts", source)}#single`);
    const elsewhere = here.write("elsewhere/file", "");
    const resumed = await here.sluice(
      ["resume", runId, "--no-wait", "--store", here.store, "--output-format", "json"],
      {
        cwd: join(elsewhere, ".."),
      },
    );
    expect([resumed.code, printed(resumed)]).toMatchObject([
      0,
      { runId, status: "completed", denied: [{ cause: "no_interactor" }] },
    ]);
  });

  test("by its file only unchanged, or with --trust; and not when its states changed, unless that is accepted", async () => {
    const here = desk();
    const file = here.write("p.ts", source);
    const runId = await suspended(here, `${file}#single`);
    here.write("p.ts", `${source}\n// another comment\n`);
    const changed = await here.sluice(["resume", runId, "--no-wait", "--output-format", "json"]);
    expect([changed.code, textAt(printed(changed), "error", "code")]).toEqual([2, "pipeline_untrusted"]);
    here.write(
      "p.ts",
      source.replace(
        'allowedTools: ["Read"] });\n/** One stage that may read',
        'allowedTools: ["Read", "Grep"] });\n/** One stage that may read',
      ),
    );
    const other = await here.sluice(["resume", runId, "--no-wait", "--trust", "--output-format", "json"]);
    expect([other.code, textAt(printed(other), "error", "code")]).toEqual([2, "pipeline_changed"]);
    expect(other.stderr).toContain("  state work: allowedTools changed from Read to Read, Grep\n");
    expect(other.stderr).toContain(`  file ${file} was changed (function bodies are not compared)\n`);
    // Trust in the file is another question than whether the run may go on with it.
    here.write("p.ts", readFileSync(file, "utf8").replace("\n", "\n\n"));
    const untrusted = await here.sluice(["resume", runId, "--no-wait", "--allow-changed", "--output-format", "json"]);
    expect(textAt(printed(untrusted), "error", "code")).toBe("pipeline_untrusted");
    const accepted = await here.sluice([
      "resume",
      runId,
      "--no-wait",
      "--trust",
      "--allow-changed",
      "--output-format",
      "json",
    ]);
    expect(printed(accepted)).toMatchObject({ status: "completed" });
    const audit = await here.sluice(["audit", runId]);
    expect(audit.stdout).toMatch(
      /run\.resumed .* — .+: state work: allowedTools changed from Read to Read, Grep; file /,
    );
  });

  test("with answer --resume --allow-changed, and the run may not write what the changed one is made of", async () => {
    const here = desk();
    const file = here.write("p.ts", source);
    const edit = { calls: [{ tool: "Write", input: { file_path: "helper.ts", content: "export {};" } }] };
    const model = here.script({ work: [writes, edit, finishes()] });
    const start = ["run", `${file}#single`, "x", "--model", model, "--wait=1ms", "--output-format", "json"];
    const begun = printed(await here.sluice(start));
    const runId = textAt(begun, "runId");
    here.write("helper.ts", "export const tools = ['Read', 'Write'];");
    const changed = source
      .replace(
        'allowedTools: ["Read"] });\n/** One stage that may read',
        "allowedTools: tools });\n/** One stage that may read",
      )
      .replace(/^/, 'import { tools } from "./helper.ts";\n');
    here.write("p.ts", changed);
    const answer = ["answer", runId, "t1.c0", "deny", "--resume", "--output-format", "json", "--trust", "--headless"];
    const refused = await here.sluice(answer);
    expect(textAt(printed(refused), "error", "code")).toBe("pipeline_changed");
    const resumed = await here.sluice([
      "resume",
      runId,
      "--no-wait",
      "--trust",
      "--allow-changed",
      "--output-format",
      "json",
    ]);
    expect(printed(resumed)).toMatchObject({ status: "completed", denied: [{ cause: "denied" }, { cause: "limit" }] });
    expect(readFileSync(join(here.folder, "helper.ts"), "utf8")).toContain("Read");
  });

  test("in the project through the same trust", async () => {
    const here = desk();
    const name = "single";
    here.write(`.sluice/pipelines/${name}.ts`, source);
    const runId = await suspended(here, `${name}#single`, "--trust");
    here.write(".sluice/pipelines/new.js", "export {};");
    const untrusted = await here.sluice(["resume", runId, "--no-wait", "--output-format", "json"]);
    expect(textAt(printed(untrusted), "error", "code")).toBe("folder_untrusted");
    expect(
      printed(await here.sluice(["resume", runId, "--no-wait", "--trust", "--output-format", "json"])).status,
    ).toBe("completed");
  });

  test("not for a run that a program started: it says how", async () => {
    const here = desk();
    const work = stage({
      prompt: "Do it.",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 2,
    });
    const next = { work: () => done("end") };
    const input = z.object({ task: z.string() });
    const mine = pipeline({ id: "mine", input, stages: { work }, initial: "work", next });
    const session = createSession({
      model: scriptedModel(parseScript({ stages: { work: [writes, finishes()] } }, "a script"), { clock: systemClock }),
      cwd: here.folder,
      host: () => sqliteHost(here.store),
      wait: 1,
    });
    const { runId, status } = await session.run(mine, { task: "x" });
    await session.close();
    expect(status).toBe("suspended");
    const resumed = await here.sluice(["resume", runId]);
    expect(resumed.code).toBe(2);
    expect(resumed.stderr).toContain(`session.resume(pipeline, "${runId}")`);
    const replayed = await here.sluice(["replay", runId]);
    expect([replayed.code, replayed.stderr]).toEqual([2, expect.stringContaining("--pipeline <file>")]);
    const other = await here.sluice(["replay", runId, "--pipeline", `${PIPELINES}#single`]);
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("is a run of mine, not of single")]);
    const source = readFileSync(PIPELINES, "utf8").replaceAll('id: "single"', 'id: "mine"');
    const file = here.write("mine.ts", source);
    const compared = await here.sluice(["replay", runId, "--pipeline", `${file}#single`]);
    expect([compared.code, compared.stdout]).toEqual([1, expect.stringContaining("state work: allowedTools changed")]);
  });
});
