import {
  backToInterrupted,
  cancel,
  done,
  fail,
  fanOut,
  final,
  forEach,
  fork,
  invoke,
  pipeline,
  route,
  to,
} from "@sluice/core";
import { contextOf, initialState, legalEvents } from "@sluice/core/machine";
import { isDecision } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { fromRecordedStart, isRecordedStart } from "../../packages/core/src/machine/recorded-decision.ts";
import {
  byEvents,
  compiled,
  type Definition,
  effectOf,
  event,
  guard,
  result,
  started,
} from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

// What the machine says of a move in words, what it records of one, and what states and conditions read of an event.

type Choice = NonNullable<Definition["transitions"]>[number]["to"];
const input = { type: "object" } as const;
const child = pipeline({
  id: "child",
  input,
  stages: { only: work() },
  initial: "only",
  next: { only: () => done(1) },
});
const stages = { a: byEvents(), b: work(), c: work(), d: work(), audit: byEvents(), ok: final("completed") };
const BRANCHES = { left: { initial: "b", terminal: "d" }, right: { initial: "c", terminal: "d" } } as const;
const CHOICES: readonly (readonly [words: string, Choice])[] = [
  ["b", "b"],
  ["ok", to("ok")],
  ["b and c, then d", fanOut(["b", "c"], { join: "d" })],
  ["b for each of 2 items, then d", forEach("b", [1, 2], { key: (item) => String(item), join: "d" })],
  ["left (b to d) and right (c to d), then ok", fork(BRANCHES, { onComplete: "ok" })],
  ["left (b to d) or right (c to d), then ok", fork(BRANCHES, { join: "any", onComplete: "ok" })],
  ["pipeline child, then ok", invoke("child", { onComplete: "ok" })],
  ["the interrupted state", backToInterrupted()],
  ["the end of the run", done(1)],
  ["a failed end: too bad", fail("too bad")],
  ["a cancelled end: enough", cancel("enough")],
];
/** Rows of one event each, and routes for the rest. */
const definition = (choices: readonly Choice[], more: Partial<Definition> = {}): Definition => ({
  stages,
  pipelines: { child },
  interrupts: { SQL: { files: "*.sql", target: "audit" } },
  transitions: [
    ...choices.map((choice, index) => ({
      from: "a",
      on: { event: `E${index}` },
      to: choice,
      approval: { message: "Sure?" },
    })),
    { from: "a", on: { event: "END" }, when: guard(true), to: "ok" },
    ...["b", "c", "d"].map((from) => ({ from, on: "success" as const, to: "ok" })),
    { from: "audit", on: { event: "BACK" }, to: backToInterrupted() },
    { from: "audit", on: { event: "ALL" }, to: fanOut(["b", "c"], { join: "d" }) },
  ],
  ...more,
});

describe("where an event leads", () => {
  test.each(CHOICES)("is said as: %s", async (words, choice) => {
    const { spec, step } = await started(definition([choice]));
    expect(legalEvents(spec, "a")).toStrictEqual([
      { event: "E0", targets: [{ to: words, approval: true }] },
      { event: "END", targets: [{ to: "ok", when: "always true", approval: false }] },
    ]);
    if (words === "the interrupted state") await step({ kind: "interrupt", name: "SQL", path: "a.sql" });
    // The person who approves the move reads the same.
    const asked = words === "the interrupted state" ? undefined : effectOf(await step(event("E0")), "approve");
    if (asked !== undefined) expect(asked).toMatchObject({ message: "Sure?", from: "a", to: words, event: "E0" });
  });

  test("is said in the order of the rows, which may be for any state", async () => {
    const { spec } = compiled({
      stages: { a: byEvents(), ok: final("completed") },
      transitions: [
        { from: "a", on: { event: "GO" }, when: guard(false), to: "a" },
        { from: "*", on: { event: "*" }, to: "ok" },
        { from: "*", on: { event: "GO" }, to: "ok" },
        { from: "a", on: "failure", to: "ok" },
      ],
    });
    expect(legalEvents(spec, "a")).toStrictEqual([
      {
        event: "GO",
        targets: [
          { to: "a", when: "always false", approval: false },
          { to: "ok", approval: false },
        ],
      },
      { event: "*", targets: [{ to: "ok", approval: false }] },
    ]);
  });

  test("is nothing for a state that completes otherwise, for one that is not there, and without a table", () => {
    const { spec } = compiled(definition([]));
    for (const state of ["b", "ok", "nowhere"]) expect(legalEvents(spec, state)).toEqual([]);
    expect(legalEvents(child.spec, "only")).toEqual([]);
  });
});

describe("a record", () => {
  const branch = { kind: "branch", key: "x", state: "b", terminal: "c", input: null };
  const invoked = { kind: "invoke", key: "x", pipeline: "child", input: {} };
  const fanned = (sibling: object) => ({ kind: "fanOut", siblings: [sibling], join: "d", input: null });
  const isOf = (choice: object): boolean => isDecision(JSON.parse(JSON.stringify({ by: "table", choice })));

  test("of a return, a stay, a branch or another pipeline is a decision", () => {
    for (const choice of [{ kind: "return" }, { kind: "stay", reason: "no" }, fanned(branch), fanned(invoked)])
      expect([choice, isOf(choice)]).toEqual([choice, true]);
    expect(isOf({ kind: "stay" })).toBe(false);
  });

  test.each([
    ...(["key", "state", "terminal"] as const).map((without) => ({ without, of: branch })),
    ...(["key", "pipeline", "input"] as const).map((without) => ({ without, of: invoked })),
  ])("of a child without $without is none", ({ without, of }) => {
    const { [without]: _left, ...rest }: Record<string, unknown> = of;
    expect(isOf(fanned(rest))).toBe(false);
    expect(isOf(fanned({ ...rest, [without]: 1 }))).toBe(false);
  });

  test("of a child of another kind is none", () => {
    expect(isOf(fanned({ ...branch, ...invoked, kind: "other" }))).toBe(false);
  });

  test("of a start holds its choice, or why there is none", () => {
    const choice = { kind: "to", state: "a", input: 1 } as const;
    expect(isRecordedStart({ ok: true, choice })).toBe(true);
    expect(isRecordedStart({ ok: true, reason: "broken" })).toBe(false);
    expect(isRecordedStart({ ok: false, reason: "broken" })).toBe(true);
    expect(isRecordedStart({ ok: false, choice: { kind: "to" } })).toBe(false);
    expect(fromRecordedStart({ ok: true, choice })).toEqual({ by: "default", choice });
  });
});

describe("a state that an event led to", () => {
  test("reads the event and its rationale; one that something else led to reads neither", async () => {
    const arrived = async (data: { rationale?: string }) => {
      const { step, state } = await started(
        definition([], {
          transitions: [
            { from: "a", on: { event: "GO" }, to: "a" },
            { from: "a", on: "failure", to: "ok" },
          ],
          stages: { a: byEvents(), ok: final("completed") },
          interrupts: {},
          pipelines: {},
        }),
      );
      expect("arrivedBy" in contextOf(state)).toBe(false);
      expect(state.at).toStrictEqual({ state: "a", input: {}, visit: 1 });
      await step(event("GO", data));
      return contextOf(state).arrivedBy;
    };
    expect(await arrived({ rationale: "it is time" })).toStrictEqual({ event: "GO", rationale: "it is time" });
    expect(await arrived({})).toStrictEqual({ event: "GO" });
  });

  test("is decided about as a completion of the execution that sent it, which used nothing itself", async () => {
    const seen: Parameters<ReturnType<typeof guard>["evaluate"]>[0][] = [];
    const { step, state } = await started({
      stages: { a: byEvents(), b: work(), c: work(), ok: final("completed") },
      transitions: [
        {
          from: "a",
          on: { event: "GO" },
          when: guard(true, "", seen),
          to: fork({ x: { initial: "b", terminal: "c" } }, { onComplete: "ok" }),
        },
        { from: "a", on: "failure", when: guard(true, "", seen), to: "ok" },
        { from: "b", on: "success", to: "c" },
        { from: "c", on: "success", to: "ok" },
      ],
    });
    await step({ ...event("GO"), ctx: contextOf(state, { attempt: 3 }) });
    const own = { executionId: "a#1", attempts: 3, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
    expect(seen[0]?.result).toEqual({ ...own, status: "completed", output: { event: "GO", data: {} } });
    // The fan-out that it began fails as that execution.
    await step({ kind: "children", ended: [{ key: "x", turns: 0, status: "failed", code: "tool", message: "broke" }] });
    expect(seen[1]?.result).toMatchObject({ ...own, status: "failed", code: "fan_out" });
    expect(seen[1]?.ctx).toMatchObject({ attempt: 3, visit: 1 });
  });

  test("that no row names is an event, not an answer to *, and is refused for that", async () => {
    const { step } = await started(definition([]));
    const { trace, effect, patch } = await step(event("OTHER"));
    expect(effect).toMatchObject({ kind: "stay", rejected: [] });
    expect(patch).toEqual({});
    expect(trace).toStrictEqual({
      by: "event",
      event: "OTHER",
      choice: { kind: "stay", reason: 'a has no event "OTHER"' },
    });
  });
});

test.each([
  ["its name is no text for a record", "x".repeat(300), {}],
  ["its data has a reserved key", "END", { _own: 1 }],
] as const)(
  "an event is refused because %s, and the record names it in at most 80 characters",
  async (_why, name, data) => {
    const { step } = await started(definition([]));
    const { trace } = await step(event(name, data));
    expect(trace).toMatchObject({ by: "event", event: name.slice(0, 80), choice: { kind: "stay" } });
    expect(trace.event?.length).toBeLessThanOrEqual(80);
  },
);

test("the question about a result names no event", async () => {
  const { step } = await started({
    stages: { a: work(), ok: final("completed") },
    transitions: [{ from: "a", on: "success", to: "ok", approval: {} }],
  });
  const { decision, ...asked } = effectOf(await step(result({ status: "completed", output: 1 })), "approve");
  expect(asked).toStrictEqual({ kind: "approve", message: undefined, from: "a", to: "ok" });
  expect(decision.approval).toEqual({ row: 0 });
});

describe("a row", () => {
  test("without a label is not labelled in the trace", async () => {
    const { step } = await started({
      stages: { a: byEvents(), ok: final("completed") },
      transitions: [
        { from: "a", on: { event: "GO" }, when: guard(false), to: "ok" },
        { from: "a", on: { event: "GO" }, when: guard(false), label: "GO[1]", to: "ok" },
        { from: "a", on: { event: "GO" }, to: "ok" },
      ],
    });
    expect((await step(event("GO"))).trace.rejectedRows).toStrictEqual([
      { row: 0, why: "no" },
      { row: 1, label: "GO[1]", why: "no" },
    ]);
  });

  test("of an event says so where a result looks for its own", async () => {
    const { step } = await started(definition([]));
    const { trace } = await step(result({ status: "failed", code: "tool", message: "no" }));
    expect(trace.rejectedRows).toEqual([{ row: 0, why: "it is for the event END, this was failure" }]);
  });

  test("whose choice cannot be followed fails the run at once, and asks no one", async () => {
    const strict = work({ inputSchema: { type: "object", required: ["n"] } });
    const { step } = await started({
      stages: { a: work(), b: strict, ok: final("completed") },
      transitions: [
        { from: "a", on: "success", to: "b", input: () => ({}), approval: { message: "Sure?" } },
        { from: "b", on: "success", to: "ok" },
      ],
    });
    const next = await step(result({ status: "completed", output: 1 }));
    expect(effectOf(next, "end").end).toMatchObject({ status: "failed", code: "failed" });
    expect(next.trace.approval).toBeUndefined();
  });

  test("makes its input from the result, and it has to fit only then", async () => {
    const strict = work({ inputSchema: { type: "object", required: ["made"] } });
    const { step } = await started({
      stages: { a: work(), b: strict, ok: final("completed") },
      transitions: [
        { from: "a", on: "success", to: "b", input: (made, ctx) => ({ made: made.status, visit: ctx.visit }) },
        { from: "b", on: "success", to: "ok" },
      ],
    });
    const next = await step(result({ status: "completed", output: 1 }));
    expect(effectOf(next, "enter").input).toEqual({ made: "completed", visit: 1 });
  });
});

describe("what a completed state adds", () => {
  const adding = { adds: { context: { n: 1 }, upstream: { first: 1, second: 2 } } };
  const two: Definition = {
    stages: { a: work(), b: work(), ok: final("completed") },
    transitions: [
      { from: "a", on: "success", to: to("b", null, { context: { m: 2 } }) },
      { from: "a", on: "failure", to: "b" },
      { from: "b", on: "success", to: "ok" },
    ],
  };

  test("merges under what its row sets, and its parts stand before its own output", async () => {
    const { step, state } = await started(two);
    const next = await step(result({ status: "completed", output: "own", ...adding }));
    expect(next.patch.context).toEqual({ n: 1, m: 2 });
    expect(Object.entries(state.outputs.object)).toEqual([
      ["first", 1],
      ["second", 2],
      ["a", "own"],
    ]);
  });

  test("is nothing without it", async () => {
    const { step, state } = await started(two);
    await step(result({ status: "completed", output: "own" }));
    expect(Object.keys(state.outputs.object)).toEqual(["a"]);
  });
});

test("the facts of the project are read in every context, and are absent where nothing reads them", () => {
  const { spec } = compiled(definition([]));
  const project = { agents: "Be brief." };
  expect(contextOf(initialState(spec, { input: {}, project })).project).toEqual(project);
  expect("project" in contextOf(initialState(spec, { input: {} }))).toBe(false);
  expect("project" in initialState(spec, { input: {} }).run).toBe(false);
});

describe("a route that declares its targets", () => {
  const ALL = ["b", "c", "d", "e", "ok"] as const;
  const routed = (targets: readonly (typeof ALL)[number][]) =>
    started({
      stages: { a: work(), b: work(), c: work(), d: work(), e: work(), ok: final("completed") },
      next: {
        a: {
          completed: route(targets, () => fork(BRANCHES, { onComplete: "ok", onFail: "e" })),
          failed: () => fanOut(["b", "c", "d"], { join: "e" }),
        },
        b: () => to("d"),
        c: () => to("d"),
        d: () => to("ok"),
        e: () => to("ok"),
      },
    });

  test.each(ALL)("may not lead a branch, its terminal, a join or a failed fork to %s without it", async (missing) => {
    const targets = ALL.filter((id) => id !== missing);
    const { step } = await routed(targets);
    const { trace } = await step(result({ status: "completed", output: 1 }));
    expect(trace.rejected).toContain(`went to ${missing}, but was declared for ${targets.join(", ")}`);
  });

  test("leads there with all of them, and another pipeline is none", async () => {
    const { step } = await routed(ALL);
    expect((await step(result({ status: "completed", output: 1 }))).effect.kind).toBe("fanOut");
    const invoking = await started({
      stages: { a: work(), ok: final("completed") },
      pipelines: { child },
      next: { a: route(["ok"], () => invoke("child", { onComplete: "ok" })) },
    });
    expect((await invoking.step(result({ status: "completed", output: 1 }))).effect.kind).toBe("fanOut");
  });
});
