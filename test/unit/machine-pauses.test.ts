import { done, fail, fanOut, final, fork, to } from "@sluice/core";
import type { MachineInput } from "@sluice/core/machine";
import { expect, test } from "vitest";
import { routesPause } from "../../packages/core/src/definition/graph.ts";
import { type Definition, effectOf, guard, problemsIn, result, started } from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

type Rows = NonNullable<Definition["transitions"]>;
const stages = { a: work(), b: work(), ok: final("completed") };
const REST: Rows = [
  { from: "a", on: "success", to: "b" },
  { from: "b", on: "success", to: "ok" },
];
const machine = (rows: Rows, more: Partial<Definition> = {}) =>
  started({ stages, transitions: [...rows, ...REST], ...more });
const paused: MachineInput = result({ status: "paused", request: { answer: "blue", question: "Which one?" } });

test("a pause row leads to its state, whose input is the question with the answer", async () => {
  const { step, state, spec } = await machine([{ from: "a", on: "pause", to: "b" }]);
  const next = await step(paused);
  expect(next.effect).toEqual({ kind: "enter", state: "b", input: { answer: "blue", question: "Which one?" } });
  expect(next.trace).toMatchObject({ by: "table", row: 0 });
  // It has not completed: it counts its turns, and has no output.
  expect(next.patch).toMatchObject({ hops: 1, turns: [{ state: "a", turns: 2 }] });
  expect(next.patch.outputs).toBeUndefined();
  expect(state.outputs.object).toEqual({});
  expect(routesPause(spec, "a")).toBe(true);
  expect(routesPause(spec, "b")).toBe(false);
});

test("the row's own input stands beside the answer, and cannot replace it", async () => {
  const { step } = await machine([{ from: "a", on: "pause", to: to("b", { answer: "red", note: 1 }) }]);
  expect((await step(paused)).effect).toMatchObject({
    input: { answer: "blue", question: "Which one?", note: 1 },
  });
});

test("the answer has to fit the schema of the state that works with it", async () => {
  const strict = work({ inputSchema: { type: "object", properties: { answer: { type: "number" } } } });
  const { step } = await started({
    stages: { a: work(), b: strict, ok: final("completed") },
    transitions: [
      { from: "a", on: "pause", to: "b" },
      { from: "a", on: "success", to: "ok" },
      { from: "b", on: "success", to: "ok" },
    ],
  });
  const next = await step(paused);
  expect(effectOf(next, "end").end).toMatchObject({ status: "failed" });
  expect(next.trace.rejected).toContain("the input of b does not fit its inputSchema");
});

test("a pause row may lead to the same state, which is a new visit", async () => {
  const { step, state } = await machine([{ from: "a", on: "pause", to: "a" }]);
  await step(paused);
  expect(state.at).toMatchObject({ state: "a", visit: 2, input: { answer: "blue" } });
});

test("only a visit that a pause of the same state led to is after a pause, and so is its repetition after an interruption", async () => {
  const facts = { executionId: "a#1", attempts: 1, turns: 0, ms: 0, usage: { inputTokens: 0, outputTokens: 0 } };
  const cancelled = { ...facts, status: "cancelled", reason: "interrupted" } as const;
  const interrupted: MachineInput = { kind: "interrupted", result: cancelled, by: "ann", reason: "" };
  const own = await machine([{ from: "a", on: "pause", to: "a" }]);
  expect(own.state.at).not.toHaveProperty("afterPause");
  await own.step(interrupted);
  expect(own.state.at).toMatchObject({ state: "a", visit: 2 });
  expect(own.state.at).not.toHaveProperty("afterPause");
  await own.step(paused);
  expect(own.state.at).toMatchObject({ state: "a", visit: 3, afterPause: true });
  await own.step(interrupted);
  expect(own.state.at).toMatchObject({ state: "a", visit: 4, afterPause: true });
  const other = await machine([{ from: "a", on: "pause", to: "b" }]);
  await other.step(paused);
  expect(other.state.at).toMatchObject({ state: "b", visit: 1 });
  expect(other.state.at).not.toHaveProperty("afterPause");
  const again = await started({
    stages,
    transitions: [{ from: "a", on: "success", when: guard(true, "again"), to: "a" }, ...REST],
  });
  await again.step(result({ status: "completed", output: null }));
  expect(again.state.at).toMatchObject({ state: "a", visit: 2 });
  expect(again.state.at).not.toHaveProperty("afterPause");
});

test("a pause takes the first row whose guard fires, and rows for other results do not match it", async () => {
  const { step } = await machine([
    { from: "a", on: "pause", when: guard(false, "not yet"), to: "b" },
    { from: "*", on: "failure", to: fail("broke") },
    { from: "*", on: "pause", to: "a" },
  ]);
  const next = await step(paused);
  expect(next.effect).toMatchObject({ kind: "enter", state: "a" });
  expect(next.trace.rejectedRows).toEqual([
    { row: 0, why: "not yet" },
    { row: 1, why: "it is for failure, this was pause" },
  ]);
});

test("a pause without a row fails the run, and so does one whose rows do not fire", async () => {
  const unrouted = await machine([]);
  expect(effectOf(await unrouted.step(paused), "end").end).toMatchObject({
    status: "failed",
    message: "a paused, and a pause has no route",
  });
  const held = await machine([{ from: "a", on: "pause", when: guard(false, "no"), to: "b" }]);
  expect(effectOf(await held.step(paused), "end").end).toMatchObject({
    message: "a paused, and no row says what comes next",
  });
});

test("an approval can stand before the answer's state", async () => {
  const { step } = await machine([{ from: "a", on: "pause", to: "b", approval: {} }]);
  expect(effectOf(await step(paused), "approve")).toMatchObject({ from: "a", to: "b" });
});

test("a success is no pause", async () => {
  const { step } = await machine([{ from: "a", on: "pause", to: "a" }]);
  expect((await step(result({ status: "completed", output: 1 }))).effect).toMatchObject({ state: "b", input: null });
});

test.each([
  ["a final state", "ok"],
  ["the end of the run", done(1)],
  ["a failed end", fail("no")],
  ["a fan-out", fanOut(["b"], { join: "a" })],
  ["a fork", fork({ one: { initial: "b", terminal: "a" } }, { onComplete: "a" })],
] as const)("a pause row to %s is refused", (_name, target) => {
  expect(problemsIn({ stages, transitions: [{ from: "a", on: "pause", to: target }, ...REST] })).toEqual([
    "transitions[0].to | a pause must lead to a state that works with the answer | name such a state",
  ]);
});

test("an answer that is no object is the input, whatever the row gives", async () => {
  for (const choice of ["b", to("b", { note: 1 })] as const) {
    const { step } = await machine([{ from: "a", on: "pause", to: choice }]);
    expect((await step(result({ status: "paused", request: "blue" }))).effect).toMatchObject({ input: "blue" });
  }
  const { step } = await machine([{ from: "a", on: "pause", to: to("b", "red") }]);
  expect((await step(paused)).effect).toMatchObject({ input: { answer: "blue" } });
});
