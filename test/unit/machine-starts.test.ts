import { type Json, pipeline } from "@sluice/core";
import { apply, contextOf, initialState, type MachineInput, transition } from "@sluice/core/machine";
import { expect, test } from "vitest";
import { z } from "zod";
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
