import {
  cancel,
  done,
  fail,
  fanOut,
  forEach,
  type Guard,
  type Json,
  pipeline,
  route,
  type StageContext,
  type StageResult,
  to,
} from "@sluice/core";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type PipelineDefinition, readDefinition } from "../../packages/core/src/definition/read.ts";
import { childState, executionIdOf, parseExecutionId } from "../../packages/core/src/machine/machine-state.ts";
import { fromRecordedStart, isDecision, toRecordedStart } from "../../packages/core/src/machine/recorded-decision.ts";
import { fanOutFailure } from "../../packages/core/src/machine/transition.ts";
import {
  apply,
  type ChildEnd,
  contextOf,
  decide,
  type Effect,
  follow,
  initialState,
  type MachineInput,
  type MachineState,
  type Transition,
  transition,
} from "../../packages/core/src/machine.ts";
import { plainStage } from "../support/definition.ts";
import { work } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const BASE = { executionId: "x#1", attempts: 1, usage: { inputTokens: 1, outputTokens: 1 }, ms: 1 };
const completed = (output: Json, turns = 1): MachineInput => ({
  kind: "result",
  result: { ...BASE, turns, status: "completed", output },
});
const failed = (message: string): MachineInput => ({
  kind: "result",
  result: { ...BASE, turns: 1, status: "failed", code: "tool", message },
});
const good = (key: string, output: Json, turns = 1): ChildEnd => ({ key, turns, status: "completed", output });
const bad = (key: string, status: "failed" | "cancelled" = "failed"): ChildEnd => ({
  key,
  turns: 1,
  status,
  code: "tool",
  message: `${key} broke`,
});

/** A pipeline of states that nothing runs, started, with a hand that gives the machine what happens. */
async function started(definition: Pick<PipelineDefinition, "next" | "limits">) {
  const stages = { a: work(), b: work(), c: work(), d: work() };
  const { spec } = readDefinition({ id: "p", input, stages, initial: "a", ...definition });
  const state = initialState(spec, { input: { task: "go" } });
  const step = async (happened: MachineInput): Promise<Transition> => {
    const next = await transition(spec, state, happened);
    apply(state, next.patch);
    return next;
  };
  return { spec, state, step, first: await step({ kind: "start" }) };
}

function entered({ effect }: Transition): string {
  return effect.kind === "enter" ? effect.state : `${effect.kind}, not a state`;
}
function ended({ effect }: Transition): Extract<Effect, { kind: "end" }>["end"] {
  if (effect.kind !== "end") throw new Error(`${effect.kind} is not an end`);
  return effect.end;
}

test("a run is transitions and patches, and nothing else: no journal, no model, no clock", async () => {
  const { state, step, first } = await started({
    next: { a: () => to("b", { n: 1 }), b: (result) => done("output" in result ? result.output : null) },
  });
  expect(first.effect).toEqual({ kind: "enter", state: "a", input: { task: "go" } });
  const second = await step(completed("from a", 3));
  expect(second).toStrictEqual({
    effect: { kind: "enter", state: "b", input: { n: 1 } },
    patch: {
      outputs: [{ state: "a", output: "from a" }],
      turns: [{ state: "a", turns: 3 }],
      hops: 1,
      enter: { state: "b", input: { n: 1 } },
    },
    trace: { by: "function", choice: { kind: "to", state: "b", input: { n: 1 } } },
  });
  expect(state).toMatchObject({ hops: 1, at: { state: "b", visit: 1, input: { n: 1 } } });
  expect(state.counts.get("a")).toEqual({ visits: 1, turns: 3 });
  expect(ended(await step(completed("from b")))).toEqual({ status: "completed", output: "from b" });
});

test("a failure counts its turns, and an output of an earlier execution stays", async () => {
  const { state, step } = await started({ next: { a: { completed: () => to("a"), failed: () => to("b") } } });
  await step(completed("first", 2));
  expect(entered(await step(failed("no more")))).toBe("b");
  expect(contextOf(state).upstream).toEqual({ a: "first" });
  expect(state.counts.get("a")).toEqual({ visits: 2, turns: 3 });
});

test("a route reads a frozen result", async () => {
  const seen: unknown[] = [];
  const { step } = await started({
    next: {
      a: (result) => {
        seen.push(result, "output" in result && result.output);
        return done(1);
      },
    },
  });
  await step(completed({ list: [1] }));
  expect(seen.map((part) => Object.isFrozen(part))).toEqual([true, true]);
});

test("a decision is a promise only where a route is asynchronous", async () => {
  const { spec, state } = await started({ next: { a: { completed: () => done(1), failed: async () => done(2) } } });
  expect(decide(spec, state, completed(1))).toEqual({ by: "function", choice: { kind: "done", output: 1 } });
  expect(decide(spec, state, failed("no"))).toBeInstanceOf(Promise);
});

test("a transition changes nothing by itself, and the same view gives the same answer", async () => {
  const { spec, state } = await started({ next: { a: () => to("b", null, { context: { seen: true } }) } });
  const before = structuredClone({ ...state, outputs: state.outputs.object });
  const [one, other] = [await transition(spec, state, completed(1)), await transition(spec, state, completed(1))];
  expect(one).toEqual(other);
  expect({ ...state, outputs: state.outputs.object }).toEqual(before);
});

test("an input that does not fit the initial state ends the run before it", async () => {
  const { spec } = pipeline({
    id: "p",
    input: z.any(),
    stages: { a: work({ inputSchema: z.object({ n: z.number() }) }) },
    initial: "a",
    next: { a: () => done(1) },
  });
  const state = initialState(spec, { input: { n: "one" } });
  const start = await transition(spec, state, { kind: "start" });
  expect(start.patch).toEqual({});
  expect(ended(start)).toMatchObject({
    status: "failed",
    code: "input_invalid",
    message: expect.stringContaining("the input of a does not fit its inputSchema"),
  });
});

describe("ends", () => {
  test.each<
    readonly [string, () => ReturnType<typeof done> | ReturnType<typeof fail> | ReturnType<typeof cancel>, object]
  >([
    ["done", () => done({ ok: true }), { status: "completed", output: { ok: true } }],
    ["fail", () => fail("enough"), { status: "failed", code: "failed", message: "enough" }],
    ["cancel", () => cancel("no need"), { status: "cancelled", reason: "no need" }],
  ])("%s", async (_name, route, wanted) => {
    const { step } = await started({ next: { a: route } });
    expect(ended(await step(completed(null)))).toEqual(wanted);
  });

  test("an unhandled failure gives its code to the run, a handled one does not", async () => {
    const plain = await started({ next: { a: () => done(1) } });
    expect(ended(await plain.step(failed("the disk is full")))).toStrictEqual({
      status: "failed",
      code: "tool",
      message: "a failed (tool): the disk is full",
    });
    const handled = await started({ next: { a: { completed: () => done(1), failed: () => fail("mine") } } });
    expect(ended(await handled.step(failed("the disk is full")))).toMatchObject({ code: "failed", message: "mine" });
  });

  test("a place in the code is that of an unhandled failure", async () => {
    const result = {
      ...BASE,
      turns: 1,
      status: "failed",
      code: "hook",
      message: "no",
      detail: { at: "a.ts:1:2" },
    } as const;
    const plain = await started({ next: { a: () => done(1) } });
    expect(ended(await plain.step({ kind: "result", result }))).toMatchObject({ code: "hook", at: "a.ts:1:2" });
    const handled = await started({ next: { a: { completed: () => done(1), failed: () => fail("mine") } } });
    expect(ended(await handled.step({ kind: "result", result }))).toStrictEqual({
      status: "failed",
      code: "failed",
      message: "mine",
    });
    const unrouted = await started({ next: { b: () => done(1) } });
    expect(ended(await unrouted.step(completed(1)))).toStrictEqual({
      status: "failed",
      code: "failed",
      message: "a completed, and next says nothing about a",
    });
  });

  test("a cancel ends the run from any state, and its routes are not asked", async () => {
    const { spec, state, step } = await started({
      next: {
        a: () => {
          throw new Error("asked");
        },
      },
    });
    const cancelled: MachineInput = { kind: "cancelled", reason: "stopped by hand" };
    expect(await decide(spec, state, cancelled)).toEqual({
      by: "default",
      choice: { kind: "cancel", reason: "stopped by hand" },
    });
    expect(ended(await step(cancelled))).toEqual({
      status: "cancelled",
      reason: "stopped by hand",
    });
  });
});

test("an execution's id is read as it was written, and any other text is a state", () => {
  expect(executionIdOf("plan", 12)).toBe("plan#12");
  expect(parseExecutionId("plan#12")).toEqual({ state: "plan", visit: 12 });
  for (const odd of ["", "plan", "plan#", "#", "plan#x", "plan#1/a1", "plan#1234567890"])
    expect(parseExecutionId(odd)).toEqual({ state: odd, visit: 1 });
  expect(parseExecutionId("a#1#2")).toEqual({ state: "a#1", visit: 2 });
});

describe("caps", () => {
  test("a state is entered as often as maxVisits says, and the end names it", async () => {
    const { state, step } = await started({ limits: { maxVisits: 2, maxHops: 100 }, next: { a: () => to("a") } });
    expect(entered(await step(completed(1)))).toBe("a");
    expect(ended(await step(completed(1)))).toEqual({
      status: "failed",
      code: "limit_visits",
      limit: "maxVisits",
      message: "state a was entered 2 times",
    });
    expect(state.counts.get("a")?.visits).toBe(2);
  });

  test("a run takes as many routes as maxHops says, and their count is known before the visits", async () => {
    const { state, step } = await started({ limits: { maxVisits: 2, maxHops: 1 }, next: { a: () => to("a") } });
    expect(entered(await step(completed(1)))).toBe("a");
    expect(ended(await step(completed(1)))).toMatchObject({
      code: "limit_hops",
      limit: "maxHops",
      message: "the run took 1 routes without an end",
    });
    expect(state.hops).toBe(1);
  });

  test("by default they are 10 visits, and 10 routes for each state", async () => {
    const { step } = await started({ next: { a: () => to("a") } });
    for (let visit = 2; visit <= 10; visit += 1) expect(entered(await step(completed(1)))).toBe("a");
    expect(ended(await step(completed(1)))).toMatchObject({ code: "limit_visits" });
    const round = await started({
      limits: { maxVisits: 100 },
      next: { a: () => to("b"), b: () => to("a") },
    });
    for (let hop = 1; hop <= 40; hop += 1)
      expect(round.first && entered(await round.step(completed(1)))).toMatch(/^[ab]$/);
    expect(ended(await round.step(completed(1)))).toMatchObject({ code: "limit_hops" });
  });

  test("children and their join count too", async () => {
    const next = { a: () => fanOut(["b", "c"], { join: "d" }), d: () => fanOut(["b"], { join: "a" }) };
    const { state, step } = await started({ limits: { maxVisits: 1 }, next });
    await step(completed(1));
    expect([...state.counts].map(([id, { visits }]) => [id, visits])).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
    ]);
    expect(entered(await step({ kind: "children", ended: [good("b", 1), good("c", 2)] }))).toBe("d");
    expect(ended(await step(completed(1)))).toMatchObject({
      code: "limit_visits",
      message: "state b was entered 1 times",
    });
    const joined = await started({ limits: { maxVisits: 1 }, next: { a: () => fanOut(["b"], { join: "a" }) } });
    await joined.step(completed(1));
    expect(ended(await joined.step({ kind: "children", ended: [good("b", 1)] }))).toMatchObject({
      message: "state a was entered 1 times",
    });
  });
});

describe("fan-outs", () => {
  const fork = (onFailure: "cancel" | "settle", failure?: (ctx: StageContext) => ReturnType<typeof done>) =>
    started({
      next: {
        a: {
          completed: () => fanOut(["c", to("b", { n: 1 })], { join: "d", input: "joined", onFailure }),
          failed: (result, ctx) => {
            if (result.status !== "failed") return fail("a failure route got something else");
            const { code, message, detail } = result;
            return failure?.(ctx) ?? done({ code, message, detail: JSON.stringify(detail) });
          },
        },
        d: () => to("a"),
      },
    });

  test("children are data with keys, and the join sees their outputs last and in declared order", async () => {
    const { state, step } = await fork("cancel");
    const { effect } = await step(completed("a"));
    expect(effect).toMatchObject({
      kind: "fanOut",
      fanOut: { id: "fan-1" },
      children: [
        { kind: "sibling", key: "c", state: "c", input: null },
        { kind: "sibling", key: "b", state: "b", input: { n: 1 } },
      ],
    });
    const join = await step({ kind: "children", ended: [good("c", "c", 2), good("b", "b", 3)] });
    expect(join.effect).toEqual({ kind: "enter", state: "d", input: "joined" });
    expect(Object.entries(contextOf(state).upstream)).toEqual([
      ["a", "a"],
      ["c", "c"],
      ["b", "b"],
    ]);
    expect(contextOf(state).fork).toEqual({ c: { status: "completed" }, b: { status: "completed" } });
    expect(state.counts.get("b")).toEqual({ visits: 1, turns: 3 });
    expect(state.hops).toBe(1);
    await step(completed("d"));
    expect(contextOf(state)).not.toHaveProperty("fork");
  });

  test("an output of an earlier round is gone where a child has none now", async () => {
    const { state, step } = await fork("settle");
    await step(completed("a"));
    await step({ kind: "children", ended: [good("c", "c"), good("b", "b")] });
    await step(completed("d"));
    await step(completed("a2"));
    await step({ kind: "children", ended: [{ key: "c", turns: 0, status: "skipped" }, good("b", "b2")] });
    expect(contextOf(state).upstream).toEqual({ a: "a2", d: "d", b: "b2" });
  });

  test("a failure is one of the state that started it: its failure route decides, and the outputs do not count", async () => {
    const { state, step } = await fork("cancel");
    await step(completed("a"));
    const next = await step({ kind: "children", ended: [bad("c"), bad("b", "cancelled")] });
    expect(ended(next)).toEqual({
      status: "completed",
      output: {
        code: "fan_out",
        message: "parallel stages failed: c: c broke",
        detail: '{"fanOut":"fan-1","failed":["c"]}',
      },
    });
    expect(contextOf(state).upstream).toEqual({ a: "a" });
  });

  test("the failure route reads in its context how each child ended", async () => {
    const { step } = await fork("cancel", (ctx) => done(JSON.stringify(ctx.fork)));
    await step(completed("a"));
    expect(ended(await step({ kind: "children", ended: [good("c", 1), bad("b")] }))).toMatchObject({
      output: '{"c":{"status":"completed"},"b":{"status":"failed","code":"tool","message":"b broke"}}',
    });
  });

  test("the failure has the counts of the state that started it, and its route reads that state's attempt", async () => {
    const { spec, state, step } = await fork("cancel", (ctx) => done(ctx.attempt));
    const after = { ...BASE, attempts: 3, turns: 4, status: "completed", output: null } as const;
    await step({ kind: "result", result: after });
    const ends = [bad("c"), good("b", 1)];
    expect(ended(await transition(spec, state, { kind: "children", ended: ends }))).toMatchObject({ output: 3 });
    const { executionId, attempts, turns, usage, ms } = after;
    const failure = fanOutFailure(state, ends);
    expect(failure).toMatchObject({ executionId, attempts, turns, usage, ms, status: "failed", code: "fan_out" });
    expect(failure?.detail).toStrictEqual({ fanOut: "fan-1", failed: ["c"] });
    expect(Object.isFrozen(failure)).toBe(true);
    expect(fanOutFailure(state, [good("c", 1), { key: "b", turns: 0, status: "skipped" }])).toBeUndefined();
  });

  test("an unhandled failure gives its code to the run; children that were only cancelled are named if none failed", async () => {
    const { step } = await started({ next: { a: () => fanOut(["b", "c"], { join: "d" }) } });
    await step(completed("a"));
    const children = [bad("b", "cancelled"), bad("c", "cancelled")];
    expect(ended(await step({ kind: "children", ended: children }))).toEqual({
      status: "failed",
      code: "fan_out",
      message: "a failed (fan_out): parallel stages failed: b: b broke; c: c broke",
    });
  });

  test("a failure route may continue to any state, which joins nothing", async () => {
    const failing = { completed: () => fanOut(["b", "c"], { join: "d" }), failed: () => to("d", "instead") };
    const { state, step } = await started({ next: { a: failing } });
    await step(completed("a"));
    const { effect, patch } = await step({ kind: "children", ended: [good("b", 1), bad("c")] });
    expect(effect).toEqual({ kind: "enter", state: "d", input: "instead" });
    expect(patch).toStrictEqual({
      turns: [
        { state: "b", turns: 1 },
        { state: "c", turns: 1 },
      ],
      hops: 1,
      enter: { state: "d", input: "instead" },
    });
    expect(contextOf(state)).not.toHaveProperty("fork");
  });

  test("a message names all stages that failed, however many there are", async () => {
    const children = Array.from({ length: 25 }, (_, index) => `s${index}`);
    const { spec } = readDefinition({
      id: "p",
      input,
      stages: Object.fromEntries(["a", "z", ...children].map((id) => [id, work()])),
      initial: "a",
      next: { a: () => fanOut(children, { join: "z" }) },
    });
    const state = initialState(spec, { input: { task: "go" } });
    for (const happened of [{ kind: "start" }, completed("a")] as const)
      apply(state, (await transition(spec, state, happened)).patch);
    const { message } =
      fanOutFailure(
        state,
        children.map((key) => bad(key)),
      ) ?? {};
    expect(message).toMatch(/s0: s0 broke; .*; s24: s24 broke$/);
  });

  test("a join changes the outputs, the turns and the state, and is no hop", async () => {
    const { step } = await fork("settle");
    await step(completed("a"));
    const { patch, trace } = await step({ kind: "children", ended: [good("c", "c", 2), bad("b")] });
    expect(patch).toStrictEqual({
      turns: [
        { state: "c", turns: 2 },
        { state: "b", turns: 1 },
      ],
      hops: 0,
      outputs: [{ state: "c" }, { state: "c", output: "c" }, { state: "b" }],
      enter: {
        state: "d",
        input: "joined",
        joined: {
          fork: { c: { status: "completed" }, b: { status: "failed", code: "tool", message: "b broke" } },
        },
      },
    });
    expect(trace).toEqual({ by: "default", choice: { kind: "to", state: "d", input: "joined" } });
  });

  test("under settle a failure is what the join reads", async () => {
    const { state, step } = await fork("settle");
    await step(completed("a"));
    expect(entered(await step({ kind: "children", ended: [bad("c"), good("b", 1)] }))).toBe("d");
    expect(contextOf(state).fork).toMatchObject({
      c: { status: "failed", message: "c broke" },
      b: { status: "completed" },
    });
  });
});

describe("lists", () => {
  const listed = (items: readonly string[], onFailure: "cancel" | "settle" = "settle") =>
    started({
      limits: { maxVisits: 2 },
      next: { a: () => forEach("b", items, { join: "c", key: (item) => `k-${item}`, onFailure }), c: () => to("a") },
    });

  test("one visit of the state, a child for each item, and the items in order for the join alone", async () => {
    const { state, step } = await listed(["x", "y", "z"]);
    const { effect } = await step(completed(null));
    expect(effect.kind === "fanOut" && effect.children).toEqual(
      ["x", "y", "z"].map((item) => ({ kind: "sibling", key: `k-${item}`, state: "b", input: item })),
    );
    expect(state.counts.get("b")).toEqual({ visits: 1, turns: 0 });
    await step({ kind: "children", ended: [good("k-x", 1, 2), good("k-y", 2, 2), bad("k-z")] });
    const ctx = contextOf(state);
    expect(ctx.items).toEqual({
      b: [
        { key: "k-x", status: "completed", output: 1 },
        { key: "k-y", status: "completed", output: 2 },
        { key: "k-z", status: "failed", code: "tool", message: "k-z broke" },
      ],
    });
    expect(ctx.upstream).toEqual({ a: null, b: 2 });
    expect(ctx).not.toHaveProperty("fork");
    expect(state.counts.get("b")).toEqual({ visits: 1, turns: 5 });
    await step(completed(null));
    expect(contextOf(state)).not.toHaveProperty("items");
  });

  test("an empty list enters the join at once, visits nothing, and an earlier output of its state is gone", async () => {
    const items = ["x"];
    const { state, step } = await listed(items);
    await step(completed(null));
    await step({ kind: "children", ended: [good("k-x", 1)] });
    await step(completed(null));
    items.pop();
    const { effect } = await step(completed(null));
    expect(effect).toEqual({ kind: "enter", state: "c", input: null });
    expect(contextOf(state)).toMatchObject({ items: { b: [] }, upstream: { a: null, c: null } });
    expect(contextOf(state).upstream).not.toHaveProperty("b");
    expect([state.counts.get("b")?.visits, state.fanOuts, state.hops]).toEqual([1, 1, 3]);
  });

  test("the cap on visits holds for the join of an empty list", async () => {
    const { step } = await started({
      limits: { maxVisits: 1 },
      next: { a: () => forEach("b", [], { join: "a", key: String }) },
    });
    expect(ended(await step(completed(null)))).toMatchObject({ message: "state a was entered 1 times" });
  });

  test("a message lists no more than 20 failures and says how many more there are", async () => {
    const { step } = await listed(
      Array.from({ length: 30 }, (_, index) => String(index)),
      "cancel",
    );
    await step(completed(null));
    const end = ended(
      await step({ kind: "children", ended: Array.from({ length: 30 }, (_, index) => bad(`k-${index}`)) }),
    );
    expect(end).toMatchObject({ code: "fan_out", message: expect.stringMatching(/k-19: k-19 broke; and 10 more$/) });
  });
});

/** Throws whatever is asked of it. */
function unreadable(): Error {
  const trap = (): never => {
    throw new Error("unreadable");
  };
  return new Proxy(new Error("unread"), { get: trap, ownKeys: trap });
}

describe("what cannot follow", () => {
  test("before a start nothing else happens, and children end only while their fan-out is pending", async () => {
    const { spec, state } = await started({ next: { a: () => done(1) } });
    const before = initialState(spec, { input: null });
    const inputs: readonly MachineInput[] = [
      completed(1),
      { kind: "event", event: "GO", data: {} },
      { kind: "interrupt", name: "i", path: "x" },
      { kind: "children", ended: [] },
    ];
    for (const happened of inputs)
      await expect(transition(spec, before, happened)).rejects.toThrow("the run has not started");
    await expect(transition(spec, state, { kind: "children", ended: [] })).rejects.toThrow("no fan-out is pending");
  });

  test("a run starts once, and while a fan-out is pending nothing but its children or a cancel follows", async () => {
    const { spec, state, step } = await started({ next: { a: () => fanOut(["b", "c"], { join: "d" }) } });
    await expect(transition(spec, state, { kind: "start" })).rejects.toThrow("the run has started before");
    await step(completed(1));
    await expect(transition(spec, state, completed(1))).rejects.toThrow("fan-1 is running");
    const event = { kind: "event", event: "GO", data: {} } as const;
    await expect(transition(spec, state, event)).rejects.toThrow("fan-1 is running");
    expect(ended(await transition(spec, state, { kind: "cancelled", reason: "no" }))).toMatchObject({ reason: "no" });
  });

  test.each<[string, readonly ChildEnd[]]>([
    ["what is no list", JSON.parse("null")],
    ["none of them", []],
    ["not all of them", [good("b", 1)]],
    ["one that it does not have", [good("b", 1), good("__proto__", 1)]],
    ["one more than it has", [good("b", 1), good("c", 1), good("d", 1)]],
    ["one of them twice", [good("b", 1), good("b", 1)]],
    ["them in another order", [good("c", 1), good("b", 1)]],
    ["one of them without an end", [good("b", 1), JSON.parse('{"key":"c","turns":0,"status":"running"}')]],
  ])("a fan-out never joins %s", async (_which, children) => {
    const { spec, state, step } = await started({ next: { a: () => fanOut(["b", "c"], { join: "d" }) } });
    await step(completed(1));
    await expect(transition(spec, state, { kind: "children", ended: children })).rejects.toThrow("fan-1");
  });

  test.each([
    "null",
    '"start"',
    "{}",
    '{"kind":"__proto__"}',
    '{"kind":["result"]}',
    '{"kind":"result"}',
    '{"kind":"interrupted"}',
    '{"kind":"answer","of":null}',
    '{"kind":"event"}',
    '{"kind":"start","at":null}',
    '{"kind":"start","at":{}}',
  ])("what no program may say is one error: %s", async (text) => {
    const { spec, state } = await started({ next: { a: () => done(1) } });
    const fresh = initialState(spec, { input: null });
    const given = JSON.parse(text);
    await expect(transition(spec, given?.kind === "start" ? fresh : state, given)).rejects.toThrow(
      /none of these|by its name|name of an event/,
    );
  });

  test("an input of no kind is refused with the kinds that there are", async () => {
    const { spec, state } = await started({ next: { a: () => done(1) } });
    await expect(transition(spec, state, JSON.parse('{"kind":"other"}'))).rejects.toThrow(
      "the input has none of these as its kind: start, result, children, cancelled, interrupted, event, interrupt, message, answer",
    );
  });

  test.each<[string, () => ReturnType<typeof to>]>([
    ["returns what throws when it is read", () => JSON.parse("{}", () => unreadable())],
    [
      "throws an error whose message throws",
      () => {
        throw Object.defineProperty(new Error("no"), "message", { get: () => unreadable().message });
      },
    ],
    [
      "throws what throws when it is read",
      () => {
        const { proxy, revoke } = Proxy.revocable(new Error("no"), {});
        revoke();
        throw proxy;
      },
    ],
  ])("a route that %s ends the run as failed, with the reason", async (_what, ask) => {
    const { step } = await started({ next: { a: ask } });
    const next = await step(completed(1));
    expect(ended(next)).toMatchObject({ status: "failed", code: "failed" });
    expect(next.trace.rejected).toMatch(/^the completed route of a threw: /);
  });

  test("a start is no fan-out, whatever a record says", async () => {
    const { spec } = await started({ next: { a: () => done(1) } });
    const siblings = [{ state: "b", input: null }];
    const choice = { kind: "fanOut", siblings, join: "c", input: null, onFailure: "cancel" } as const;
    const state = initialState(spec, { input: null });
    expect(() => follow(spec, state, { kind: "start" }, { by: "default", choice })).toThrow(
      "a fan-out follows the result of a state",
    );
  });
});

describe("a recorded decision", () => {
  test("leads to the same transition, and no code of the pipeline runs again", async () => {
    let asked = 0;
    const { spec, state } = await started({
      next: {
        a: () => {
          asked += 1;
          return to("b", { asked });
        },
      },
    });
    const happened = completed("a");
    const fresh = await transition(spec, state, happened);
    const recorded = JSON.parse(JSON.stringify(fresh.trace));
    expect(follow(spec, state, happened, recorded)).toEqual(fresh);
    expect(asked).toBe(1);
  });

  test("is judged by the caps again, since only counts and limits matter to them", async () => {
    const { spec, state } = await started({ limits: { maxVisits: 1 }, next: { a: () => to("a") } });
    const trace = await decide(spec, state, completed("a"));
    expect(trace.choice).toMatchObject({ kind: "to", state: "a" });
    expect(ended(follow(spec, state, completed("a"), trace))).toMatchObject({ code: "limit_visits" });
  });

  test("of a start or a join that is missing ends no run well", async () => {
    const { spec, state, step } = await started({ next: { a: () => fanOut(["b"], { join: "c" }) } });
    expect(() => follow(spec, initialState(spec, { input: null }), { kind: "start" }, undefined)).toThrow(
      "the run has not started",
    );
    await step(completed(1));
    expect(ended(follow(spec, state, { kind: "children", ended: [good("b", 1)] }, undefined))).toMatchObject({
      message: "state a ended without a choice",
    });
  });

  test("that is missing fails the run, and after a cancel it is not missed", async () => {
    const { spec, state } = await started({ next: { a: () => done(1) } });
    expect(ended(follow(spec, state, completed(1), undefined))).toMatchObject({
      message: "state a ended without a choice",
    });
    const cancelled: StageResult<Json> = { ...BASE, turns: 0, status: "cancelled", reason: "enough" };
    expect(ended(follow(spec, state, { kind: "result", result: cancelled }, undefined))).toEqual({
      status: "cancelled",
      reason: "enough",
    });
  });
});

describe("a record", () => {
  const choices: readonly Json[] = [
    { kind: "to", state: "a", input: null },
    { kind: "fanOut", siblings: [{ state: "a", input: 1 }, { state: "b" }], join: "c", input: null },
    { kind: "fanOut", siblings: [], join: "c", input: null },
    { kind: "done", output: null },
    { kind: "fail", reason: "broken" },
    { kind: "cancel", reason: "enough" },
  ];

  test.each(choices)("of the choice %j is a decision, whatever decided it", (choice) => {
    for (const by of ["function", "table", "default", "event", "safe_next", "interrupt"])
      expect(isDecision({ by, choice })).toBe(true);
    for (const by of ["anyone", "", null, 1]) expect(isDecision({ by, choice })).toBe(false);
    expect(isDecision({ choice })).toBe(false);
  });

  test.each<readonly [string, Json]>([
    ["no choice", null],
    ["a choice of no kind", { state: "a", input: null, reason: "x", output: 1, join: "c", siblings: [] }],
    ["a choice of an unknown kind", { kind: "leap", state: "a", input: null, reason: "x" }],
    ["a state without a name", { kind: "to", input: null }],
    ["a name that is no text", { kind: "to", state: 1, input: null }],
    ["a state without input", { kind: "to", state: "a" }],
    ["a fan-out without a join", { kind: "fanOut", siblings: [{ state: "a" }] }],
    ["a fan-out without siblings", { kind: "fanOut", join: "c" }],
    ["a fan-out whose siblings are no list", { kind: "fanOut", join: "c", siblings: { state: "a" } }],
    ["a fan-out with a sibling that names no state", { kind: "fanOut", join: "c", siblings: [{ state: "a" }, {}] }],
    ["an end without output", { kind: "done" }],
    ["a failure without a reason", { kind: "fail" }],
    ["a cancel whose reason is no text", { kind: "cancel", reason: 1 }],
  ])("of %s is no decision", (_name, choice) => {
    expect(isDecision({ by: "function", choice })).toBe(false);
    expect(isDecision(choice)).toBe(false);
  });

  test("of a start is read as the decision that was made", async () => {
    const { spec } = pipeline({
      id: "p",
      input: z.any(),
      stages: { a: work({ inputSchema: z.object({ n: z.number() }) }) },
      initial: "a",
      next: { a: () => done(1) },
    });
    const starts = [{ n: 1 }, { n: "one" }].map(async (given) => {
      const decision = await decide(spec, initialState(spec, { input: given }), { kind: "start" });
      const recorded = toRecordedStart(decision);
      expect(fromRecordedStart(JSON.parse(JSON.stringify(recorded)))).toEqual(decision);
      return { recorded, decision };
    });
    const reason = expect.stringContaining("the input of a does not fit its inputSchema");
    expect(await Promise.all(starts)).toEqual([
      {
        recorded: { ok: true, choice: { kind: "to", state: "a", input: { n: 1 } } },
        decision: { by: "default", choice: { kind: "to", state: "a", input: { n: 1 } } },
      },
      {
        recorded: { ok: false, reason },
        decision: { by: "default", rejected: reason, choice: { kind: "fail", reason } },
      },
    ]);
  });
});

test("a child's run starts in its state, reads what its parent had, and counts for itself", async () => {
  const { spec } = await started({ next: { a: () => to("b", null, { context: { n: 1 } }) } });
  const parent = initialState(spec, { id: "r1", workspace: "/repo", input: { task: "go" } });
  apply(parent, (await transition(spec, parent, { kind: "start" })).patch);
  apply(parent, (await transition(spec, parent, completed("from a"))).patch);
  const entered = { state: "c", input: { of: ["list"] }, visit: 3 };
  const child = childState(parent, { id: "r1/fan-1/c", entered, turns: 7 });
  expect(contextOf(child)).toEqual({
    runId: "r1/fan-1/c",
    workspace: "/repo",
    task: "go",
    run: { input: { task: "go" } },
    input: { of: ["list"] },
    upstream: { a: "from a" },
    context: { n: 1 },
    setup: null,
    attempt: 1,
    visit: 3,
  });
  expect(Object.isFrozen(contextOf(child).input)).toBe(true);
  expect(child).toMatchObject({
    hops: 0,
    fanOuts: 0,
    fellBack: false,
    counts: new Map([["c", { visits: 3, turns: 7 }]]),
  });
  expect([child.joined, child.pending]).toEqual([undefined, undefined]);
});

describe("what user code reads", () => {
  test("names the run, its folder and its task, and what an attempt adds is for that attempt", () => {
    const { spec } = pipeline({ id: "p", input, stages: { a: plainStage }, initial: "a", next: { a: () => done(1) } });
    const state = initialState(spec, { id: "r1", workspace: "/repo", input: { task: "go" } });
    const first = contextOf(state);
    expect(first).toEqual({
      runId: "r1",
      workspace: "/repo",
      task: "go",
      run: { input: { task: "go" } },
      input: null,
      upstream: {},
      context: {},
      setup: null,
      attempt: 1,
      visit: 0,
    });
    const second = contextOf(state, { setup: { port: [1] }, attempt: 2, feedback: "be brief" });
    expect(second).toEqual({ ...first, setup: { port: [1] }, attempt: 2, feedback: "be brief" });
    for (const part of [second, second.setup]) expect(Object.isFrozen(part)).toBe(true);
    for (const ctx of [first, contextOf(state)]) expect(ctx).not.toHaveProperty("feedback");
    expect(contextOf(initialState(spec, { input: { task: 3 } }))).toMatchObject({ runId: "", workspace: "", task: "" });
  });

  test("is plain and frozen, and the same object for all who read at one moment", async () => {
    const { state, step } = await started({
      next: { a: () => to("b", null, { context: { n: 1 } }), b: () => to("c") },
    });
    await step(completed({ deep: { list: [1] } }));
    const [one, other] = [contextOf(state), contextOf(state)];
    expect(one.upstream).toBe(other.upstream);
    const { upstream } = one;
    expect([
      { ...upstream },
      structuredClone(upstream),
      JSON.parse(JSON.stringify(upstream)),
      Object.keys(upstream),
    ]).toEqual([{ a: { deep: { list: [1] } } }, { a: { deep: { list: [1] } } }, { a: { deep: { list: [1] } } }, ["a"]]);
    expect(Object.getPrototypeOf(upstream)).toBe(Object.prototype);
    apply(state, { hops: 1 });
    expect(contextOf(state).upstream).toBe(upstream);
    expect(contextOf(state).context).toBe(one.context);
    apply(state, { outputs: [{ state: "b", output: { list: [1] } }] });
    expect(Object.isFrozen(contextOf(state).upstream.b)).toBe(true);
    for (const part of [one, upstream, upstream.a, one.context, one.run, one.run.input])
      expect(Object.isFrozen(part)).toBe(true);
    expect({ ...one }).toEqual({ ...structuredClone(one) });
    // What keeps the outputs has a prototype that all contexts share.
    for (const key of Object.getOwnPropertySymbols(one)) {
      const kept: object = Object.getPrototypeOf(Object(Reflect.get(one, key)));
      expect([Object.isFrozen(kept), Object.isFrozen(kept.constructor)]).toEqual([true, true]);
    }
    expect(Object.getOwnPropertySymbols(one)).toHaveLength(1);
  });

  test("shows the moment it was made, however late it is read", async () => {
    const { state, step } = await started({
      next: { a: () => to("b", null, { context: { n: 1 } }), b: () => to("c") },
    });
    const first = contextOf(state);
    await step(completed(1));
    const second = contextOf(state);
    await step(completed(2));
    expect(contextOf(state).upstream).toEqual({ a: 1, b: 2 });
    expect(second.upstream).toEqual({ a: 1 });
    expect(first.upstream).toEqual({});
    expect([first.context, second.context]).toEqual([{}, { n: 1 }]);
  });

  test("has the patches of all routes so far, merged key by key", async () => {
    const next = {
      a: () => to("b", null, { context: { n: 1, kept: true } }),
      b: () => to("c", null, { context: { n: 2 } }),
    };
    const { state, step } = await started({ next });
    await step(completed(1));
    await step(completed(2));
    expect(contextOf(state).context).toEqual({ n: 2, kept: true });
  });

  test("has all outputs of a long loop, after however many rounds one first reads them", () => {
    const { spec } = pipeline({ id: "p", input, stages: { a: plainStage }, initial: "a", next: { a: () => done(1) } });
    for (let rounds = 1; rounds <= 200; rounds += 1) {
      const state = initialState(spec, { input: null });
      apply(state, { outputs: [{ state: "first", output: 0 }] });
      for (let round = 1; round <= rounds; round += 1) apply(state, { outputs: [{ state: "a", output: round }] });
      expect(contextOf(state).upstream).toEqual({ first: 0, a: rounds });
      apply(state, { outputs: [{ state: "last", output: 0 }] });
      expect(contextOf(state).upstream).toEqual({ first: 0, a: rounds, last: 0 });
    }
  });

  test("shows each moment of a long loop, the last one first", () => {
    const { spec } = pipeline({ id: "p", input, stages: { a: plainStage }, initial: "a", next: { a: () => done(1) } });
    const state = initialState(spec, { input: null });
    const moments = Array.from({ length: 200 }, (_, round) => {
      apply(state, { outputs: [{ state: round % 2 === 0 ? "even" : "odd", output: round }] });
      return { round, ctx: contextOf(state) };
    });
    for (const { round, ctx } of moments.slice(1).toReversed())
      expect(new Set(Object.values(ctx.upstream))).toEqual(new Set([round - 1, round]));
  });

  test("shows each of several runs that continue from one moment its own outputs, whichever is read first", () => {
    const { spec } = pipeline({ id: "p", input, stages: { a: plainStage }, initial: "a", next: { a: () => done(1) } });
    const parent = initialState(spec, { input: null });
    for (let n = 0; n < 200; n += 1) apply(parent, { outputs: [{ state: `p${n % 70}`, output: n }] });
    const branch = (id: string): MachineState =>
      childState(parent, { id, entered: { state: "a", input: null, visit: 1 }, turns: 0, terminal: "a" });
    const before = contextOf(parent);
    const runs = ["x", "y", "z"].map((id) => ({ id, state: branch(id) }));
    for (const [at, { id, state }] of runs.entries()) {
      apply(state, { outputs: [{ state: id, output: at }, { state: "p0" }] });
      if (at === 1) expect(before.upstream.p0).toBe(140);
      expect(Object.keys(contextOf(state).upstream)).toHaveLength(70);
      expect(contextOf(state).upstream).toMatchObject({ [id]: at, p1: 141 });
    }
    for (const [at, { id, state }] of runs.entries()) {
      apply(state, { outputs: [{ state: "later", output: id }] });
      expect(contextOf(state).upstream).toMatchObject({ [id]: at, later: id });
      expect(Object.keys(contextOf(state).upstream)).toHaveLength(71);
    }
    expect([Object.keys(before.upstream).length, before.upstream.p69]).toEqual([70, 139]);
  });

  test("keeps outputs in the order of first completion, whatever is completed again, and whenever one reads", () => {
    const { spec } = pipeline({ id: "p", input, stages: { a: plainStage }, initial: "a", next: { a: () => done(1) } });
    const changes = fc.array(
      fc.record({
        state: fc.constantFrom("a", "b", "c", "d"),
        output: fc.option(fc.integer(), { nil: undefined }),
        reads: fc.boolean(),
      }),
      { maxLength: 300, size: "max" },
    );
    fc.assert(
      fc.property(changes, (all) => {
        const state: MachineState = initialState(spec, { input: null });
        const wanted = new Map<string, number>();
        for (const { state: id, output, reads } of all) {
          apply(state, { outputs: [output === undefined ? { state: id } : { state: id, output }] });
          if (output === undefined) wanted.delete(id);
          else wanted.set(id, output);
          if (reads) expect(Object.entries(contextOf(state).upstream)).toEqual([...wanted]);
        }
        expect(Object.entries(contextOf(state).upstream)).toEqual([...wanted]);
      }),
    );
  });
});

test("a declared route is held to what it declared for an empty list too", async () => {
  const declared = route(["c"], vi.fn().mockReturnValue(forEach("b", [], { join: "c" })));
  const { step } = await started({ next: { a: declared } });
  expect(ended(await step(completed(1)))).toMatchObject({
    message: "the completed route of a went to b, but was declared for c",
  });
});

test("a condition of any maker fires on true alone, and says why it does not", async () => {
  const { spec } = readDefinition({
    id: "p",
    input,
    stages: { a: work() },
    initial: "a",
    transitions: [{ from: "a", on: "success", when: () => true, to: done("fired") }],
  });
  if (spec.routes.kind !== "table") throw new Error("not a table");
  const [row] = spec.routes.rows;
  if (row === undefined) throw new Error("no row");
  const guarded = async (evaluate: Guard["evaluate"]): Promise<Transition> => {
    const rows = [{ ...row, when: { text: "n > 1", evaluate } }];
    const own = { ...spec, routes: { kind: "table", rows } } as const;
    const state = initialState(own, { input: null });
    apply(state, (await transition(own, state, { kind: "start" })).patch);
    return await transition(own, state, completed(1));
  };
  expect(ended(await guarded(() => ({ fires: true, why: "n is 2" })))).toMatchObject({ output: "fired" });
  const almost = vi.fn().mockReturnValue({ fires: "yes", why: "n is 1" });
  expect((await guarded(almost)).trace.rejectedRows).toEqual([{ row: 0, why: "n is 1" }]);
  const thrower = () => {
    throw new Error("n is nothing");
  };
  expect((await guarded(thrower)).trace.rejectedRows).toEqual([
    { row: 0, why: "its condition failed: n is nothing", at: expect.stringMatching(/machine\.test\.ts:\d+:\d+$/) },
  ]);
});

describe("a long table", () => {
  const rows = (count: number, last: boolean) => {
    const never = { from: "a", on: "success", when: () => false, to: "a" } as const;
    const { spec } = readDefinition({
      id: "p",
      input,
      stages: { a: work() },
      initial: "a",
      transitions: [
        ...Array.from({ length: count }, () => never),
        ...(last ? [{ from: "a", on: "success", to: done(1) } as const] : []),
      ],
    });
    return spec;
  };

  test("records 20 rows that did not fire, and how many more there were", async () => {
    const spec = rows(25, true);
    const state = initialState(spec, { input: null });
    apply(state, (await transition(spec, state, { kind: "start" })).patch);
    const { trace } = await transition(spec, state, completed(1));
    expect(trace).toMatchObject({ by: "table", row: 25, moreRejectedRows: 5 });
    expect(trace.rejectedRows).toHaveLength(20);
  });

  test("of which no row fired ends with a message that lists 20 rows and counts the others", async () => {
    const messageOf = async (count: number): Promise<unknown> => {
      const spec = rows(count, false);
      const state = initialState(spec, { input: null });
      apply(state, (await transition(spec, state, { kind: "start" })).patch);
      return ended(await transition(spec, state, completed(1)));
    };
    expect(await messageOf(20)).toMatchObject({ message: expect.stringMatching(/row 19: [^;]+\)$/) });
    expect(await messageOf(25)).toMatchObject({ message: expect.stringMatching(/row 19: [^;]+; and 5 more\)$/) });
  });
});
