import { expect } from "vitest";
import { call, lines, printed, textAt, turn } from "../../support/command.ts";
import { deskHere } from "../../support/command-here.ts";
import { differs, fact, machine, ROWS } from "../../support/flujo.ts";

// What users see of a machine in the command, each time in another process.

const JSON_OUT = ["--output-format", "json"];
const submits = (result: string) => turn(call("submit", { result }));

fact(44, "an end that no row leads to is a warning with a stable id, and the exit code is 0", async () => {
  const here = deskHere();
  here.write("m.yaml", machine(ROWS).replace("[done, failed]", "[done, failed, cancelled]"));
  const ended = await here.sluice(["check", "m.yaml"]);
  expect(ended.code).toBe(0);
  expect(ended.stdout).toContain("m.yaml:4:28: warning:");
  expect(ended.stdout).toContain("[unreachable]");
});

differs(45, "a mistake says how to fix it without a flag, and an error is exit code 1", async () => {
  const here = deskHere();
  here.write("m.yaml", machine(ROWS.replace("on: failure", "on: fails").replace("to: done", "to: dnoe")));
  const ended = await here.sluice(["check", "m.yaml"]);
  expect(ended.code).toBe(1);
  expect(ended.stdout).toMatch(/m\.yaml:\d+:\d+: error: .*"dnoe".*\[unknown-target\]/);
  expect(ended.stdout).toContain('did you mean "done"?');
  const data = printed(await here.sluice(["check", "m.yaml", ...JSON_OUT]));
  expect(data).toMatchObject({ errors: 2, diagnostics: [{ rule: "unknown-target" }, { rule: "wrong-type" }] });
  const sarif = printed(await here.sluice(["check", "m.yaml", "--sarif"]));
  expect(JSON.stringify(sarif)).toContain("unknown-target");
});

fact(66, "a run that waits is listed, shown, and resumed with the answer, each by another process", async () => {
  const here = deskHere();
  const states = `  a:
    - { name: work, prompt: "Work on {{ ctx.task }}.", tools: [] }
    - { kind: hitl, name: ask, message: "Is {{ previous_step.result }} right?", input_schema: { type: boolean }, sink_to: scratchpad.ok }
  b: [{ name: last, prompt: P, tools: [] }]`;
  const rows = ROWS.replace("to: b }", "to: b, when: context.scratchpad.ok }");
  here.write("m.yaml", machine(`  - { from: a, on: pause, to: a }\n${rows}`, { states }));
  const model = here.script({ work: [submits("this")], b: [submits("made")] });
  const started = await here.sluice([
    "run",
    "m.yaml",
    "the task",
    "--model",
    model,
    "--wait=1ms",
    "--answers=any",
    ...JSON_OUT,
  ]);
  const run = printed(started);
  expect([started.code, run]).toMatchObject([
    3,
    { status: "suspended", suspended: { reason: "waiting", requests: [{ kind: "humanState" }] } },
  ]);
  const runId = textAt(run, "runId");
  const requestId = textAt(run, "suspended", "requests", 0, "requestId");

  expect((await here.sluice(["runs"])).stdout).toMatch(new RegExp(`${runId}.*suspended`));
  const shown = await here.sluice(["show", runId]);
  expect(shown.stdout).toContain("Is this right?");

  const wrong = await here.sluice(["answer", runId, requestId, "--value", '"perhaps"']);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("must be boolean")]);
  const answered = await here.sluice(["answer", runId, requestId, "--value", "true", ...JSON_OUT]);
  expect([answered.code, printed(answered)]).toMatchObject([0, { outcome: "accepted" }]);

  const resumed = await here.sluice(["resume", runId, ...JSON_OUT]);
  expect([resumed.code, printed(resumed)]).toMatchObject([0, { status: "completed", output: { result: "made" } }]);
  const audited = lines(await here.sluice(["audit", runId, "--output-format", "stream-json"]));
  const routes = audited.filter(({ type }) => type === "route.decided");
  expect(routes.map(({ data }) => [textAt(data, "from"), textAt(data, "to")])).toContainEqual(["a", "a"]);
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
});
