import {
  cancel,
  done,
  type FanOut,
  type Fork,
  fail,
  fanOut,
  fork,
  type Invoke,
  invoke,
  type Json,
  pipeline,
  to,
} from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { completed, dataOf, eventsOf, failed, json, noModel, session, work } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const task = { task: "t" };

test("a function routes a success, by the result and the context alone", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { small: work({ act: () => completed({ files: 2 }) }), a: work(), b: work() },
    initial: "small",
    next: {
      small: ({ output, executionId, turns }, ctx) =>
        JSON.stringify([output, executionId, turns, ctx.run.input.task]) === '[{"files":2},"small#1",0,"t"]'
          ? to("b")
          : to("a"),
      a: () => done("a"),
      b: () => done("b"),
    },
  });
  const result = await live.run(pipe, task);
  expect(result).toMatchObject({ status: "completed", output: "b" });
  expect(dataOf(await eventsOf(live.host, result.runId), "route.decided")).toMatchObject([
    { from: "small", choice: "to", to: "b", why: { by: "function" } },
    { from: "b", choice: "done", why: { by: "function" } },
  ]);
});

test("a failure and a skip have routes of their own; without one they fail the run with the state's own code", async () => {
  const live = session({ model: noModel });
  const stages = { bad: work({ act: () => failed("no luck") }), skip: work({ precondition: () => "skip" }) };
  const handled = pipeline({
    id: "p",
    input,
    stages,
    initial: "bad",
    next: {
      bad: { completed: () => done("never"), failed: (result) => to("skip", `${result.code}: ${result.message}`) },
      skip: { completed: () => done("never"), skipped: (_result, ctx) => done(ctx.input) },
    },
  });
  expect(await live.run(handled, task)).toMatchObject({ status: "completed", output: "tool: no luck" });
  const unhandled = (initial: "bad" | "skip") =>
    pipeline({ id: "p", input, stages, initial, next: { bad: () => to("skip"), skip: () => to("bad") } });
  expect(await live.run(unhandled("bad"), task)).toMatchObject({
    status: "failed",
    error: { code: "tool", message: expect.stringContaining("no luck") },
  });
  expect(await live.run(unhandled("skip"), task)).toMatchObject({ status: "failed", error: { code: "failed" } });
});

test("a table routes by how a state ended and by conditions; the first row that matches wins", async () => {
  const live = session({ model: noModel });
  const asked: string[] = [];
  const pipe = pipeline({
    id: "p",
    input,
    stages: {
      a: work({ act: () => completed(1) }),
      bad: work({ act: () => failed("broke") }),
      skip: work({ precondition: () => "skip" }),
    },
    initial: "a",
    transitions: [
      { from: "*", on: "failure", to: "skip" },
      {
        from: "a",
        on: "success",
        when: () => {
          asked.push("throws");
          throw new Error("a broken condition");
        },
        to: fail("a condition that throws does not match"),
      },
      {
        from: "a",
        on: "success",
        when: (result) => result.status === "completed" && result.output === 2,
        to: fail("not 2"),
      },
      { from: "a", on: "success", to: "bad" },
      { from: "a", on: "success", to: fail("too late") },
      { from: "skip", on: "skipped", to: done("skipped") },
      { from: "*", on: "success", to: fail("none of these succeeds") },
    ],
  });
  const result = await live.run(pipe, task);
  expect(result).toMatchObject({ status: "completed", output: "skipped" });
  expect(asked).toEqual(["throws"]);
  const [first] = dataOf(await eventsOf(live.host, result.runId), "route.decided");
  expect(first).toMatchObject({ from: "a", to: "bad", why: { by: "table", row: 3 } });
  expect(JSON.stringify(first)).toContain("a broken condition");
});

test("no row: the run fails and says why each row did not fire", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { a: work(), b: work() },
    initial: "a",
    transitions: [
      { from: "a", on: "failure", to: done(1) },
      { from: "a", on: "success", when: () => false, to: "b" },
      { from: "b", on: "success", to: done(2) },
    ],
  });
  const { error } = narrow(await live.run(pipe, task));
  expect(error?.message).toContain("row 0");
  expect(error?.message).toContain("row 1");
  expect(error?.message).not.toContain("row 2");
});

/** Results of other statuses have no error. */
function narrow(result: { status: string; error?: { code: string; message: string } }) {
  return result;
}

test("a route that throws, or leads nowhere, fails the run and is recorded as rejected; its context patch is not applied", async () => {
  const live = session({ model: noModel });
  const seen: Json[] = [];
  const target = work<Json, { n: number }>({ inputSchema: z.object({ n: z.number() }) });
  const routes: readonly (() => never)[] = [
    () => {
      throw new Error("a bug in a route");
    },
    () => wrong({ kind: "to", state: "target", input: { n: "not a number" }, context: { dirty: true } }),
    () => wrong({ kind: "to", state: "nowhere" }),
    () => wrong({ kind: "to", state: "target", input: { n: 1 }, context: { _hidden: true } }),
    () => wrong("target"),
    () => wrong(undefined),
  ];
  for (const route of routes) {
    const pipe = pipeline({
      id: "p",
      input,
      stages: { a: work(), target },
      initial: "a",
      next: { a: route, target: (_result, ctx) => done(seen.push(ctx.context)) },
    });
    const result = await live.run(pipe, task);
    expect(result.status).toBe("failed");
    const events = await eventsOf(live.host, result.runId);
    expect(dataOf(events, "route.rejected")).toHaveLength(1);
    expect(dataOf(events, "context.changed")).toEqual([]);
    expect(dataOf(events, "route.decided")).toMatchObject([{ from: "a", choice: "fail" }]);
  }
  expect(seen).toEqual([]);
});

/** A route's return as JavaScript may make it. */
function wrong(value: unknown): never {
  const holder: { value: never } = JSON.parse('{"value":null}');
  Object.assign(holder, { value });
  return holder.value;
}

test("a fan-out is recorded with what its keys do not say of its children", async () => {
  type Name = "b" | "c" | "d" | "e";
  const live = session({ model: noModel });
  const child = pipeline({ id: "child", input, stages: { one: work() }, initial: "one", next: { one: () => done(1) } });
  const branches = { left: { initial: "b", terminal: "d" }, right: { initial: "c", terminal: "d" } } as const;
  const recorded = async (choice: FanOut<Name, Name> | Fork<Name> | Invoke<Name>) => {
    const pipe = pipeline({
      id: "p",
      input,
      pipelines: { child },
      stages: { a: work(), b: work(), c: work(), d: work(), e: work() },
      initial: "a",
      next: { a: () => choice, b: () => to("d"), c: () => to("d"), d: () => done(1), e: () => done(2) },
    });
    const events = await eventsOf(live.host, (await live.run(pipe, task)).runId);
    return dataOf(events, "fanOut.started");
  };
  const about = { fanOut: "fan-1", join: "d" };
  const both = { siblings: ["left", "right"], join: "e" };
  const children = [
    { key: "left", state: "b", terminal: "d" },
    { key: "right", state: "c", terminal: "d" },
  ];
  expect(await recorded(fanOut(["b", "c"], { join: "d" }))).toStrictEqual([{ ...about, siblings: ["b", "c"] }]);
  expect(await recorded(fork(branches, { onComplete: "e" }))).toStrictEqual([{ ...about, ...both, children }]);
  expect(await recorded(fork(branches, { join: "any", onComplete: "e", onFail: "d" }))).toStrictEqual([
    { ...about, ...both, children, any: true, onFail: "d" },
  ]);
  expect(await recorded(invoke("child", { key: "it", onComplete: "d" }))).toStrictEqual([
    { ...about, siblings: ["it"], children: [{ key: "it", pipeline: "child" }] },
  ]);
});

test("context patches merge shallowly, last write wins, and only from the next state on", async () => {
  const live = session({ model: noModel });
  const seen: Json[] = [];
  const see = work({
    act: ({ ctx }) => {
      seen.push(ctx.context);
      return completed(null);
    },
  });
  const pipe = pipeline({
    id: "p",
    input,
    context: { round: 0, tree: { left: 1, right: 2 } },
    stages: { a: see, b: see, c: see },
    initial: "a",
    next: {
      a: () => to("b", undefined, { context: { round: 1, tree: { left: 3 } } }),
      b: () => to("c", undefined, { context: { by: "b" } }),
      c: () => done(null),
    },
  });
  const result = await live.run(pipe, task);
  expect(seen).toEqual([
    { round: 0, tree: { left: 1, right: 2 } },
    { round: 1, tree: { left: 3 } },
    { round: 1, tree: { left: 3 }, by: "b" },
  ]);
  expect(dataOf(await eventsOf(live.host, result.runId), "context.changed")).toEqual([
    { patch: { round: 1, tree: { left: 3 } } },
    { patch: { by: "b" } },
  ]);
});

test("two runs of one pipeline do not share their context", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    context: { n: 0 },
    stages: { a: work(), b: work() },
    initial: "a",
    next: { a: () => to("b", undefined, { context: { n: 1 } }), b: (_result, ctx) => done(ctx.context) },
  });
  expect(await live.run(pipe, task)).toMatchObject({ output: { n: 1 } });
  expect(await live.run(pipe, task)).toMatchObject({ output: { n: 1 } });
  expect(pipe.spec.context).toEqual({ n: 0 });
});

test("upstream holds the last accepted output of every state passed on the way, and of no other", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: {
      count: work<number>({ act: ({ ctx }) => completed(ctx.visit) }),
      bad: work({ act: () => failed("no") }),
      skip: work({ precondition: () => "skip" }),
      end: work({ act: ({ ctx }) => completed([Object.keys(ctx.upstream), json(ctx.upstream)]) }),
    },
    initial: "count",
    next: {
      count: ({ output }) => (output < 3 ? to("count") : to("bad")),
      bad: { completed: () => done(null), failed: () => to("skip") },
      skip: { completed: () => done(null), skipped: () => to("end") },
      end: ({ output }) => done(output),
    },
  });
  expect(await live.run(pipe, task)).toMatchObject({ output: [["count"], { count: 3 }] });
});

test("a loop carries its data by to(), and counts its visits in the execution ids", async () => {
  const live = session({ model: noModel });
  const sum = work<Json, { left: readonly number[]; total: number }>({
    inputSchema: z.object({ left: z.array(z.number()), total: z.number() }),
    act: ({ ctx }) => completed(json(ctx.input)),
  });
  const read = z.object({ left: z.array(z.number()), total: z.number() });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { start: work(), sum },
    initial: "start",
    next: {
      start: () => to("sum", { left: [3, 4, 5], total: 0 }),
      sum: ({ output }) => {
        const { left, total } = read.parse(output);
        const [first, ...rest] = left;
        return first === undefined ? done(total) : to("sum", { left: rest, total: total + first });
      },
    },
  });
  const result = await live.run(pipe, task);
  expect(result).toMatchObject({ status: "completed", output: 12 });
  expect(result.stages.map((stage) => stage.executionId)).toEqual(["start#1", "sum#1", "sum#2", "sum#3", "sum#4"]);
});

test("maxVisits: the next entry into a state is a failure, not a success", async () => {
  const live = session({ model: noModel });
  const loop = (limits?: { maxVisits: number }) =>
    pipeline({
      id: "p",
      input,
      stages: { a: work(), b: work() },
      initial: "a",
      next: { a: () => to("b"), b: () => to("a") },
      ...(limits === undefined ? {} : { limits }),
    });
  const result = await live.run(loop({ maxVisits: 2 }), task);
  expect(result).toMatchObject({ status: "failed", error: { code: "limit_visits" } });
  expect(result.stages.map((stage) => stage.executionId)).toEqual(["a#1", "b#1", "a#2", "b#2"]);
  expect(dataOf(await eventsOf(live.host, result.runId), "limit.reached")).toMatchObject([{ limit: "maxVisits" }]);
  expect((await live.run(loop(), task)).stages).toHaveLength(20);
});

test("maxHops: so many routes, and the next is a failure", async () => {
  const live = session({ model: noModel });
  const loop = (limits: { maxHops?: number; maxVisits: number }) =>
    pipeline({ id: "p", input, stages: { a: work() }, initial: "a", next: { a: () => to("a") }, limits });
  const result = await live.run(loop({ maxHops: 3, maxVisits: 100 }), task);
  expect(result).toMatchObject({ status: "failed", error: { code: "limit_hops" } });
  expect(result.stages).toHaveLength(4);
  expect(dataOf(await eventsOf(live.host, result.runId), "limit.reached")).toMatchObject([{ limit: "maxHops" }]);
  // Ten times the number of states when nothing is said.
  expect((await live.run(loop({ maxVisits: 100 }), task)).stages).toHaveLength(11);
});

test("a run of a thousand hops neither recurses nor slows its end", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { a: work<number>({ act: ({ ctx }) => completed(ctx.visit) }) },
    initial: "a",
    limits: { maxHops: 2_000, maxVisits: 2_000 },
    next: { a: ({ output }) => (output < 1_000 ? to("a") : done(output)) },
  });
  expect(await live.run(pipe, task)).toMatchObject({ status: "completed", output: 1_000 });
});

test("fail() and cancel() end the run with their reason, cancel() as cancelled", async () => {
  const live = session({ model: noModel });
  const ending = (choice: ReturnType<typeof fail> | ReturnType<typeof cancel>) =>
    pipeline({ id: "p", input, stages: { a: work() }, initial: "a", next: { a: (): typeof choice => choice } });
  expect(await live.run(ending(fail("not good enough")), task)).toMatchObject({
    status: "failed",
    error: { code: "failed", message: "not good enough" },
  });
  expect(await live.run(ending(cancel("nobody needs it")), task)).toMatchObject({
    status: "cancelled",
    error: { code: "cancelled", message: "nobody needs it" },
  });
});

test("the literal { stages, execution, join } is followed: one sequential, none, and two in parallel", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: {
      plan: work({ act: () => completed("plan") }),
      test: work({ act: () => completed("test") }),
      lint: work({ act: () => completed("lint") }),
      review: work({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
    },
    initial: "plan",
    next: {
      plan: () => ({ stages: ["test", "lint"], execution: "parallel", join: "review" }),
      review: (_result, ctx) => ({ stages: ctx.visit === 1 ? ["review"] : [], execution: "sequential" }),
    },
  });
  const result = await live.run(pipe, task);
  // Nothing more to do: the run's output is the state's own.
  expect(result).toMatchObject({ status: "completed", output: { plan: "plan", test: "test", lint: "lint" } });
  expect(result.stages.map((stage) => stage.executionId)).toEqual([
    "plan#1",
    "test#1",
    "lint#1",
    "review#1",
    "review#2",
  ]);
  for (const stages of [["test", "lint"], []] as const) {
    const wrongList = pipeline({
      id: "p",
      input,
      stages: { plan: work(), test: work(), lint: work(), join: work() },
      initial: "plan",
      next: {
        plan: () => ({ stages, execution: stages.length === 0 ? "parallel" : "sequential" }),
        join: () => done(1),
      },
    });
    expect((await live.run(wrongList, task)).status).toBe(stages.length === 0 ? "completed" : "failed");
  }
});

test("a route sees no more than the result and the machine's state: what was said on the way is not in them", async () => {
  const live = session({ model: noModel });
  const seen: unknown[] = [];
  const pipe = pipeline({
    id: "p",
    input,
    stages: { a: work({ act: () => completed("payload") }) },
    initial: "a",
    next: {
      a: (...given) => {
        seen.push(...given);
        return done(null);
      },
    },
  });
  await live.run(pipe, task);
  const [result, ctx] = seen;
  expect(seen).toHaveLength(2);
  expect(Object.keys(Object(result)).sort()).toEqual([
    "attempts",
    "executionId",
    "ms",
    "output",
    "status",
    "turns",
    "usage",
  ]);
  expect(Object.keys(Object(ctx)).sort()).toEqual([
    "attempt",
    "context",
    "input",
    "run",
    "runId",
    "setup",
    "task",
    "upstream",
    "visit",
    "workspace",
  ]);
});
