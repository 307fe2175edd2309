import { done, fanOut, final, forEach, fork, invoke, to } from "@sluice/core";
import { type ChildEnd, contextOf, type MachineInput } from "@sluice/core/machine";
import { expect, test } from "vitest";
import { childState } from "../../packages/core/src/machine/machine-state.ts";
import {
  byEvents,
  compiled,
  completed,
  type Definition,
  effectOf,
  enteredBy,
  event,
  failed,
  guard,
  started,
  walkOf,
} from "../support/machine-kit.ts";
import { work } from "../support/run-kit.ts";

type Rows = NonNullable<Definition["transitions"]>;
/** `a` forks into `x` to `end` and `y` to `end`, and `join` follows. */
const stages = {
  a: work(),
  x: work(),
  y: work(),
  z: work(),
  end: work(),
  join: work(),
  rescue: work(),
  ok: final("completed"),
};
const BRANCHES = {
  left: { initial: "x", terminal: "end", input: { side: "left" } },
  right: { initial: "y", terminal: "end" },
} as const;
const REST: Rows = [
  { from: "x", on: "success", to: "z" },
  { from: "y", on: "success", to: "end" },
  { from: "z", on: "success", to: "end" },
  { from: "z", on: "failure", to: "ok" },
  { from: "join", on: "success", to: "ok" },
  { from: "rescue", on: "success", to: "ok" },
  { from: "a", on: "failure", to: "rescue" },
];
const machine = (choice: Rows[number]["to"], more: Partial<Definition> = {}, rows: Rows = []) =>
  started({ stages, transitions: [{ from: "a", on: "success", to: choice }, ...rows, ...REST], ...more });
const ALL = fork(BRANCHES, { onComplete: "join", input: { both: true } });
const good = (key: string, output: string): ChildEnd => ({ key, turns: 5, status: "completed", output });
const bad = (key: string, status: "failed" | "cancelled" = "failed"): ChildEnd => ({
  key,
  turns: 5,
  status,
  code: "tool",
  message: `${key} broke`,
});
const children = (...ended: ChildEnd[]): MachineInput => ({ kind: "children", ended });

test("a fork starts one child for each branch, in declared order, and visits their first states", async () => {
  const { step, state } = await machine(ALL);
  const next = await step(completed("from a"));
  const { fanOut, children: begun } = effectOf(next, "fanOut");
  expect(fanOut).toMatchObject({ id: "fan-1", choice: { onFailure: "cancel", join: "join", input: { both: true } } });
  expect(begun).toEqual([
    { kind: "branch", key: "left", state: "x", terminal: "end", input: { side: "left" } },
    { kind: "branch", key: "right", state: "y", terminal: "end", input: null },
  ]);
  expect([...state.counts].map(([id, { visits }]) => [id, visits])).toEqual([
    ["a", 1],
    ["x", 1],
    ["y", 1],
  ]);
  expect(state.hops).toBe(1);
});

test("the join sees the output of each branch under its key, and how it ended", async () => {
  const { step, state } = await machine(ALL);
  await step(completed("from a"));
  const next = await step(children(good("left", "L"), good("right", "R")));
  expect(next.effect).toEqual({ kind: "enter", state: "join", input: { both: true } });
  expect(contextOf(state)).toMatchObject({
    upstream: { a: "from a", left: "L", right: "R" },
    fork: { left: { status: "completed" }, right: { status: "completed" } },
  });
  // A branch walks through several states, so its turns are those of none.
  expect(state.counts.get("x")).toEqual({ visits: 1, turns: 0 });
  expect(state.hops).toBe(1);
});

test("one failed branch fails a fork of all, and the state's failure row decides", async () => {
  const { step, state } = await machine(ALL);
  await step(completed("from a"));
  const next = await step(children(bad("left"), bad("right", "cancelled")));
  expect(enteredBy(next)).toBe("rescue");
  expect(next.trace.by).toBe("table");
  expect(state.hops).toBe(2);
  expect(contextOf(state).upstream).toEqual({ a: "from a" });
});

test("a failed fork whose failure row leads to a completed final state has no output", async () => {
  const rows: Rows = [
    { from: "a", on: "success", to: ALL },
    { from: "a", on: "failure", to: to("ok", { calm: true }) },
    { from: "z", on: "skipped", to: "rescue" },
  ];
  const { step } = await started({ stages, transitions: [...rows, ...REST.slice(0, -1)] });
  await step(completed(1));
  const next = await step(children(bad("left"), good("right", "R")));
  expect(next.effect).toEqual({ kind: "end", end: { status: "completed", output: null, state: "ok" } });
});

test("a failed fork without a failure row fails the run, and says which branch it was", async () => {
  const { step } = await started({
    stages: { a: work(), x: work(), end: work(), ok: final("completed") },
    transitions: [
      { from: "a", on: "success", to: fork({ left: { initial: "x", terminal: "end" } }, { onComplete: "ok" }) },
      { from: "x", on: "success", to: "end" },
    ],
  });
  await step(completed(1));
  expect(effectOf(await step(children(bad("left"))), "end").end).toMatchObject({
    status: "failed",
    code: "fan_out",
    message: "a failed (fan_out): branches failed: left: left broke",
  });
});

test("a failed fork with onFail goes there by default, asks no failure row, and takes no hop", async () => {
  const asked: unknown[] = [];
  const seen = { text: "seen", evaluate: () => ({ fires: asked.push(1) > 0, why: "" }) };
  const rows: Rows = [{ from: "a", on: "failure", when: seen, to: "join" }];
  const { step, state } = await machine(fork(BRANCHES, { onComplete: "join", onFail: "rescue" }), {}, rows);
  await step(completed("from a"));
  const next = await step(children(good("left", "L"), bad("right")));
  expect(next.effect).toEqual({ kind: "enter", state: "rescue", input: null });
  expect(next.trace).toMatchObject({ by: "default", choice: { kind: "to", state: "rescue" } });
  expect(asked).toEqual([]);
  expect(state.hops).toBe(1);
  // It reads how each branch ended, and the outputs of a failed fork are not added.
  expect(contextOf(state).fork).toEqual({
    left: { status: "completed" },
    right: { status: "failed", code: "tool", message: "right broke" },
  });
  expect(contextOf(state).upstream).toEqual({ a: "from a" });
});

test("onFail may be a final state, and so may onComplete", async () => {
  const lost = { ...stages, lost: final("failed") };
  const choice = fork(BRANCHES, { onComplete: "ok", onFail: "lost", input: "all is well" });
  const of = () =>
    started({
      stages: { ...lost },
      transitions: [{ from: "a", on: "success", to: choice }, { from: "a", on: "skipped", to: "join" }, ...REST],
    });
  const one = await of();
  await one.step(completed(1));
  expect(effectOf(await one.step(children(bad("left"), good("right", "R"))), "end").end).toMatchObject({
    status: "failed",
    message: "ended in state lost, after branches failed: left: left broke",
    state: "lost",
  });
  const other = await of();
  await other.step(completed(1));
  expect(effectOf(await other.step(children(good("left", "L"), good("right", "R"))), "end").end).toEqual({
    status: "completed",
    output: "all is well",
    state: "ok",
  });
});

test("a fork of any completes with its first branch, and fails only when all fail", async () => {
  const any = fork(BRANCHES, { join: "any", onComplete: "join", onFail: "rescue" });
  const { step, state } = await machine(any);
  expect(effectOf(await step(completed(1)), "fanOut").fanOut.choice.onFailure).toBe("any");
  expect(enteredBy(await step(children(bad("left", "cancelled"), good("right", "R"))))).toBe("join");
  expect(contextOf(state).upstream).toEqual({ a: 1, right: "R" });
  expect(contextOf(state).fork).toMatchObject({ left: { status: "cancelled" }, right: { status: "completed" } });
  const other = await machine(any);
  await other.step(completed(1));
  expect(enteredBy(await other.step(children(bad("left"), bad("right"))))).toBe("rescue");
});

test("branches count as one visit of their first state, also where several start in it", async () => {
  const twice = fork(
    { one: { initial: "x", terminal: "end" }, two: { initial: "x", terminal: "z" } },
    { onComplete: "join" },
  );
  const { y: _y, rescue: _rescue, ...rest } = stages;
  const transitions: Rows = [
    { from: "a", on: "success", to: twice },
    ...REST.filter(({ from, to: target }) => from !== "y" && from !== "rescue" && target !== "rescue"),
  ];
  const within = (maxVisits: number) => started({ stages: rest, transitions, limits: { maxVisits } });
  const { step, state } = await within(1);
  await step(completed(1));
  expect(state.counts.get("x")?.visits).toBe(1);
});

// Inside a branch

async function branch(rows: Rows = []) {
  const { spec, state: parent } = await machine(ALL, { context: { n: 1 } }, rows);
  const entered = { state: "x", input: { side: "left" }, visit: 1 };
  return await walkOf(spec, childState(parent, { id: "r/fan-1/left", entered, turns: 0, terminal: "end" }));
}

test("a branch walks along the routes, and completes with the output that leads to its terminal state", async () => {
  const { step, state } = await branch();
  expect(contextOf(state)).toMatchObject({ context: { n: 1 }, input: { side: "left" } });
  expect(enteredBy(await step(completed("from x")))).toBe("z");
  const next = await step(completed("from z"));
  expect(next.effect).toEqual({ kind: "end", end: { status: "completed", output: "from z", state: "end" } });
  // The terminal state is not entered.
  expect(state.counts.has("end")).toBe(false);
});

test("a branch that ends the run before its terminal state has failed", async () => {
  const { step } = await branch();
  await step(completed(1));
  expect(effectOf(await step(failed("broke")), "end").end).toEqual({
    status: "failed",
    code: "failed",
    message: "the branch ended in ok, before its terminal state end",
    state: "ok",
  });
  const ended = await branch([{ from: "x", on: "failure", to: done("early") }]);
  expect(effectOf(await ended.step(failed("broke")), "end").end).toMatchObject({
    status: "failed",
    message: "the branch ended with done(), before its terminal state end",
  });
  const unhandled = await branch();
  expect(effectOf(await unhandled.step(failed("broke")), "end").end).toMatchObject({ status: "failed", code: "tool" });
});

test("a fork inside a branch may continue in the branch's terminal state, which completes it", async () => {
  const inner = fork({ in: { initial: "z", terminal: "end" } }, { onComplete: "end", input: "inner" });
  const { step } = await branch([{ from: "x", on: "failure", to: inner }]);
  await step(failed("broke"));
  expect(effectOf(await step(children(good("in", "I"))), "end").end).toEqual({
    status: "completed",
    output: "inner",
    state: "end",
  });
});

test("the terminal state of a branch can handle an interrupt inside the branch", async () => {
  const { spec, state: parent } = await machine(ALL, { interrupts: { i: { files: "**", target: "end" } } }, [
    { from: "end", on: "success", to: "ok" },
  ]);
  const entered = { state: "x", input: null, visit: 1 };
  const { step } = await walkOf(spec, childState(parent, { id: "r/fan-1/left", entered, turns: 0, terminal: "end" }));
  expect(enteredBy(await step({ kind: "interrupt", name: "i", path: "x" }))).toBe("end");
});

test("a branch continues the counts of the run that forked, and a sibling has its own", async () => {
  const { state: parent, step: parentStep } = await machine(ALL);
  await parentStep(completed("from a"));
  const entered = { state: "x", input: null, visit: 1 };
  const branched = childState(parent, { id: "r/fan-1/left", entered, turns: 0, terminal: "end" });
  expect([branched.hops, branched.counts.get("a")?.visits]).toEqual([1, 1]);
  const sibling = childState(parent, { id: "r/fan-1/x", entered, turns: 4 });
  expect([sibling.hops, [...sibling.counts]]).toEqual([0, [["x", { visits: 1, turns: 4 }]]]);
  for (const each of [branched, sibling]) expect(each.suspended).toEqual([]);
});

test("forks are four deep at most; siblings count as none", async () => {
  const { spec, state: parent } = await machine(ALL);
  const entered = { state: "a", input: null, visit: 1 };
  const nested = (depth: number) =>
    Array.from({ length: depth }).reduce<typeof parent>(
      (state) => childState(state, { id: "r", entered, turns: 0, terminal: "end" }),
      parent,
    );
  const forked = async (state: typeof parent) => await (await walkOf(spec, state)).step(completed(1));
  expect((await forked(nested(3))).effect.kind).toBe("fanOut");
  expect((await forked(childState(nested(3), { id: "r", entered, turns: 0 }))).effect.kind).toBe("fanOut");
  expect(effectOf(await forked(nested(4)), "end").end).toEqual({
    status: "failed",
    code: "limit_forks",
    limit: "forks",
    message: "more than 4 forks are inside each other",
  });
});

test("what runs its states once each may be inside four forks", async () => {
  const { spec, state: parent } = await machine(fanOut(["x", "y"], { join: "join" }), {}, [
    { from: "join", on: "failure", to: ALL },
  ]);
  const entered = { state: "a", input: null, visit: 1 };
  let state = parent;
  for (let depth = 0; depth < 4; depth += 1) state = childState(state, { id: "r", entered, turns: 0, terminal: "end" });
  expect((await (await walkOf(spec, state)).step(completed(1))).effect.kind).toBe("fanOut");
});

test("an empty list inside four forks enters its join", async () => {
  const { spec, state: parent } = await machine(forEach("x", [], { key: String, join: "join" }), {}, [
    { from: "join", on: "failure", to: ALL },
  ]);
  const entered = { state: "a", input: null, visit: 1 };
  let state = parent;
  for (let depth = 0; depth < 4; depth += 1) state = childState(state, { id: "r", entered, turns: 0, terminal: "end" });
  expect(enteredBy(await (await walkOf(spec, state)).step(completed(1)))).toBe("join");
});

test("a failed fork that nothing handles has the place of the first branch that has one", async () => {
  const rows: Rows = [
    { from: "a", on: "success", to: ALL },
    { from: "y", on: "failure", to: "rescue" },
  ];
  const { step } = await started({ stages, transitions: [...rows, ...REST.slice(0, -1)] });
  await step(completed(1));
  const right: ChildEnd = { key: "right", turns: 5, status: "failed", code: "tool", message: "no", at: "src/b.ts:2:3" };
  const next = await step(children(bad("left"), right));
  expect(effectOf(next, "end").end).toMatchObject({ status: "failed", code: "fan_out", at: "src/b.ts:2:3" });
});

// Other pipelines

const inner = compiled({
  id: "inner",
  stages: { a: work() },
  transitions: [{ from: "a", on: "success", to: done(1) }],
});
const pipelines = { inner: { id: "inner", spec: inner.spec } };

test("an invoked pipeline is one child, named by the pipeline, whose output and outcome the next state reads", async () => {
  const { step, state } = await started({
    stages: { a: work(), join: work(), ok: final("completed") },
    pipelines,
    transitions: [
      { from: "a", on: "success", to: invoke("inner", { onComplete: "join", input: { mode: "fast" } }) },
      { from: "join", on: "success", to: "ok" },
    ],
  });
  const { children: begun, fanOut } = effectOf(await step(completed(1)), "fanOut");
  expect(begun).toEqual([{ kind: "invoke", key: "inner", pipeline: "inner", input: { mode: "fast" } }]);
  expect(fanOut.choice).toMatchObject({ join: "join", input: null, onFailure: "cancel" });
  // No state of this pipeline is visited by it.
  expect([...state.counts.keys()]).toEqual(["a"]);
  const joined = await step(children(good("inner", "done")));
  // The turns of its states are those of its own run.
  expect(joined.patch.turns).toEqual([]);
  expect(contextOf(state)).toMatchObject({
    upstream: { a: 1, inner: "done" },
    fork: { inner: { status: "completed" } },
  });
});

test.each([
  ["the event that led to it", "TESTS", {}, "TESTS"],
  ["its own key", "TESTS", { key: "suite" }, "suite"],
  ["the pipeline, for an event that is no id", "run tests", {}, "inner"],
] as const)("the child of an event is called by %s", async (_name, name, key, expected) => {
  const { step } = await started({
    stages: { a: byEvents(), ok: final("completed") },
    pipelines,
    transitions: [{ from: "a", on: { event: name }, to: invoke("inner", { onComplete: "ok", ...key }) }],
  });
  const { children: begun } = effectOf(await step(event(name)), "fanOut");
  expect(begun.map(({ key: own }) => own)).toEqual([expected]);
});

test("the child of a * row is called by the pipeline: an agent's words name no child", async () => {
  const { step } = await started({
    stages: { a: byEvents(), ok: final("completed") },
    pipelines,
    transitions: [{ from: "a", on: { event: "*" }, to: invoke("inner", { onComplete: "ok" }) }],
  });
  expect(effectOf(await step(event("ANY")), "fanOut").children).toMatchObject([{ key: "inner" }]);
});

test("a failed pipeline goes to onFail, else it is a failure of the state that invoked it", async () => {
  const rescued = await started({
    stages: { a: byEvents(), b: work(), ok: final("completed") },
    pipelines,
    transitions: [
      { from: "a", on: { event: "GO" }, to: invoke("inner", { onComplete: "ok", onFail: "b" }) },
      { from: "b", on: "success", to: "ok" },
    ],
  });
  await rescued.step(event("GO"));
  expect(enteredBy(await rescued.step(children(bad("GO"))))).toBe("b");
  const failing = await started({
    stages: { a: byEvents(), ok: final("completed") },
    pipelines,
    transitions: [{ from: "a", on: { event: "GO" }, to: invoke("inner", { onComplete: "ok" }) }],
  });
  await failing.step(event("GO"));
  expect(effectOf(await failing.step(children(bad("GO"))), "end").end).toMatchObject({
    code: "fan_out",
    message: "a failed (fan_out): pipeline inner failed: GO: GO broke",
  });
});

test("a function may fork or invoke what it declared, and nothing else", async () => {
  const next = {
    a: () => invoke("inner", { onComplete: "b" }),
    b: () => fork({ one: { initial: "c", terminal: "a" } }, { onComplete: "d" }),
    c: () => to("a"),
    d: () => done(1),
  };
  const { step } = await started({ stages: { a: work(), b: work(), c: work(), d: work() }, pipelines, next });
  expect(effectOf(await step(completed(1)), "fanOut").children).toMatchObject([{ kind: "invoke" }]);
  await step(children(good("inner", "I")));
  expect(effectOf(await step(completed(1)), "fanOut").children).toMatchObject([{ kind: "branch", key: "one" }]);
  const unknown = await started({ stages: { a: work() }, next: { a: () => invoke("outer", { onComplete: "a" }) } });
  const refused = await unknown.step(completed(1));
  expect(refused.trace.rejected).toContain('there is no pipeline "outer"');
});

test("a fork behind a guard that does not fire does not start", async () => {
  const { step } = await machine(ALL, {}, [{ from: "a", on: "skipped", when: guard(false), to: ALL }]);
  const skipped: MachineInput = { kind: "result", result: { ...base(), status: "skipped" } };
  expect(effectOf(await step(skipped), "end").end).toMatchObject({ status: "failed" });
});

function base() {
  return { executionId: "a#1", attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
}
