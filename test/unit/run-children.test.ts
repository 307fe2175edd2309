import {
  type AnyPipeline,
  cancel,
  done,
  fail,
  field,
  final,
  fork,
  invoke,
  type Json,
  type Pipeline,
  pipeline,
  type State,
} from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  json,
  noModel,
  session,
  tool,
  type WorkOptions,
  work,
} from "../support/run-kit.ts";
import { calling, working } from "../support/stopped-runs.ts";

// Child runs of several states, and of other pipelines.

const input = { type: "object" } as const;
/** Ends the run with the state's own output. */
const output = { stages: [], execution: "sequential" } as const;
type Act = NonNullable<WorkOptions["act"]>;
const saying = (output: Json, act?: Act): State<Json, unknown> => work({ act: act ?? (() => completed(output)) });

/** Two branches of two states each, and a join that completes with what it sees. */
function forked(states: Record<string, State<Json, unknown>> = {}, join: "all" | "any" = "all", onFail?: "broken") {
  const stages = {
    start: saying("started"),
    a1: saying("a1"),
    a2: saying("a2"),
    b1: saying("b1"),
    b2: saying("b2"),
    ended: saying("never runs"),
    join: saying(null, ({ ctx }) => completed(json({ up: ctx.upstream, fork: ctx.fork, context: ctx.context }))),
    broken: saying(null, ({ ctx }) => completed(json({ broken: ctx.fork }))),
    stopped: final("failed"),
    ...states,
  };
  return pipeline({
    id: "forked",
    input,
    context: { from: "root" },
    stages,
    initial: "start",
    transitions: [
      {
        from: "start",
        on: "success",
        to: fork(
          { left: { initial: "a1", terminal: "ended" }, right: { initial: "b1", terminal: "ended" } },
          { join, onComplete: "join", ...(onFail === undefined ? {} : { onFail }) },
        ),
      },
      { from: "start", on: "failure", when: () => false, to: "broken" },
      { from: "start", on: "failure", to: "stopped" },
      { from: "a1", on: "success", to: { kind: "to", state: "a2", input: null, context: { left: "own" } } },
      { from: "a2", on: "success", when: (result) => outputOf(result) === "elsewhere", to: done("elsewhere") },
      { from: "a2", on: "success", when: (result) => outputOf(result) === "cancelled", to: cancel("given up") },
      { from: "a2", on: "success", to: "ended" },
      { from: "b1", on: "success", to: "b2" },
      { from: "b2", on: "success", to: "ended" },
      { from: "ended", on: "success", to: "join" },
      { from: "join", on: "success", to: output },
      { from: "broken", on: "success", to: output },
    ],
  });
}
const outputOf = (result: object): unknown => Reflect.get(result, "output");

describe("a fork", () => {
  test("runs each branch along its routes to its terminal state, and their outputs are upstream by key", async () => {
    const live = session({ model: noModel });
    const run = live.start(forked(), {});
    expect(await run).toMatchObject({
      status: "completed",
      output: {
        up: { start: "started", left: "a2", right: "b2" },
        fork: { left: { status: "completed" }, right: { status: "completed" } },
        // What a branch changes in its context is its own.
        context: { from: "root" },
      },
    });
    const { stages } = await run;
    expect(stages.map(({ key, executionId }) => [key, executionId])).toEqual([
      [undefined, "start#1"],
      ["left", "a1#1"],
      ["left", "a2#1"],
      ["right", "b1#1"],
      ["right", "b2#1"],
      [undefined, "join#1"],
    ]);
    const events = await eventsOf(live.host, run.runId);
    expect(dataOf(events, "run.started").slice(1)).toMatchObject([
      { pipeline: "forked", state: "a1", key: "left" },
      { pipeline: "forked", state: "b1", key: "right" },
    ]);
    const order = events.map(({ type, runId }) => [type, runId.replace(run.runId, "")].join(" "));
    const joined = order.indexOf("fanOut.joined ");
    for (const child of ["run.finished /fan-1/left", "run.finished /fan-1/right"])
      expect(order.indexOf(child)).toBeLessThan(joined);
  });

  test.each([
    ["that ends elsewhere", { a2: saying("elsewhere") }],
    ["whose state fails", { a2: saying(null, () => failed("no")) }],
    ["whose route cancels", { a2: saying("cancelled") }],
  ])("all: a branch %s fails it, and cancels the other", async (_name, states) => {
    const live = session({ model: noModel });
    const waiting = saying(null, async (scope) => {
      await scope.wait("wait", Number.MAX_SAFE_INTEGER);
      return { turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, status: "cancelled", reason: "cancelled" };
    });
    const result = await live.run(forked({ ...states, b1: waiting }, "all", "broken"), {});
    expect(result).toMatchObject({
      status: "completed",
      output: { broken: { left: { status: "failed" }, right: { status: "cancelled" } } },
    });
  });

  test("without onFail, its failure is one of the state that forked", async () => {
    const live = session({ model: noModel });
    const result = await live.run(forked({ a1: saying(null, () => failed("no")) }), {});
    expect(result).toMatchObject({ status: "failed", state: "stopped" });
  });

  test("any: the first completed branch cancels the rest, and a failed one does not matter", async () => {
    const live = session({ model: noModel });
    let sawFailure = false;
    const states = {
      a1: saying(null, () => failed("no")),
      b1: saying("b1", async (scope) => {
        await eventually(async () => {
          const children = await live.host.journal(scope.ctx.runId.split("/", 1)[0] ?? "");
          sawFailure = children.some(({ end }) => end?.status === "failed");
          return sawFailure;
        });
        return completed("b1");
      }),
    };
    const result = await live.run(forked(states, "any"), {});
    expect(result).toMatchObject({
      status: "completed",
      output: { up: { right: "b2" }, fork: { left: { status: "failed" }, right: { status: "completed" } } },
    });
    expect(sawFailure).toBe(true);
  });

  test("any: fails when every branch fails", async () => {
    const live = session({ model: noModel });
    const states = { a1: saying(null, () => failed("no")), b2: saying(null, () => failed("no")) };
    expect(await live.run(forked(states, "any", "broken"), {})).toMatchObject({
      output: { broken: { left: { status: "failed" }, right: { status: "failed" } } },
    });
  });

  test("that is cancelled ends in order: its branches, then the run", async () => {
    const live = session({ model: noModel });
    const waiting = saying(null, async (scope) => {
      await scope.wait("wait", Number.MAX_SAFE_INTEGER);
      return { turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, status: "cancelled", reason: "cancelled" };
    });
    const run = live.start(forked({ a2: waiting, b1: waiting }), {});
    await eventually(async () => (await live.host.journal(run.runId)).length === 3);
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "enough" } });
    const ends = (await live.host.journal(run.runId)).map(({ end }) => end?.status);
    expect(ends).toEqual(["cancelled", "cancelled", "cancelled"]);
    await eventsOf(live.host, run.runId);
  });

  test.each([["all"], ["any"]] as const)(
    "with join %s comes to the same end after a kill at any record",
    async (join) => {
      const make = (): KilledRun => ({
        pipeline: forked(join === "any" ? { a1: saying(null, () => failed("no")) } : {}, join),
        input: {},
        options: { maxParallel: 1 },
      });
      const { whole, killed } = await killedEverywhere(make);
      for (const { events: _events, ...facts } of killed) expect(facts).toEqual({ ...facts, ...withoutEvents(whole) });
    },
  );
});

function withoutEvents<T extends { readonly events: unknown }>({ events: _events, ...facts }: T): Omit<T, "events"> {
  return facts;
}

/** A pipeline that doubles a number, or fails. */
function doubling(onEnd: "done" | "fail" = "done") {
  return pipeline({
    id: "doubling",
    input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    context: { own: true },
    stages: {
      first: saying(null, ({ ctx }) => completed(json({ run: ctx.run.input, context: ctx.context, task: ctx.task }))),
    },
    initial: "first",
    transitions: [
      { from: "first", on: "success", to: onEnd === "done" ? output : fail("not today") },
      { from: "first", on: "failure", to: done(1) },
    ],
  });
}
function invoking(child: AnyPipeline, given: Record<string, Json> = { n: 21 }) {
  return pipeline({
    id: "invoking",
    input,
    pipelines: { double: child },
    stages: {
      start: saying("started"),
      join: saying(null, ({ ctx }) => completed(json({ up: ctx.upstream, context: ctx.context }))),
      broken: saying(null, ({ ctx }) => completed(json(ctx.fork))),
    },
    initial: "start",
    transitions: [
      {
        from: "start",
        on: "success",
        to: invoke("double", { key: "CALLED", onComplete: "join", onFail: "broken", input: given }),
      },
      { from: "join", on: "success", to: output },
      { from: "broken", on: "success", to: output },
    ],
  });
}

describe("an invoked pipeline", () => {
  test("runs with its own context and input, and its output is upstream under its key", async () => {
    const live = session({ model: noModel });
    const run = live.start(invoking(doubling()), { task: "the task" });
    expect(await run).toMatchObject({
      status: "completed",
      output: {
        up: {
          CALLED: { run: { n: 21, task: "the task" }, context: { own: true, n: 21 }, task: "the task" },
        },
        context: {},
      },
    });
    expect((await run).stages.map(({ executionId }) => executionId)).toEqual(["start#1", "join#1"]);
    expect(dataOf(await eventsOf(live.host, run.runId), "run.started")[1]).toMatchObject({
      pipeline: "doubling",
      key: "CALLED",
    });
  });

  test("fails by its own outcome, or because its input does not fit", async () => {
    const live = session({ model: noModel });
    const code = async (made: Pipeline<Json, unknown>) => (await live.run(made, {})) satisfies object;
    expect(await code(invoking(doubling("fail")))).toMatchObject({
      output: { CALLED: { status: "failed", message: "not today" } },
    });
    expect(await code(invoking(doubling(), { n: "many" }))).toMatchObject({
      output: { CALLED: { status: "failed", code: "input_invalid" } },
    });
  });

  test("may have agents, whose models the session resolves, and whose usage is the run's", async () => {
    const live = session({ model: calling([]) });
    const run = live.start(invoking(working(), { task: "inner" }), {});
    expect(await run).toMatchObject({ status: "completed", output: { up: { CALLED: "done" } } });
    expect((await run).usage.inputTokens).toBeGreaterThan(0);
  });

  test("comes to the same end after a kill at any record", async () => {
    const { whole, killed } = await killedEverywhere(() => ({ pipeline: invoking(doubling()), input: {} }));
    for (const facts of killed) expect(facts).toEqual(whole);
  });

  test("that is cancelled while its input is checked is cancelled, and has no invalid input", async () => {
    let checking = false;
    const never = z.object({ n: z.number() }).refine(() => {
      checking = true;
      return new Promise<boolean>(() => undefined);
    });
    const slow = pipeline({
      id: "slow",
      input: never,
      stages: { first: saying(null) },
      initial: "first",
      next: { first: () => done(1) },
    });
    const live = session({ model: noModel });
    const run = live.start(invoking(slow), {});
    await eventually(() => checking);
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled" });
    const ends = (await eventsOf(live.host, run.runId)).filter(({ type }) => type === "run.finished");
    expect(ends.map(({ data }) => data.status)).toEqual(["cancelled", "cancelled"]);
  });

  test("enters its initial state with its run's input itself, also after a kill and in a replay", async () => {
    const inner = pipeline({
      id: "inner",
      input,
      stages: {
        first: work<Json, unknown>({
          init: (ctx) => ctx.input === ctx.run.input,
          act: (_scope, isSame) => completed(isSame),
        }),
      },
      initial: "first",
      transitions: [{ from: "first", on: "success", to: output }],
    });
    const { whole, killed } = await killedEverywhere(() => ({ pipeline: invoking(inner), input: {} }));
    expect(whole.output).toMatchObject({ up: { CALLED: true } });
    for (const facts of killed) expect(facts).toEqual(whole);
  });
});

describe("the child runs of a state", () => {
  function parent(
    children: readonly { key: string; pipeline: string; input: Json }[],
    child: AnyPipeline = doubling(),
  ) {
    return pipeline({
      id: "parent",
      input,
      pipelines: { double: child },
      stages: {
        only: saying(null, async (scope) => {
          const call = caller(scope);
          const before = await call("Note", { at: "before" });
          const ends = await scope.runChildren("two", children);
          const after = await call("Note", { at: "after" });
          return completed(json({ before, ends, after }));
        }),
      },
      initial: "only",
      transitions: [{ from: "only", on: "success", to: output }],
    });
  }
  const two = [
    { key: "a", pipeline: "double", input: { n: 1 } },
    { key: "b/c", pipeline: "double", input: { n: "no number" } },
  ];
  const tools = () => [tool("Note", { effect: "write" })];

  test("return how each ended, in order, and the execution continues after them", async () => {
    const live = session({ model: noModel, tools: tools(), mode: "yolo" });
    const run = live.start(parent(two), {});
    expect(await run).toMatchObject({
      status: "completed",
      output: {
        before: "Note ran",
        ends: [
          { key: "a", status: "completed", output: { run: { n: 1 }, context: { own: true } } },
          { key: "b/c", status: "failed", code: "input_invalid" },
        ],
        after: "Note ran",
      },
    });
    const runs = (await live.host.journal(run.runId)).map(({ runId }) => runId.replace(run.runId, ""));
    expect(runs).toEqual(["", "/only#1:a1:two/a", "/only#1:a1:two/b%2Fc"]);
  });

  test("hold no slot of their parent", async () => {
    const live = session({ model: noModel, tools: tools(), mode: "yolo", maxParallel: 1 });
    expect(await live.run(parent(two), {})).toMatchObject({ status: "completed" });
  });

  test("of a pipeline that does not exist stop the run with the reason", async () => {
    const live = session({ model: noModel, tools: tools(), mode: "yolo" });
    const unknown = parent([{ key: "a", pipeline: "toString", input: {} }]);
    await expect(live.run(unknown, {})).rejects.toMatchObject({
      code: "pipeline_unknown",
      message: /no pipeline "toString"/,
    });
  });

  test("count against the caps of their run", async () => {
    const live = session({ model: noModel, tools: tools(), mode: "yolo" });
    const spending = pipeline({
      id: "spending",
      input,
      stages: {
        only: saying(null, async (scope) => {
          const hit = await scope.steps.run(
            "spend",
            () => {
              const over = scope.budget.reserve({ inputTokens: 60, outputTokens: 0 });
              return over?.limit ?? null;
            },
            { cost: (refused) => ({ inputTokens: refused === null ? 60 : 0, outputTokens: 0 }) },
          );
          return hit === null ? completed("spent") : failed(String(hit));
        }),
      },
      initial: "only",
      transitions: [{ from: "only", on: "success", to: output }],
    });
    const capped = pipeline({
      id: "capped",
      input,
      limits: { maxTokens: 100 },
      pipelines: { spend: spending },
      stages: {
        only: saying(null, async (scope) => {
          const run = (key: string) => scope.runChildren(key, [{ key, pipeline: "spend", input: {} }]);
          return completed(json([...(await run("first")), ...(await run("second"))]));
        }),
      },
      initial: "only",
      transitions: [{ from: "only", on: "success", to: output }],
    });
    expect(await live.run(capped, {})).toMatchObject({
      output: [{ status: "completed" }, { status: "failed", message: expect.stringContaining("run.maxTokens") }],
    });
  });

  test("come to the same end after a kill at any record", async () => {
    const make = (): KilledRun => ({ pipeline: parent(two), input: {}, options: { tools: tools(), mode: "yolo" } });
    const { whole, killed } = await killedEverywhere(make);
    for (const { output: ended, ...facts } of killed) {
      const { output: expected, ...others } = whole;
      expect(withoutEvents(facts)).toEqual(withoutEvents(others));
      // Each run has an id of its own, which the ids of its children begin with.
      const endsOf = (output: unknown): string =>
        JSON.stringify(field(json(output), "ends")).replaceAll(/"r\w+\//g, '"');
      expect(endsOf(ended)).toBe(endsOf(expected));
    }
  });
});
