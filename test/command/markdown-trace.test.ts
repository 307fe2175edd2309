import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import { expect, test } from "vitest";
import { at, call, type Ended, lines, printed, textAt, turn } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";

// The workflow that stud-cli's documentation traces, as a folder of Markdown stages, from the command line to its end.

const JSON_OUT = ["--output-format", "json"];
const STREAM = ["--output-format", "stream-json"];
const REVIEW = join(import.meta.dirname, "../fixtures/markdown-stages/code-review");
const AUTH = "export const auth = (user) => { if (user) { return true; } return false; };\n";
const edit = call("Edit", {
  file_path: "src/auth.ts",
  old_string: "if (user) { return true; } return false;",
  new_string: "return Boolean(user);",
});
const PLAN = turn(call("submit_plan", { summary: "Simplify auth.", steps: ["Return a boolean."] }));
const DIFF = turn(call("submit_diff", { changed: ["src/auth.ts"], summary: "auth returns a boolean" }));
const APPROVED = turn(call("submit_review", { verdict: "approve", findings: [] }));
const READS = turn(call("Read", { file_path: "src/auth.ts" }));
const PHASES = ["setup", "init", "precondition", "act", "assert", "exit", "next"];
type Turns = Readonly<Record<string, readonly JsonObject[]>>;
const TRACE: Turns = {
  plan: [turn(edit), turn(call("Grep", { pattern: "auth", path: "src" })), PLAN],
  execute: [READS, turn(edit), DIFF],
  review: [APPROVED],
};

/** A project whose own codeReview is the folder of stages. */
function project(): DeskHere {
  const here = deskHere();
  cpSync(REVIEW, join(here.folder, ".sluice/workflows/codeReview"), { recursive: true });
  here.write("src/auth.ts", AUTH);
  here.write("AGENTS.md", "Use early returns.\n");
  return here;
}
const start = (here: DeskHere, turns: Turns, ...flags: readonly string[]): Promise<Ended> =>
  here.sluice(["run", "codeReview", "refactor auth module", "--trust", "--model", here.script(turns), ...flags]);
async function requestOf(here: DeskHere, runId: string): Promise<JsonObject> {
  const shown = at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "requests", 0);
  if (typeof shown !== "object" || shown === null || Array.isArray(shown)) throw new Error("nothing is asked");
  return Object.fromEntries(Object.entries(shown));
}
const auth = (here: DeskHere): string => readFileSync(join(here.folder, "src/auth.ts"), "utf8");
const EDITED = "export const auth = (user) => { return Boolean(user); };\n";

test("an Edit in the plan is asked about, the person denies it, and the run goes through its stages to the end", async () => {
  const here = project();
  const waiting = await start(here, TRACE, "--wait=1ms", ...JSON_OUT);
  expect([waiting.code, auth(here)]).toEqual([3, AUTH]);
  expect(waiting.stderr).toContain("not the bundled one");
  const runId = textAt(printed(waiting), "runId");
  const request = await requestOf(here, runId);
  expect(request).toMatchObject({ kind: "grantStageTool", requestId: "plan#1/a1/t1.c0" });
  const reason = ["--reason", "plan only"];
  const ended = await here.sluice(["answer", runId, "t1.c0", "deny", ...reason, "--resume", ...JSON_OUT]);
  expect([ended.code, printed(ended)]).toMatchObject([
    0,
    {
      status: "completed",
      output: { verdict: "approve", findings: [] },
      denied: [{ executionId: "plan#1", tool: "Edit" }],
      stages: [{ executionId: "plan#1" }, { executionId: "execute#1" }, { executionId: "review#1" }],
    },
  ]);
  expect(auth(here)).toBe(EDITED);

  const audit = lines(await here.sluice(["audit", runId, ...STREAM]));
  // Each boundary of each stage is in the record.
  for (const executionId of ["plan#1", "execute#1", "review#1"]) {
    const own = audit.filter((event) => event.executionId === executionId && at(event, "data", "phase") === "entered");
    expect(own.map(({ type }) => type)).toEqual(PHASES.map((phase) => `stage.${phase}`));
  }
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
});

test("without a person the Edit is denied as well, and the plan continues", async () => {
  const here = project();
  const ended = await start(here, TRACE, ...JSON_OUT);
  expect([ended.code, printed(ended)]).toMatchObject([
    0,
    { status: "completed", denied: [{ executionId: "plan#1", tool: "Edit", cause: "no_interactor" }] },
  ]);
  expect(auth(here)).toBe(EDITED);
});

test("a grant in the middle of a stage covers one call: another one with other arguments needs a request of its own", async () => {
  const here = project();
  const bash = (command: string) => turn(call("Bash", { command }));
  const turns = { ...TRACE, plan: [PLAN], execute: [bash("pwd"), bash("ls src"), DIFF] };
  const waiting = await start(here, turns, "--wait=1ms", ...JSON_OUT);
  const runId = textAt(printed(waiting), "runId");
  expect(await requestOf(here, runId)).toMatchObject({ requestId: "execute#1/a1/t1.c0" });
  const again = await here.sluice(["answer", runId, "t1.c0", "approve", "--resume", "--wait=1ms", ...JSON_OUT]);
  expect([again.code, await requestOf(here, runId)]).toMatchObject([3, { requestId: "execute#1/a1/t2.c0" }]);
  const ended = await here.sluice(["answer", runId, "t2.c0", "deny", "--resume", ...JSON_OUT]);
  expect(printed(ended)).toMatchObject({ status: "completed", denied: [{ executionId: "execute#1", tool: "Bash" }] });
});

const stage = (prompt: string): string =>
  `---\nallowedTools: []\ncompletionTool: submit\ncompletionSchema: { type: object, required: [ok], properties: { ok: { type: boolean } } }\nturnCap: 2\nretries: 0\n---\n${prompt}\n`;
const submits = turn(call("submit", { ok: true }));

test("stages side by side end in their join, which reads their outputs; one that fails fails the run", async () => {
  const here = deskHere();
  here.write(
    "flow/pipeline.yaml",
    "id: flow\ninitial: plan\ntransitions:\n  - { from: plan, to: { parallel: [test, lint], join: review } }\n  - { from: review, to: done }\n",
  );
  for (const name of ["plan", "test", "lint"]) here.write(`flow/${name}.md`, stage(`The stage ${name}.`));
  here.write("flow/review.md", stage("Tests: {{ctx.upstream.test.ok}}. Lint: {{ctx.upstream.lint.ok}}."));
  const run = async (lint: readonly JsonObject[]) => {
    const model = here.script({ plan: [submits], test: [submits], lint, review: [submits] });
    return await here.sluice(["run", "./flow", "x", "--model", model, ...JSON_OUT]);
  };
  const good = await run([submits]);
  expect([good.code, printed(good)]).toMatchObject([0, { status: "completed", output: { ok: true } }]);
  const bad = await run([{ text: "It does not work." }, { text: "It does not." }]);
  expect([bad.code, printed(bad)]).toMatchObject([1, { status: "failed", error: { code: "fan_out" } }]);
  expect(JSON.stringify(printed(bad).stages)).not.toContain("review#");
});
