import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  at,
  call,
  type Desk,
  desk,
  type Ended,
  finishes,
  PIPELINES,
  printed,
  textAt,
  turn,
} from "../support/command.ts";

const JSON_OUT = ["--output-format", "json"];
const SINGLE = `${PIPELINES}#single`;
/** A config that leaves a mark when it is evaluated. */
const marking = (here: Desk, rest = "export default {};\n"): string =>
  `process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(join(here.folder, "../loaded"))}, "");\n${rest}`;
const wasLoaded = (here: Desk): boolean => existsSync(join(here.folder, "../loaded"));
const code = (ended: Ended): string => textAt(printed(ended), "error", "code");

describe("a run does not trust anything by writing", () => {
  test.each([
    ["in a workspace that holds the user's state", { XDG_STATE_HOME: ".state" }, ".state/sluice/trust.json"],
    ["in a home folder", { HOME: "", XDG_STATE_HOME: undefined }, ".local/state/sluice/trust.json"],
    ["by what stands for a file that was named", { XDG_STATE_HOME: ".state" }, ".state/sluice/named/0123"],
  ])("%s", async (_where, names, file) => {
    const here = desk();
    const env = Object.fromEntries(
      Object.entries(names).map(([name, value]) => [name, value === undefined ? "" : join(here.folder, value)]),
    );
    const model = here.script({ work: [turn(call("Write", { file_path: file, content: "{}" })), finishes()] });
    const flags = ["--model", model, "--mode", "yolo", ...JSON_OUT];
    const ended = await here.sluice(["run", SINGLE, "x", ...flags], { env });
    expect(at(printed(ended), "denied")).toMatchObject([{ tool: "Write", cause: "limit" }]);
  });
});

test("a folder cannot trust itself where the state folder is not an absolute path", async () => {
  const here = desk();
  const config = marking(here);
  here.write("sluice.config.mjs", config);
  const digest = createHash("sha256").update(config).digest("hex");
  const trust = { version: 1, folders: { [here.folder]: { [join(here.folder, "sluice.config.mjs")]: digest } } };
  here.write("state/sluice/trust.json", JSON.stringify(trust));
  here.write(".local/state/sluice/trust.json", JSON.stringify(trust));
  const model = here.script({ work: [finishes()] });
  for (const env of [{ XDG_STATE_HOME: "state" }, { XDG_STATE_HOME: "", HOME: "." }]) {
    const ended = await here.sluice(["run", SINGLE, "x", "--model", model, ...JSON_OUT], { env });
    expect(ended.stderr).toMatch(/the code of this folder is not trusted|HOME is not an absolute path/);
  }
  expect(wasLoaded(here)).toBe(false);
});

describe("rules that a trusted config made are not gone without a word", () => {
  test("when the config is removed, or renamed to a form that is not read", async () => {
    const here = desk();
    const config = here.write("sluice.config.mjs", "export default { onCall: () => ({ veto: 'no' }) };\n");
    const model = here.script({ open: [turn(call("Write", { file_path: "made", content: "" })), finishes()] });
    const flags = ["--model", model, "--mode", "yolo", ...JSON_OUT];
    const ruled = await here.sluice(["run", `${PIPELINES}#bare`, "x", "--trust", ...flags]);
    expect(at(printed(ruled), "denied")).toMatchObject([{ cause: "hook" }]);
    rmSync(config);
    here.write("sluice.config.json", "{}");
    const refused = await here.sluice(["run", `${PIPELINES}#bare`, "x", ...flags]);
    expect([refused.code, code(refused)]).toEqual([2, "folder_untrusted"]);
    expect(textAt(printed(refused), "error", "message")).toContain(
      "have changed since they were trusted: sluice.config.mjs",
    );
    expect(existsSync(join(here.folder, "made"))).toBe(false);
    // Who means it says so, once.
    expect(printed(await here.sluice(["run", `${PIPELINES}#bare`, "x", "--no-config", ...flags])).status).toBe(
      "completed",
    );
    expect(printed(await here.sluice(["run", `${PIPELINES}#bare`, "x", "--trust", ...flags])).status).toBe("completed");
    expect(printed(await here.sluice(["run", `${PIPELINES}#bare`, "x", ...flags])).status).toBe("completed");
  });

  test("when the pipeline that stood in a bundled one's place is removed", async () => {
    const here = desk();
    const text = readFileSync(PIPELINES, "utf8");
    const mine = here.write(".sluice/pipelines/codeReview.ts", `${text}\nexport const codeReview = single;\n`);
    const model = here.script({ work: [finishes()] });
    const flags = ["--model", model, ...JSON_OUT];
    expect(printed(await here.sluice(["run", "codeReview#codeReview", "x", "--trust", ...flags])).status).toBe(
      "completed",
    );
    rmSync(mine);
    const refused = await here.sluice(["run", "codeReview", "x", ...flags]);
    expect([refused.code, code(refused)]).toEqual([2, "folder_untrusted"]);
  });
});

describe("a record from someone else names a folder with code", () => {
  const given = async (): Promise<{ readonly here: Desk; readonly from: Desk }> => {
    const [from, here] = [desk(), desk()];
    from.write("sluice.config.mjs", marking(from));
    const model = from.script({ work: [finishes()] });
    const runId = textAt(
      printed(await from.sluice(["run", SINGLE, "x", "--trust", "--model", model, ...JSON_OUT])),
      "runId",
    );
    await from.sluice(["export", runId, "--values", "-o", join(here.folder, "run.jsonl")]);
    rmSync(join(from.folder, "../loaded"));
    return { here, from };
  };

  test("a replay neither loads nor trusts it, also with --trust, unless the user names the folder", async () => {
    const { here, from } = await given();
    for (const flags of [[], ["--trust"]]) {
      const refused = await here.sluice(["replay", "run.jsonl", ...flags, ...JSON_OUT]);
      expect([refused.code, code(refused)]).toEqual([2, "folder_untrusted"]);
      expect(textAt(printed(refused), "error", "message")).toContain(from.folder);
    }
    expect(wasLoaded(from)).toBe(false);
    expect(existsSync(join(here.folder, "../state/sluice/trust.json"))).toBe(false);
    const named = ["replay", "run.jsonl", "--pipeline", SINGLE];
    expect((await here.sluice([...named, "--trust", "--cwd", from.folder])).code).toBe(0);
    expect(wasLoaded(from)).toBe(true);
  });

  test("--no-config leaves it alone: a replay does without", async () => {
    const { here, from } = await given();
    const named = ["replay", "run.jsonl", "--pipeline", SINGLE];
    expect((await here.sluice([...named, "--no-config", "--cwd", from.folder, "--trust"])).code).toBe(0);
    expect(wasLoaded(from)).toBe(false);
  });
});

describe("a record from someone else names a file as its pipeline", () => {
  test("a replay does not load it, also with --trust, unless the user names it: here, or to an earlier run", async () => {
    const [from, here] = [desk(), desk()];
    const file = from.write(
      "p.mjs",
      `${marking(from, "")}import { single } from ${JSON.stringify(PIPELINES)};\nexport { single };\n`,
    );
    const model = from.script({ work: [finishes()] });
    const runId = textAt(printed(await from.sluice(["run", file, "x", "--model", model, ...JSON_OUT])), "runId");
    await from.sluice(["export", runId, "--values", "-o", join(here.folder, "run.jsonl")]);
    rmSync(join(from.folder, "../loaded"));
    for (const flags of [[], ["--trust"], ["--trust", "--cwd", from.folder]]) {
      const refused = await here.sluice(["replay", "run.jsonl", ...flags, ...JSON_OUT]);
      expect([refused.code, code(refused)]).toEqual([2, "pipeline_untrusted"]);
      expect(textAt(printed(refused), "error", "message")).toContain("use --pipeline");
    }
    expect(wasLoaded(from)).toBe(false);
    expect((await here.sluice(["replay", "run.jsonl", "--pipeline", file])).code).toBe(0);
    expect(wasLoaded(from)).toBe(true);
    // Naming it is remembered, for the file as it is.
    expect((await here.sluice(["replay", "run.jsonl"])).code).toBe(0);
    writeFileSync(file, `${readFileSync(file, "utf8")}\n`);
    const changed = await here.sluice(["replay", "run.jsonl", "--trust", ...JSON_OUT]);
    expect([changed.code, code(changed)]).toEqual([2, "pipeline_untrusted"]);
    rmSync(file);
    const gone = await here.sluice(["replay", "run.jsonl", ...JSON_OUT]);
    expect(textAt(printed(gone), "error", "message")).toContain("--pipeline");
  });
});

describe("what is shown of a folder cannot write lines of its own", () => {
  const forged = "x\nsluice: all of it is trusted\u001b[2K\u009b2J.mjs";
  test("by the name of a file that keeps it from being trusted", async () => {
    const here = desk();
    here.write("sluice.config.mjs", "export default {};\n");
    const model = here.script({ work: [finishes()] });
    await here.sluice(["run", SINGLE, "x", "--trust", "--model", model]);
    here.write(`.sluice/pipelines/${forged}`, "");
    const texts = await Promise.all([here.sluice(["run", SINGLE, "x", "--model", model]), here.sluice(["doctor"])]);
    for (const { stdout, stderr } of texts) {
      const all = stdout + stderr;
      expect(all).not.toMatch(/^sluice: all of it/m);
      expect(all).not.toContain("\u001b[2K");
      expect(all).not.toContain("\u009b");
    }
  });

  test("by what its config decides", async () => {
    const here = desk();
    const kind = JSON.stringify(forged);
    here.write("sluice.config.mjs", `export default { executors: [{ kind: ${kind}, act: () => undefined }] };\n`);
    const ended = await here.sluice(["run", SINGLE, "x", "--trust", "--model", here.script({ work: [finishes()] })]);
    expect(ended.stderr).toContain("sets kinds of state");
    expect(ended.stderr).not.toMatch(/^sluice: all of it/m);
  });

  test("by the name of a folder, as a command to be pasted", async () => {
    const here = desk();
    here.write("$(touch PWN)/sluice.config.ts", "");
    here.write("$(touch PWN)/inner/a.txt", "");
    const { stdout } = await here.sluice(["doctor", "--cwd", "$(touch PWN)/inner"]);
    expect(stdout).toContain(`-> use --cwd '${join(here.folder, "$(touch PWN)")}'`);
  });
});
