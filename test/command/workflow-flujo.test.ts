import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { field, type Json, type JsonObject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { readSource } from "../../packages/workflows/src/read/source.ts";
import { at, call, type Ended, lines, printed, textAt, turn } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";

// The state machine of Flujo's specification in the command: it asks, and each answer comes from another process.

const FIXTURES = join(import.meta.dirname, "../fixtures/workflows/flujo");
const JSON_OUT = ["--output-format", "json"];
const submits = (output: JsonObject) => turn(call("submit", output));
/** What the agents of a run that goes well give. */
const SCRIPT = {
  draft_question: [submits({ question: "Which cohort?" })],
  discover: [submits({ concepts: ["age"] })],
  review: [submits({ verdict: "approve" })],
};
/** An output that does not fit; after it, the script has no more turns. */
const BAD = [submits({ wrong: 1 })];

interface Waiting {
  readonly here: DeskHere;
  readonly runId: string;
  readonly requestId: string;
}

/** Runs the machine until it asks. */
async function untilAsked(script: Readonly<Record<string, readonly JsonObject[]>> = {}): Promise<Waiting> {
  const here = deskHere();
  cpSync(FIXTURES, here.folder, { recursive: true });
  const model = here.script({ ...SCRIPT, ...script });
  const flags = ["--model", model, "--wait=1ms", "--answers=any", ...JSON_OUT];
  const ended = await here.sluice(["run", "./orchestrate.yaml", "a study", ...flags]);
  const result = printed(ended);
  expect([ended.code, at(result, "suspended", "requests", 0, "body")]).toMatchObject([
    3,
    { question: "Which cohort?", answer: { type: "string" } },
  ]);
  return { here, runId: textAt(result, "runId"), requestId: textAt(result, "suspended", "requests", 0, "requestId") };
}

/** Answers in a second process, and resumes in a third. */
async function answered({ here, runId, requestId }: Waiting, ...answer: readonly string[]): Promise<Ended> {
  const sent = await here.sluice(["answer", runId, requestId, ...answer, ...JSON_OUT]);
  expect([sent.code, printed(sent)]).toMatchObject([0, { outcome: "accepted" }]);
  return await here.sluice(["resume", runId, "--wait=1ms", ...JSON_OUT]);
}

/** The decisions of the machine, and the state in which it ended. */
async function walkOf({ here, runId }: Waiting): Promise<readonly string[]> {
  const events = lines(await here.sluice(["audit", runId, "--output-format", "stream-json"]));
  const own = events.filter((event) => event.runId === runId);
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
  return own.flatMap(({ type, data }) => {
    if (type === "route.decided")
      return [`${textAt(data, "from")} -> ${String(field(data, "to") ?? at(data, "choice"))}`];
    return type === "run.finished" ? [`${textAt(data, "status")} ${String(field(data, "state") ?? "nowhere")}`] : [];
  });
}

describe("the machine of the specification", () => {
  test("with an answer runs to done", async () => {
    const waiting = await untilAsked();
    const ended = await answered(waiting, "--value", '"adults"');
    expect([ended.code, printed(ended)]).toMatchObject([0, { status: "completed", output: { verdict: "approve" } }]);
    expect(await walkOf(waiting)).toEqual([
      "clarification -> concept_discovery",
      "concept_discovery -> review",
      "review -> done",
      "completed done",
    ]);
  });

  test("is answered and resumed by one command", async () => {
    const { here, runId, requestId } = await untilAsked();
    const ended = await here.sluice(["answer", runId, requestId, "--value", '"adults"', "--resume", ...JSON_OUT]);
    expect([ended.code, printed(ended)]).toMatchObject([0, { status: "completed" }]);
  });

  test.each([
    ["clarification", "a denial", {}, ["deny"]],
    ["concept_discovery", "a failing agent in an import", { discover: BAD }, ["--value", '"adults"']],
    ["review", "a failing agent", { review: BAD }, ["--value", '"adults"']],
  ] as const)("fails in failed from %s, with %s", async (state, _why, script, answer) => {
    const waiting = await untilAsked(script);
    const ended = await answered(waiting, ...answer);
    expect([ended.code, printed(ended)]).toMatchObject([
      1,
      {
        status: "failed",
        error: { message: expect.stringContaining(`ended in state failed, after state ${state} failed (`) },
      },
    ]);
    expect((await walkOf(waiting)).slice(-2)).toEqual([`${state} -> failed`, "failed failed"]);
  });

  test.each([
    ["an empty answer", {}, '""', "clarification"],
    ["a review that rejects", { review: [submits({ verdict: "reject" })] }, '"adults"', "review"],
  ] as const)("fails without an end state where no row matches: %s", async (_why, script, value, state) => {
    const waiting = await untilAsked(script);
    const ended = await answered(waiting, "--value", value);
    expect([ended.code, printed(ended).status]).toEqual([1, "failed"]);
    expect(textAt(printed(ended), "error", "message")).toContain(state);
    expect((await walkOf(waiting)).at(-1)).toBe("failed nowhere");
  });

  test("repeats nothing that was done before the answer", async () => {
    const waiting = await untilAsked();
    await answered(waiting, "--value", '"adults"');
    const { here, runId } = waiting;
    const events = lines(await here.sluice(["audit", runId, "--output-format", "stream-json"]));
    const turns = events.filter(({ type }) => type === "turn.finished").map(({ executionId }) => executionId);
    expect(turns).toEqual(["draft_question#1", "discover#1", "review#1"]);
  });
});

test("a row for the pause leads to another state with the answer of another process, and finished work is not repeated", async () => {
  const here = deskHere();
  here.write(
    "m.yaml",
    `kind: StateMachine
start_state: ask
end_states: [done, failed]
states:
  ask:
    - { name: before, prompt: Start., tools: [], updates_context: true }
    - { kind: hitl, name: color, message: "Which?", input_schema: { enum: [red, blue] } }
  use: [{ name: use_it, prompt: "Use {{ctx.input.answer}}.", tools: [], output_schema: { type: object } }]
  again: [{ kind: hitl, name: sure, message: "Is {{ previous_step }} right?", input_schema: { type: boolean } }]
transitions:
  - { from: ask, on: pause, to: use, when: 'output == "red"' }
  - { from: ask, on: pause, to: again }
  - { from: again, on: pause, to: again }
  - { from: again, on: success, to: done, when: output }
  - { from: again, on: success, to: ask }
  - { from: use, on: success, to: done, when: "!context.scratchpad" }
  - { from: "*", on: failure, to: failed }
`,
  );
  const model = here.script({ before: [submits({ result: "b" })], use: [submits({ used: true })] });
  const started = await here.sluice([
    "run",
    "m.yaml",
    "x",
    "--model",
    model,
    "--wait=1ms",
    "--answers=any",
    ...JSON_OUT,
  ]);
  const waiting = (ended: Ended): Waiting => ({
    here,
    runId: textAt(printed(ended), "runId"),
    requestId: textAt(printed(ended), "suspended", "requests", 0, "requestId"),
  });
  const second = await answered(waiting(started), "--value", '"blue"');
  expect([second.code, at(printed(second), "suspended", "requests", 0, "body", "question")]).toEqual([
    3,
    "Is blue right?",
  ]);
  const last = await answered(waiting(second), "--value", "true");
  expect([last.code, printed(last).status]).toEqual([0, "completed"]);
  expect(await walkOf(waiting(started))).toEqual(["ask -> again", "again -> again", "again -> done", "completed done"]);

  const fork = await here.sluice(["run", "m.yaml", "x", "--model", model, "--wait=1ms", "--answers=any", ...JSON_OUT]);
  const red = await answered(waiting(fork), "--value", '"red"');
  expect([red.code, printed(red).output]).toEqual([0, { used: true }]);
  expect(await walkOf(waiting(fork))).toEqual(["ask -> use", "use -> done", "completed done"]);
});

test("a run with a pause is replayed as it was, and forked from its second visit with what the first one finished", async () => {
  const here = deskHere();
  here.write(
    "m.yaml",
    `kind: StateMachine
start_state: work
end_states: [done]
states:
  work:
    - { name: first, prompt: Start., tools: [] }
    - { kind: hitl, name: color, message: "{{ previous_step.result }}?", sink_to: scratchpad.color }
    - { name: last, prompt: "{{ steps.first.result }}: {{ context.scratchpad.color }}", tools: [] }
transitions:
  - { from: work, on: pause, to: work }
  - { from: work, on: success, to: done, when: context.scratchpad.color == "red" }
`,
  );
  const model = here.script({ first: [submits({ result: "which" })], last: [submits({ result: "made" })] });
  const flags = ["--model", model, "--wait=1ms", "--answers=any", ...JSON_OUT];
  const started = printed(await here.sluice(["run", "m.yaml", "x", ...flags]));
  const runId = textAt(started, "runId");
  const requestId = textAt(started, "suspended", "requests", 0, "requestId");
  expect((await answered({ here, runId, requestId }, "--value", '"red"')).code).toBe(0);
  expect(printed(await here.sluice(["replay", runId, ...JSON_OUT])).identical).toBe(true);
  const fork = await here.sluice(["fork", runId, "--from", "work#2", "--model", model, ...JSON_OUT]);
  expect([fork.code, printed(fork).output]).toEqual([0, { result: "made" }]);
  const events = lines(await here.sluice(["audit", textAt(printed(fork), "runId"), "--output-format", "stream-json"]));
  const after = events.slice(events.findIndex(({ type }) => type === "run.forked"));
  const worked = after.filter(({ type }) => type === "turn.finished").map(({ executionId }) => executionId);
  expect(worked).toEqual(["last#1"]);
});

/** The document as data. */
function dataOf(name: string): Json {
  const { source, diagnostics } = readSource(name, readFileSync(join(FIXTURES, name), "utf8"));
  if (source === undefined) throw new Error(JSON.stringify(diagnostics));
  return source.value;
}

test("the machine that runs is the one of the specification, with the steps that it leaves out and rows for them", () => {
  const specified = at(dataOf("specification.yaml"), 0);
  const completed = at(dataOf("orchestrate.yaml"), "steps", 0);
  for (const name of ["kind", "name", "start_state", "end_states"])
    expect(field(completed, name)).toEqual(field(specified, name));
  const states = Object.entries(Object(field(specified, "states")));
  for (const [name, state] of states)
    if (name !== "review") expect([name, at(completed, "states", name)]).toEqual([name, state]);
  expect(at(specified, "states", "review", "steps")).toEqual(["..."]);
  expect(Object.keys(Object(field(completed, "states"))).toSorted()).toEqual(states.map(([name]) => name).toSorted());

  const rows = field(completed, "transitions");
  const own = Array.isArray(rows) ? rows.filter((row) => field(row, "from") !== "review") : [];
  expect(own).toEqual(field(specified, "transitions"));
});
