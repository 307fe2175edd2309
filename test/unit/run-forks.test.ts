import { done, fail, fanOut, type Json, pipeline, type State, to } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  json,
  noModel,
  quiet,
  session,
  tool,
  work,
} from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const task = { task: "t" };

/** start, then these side by side, then a join that completes with what it sees. */
function forked(stages: Record<string, State<Json, unknown>>, onFailure: "cancel" | "settle" = "cancel") {
  const {
    start = work(),
    join = work({ act: ({ ctx }) => completed(json({ up: ctx.upstream, fork: ctx.fork })) }),
    ...siblings
  } = stages;
  return pipeline({
    id: "forked",
    input,
    stages: named(siblings, start, join),
    initial: "start",
    next: {
      start: {
        completed: () => ({ kind: "fanOut", siblings: Object.keys(siblings), join: "join", onFailure }),
        failed: (result) => fail(`${result.code}: ${result.message} ${JSON.stringify(result.detail)}`),
      },
      join: ({ output }) => done(output),
    },
  });
}

/** States whose names the compiler does not know. */
function named(
  siblings: Record<string, State<Json, unknown>>,
  start: State<Json, unknown>,
  join: State<Json, unknown>,
) {
  const stages: Record<string, State<Json, unknown>> = { ...siblings, start, join };
  return stages;
}

/** A state that stays at work until its latch is opened. */
function latched(): {
  state: (output: Json) => State<Json, unknown>;
  open: (name: Json) => void;
  working: () => readonly Json[];
} {
  const waiting = new Map<Json, () => void>();
  return {
    state: (output) =>
      work({
        act: async () => {
          await new Promise<void>((resolve) => waiting.set(output, resolve));
          waiting.delete(output);
          return completed(output);
        },
      }),
    open: (name) => waiting.get(name)?.(),
    working: () => [...waiting.keys()],
  };
}

test("siblings work side by side, and the join sees their outputs in declared order, however they end", async () => {
  const live = session({ model: noModel });
  const { state, open, working } = latched();
  const handle = live.start(forked({ test: state("tested"), lint: state("linted"), docs: state("written") }), task);
  await eventually(() => working().length === 3);
  for (const name of ["written", "linted", "tested"]) {
    open(name);
    await quiet();
  }
  const result = await handle;
  expect(result).toMatchObject({ status: "completed" });
  if (result.status !== "completed") return;
  expect(JSON.stringify(result.output)).toBe(
    '{"up":{"start":null,"test":"tested","lint":"linted","docs":"written"},"fork":{"test":{"status":"completed"},"lint":{"status":"completed"},"docs":{"status":"completed"}}}',
  );
  expect(result.stages.map(({ executionId }) => executionId)).toEqual([
    "start#1",
    "test#1",
    "lint#1",
    "docs#1",
    "join#1",
  ]);
  const events = await eventsOf(live.host, result.runId);
  expect(dataOf(events, "fanOut.started")).toEqual([
    { fanOut: "fan-1", siblings: ["test", "lint", "docs"], join: "join" },
  ]);
  expect(dataOf(events, "fanOut.joined")).toMatchObject([
    { fanOut: "fan-1", outcomes: ["test", "lint", "docs"].map((name) => ({ name, status: "completed" })) },
  ]);
  const journals = await live.host.journal(result.runId);
  expect(journals.map(({ runId }) => runId.replace(result.runId, "r"))).toEqual([
    "r",
    "r/fan-1/test",
    "r/fan-1/lint",
    "r/fan-1/docs",
  ]);
});

test("siblings take inputs of their own and a copy of the context; the join takes its input from the fan-out", async () => {
  const live = session({ model: noModel });
  const see = z.object({ dir: z.string() });
  const sibling = work<Json, { dir: string }>({
    inputSchema: see,
    act: ({ ctx }) =>
      completed(json([ctx.input, ctx.context, ctx.upstream, ctx.run.input, ctx.task, ctx.runId.split("/").slice(1)])),
  });
  const pipe = pipeline({
    id: "p",
    input,
    context: { n: 1 },
    stages: {
      start: work({ act: () => completed("begun") }),
      a: sibling,
      b: sibling,
      join: work({ act: ({ ctx }) => completed(json([ctx.input, ctx.upstream])) }),
    },
    initial: "start",
    next: {
      start: () =>
        fanOut([to("a", { dir: "src" }), to("b", { dir: "test" })], { join: "join", input: { mode: "strict" } }),
      join: ({ output }) => done(output),
    },
  });
  expect(await live.run(pipe, task)).toMatchObject({
    output: [
      { mode: "strict" },
      {
        start: "begun",
        a: [{ dir: "src" }, { n: 1 }, { start: "begun" }, task, "t", ["fan-1", "a"]],
        b: [{ dir: "test" }, { n: 1 }, { start: "begun" }, task, "t", ["fan-1", "b"]],
      },
    ],
  });
});

test("a failure cancels the others, waits for them, and is one failure of the state that forked", async () => {
  const live = session({ model: noModel });
  const log: string[] = [];
  let fall = (): void => undefined;
  const pipe = forked({
    test: work({
      act: async () => {
        await new Promise<void>((resolve) => {
          fall = resolve;
        });
        return failed("3 tests fail");
      },
    }),
    lint: work({
      act: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        log.push("lint was aborted");
        await quiet();
        log.push("lint has drained");
        return { status: "cancelled", reason: "aborted", turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
      },
      exit: ({ status }) => void log.push(`lint exits ${status}`),
    }),
    join: work({ act: () => failed("the join is never entered") }),
  });
  const handle = live.start(pipe, task);
  await quiet();
  fall();
  const result = await handle;
  expect(log).toEqual(["lint was aborted", "lint has drained", "lint exits cancelled"]);
  expect(result).toMatchObject({
    status: "failed",
    error: { message: 'fan_out: parallel stages failed: test: 3 tests fail {"fanOut":"fan-1","failed":["test"]}' },
  });
  expect(result.stages.map(({ executionId, status }) => `${executionId} ${status}`)).toEqual([
    "start#1 completed",
    "test#1 failed",
    "lint#1 cancelled",
  ]);
  expect(dataOf(await eventsOf(live.host, result.runId), "fanOut.joined")).toMatchObject([
    {
      outcomes: [
        { name: "test", status: "failed" },
        { name: "lint", status: "cancelled" },
      ],
    },
  ]);
});

test("a failed fork that no one routes fails the run with code fork", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { start: work(), a: work({ act: () => failed("no") }), b: work(), join: work() },
    initial: "start",
    next: { start: () => fanOut(["a", "b"], { join: "join" }), join: () => done(1) },
  });
  expect(await live.run(pipe, task)).toMatchObject({ status: "failed", error: { code: "fan_out" } });
});

test("a failure route may fork again, as often as the caps allow", async () => {
  const live = session({ model: noModel });
  const flaky = work({ act: ({ ctx }) => (ctx.visit < 3 ? failed(`visit ${ctx.visit}`) : completed(ctx.visit)) });
  const again = (limits: { maxVisits?: number }) =>
    pipeline({
      id: "p",
      input,
      limits,
      stages: { start: work(), a: flaky, b: work(), join: work({ act: ({ ctx }) => completed(json(ctx.upstream)) }) },
      initial: "start",
      next: {
        start: {
          completed: () => fanOut(["a", "b"], { join: "join" }),
          failed: () => fanOut(["a", "b"], { join: "join" }),
        },
        join: ({ output }) => done(output),
      },
    });
  const result = await live.run(again({}), task);
  expect(result).toMatchObject({ status: "completed", output: { a: 3 } });
  expect(result.stages.map(({ executionId }) => executionId)).toEqual([
    "start#1",
    ...["a#1", "b#1", "a#2", "b#2", "a#3", "b#3"],
    "join#1",
  ]);
  expect(await live.run(again({ maxVisits: 2 }), task)).toMatchObject({
    status: "failed",
    error: { code: "limit_visits" },
  });
});

test("settle lets all end, and the join sees how in ctx.fork; outputs only of those that have one", async () => {
  const live = session({ model: noModel });
  const pipe = forked(
    {
      good: work({ act: () => completed("fine") }),
      bad: work({ act: () => failed("broke") }),
      none: work({ precondition: () => "skip" }),
    },
    "settle",
  );
  expect(await live.run(pipe, task)).toMatchObject({
    status: "completed",
    output: {
      up: { start: null, good: "fine" },
      fork: {
        good: { status: "completed" },
        bad: { status: "failed", code: "tool", message: "broke" },
        none: { status: "skipped" },
      },
    },
  });
});

test("a skipped sibling is no failure and has no output", async () => {
  const live = session({ model: noModel });
  const result = await live.run(
    forked({ a: work({ act: () => completed("a") }), b: work({ precondition: () => "skip" }) }),
    task,
  );
  expect(result).toMatchObject({ status: "completed", output: { fork: { b: { status: "skipped" } } } });
  if (result.status === "completed")
    expect(json(result.output)).toEqual({ up: { start: null, a: "a" }, fork: expect.anything() });
});

test("ctx.fork is for the join alone", async () => {
  const live = session({ model: noModel });
  const seen: Json[] = [];
  const see = work({
    act: ({ ctx }) => {
      seen.push("fork" in ctx);
      return completed(null);
    },
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { start: see, a: see, b: see, join: see, after: see },
    initial: "start",
    next: { start: () => fanOut(["a", "b"], { join: "join" }), join: () => to("after"), after: () => done(null) },
  });
  await live.run(pipe, task);
  expect(seen).toEqual([false, false, false, true, false]);
});

test("a fork in a loop: each round is its own fork, visits continue, and an output of an earlier round is gone where there is none", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    stages: {
      start: work(),
      a: work({ act: ({ ctx }) => completed(`a${ctx.visit}`) }),
      b: work({
        precondition: (ctx) => (ctx.visit === 2 ? "skip" : "proceed"),
        act: ({ ctx }) => completed(`b${ctx.visit}`),
      }),
      join: work({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
    },
    initial: "start",
    next: {
      start: () => fanOut(["a", "b"], { join: "join" }),
      join: ({ output }, ctx) => (ctx.visit === 2 ? done(output) : to("start")),
    },
  });
  const result = await live.run(pipe, task);
  expect(result).toMatchObject({ status: "completed" });
  if (result.status === "completed") {
    expect(json(result.output)).toEqual({ start: null, a: "a2", join: { start: null, a: "a1", b: "b1" } });
  }
  const journals = await live.host.journal(result.runId);
  expect(journals.map(({ runId }) => runId.split("/").slice(1).join("/")).sort()).toEqual([
    "",
    "fan-1/a",
    "fan-1/b",
    "fan-2/a",
    "fan-2/b",
  ]);
});

test("siblings count as visits: the cap holds for them too", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "p",
    input,
    limits: { maxVisits: 3, maxHops: 100 },
    stages: { one: work(), two: work(), shared: work(), other: work(), join: work() },
    initial: "one",
    next: {
      one: () => fanOut(["shared", "other"], { join: "two" }),
      two: () => fanOut(["shared", "join"], { join: "one" }),
      join: () => done(null),
    },
  });
  expect(await live.run(pipe, task)).toMatchObject({
    status: "failed",
    error: { code: "limit_visits", message: expect.stringContaining("shared") },
  });
});

describe("the session's cap", () => {
  test("no more than maxParallel are at work at once, over all runs of the session, first come first served", async () => {
    const live = session({ model: noModel, maxParallel: 3 });
    let most = 0;
    let now = 0;
    const order: string[] = [];
    const timed = (name: string): State<Json, unknown> =>
      work({
        act: async () => {
          now += 1;
          most = Math.max(most, now);
          order.push(name);
          await new Promise<void>((resolve) => void live.clock.after(1_000, resolve));
          now -= 1;
          return completed(name);
        },
      });
    const stages = (prefix: string) =>
      Object.fromEntries(["a", "b", "c", "d"].map((key) => [key, timed(`${prefix}${key}`)]));
    const runs = [live.start(forked(stages("1")), task), live.start(forked(stages("2")), task)];
    const over = Promise.all(runs);
    let ended = false;
    void over.then(() => {
      ended = true;
    });
    let turns = 0;
    while (!ended) {
      await eventually(() => ended || live.clock.waiting() > 0);
      await quiet();
      if (ended) break;
      expect(now).toBe(Math.min(3, 8 - 3 * turns));
      live.clock.turn(1_000);
      turns += 1;
      await quiet();
    }
    // Eight siblings of a second each through three places: three seconds, no more and no fewer.
    expect(turns).toBe(3);
    expect(most).toBe(3);
    for (const prefix of ["1", "2"]) {
      const mine = order.filter((name) => name.startsWith(prefix));
      expect(mine).toEqual(["a", "b", "c", "d"].map((key) => `${prefix}${key}`));
    }
    for (const result of await over) expect(result.status).toBe("completed");
  });

  test("one that waits for a person or a timer gives its place to another, and takes one again to continue", async () => {
    const live = session({ model: noModel, maxParallel: 1, wait: true, tools: [tool("Deploy")] });
    const log: string[] = [];
    const asking = work({
      allowedTools: [],
      act: async (scope) => {
        log.push("asks");
        await caller(scope)("Deploy");
        log.push("was answered");
        return completed(null);
      },
    });
    const sleeping = work({
      act: async (scope) => {
        log.push("sleeps");
        await scope.wait("nap", live.clock.now() + 1_000);
        log.push("woke");
        return completed(null);
      },
    });
    const { state, open, working } = latched();
    const handle = live.start(forked({ asking, sleeping, busy: state("busy") }), task);
    await eventually(() => working().length === 1);
    expect(log).toEqual(["asks", "sleeps"]);
    const [request] = await live.host.requests(handle.runId);
    expect(await live.host.signal(request?.runId ?? "", answer(request, "approve"))).toBe("accepted");
    live.clock.turn(1_000);
    await quiet();
    expect(log).toEqual(["asks", "sleeps"]);
    open("busy");
    expect(await handle).toMatchObject({ status: "completed" });
    expect(log.slice(2).sort()).toEqual(["was answered", "woke"]);
  });

  test("a stage that waits for its join holds no place: forks end with a single one", async () => {
    const live = session({ model: noModel, maxParallel: 1 });
    expect(await live.run(forked({ a: work(), b: work(), c: work() }), task)).toMatchObject({ status: "completed" });
  });
});

function answer(request: { requestId: string; digest: string } | undefined, kind: string) {
  if (request === undefined) throw new Error("there is no request");
  const { requestId, digest } = request;
  return { name: `request/${requestId}`, payload: { kind, digest }, digest, by: "someone" };
}

test("a call that a sibling was denied is in the run's account", async () => {
  const live = session({ model: noModel, tools: [tool("Deploy")] });
  const asking = work({
    allowedTools: [],
    act: async (scope) => completed(await caller(scope)("Deploy")),
  });
  const result = await live.run(forked({ asking, other: work() }), task);
  expect(result).toMatchObject({
    status: "completed",
    denied: [{ executionId: "asking#1", tool: "Deploy", cause: "no_interactor" }],
  });
});

test("cancel-and-drain: a sibling that waits for a place never begins, one with an open prompt withdraws it", async () => {
  const withdrawn: string[] = [];
  let shown = (): void => undefined;
  const prompt = new Promise<void>((resolve) => {
    shown = resolve;
  });
  const live = session({
    model: noModel,
    maxParallel: 2,
    tools: [tool("Deploy")],
    interactors: [
      {
        name: "screen",
        answer: (request, signal) => {
          shown();
          return new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              withdrawn.push(request.requestId);
              resolve(undefined);
            });
          });
        },
      },
    ],
  });
  const log: string[] = [];
  const handle = live.start(
    forked({
      asking: work({ allowedTools: [], act: async (scope) => completed(await caller(scope)("Deploy")) }),
      busy: work({
        act: async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          log.push("busy was aborted");
          return completed(null);
        },
      }),
      doomed: work({
        act: async () => {
          await prompt;
          log.push("doomed fails");
          return failed("doomed");
        },
      }),
      never: work({ setup: () => log.push("never"), act: () => completed(log.push("never")) }),
    }),
    task,
  );
  expect(await handle).toMatchObject({ status: "failed" });
  expect(log).toEqual(["doomed fails", "busy was aborted"]);
  expect(withdrawn).toEqual(["asking#1/a1/t1.c0"]);
  expect(await live.host.requests()).toEqual([]);
  const events = await eventsOf(live.host, handle.runId);
  expect(dataOf(events, "grant.expired")).toEqual([{ requestId: "asking#1/a1/t1.c0", cause: "cancelled" }]);
  expect(dataOf(events, "call.started")).toEqual([]);
});
