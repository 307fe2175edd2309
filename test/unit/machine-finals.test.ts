import { done, fanOut, final, forEach, pipelineShape, stage, to } from "@sluice/core";
import type { MachineInput, Transition } from "@sluice/core/machine";
import { expect, test } from "vitest";
import {
  byEvents,
  compiled,
  completed,
  type Definition,
  effectOf,
  event,
  failed,
  problemsIn,
  result,
  started,
} from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

const stages = {
  a: work(),
  b: work(),
  ok: final("completed"),
  broken: final("failed"),
  stopped: final("cancelled"),
};
type Rows = NonNullable<Definition["transitions"]>;
const machine = (rows: Rows, more: Partial<Definition> = {}) =>
  started({
    stages,
    transitions: [
      ...rows,
      ...["ok", "broken", "stopped", "b"].map((id) => ({ from: "a", on: "failure", to: id }) as const),
      { from: "b", on: "success", to: "ok" },
    ],
    ...more,
  });

test("a completed final state ends the run with the output that led there, and names itself", async () => {
  const { step, state } = await machine([{ from: "a", on: "success", to: "ok" }]);
  const next = await step(completed({ text: "well done" }));
  expect(next.effect).toEqual({
    kind: "end",
    end: { status: "completed", output: { text: "well done" }, state: "ok" },
  });
  // The journal keeps what was decided.
  expect(next.trace.choice).toEqual({ kind: "to", state: "ok", input: null });
  expect(next.patch).toEqual({
    outputs: [{ state: "a", output: { text: "well done" } }],
    turns: [{ state: "a", turns: 2 }],
  });
  expect(state.counts.has("ok")).toBe(false);
  expect(state.at).toMatchObject({ state: "a" });
});

test("a failed final state ends the run as failed, and a cancelled one as cancelled", async () => {
  const bad = await machine([{ from: "a", on: "success", to: "broken" }]);
  expect(effectOf(await bad.step(completed(1)), "end").end).toEqual({
    status: "failed",
    code: "failed",
    message: "ended in state broken, after state a",
    state: "broken",
  });
  const stopped = await machine([{ from: "a", on: "success", to: "stopped" }]);
  expect(effectOf(await stopped.step(completed(1)), "end").end).toEqual({
    status: "cancelled",
    reason: "ended in state stopped, after state a",
    state: "stopped",
  });
});

test.each<[string, readonly MachineInput[]]>([
  [", by the event GO of state a", [event("GO")]],
  [", after state b failed (tool): it broke", [event("B"), failed("it broke")]],
  [", after state b was skipped", [event("B"), result({ status: "skipped" })]],
  [
    "",
    [event("B"), completed(1), { kind: "children", ended: [{ key: "c", turns: 1, status: "completed", output: 1 }] }],
  ],
])("a failed final state says what led to it: ended in state broken%s", async (why, inputs) => {
  const { step } = await started({
    stages: { a: byEvents(), b: work(), c: work(), ok: final("completed"), broken: final("failed") },
    transitions: [
      { from: "a", on: { event: "GO" }, to: "broken" },
      { from: "a", on: { event: "B" }, to: "b" },
      { from: "a", on: "failure", to: "ok" },
      { from: "b", on: "failure", to: "broken" },
      { from: "b", on: "skipped", to: "broken" },
      { from: "b", on: "success", to: fanOut(["c"], { join: "broken" }) },
      { from: "c", on: "success", to: "ok" },
    ],
  });
  const steps: Transition[] = [];
  for (const input of inputs) steps.push(await step(input));
  const message = `ended in state broken${why}`;
  expect(steps.at(-1)?.effect).toMatchObject({ kind: "end", end: { status: "failed", message } });
});

test("a failure that leads to a completed final state has no output", async () => {
  const { step } = await machine([{ from: "a", on: "success", to: "b" }]);
  expect(effectOf(await step(failed("it broke")), "end").end).toEqual({
    status: "completed",
    output: null,
    state: "ok",
  });
});

test("a final state counts no visit and no hop, so no cap keeps a run from its end", async () => {
  const { step, state } = await machine([{ from: "a", on: "success", to: "b" }], {
    limits: { maxHops: 1, maxVisits: 1 },
  });
  await step(completed(1));
  expect(effectOf(await step(completed(2)), "end").end).toMatchObject({ status: "completed", output: 2 });
  expect(state.hops).toBe(1);
});

test("an event that leads to a final state is the run's output, and its data merges", async () => {
  const { step, state } = await started({
    stages: { a: byEvents(), ok: final("completed") },
    transitions: [{ from: "a", on: { event: "DONE" }, to: "ok" }],
  });
  expect(effectOf(await step(event("DONE", { n: 1 })), "end").end).toMatchObject({
    output: { event: "DONE", data: { n: 1 } },
  });
  expect(state.context).toEqual({ n: 1 });
});

test("the context of a row that leads to a final state merges", async () => {
  const { step, state } = await machine([{ from: "a", on: "success", to: to("ok", undefined, { context: { n: 1 } }) }]);
  await step(completed(1));
  expect(state.context).toEqual({ n: 1 });
});

test("a join may be final: the run's output is then the join's input", async () => {
  const rows: Rows = [{ from: "a", on: "success", to: fanOut(["b"], { join: "ok", input: { both: true } }) }];
  const { step } = await machine(rows);
  await step(completed(1));
  const ended = [{ key: "b", turns: 1, status: "completed" as const, output: 2 }];
  expect(effectOf(await step({ kind: "children", ended }), "end").end).toEqual({
    status: "completed",
    output: { both: true },
    state: "ok",
  });
});

test("an empty list that continues in a final state ends the run there, with the input of the join", async () => {
  for (const [given, output] of [
    [undefined, null],
    [{ of: "the join" }, { of: "the join" }],
  ] as const) {
    const { step } = await machine([{ from: "a", on: "success", to: forEach("b", [], { join: "ok", input: given }) }]);
    expect(effectOf(await step(completed(1)), "end").end).toEqual({ status: "completed", output, state: "ok" });
  }
});

// The definition

const plain = stage({
  prompt: "Work.",
  completionTool: "submit",
  completionSchema: { type: "object" },
  turnCap: 3,
});

test("a final state needs no route, and may have none", () => {
  const rows: Rows = [{ from: "a", on: "success", to: "ok" }];
  expect(problemsIn({ stages: { a: plain, ok: final("completed") }, transitions: rows })).toEqual([]);
  const more: Rows = [...rows, { from: "ok", on: "success", to: "a" }];
  expect(problemsIn({ stages: { a: plain, ok: final("completed") }, transitions: more })).toEqual([
    "transitions[1].from | ok is a final state, which no row leaves",
  ]);
  const next = { a: () => to("ok"), ok: () => done(1) };
  expect(problemsIn({ stages: { a: plain, ok: final("completed") }, next })).toContain(
    "next.ok | is a final state, which no route leaves",
  );
});

test("a row for all states does not leave a final one", () => {
  const transitions: Rows = [
    { from: "a", on: "success", to: "ok" },
    { from: "*", on: "success", to: "b" },
    { from: "b", on: "success", to: "a" },
  ];
  const { spec, problems } = compiled({ stages: { a: plain, b: plain, ok: final("completed") }, transitions });
  expect(problems).toEqual([]);
  expect(pipelineShape(spec).states.map(({ id, kind, targets }) => [id, kind, targets])).toEqual([
    ["a", "agent", ["ok", "b"]],
    ["b", "agent", ["b", "a"]],
    ["ok", "final", []],
  ]);
});

test("a run cannot start in a final state, and a child cannot run one", () => {
  expect(problemsIn({ stages: { a: final("completed") }, transitions: [] })).toContain(
    "initial | a is a final state, which does not run | start in a state that works",
  );
  const transitions: Rows = [
    { from: "a", on: "success", to: fanOut(["ok"], { join: "b" }) },
    { from: "a", on: "failure", to: forEach("ok", [], { join: "b" }) },
    { from: "a", on: "skipped", to: fanOut([to("ok")], { join: "b" }) },
    { from: "b", on: "success", to: "ok" },
  ];
  const problems = problemsIn({ stages: { a: plain, b: plain, ok: final("completed") }, transitions });
  for (const index of [0, 1, 2])
    expect(problems.find((problem) => problem.startsWith(`transitions[${index}].to | `))).toContain(
      "ok is a final state, which does not run",
    );
});

test("a pipeline whose final states all fail never completes", () => {
  const transitions: Rows = [{ from: "a", on: "success", to: "broken" }];
  expect(problemsIn({ stages: { a: plain, broken: final("failed") }, transitions })).toEqual([
    "transitions | no route leads to a completed end | add done(…)",
  ]);
});

test("an outcome is one of three", () => {
  const unknown: "completed" = JSON.parse('"successful"');
  expect(
    problemsIn({ stages: { a: plain, ok: final(unknown) }, transitions: [{ from: "a", on: "success", to: "ok" }] }),
  ).toContain("stages.ok.final | must be completed, failed or cancelled");
});
