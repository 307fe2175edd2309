import { done, fail, type GuardScope, type Json, type JsonObject, to } from "@sluice/core";
import { contextOf, decide, follow, legalEvents } from "@sluice/core/machine";
import { expect, test } from "vitest";
import {
  byEvents,
  completed,
  type Definition,
  effectOf,
  enteredBy,
  event,
  guard,
  started,
} from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

/** `a` and `b` send events, `c` completes with an output. */
const stages = { a: byEvents(), b: byEvents(), c: work() };
type Rows = NonNullable<Definition["transitions"]>;
const REST: Rows = [
  { from: "b", on: { event: "END" }, to: done("over") },
  { from: "c", on: "success", to: done("over") },
  { from: "a", on: { event: "C" }, to: "c" },
  { from: "a", on: { event: "B" }, to: "b" },
];
const machine = (rows: Rows, more: Partial<Definition> = {}) =>
  started({ stages, transitions: [...rows, ...REST], ...more });

test("an event takes the first of its rows whose guard fires, in the order of the table", async () => {
  const { step, state } = await machine([
    { from: "a", on: { event: "OTHER" }, to: "b" },
    { from: "a", on: { event: "GO" }, when: guard(false, "x is 1"), to: "b", label: "GO[0]" },
    { from: "a", on: { event: "GO" }, when: guard(true), to: "c" },
    { from: "a", on: { event: "GO" }, to: "b" },
  ]);
  const next = await step(event("GO"));
  expect(enteredBy(next)).toBe("c");
  expect(next.trace).toMatchObject({ by: "event", event: "GO", row: 2, choice: { kind: "to", state: "c" } });
  // Rows of other events are not even looked at.
  expect(next.trace.rejectedRows).toEqual([{ row: 1, label: "GO[0]", why: "x is 1" }]);
  expect(state).toMatchObject({ hops: 1, at: { state: "c", visit: 1 } });
  expect(contextOf(state).upstream).toEqual({ a: { event: "GO", data: {} } });
});

test("an event whose guards do not fire leaves the state where it is, with every row's reason and the legal events", async () => {
  const { step, state } = await machine([
    { from: "a", on: { event: "GO" }, when: guard(false, "x is 1"), to: "b" },
    { from: "*", on: { event: "GO" }, when: guard(false, "y is 2"), to: "c" },
  ]);
  const before = structuredClone({ ...state, outputs: state.outputs.object });
  const next = await step(event("GO", { x: 2 }));
  const { reason, rejected, legal } = effectOf(next, "stay");
  expect(reason).toBe('no condition of the event "GO" holds: row 0: x is 1; row 1: y is 2');
  expect(rejected).toEqual([
    { row: 0, why: "x is 1" },
    { row: 1, why: "y is 2" },
  ]);
  expect(legal.map(({ event: name }) => name)).toEqual(["GO", "C", "B"]);
  expect(next.patch).toEqual({});
  expect(next.trace).toMatchObject({ by: "event", event: "GO", choice: { kind: "stay" } });
  expect({ ...state, outputs: state.outputs.object }).toEqual(before);
});

test("a stay names 20 rows at most and counts the others", async () => {
  const many = Array.from({ length: 25 }, (_, n) => ({ when: guard(false, `no ${n}`) }));
  const { step } = await machine(many.map((row) => ({ from: "a", on: { event: "GO" }, to: "b", ...row })));
  const next = await step(event("GO"));
  expect(effectOf(next, "stay").rejected).toHaveLength(20);
  expect(next.trace).toMatchObject({ moreRejectedRows: 5 });
});

test("a guard that throws does not fire, and says why", async () => {
  const broken = {
    text: "broken",
    evaluate: () => {
      throw new Error("out of bounds");
    },
  };
  const { step } = await machine([{ from: "a", on: { event: "GO" }, when: broken, to: "b" }]);
  expect(effectOf(await step(event("GO")), "stay").rejected).toEqual([
    {
      row: 0,
      why: "its condition failed: out of bounds",
      at: expect.stringMatching(/machine-events\.test\.ts:\d+:\d+$/),
    },
  ]);
});

test("an event that no row names stays: nothing else is guessed from it", async () => {
  const { step } = await machine([]);
  for (const name of ["GO", "c", "*", "success"]) {
    const { reason } = effectOf(await step(event(name)), "stay");
    expect(reason).toBe(`a has no event ${JSON.stringify(name)}`);
  }
});

test.each(["x".repeat(201), "GO\u0007", "G\u202eO", "GO\ud800"])("an event called %j stays", async (name) => {
  const { step } = await machine([{ from: "a", on: { event: "*" }, to: "b" }]);
  expect(effectOf(await step(event(name)), "stay").reason).toContain("the name of the event ");
});

test("a state that completes with an output sends no events, even where a row is for all states", async () => {
  const { step } = await machine([{ from: "*", on: { event: "GO" }, to: "b" }]);
  await step(event("C"));
  expect(effectOf(await step(event("GO")), "stay").reason).toBe("c sends no events");
});

// safe_next

test("an event that no row names takes a row of *, with the guards of that row", async () => {
  const { step, state } = await machine([
    { from: "a", on: { event: "*" }, when: guard(false, "too early"), to: "b" },
    { from: "a", on: { event: "*" }, to: "c" },
  ]);
  const next = await step(event("whatever it says"));
  expect(enteredBy(next)).toBe("c");
  expect(next.trace).toMatchObject({
    by: "safe_next",
    event: "whatever it says",
    row: 1,
    rejectedRows: [{ row: 0, why: "too early" }],
  });
  expect(contextOf(state).upstream.a).toEqual({ event: "whatever it says", data: {} });
});

test("any text is an event for a * row, and one that differs by a space is another", async () => {
  for (const name of ["", "GO ", "go"]) {
    const { step } = await machine([
      { from: "a", on: { event: "GO" }, to: "b" },
      { from: "a", on: { event: "*" }, to: "c" },
    ]);
    expect((await step(event(name))).trace).toMatchObject({ by: "safe_next", event: name });
  }
});

test("a * row whose guard does not fire keeps the state", async () => {
  const { step } = await machine([{ from: "a", on: { event: "*" }, when: guard(false, "too early"), to: "b" }]);
  const next = await step(event("X"));
  expect(effectOf(next, "stay").rejected).toEqual([{ row: 0, why: "too early" }]);
  expect(next.trace.by).toBe("safe_next");
});

test("a row that names the event decides alone: a * row does not stand in for its guard", async () => {
  const { step } = await machine([
    { from: "a", on: { event: "*" }, to: "b" },
    { from: "a", on: { event: "GO" }, when: guard(false, "no"), to: "c" },
  ]);
  const next = await step(event("GO"));
  expect(effectOf(next, "stay").rejected).toEqual([{ row: 1, why: "no" }]);
});

test("a row of another state does not make an event known", async () => {
  const { step } = await machine([{ from: "a", on: { event: "*" }, to: "c" }]);
  expect((await step(event("END"))).trace).toMatchObject({ by: "safe_next", choice: { state: "c" } });
});

test("the literal event * is one that no row names", async () => {
  const { step } = await machine([{ from: "a", on: { event: "*" }, to: "c" }]);
  expect((await step(event("*"))).trace).toMatchObject({ by: "safe_next", event: "*" });
});

// Data and context

test("the data merges into the shared object when the machine moves, all of it, key by key", async () => {
  const context = { kept: 1, replaced: { deep: true } };
  const { step, state } = await machine([], { context });
  const data = { replaced: 2, rationale: "it is ready", added: [1] };
  const { trace, patch } = await step(event("B", data));
  expect(patch.context).toEqual(data);
  expect(trace).toMatchObject({ rationale: "it is ready", context: data });
  expect(state.context).toEqual({ kept: 1, ...data });
  expect(contextOf(state).upstream.a).toEqual({ event: "B", data });
});

test("what a row sets stands above the data of the event", async () => {
  const { step, state } = await machine([
    { from: "a", on: { event: "GO" }, to: to("b", undefined, { context: { safe: true } }) },
  ]);
  await step(event("GO", { safe: false, other: 1 }));
  expect(state.context).toEqual({ safe: true, other: 1 });
});

test("guards read the context before the data, and the event as a completed result", async () => {
  const seen: GuardScope[] = [];
  const { step } = await machine([{ from: "a", on: { event: "GO" }, when: guard(true, "", seen), to: "b" }], {
    context: { n: 1 },
  });
  await step(event("GO", { n: 2 }));
  expect(seen).toHaveLength(1);
  expect(seen[0]?.ctx.context).toEqual({ n: 1 });
  expect(seen[0]?.result).toMatchObject({
    status: "completed",
    executionId: "a#1",
    output: { event: "GO", data: { n: 2 } },
  });
  expect(Object.isFrozen(seen[0]?.result)).toBe(true);
});

test("guards read the context that the state's hooks read, if it is given", async () => {
  const seen: GuardScope[] = [];
  const { step, state } = await machine([{ from: "a", on: { event: "GO" }, when: guard(true, "", seen), to: "b" }]);
  const ctx = contextOf(state, { attempt: 3, setup: "ready" });
  await step({ ...event("GO"), ctx });
  expect(seen[0]?.ctx).toBe(ctx);
  expect(seen[0]?.result).toMatchObject({ attempts: 3 });
});

test.each<readonly [string, JsonObject]>([
  ["_interrupt_return", { _interrupt_return: true }],
  ["_fork", { _fork: [] }],
  ["__proto__", JSON.parse('{ "__proto__": { "admin": true } }')],
  ["constructor", { constructor: 1 }],
])("data with %s is refused, and the state stays", async (key, data) => {
  const { step, state } = await machine([]);
  expect(effectOf(await step(event("B", data)), "stay").reason).toBe(
    `the data cannot be used: the context cannot hold ${JSON.stringify(key)}`,
  );
  expect(state.context).toEqual({});
});

test("a rationale is cut at 2,000 characters, and is one only as a text", async () => {
  const { spec, state } = await machine([]);
  const of = async (rationale: Json) => (await decide(spec, state, event("B", { rationale }))).rationale;
  expect(await of("x".repeat(3_000))).toBe("x".repeat(2_000));
  expect((await of(`${"x".repeat(1_999)}😀`))?.isWellFormed()).toBe(true);
  expect(await of(["not", "text"])).toBeUndefined();
});

test("data also merges when the event ends the run", async () => {
  const { step, state } = await machine([{ from: "a", on: { event: "STOP" }, to: done("enough") }]);
  const next = await step(event("STOP", { why: "time" }));
  expect(effectOf(next, "end").end).toEqual({ status: "completed", output: "enough" });
  expect(state.context).toEqual({ why: "time" });
});

test("a cap that stops the move merges nothing", async () => {
  const { step, state } = await machine([{ from: "a", on: { event: "AGAIN" }, to: "a" }], { limits: { maxVisits: 1 } });
  const next = await step(event("AGAIN", { n: 1 }));
  expect(effectOf(next, "end").end).toMatchObject({ code: "limit_visits" });
  expect(state.context).toEqual({});
});

test("an event is one hop, and a stay is none", async () => {
  const { step, state } = await machine([{ from: "a", on: { event: "AGAIN" }, to: "a" }], { limits: { maxHops: 1 } });
  await step(event("NO"));
  expect(state.hops).toBe(0);
  await step(event("AGAIN"));
  expect(effectOf(await step(event("AGAIN")), "end").end).toMatchObject({ code: "limit_hops" });
});

// Decisions that were taken before the state has ended

test("an accepted decision is followed with the result that the state ends with, whose turns and output count", async () => {
  const { spec, state } = await machine([]);
  const decision = await decide(spec, state, event("B", { n: 1 }));
  const next = follow(spec, state, completed({ event: "B", data: { n: 1 } }), decision);
  expect(next.effect).toMatchObject({ kind: "enter", state: "b" });
  expect(next.patch).toMatchObject({
    turns: [{ state: "a", turns: 2 }],
    outputs: [{ state: "a", output: { event: "B", data: { n: 1 } } }],
    context: { n: 1 },
    hops: 1,
  });
});

test("a decision to stay belongs to an event: a result cannot leave a state where it is", async () => {
  const { spec, state } = await machine([]);
  const decision = await decide(spec, state, event("NO"));
  expect(() => follow(spec, state, completed(1), decision)).toThrow("only a state that sent an event can stay");
});

test("a row that cannot be followed fails the run", async () => {
  const strict = work({ inputSchema: { type: "object", properties: {}, required: ["n"] } });
  const input = { n: 1 };
  const { spec, step } = await started({
    stages: { a: byEvents(), c: strict },
    transitions: [
      { from: "a", on: { event: "GO" }, to: to("c", input) },
      { from: "c", on: "success", to: done(1) },
    ],
  });
  // Plain code may change its choice later.
  if (spec.routes.kind === "table" && spec.routes.rows[0]?.to !== undefined) Reflect.deleteProperty(input, "n");
  const next = await step(event("GO"));
  expect(effectOf(next, "end").end).toMatchObject({ status: "failed", code: "failed" });
  expect(next.trace.rejected).toContain("does not fit its inputSchema");
});

test("a result of a state that sends events is not taken for one", async () => {
  const { step } = await machine([]);
  expect(effectOf(await step(completed({ event: "B", data: {} })), "end").end).toMatchObject({
    status: "failed",
    message: expect.stringContaining("a completed, and no row says what comes next"),
  });
});

// What a state may send

test("the legal events list each event once, its targets with their conditions and approvals in words", async () => {
  const { spec } = await machine([
    { from: "a", on: { event: "GO" }, when: guard(true), to: "b", approval: {} },
    { from: "*", on: { event: "GO" }, to: fail("no") },
    { from: "a", on: "failure", to: "b" },
    { from: "a", on: { event: "*" }, to: "c" },
    { from: "b", on: { event: "ONLY_B" }, to: "c" },
  ]);
  expect(legalEvents(spec, "a")).toEqual([
    {
      event: "GO",
      targets: [
        { to: "b", when: "always true", approval: true },
        { to: "a failed end: no", approval: false },
      ],
    },
    { event: "*", targets: [{ to: "c", approval: false }] },
    { event: "C", targets: [{ to: "c", approval: false }] },
    { event: "B", targets: [{ to: "b", approval: false }] },
  ]);
  expect(legalEvents(spec, "c")).toEqual([]);
});

test.each(["null", "1", "{}"])("a condition that gives %s as its reason gave none", async (text) => {
  const { step } = await machine([{ from: "a", on: { event: "GO" }, when: guard(false, JSON.parse(text)), to: "b" }]);
  const { rejected } = effectOf(await step(event("GO")), "stay");
  expect(rejected).toEqual([{ row: 0, why: "its condition gave no reason" }]);
});
