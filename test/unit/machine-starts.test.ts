import { done, fanOut, final, type Json, pipeline, stage, to } from "@sluice/core";
import { apply, contextOf, decide, follow, initialState, type MachineInput, transition } from "@sluice/core/machine";
import { expect, test } from "vitest";
import { z } from "zod";
import { byEvents, compiled, effectOf, event, completed as outcome, started } from "../support/machine-kit.ts";
import { completed, work } from "../support/run-kit.ts";

const { spec } = pipeline({
  id: "machine",
  input: { type: "object" },
  stages: {
    a: work<Json>({ act: () => completed(null) }),
    b: work<Json, unknown>({ inputSchema: z.object({ n: z.number().default(7) }), act: () => completed(null) }),
  },
  initial: "a",
  limits: { maxVisits: 1 },
  transitions: [
    { from: "a", on: "success", to: { kind: "to", state: "b", input: {} } },
    { from: "b", on: "success", to: { kind: "done", output: null } },
  ],
});
const fresh = () => initialState(spec, { input: { task: "x" } });
const cancelled = {
  status: "cancelled",
  reason: "interrupted",
  partial: { rows: 3 },
  executionId: "b#1",
  attempts: 1,
  turns: 2,
  usage: { inputTokens: 0, outputTokens: 0 },
  ms: 0,
} as const;

test("a run starts in the given state with the input that its schema returns", async () => {
  const state = fresh();
  const { effect, patch } = await transition(spec, state, { kind: "start", at: { state: "b", input: {} } });
  expect(effect).toEqual({ kind: "enter", state: "b", input: { n: 7 } });
  apply(state, patch);
  expect([state.at, contextOf(state).upstream, state.hops]).toMatchObject([{ state: "b", visit: 1 }, {}, 0]);
});

test("the initial state, named as the start, has the run's input, and any other state null", async () => {
  const start = async (input: MachineInput) => (await transition(spec, fresh(), input)).effect;
  expect(await start({ kind: "start", at: { state: "a" } })).toMatchObject({ input: { task: "x" } });
  expect(await start({ kind: "start", at: { state: "b" } })).toMatchObject({
    kind: "end",
    end: { status: "failed", code: "input_invalid" },
  });
  expect(await start({ kind: "start", at: { state: "c" } })).toMatchObject({
    end: { code: "input_invalid", message: expect.stringContaining('there is no state "c"') },
  });
});

const { spec: three } = compiled({
  stages: { a: work(), b: work(), ok: final("completed") },
  next: { a: () => to("b"), b: () => to("ok") },
});
const startIn = async (state: string, input?: Json) => {
  const at = input === undefined ? { state } : { state, input };
  return (await transition(three, initialState(three, { input: "the run's" }), { kind: "start", at })).effect;
};

test.each<[string, Json | undefined, Json]>([
  ["a", undefined, "the run's"],
  ["a", "its own", "its own"],
  ["b", undefined, null],
  ["b", "its own", "its own"],
])("a run that starts in %s with %j gives that state %j", async (state, given, input) => {
  expect(await startIn(state, given)).toEqual({ kind: "enter", state, input });
});

test.each([
  ["c", 'from.state: there is no state "c"'],
  ["ok", "from.state: ok is a final state, which ends a run"],
])("a run that starts in %s ends before it", async (state, message) => {
  expect(await startIn(state)).toMatchObject({ end: { status: "failed", code: "input_invalid", message } });
});

const templated = async (path: string, input?: Json) => {
  const completion = { completionTool: "submit", completionSchema: { type: "object" }, turnCap: 1 } as const;
  const { spec: reading } = compiled({
    context: { known: 1 },
    stages: { a: work(), b: stage({ prompt: `Read {{ctx.${path}}}.`, ...completion }) },
    next: { a: () => to("b"), b: () => done(1) },
  });
  const at = input === undefined ? { state: "b" } : { state: "b", input };
  const state = initialState(reading, { input: { task: "x" } });
  return (await transition(reading, state, { kind: "start", at })).effect;
};

test.each(["run.input.other", "input.known", "upstream.a", "context.other", "fork.a", "items.a"])(
  "a run cannot start in a state whose prompt reads ctx.%s, which leads nowhere",
  async (path) => {
    const message = `b.prompt: {{ctx.${path}}} leads nowhere in a run that starts in b`;
    expect(await templated(path)).toMatchObject({ end: { status: "failed", code: "input_invalid", message } });
  },
);

test.each<[string, Json?]>([
  ["task"],
  ["setup"],
  ["run.input.task"],
  ["input"],
  ["input.known", { known: 1 }],
  ["upstream"],
  ["context.known"],
])("a run starts in a state whose prompt reads ctx.%s", async (path, input) => {
  expect(await templated(path, input)).toMatchObject({ kind: "enter", state: "b" });
});

test("an interrupted state is entered again, whether or not the decision is recorded", async () => {
  const state = fresh();
  apply(state, (await transition(spec, state, { kind: "start" })).patch);
  const interrupted: MachineInput = { kind: "interrupted", result: cancelled, by: "", reason: "" };
  const decision = await decide(spec, state, interrupted);
  expect(decision).toEqual({ by: "default", choice: { kind: "to", state: "a", input: { task: "x" } } });
  const next = follow(spec, state, interrupted, undefined);
  expect(next).toEqual(follow(spec, state, interrupted, decision));
  const feedback = expect.stringContaining("A person interrupted");
  expect(next.patch).toStrictEqual({
    turns: [{ state: "a", turns: 2 }],
    enter: { state: "a", input: { task: "x" }, feedback },
  });
  apply(state, next.patch);
  expect(state.at).toStrictEqual({ state: "a", input: { task: "x" }, visit: 2, feedback });
});

test("an interrupted state keeps the event that led to it, or how the fan-out ended that it joins", async () => {
  const { step, state } = await started({
    stages: { a: byEvents(), b: work(), c: work(), d: work(), ok: final("completed") },
    transitions: [
      { from: "a", on: { event: "GO" }, to: "b" },
      { from: "b", on: "success", to: fanOut(["c"], { join: "d" }) },
      { from: "c", on: "success", to: "d" },
      { from: "d", on: "success", to: "ok" },
    ],
  });
  const interrupted: MachineInput = { kind: "interrupted", result: cancelled, by: "", reason: "" };
  const feedback = expect.any(String);
  await step(event("GO"));
  const again = await step(interrupted);
  expect(again.patch.enter).toStrictEqual({ state: "b", input: null, feedback, arrivedBy: { event: "GO" } });
  expect(contextOf(state).arrivedBy).toEqual({ event: "GO" });
  effectOf(await step(outcome(1)), "fanOut");
  await step({ kind: "children", ended: [{ key: "c", turns: 1, status: "completed", output: 1 }] });
  const joined = { fork: { c: { status: "completed" } } };
  expect((await step(interrupted)).patch.enter).toStrictEqual({ state: "d", input: null, feedback, joined });
  expect(contextOf(state)).toMatchObject(joined);
});

test("an interrupted state is entered again: a visit beyond the cap, no hop, with what was left", async () => {
  const state = fresh();
  apply(state, (await transition(spec, state, { kind: "start", at: { state: "b", input: { n: 1 } } })).patch);
  const again = await transition(spec, state, { kind: "interrupted", result: cancelled, by: "ann", reason: "wrong" });
  expect(again.effect).toEqual({ kind: "enter", state: "b", input: { n: 1 } });
  apply(state, again.patch);
  expect(state.at).toMatchObject({ state: "b", visit: 2, feedback: expect.stringContaining('"rows": 3') });
  expect([state.hops, state.counts.get("b")]).toEqual([0, { visits: 2, turns: 2 }]);
});

test("an interrupted state reads who interrupted it and why, and that nothing was left", async () => {
  const state = fresh();
  apply(state, (await transition(spec, state, { kind: "start" })).patch);
  const { partial: _none, ...result } = cancelled;
  const missed = [{ interrupt: "i", files: ["a.ts"] }];
  const input: MachineInput = { kind: "interrupted", result, by: "ann", reason: "wrong", missed };
  apply(state, (await transition(spec, state, input)).patch);
  expect(state.at).toEqual({
    state: "a",
    visit: 2,
    input: { task: "x" },
    missed,
    feedback:
      "ann interrupted the previous execution of this state, a#1, with this reason: wrong. What it changed may still be there. It left no output.",
  });
});

test("a partial output of 8000 characters is shown in full, and of a longer one how much is left out", async () => {
  const shown = async (partial: string) => {
    const state = fresh();
    apply(state, (await transition(spec, state, { kind: "start" })).patch);
    const input: MachineInput = { kind: "interrupted", result: { ...cancelled, partial }, by: "", reason: "" };
    apply(state, (await transition(spec, state, input)).patch);
    return state.at?.feedback?.split("Its output until then:\n")[1];
  };
  expect(await shown("x".repeat(8_000))).toBe("x".repeat(8_000));
  expect(await shown("x".repeat(8_002))).toBe(`… 2 characters omitted …\n${"x".repeat(8_000)}`);
});

test("a long partial output is cut at its beginning", async () => {
  const state = fresh();
  apply(state, (await transition(spec, state, { kind: "start" })).patch);
  const result = { ...cancelled, partial: `begins${"x".repeat(20_000)}ends` };
  apply(state, (await transition(spec, state, { kind: "interrupted", result, by: "", reason: "" })).patch);
  expect(state.at?.feedback).toMatch(/^A person interrupted .* without giving a reason.*characters omitted/s);
  expect(state.at?.feedback).toMatch(/xends$/);
  expect(state.at?.feedback?.length).toBeLessThan(9_000);
});
