import { join } from "node:path";
import {
  type ActOutcome,
  type ActScope,
  backToInterrupted,
  cancel,
  done,
  final,
  type Json,
  pipeline,
  type State,
  type Subject,
  type Tool,
  type ToolSpec,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import {
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
  type WorkOptions,
  work,
} from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";

// A changed file that an interrupt names suspends the execution that changed it, and another state handles it.

const input = { type: "object" } as const;
const output = { stages: [], execution: "sequential" } as const;
const cwd = import.meta.dirname;
type Act = NonNullable<WorkOptions["act"]>;

/** A writing tool whose calls write the paths of their input, as its subjects say. */
const changeSpec: Partial<ToolSpec> = {
  subjects: (given) =>
    pathsOf(given).map((path): Subject => ({ kind: "path", real: join(cwd, path), access: "write" })),
  prepare: () => null,
  // A call of a killed process had not begun, so it runs again.
  recover: () => "not_started",
  execute: async () => ({ ok: true, output: "changed" }),
};
/** `report` says what changed instead. */
function changing(report?: () => readonly string[]): Tool {
  if (report === undefined) return tool("Change", changeSpec);
  const execute = async () => ({ ok: true, output: "changed", changed: report() });
  return tool("Change", { ...changeSpec, subjects: () => [], execute });
}
function pathsOf(given: Json): readonly string[] {
  const paths: unknown = Reflect.get(Object(given), "paths");
  return Array.isArray(paths) ? paths.map(String) : [];
}
/** Calls `Change` once for each list of paths, all in one turn, and completes with the outcomes. */
const changes =
  (...calls: readonly (readonly string[])[]): Act =>
  async (scope) => {
    const outcomes = await turn(scope, 1, calls);
    if (scope.signal.aborted) return cancelled();
    return completed(json(outcomes));
  };
function turn(scope: ActScope, number: number, calls: readonly (readonly string[])[]) {
  const requests = calls.map((paths, index) => ({
    id: `t${number}.c${index}`,
    tool: "Change",
    input: { paths: [...paths] },
  }));
  return scope.calls(number, requests);
}
function cancelled(): ActOutcome {
  return { turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, status: "cancelled", reason: "aborted" };
}

interface Scene {
  readonly work?: Act;
  readonly review?: Act;
  readonly audit?: Act;
  readonly exit?: (state: string) => void;
  /** The interrupt that `review` handles. */
  readonly named?: string;
}
/** `work` changes files; `review` handles those of src, `audit` those of the lock file. */
function interrupted(scene: Scene = {}) {
  const { work: act = changes(["src/a.ts"]), review, audit, exit = () => undefined, named = "REVIEW" } = scene;
  const handler = (own: Act | undefined, name: string): State<Json, unknown> =>
    work<Json, unknown>({
      act: own ?? (({ ctx }) => completed(json({ handled: ctx.input, by: name }))),
      exit: () => exit(name),
    });
  return pipeline({
    id: "detours",
    input,
    context: {},
    interrupts: {
      [named]: { files: "src/**", target: "review" },
      AUDIT: { files: "*.lock", target: "audit" },
    },
    stages: {
      work: work<Json, unknown>({ act, exit: () => exit("work") }),
      review: handler(review, "review"),
      audit: handler(audit, "audit"),
      elsewhere: work<Json, unknown>({ act: ({ ctx }) => completed(json({ elsewhere: ctx.context })) }),
      stopped: final("failed"),
    },
    initial: "work",
    transitions: [
      { from: "work", on: "success", to: output },
      { from: "work", on: "failure", to: "stopped" },
      {
        from: "review",
        on: "success",
        when: (result) => outputOf(result) === "leave",
        to: { kind: "to", state: "elsewhere", input: null, context: { left: true } },
      },
      { from: "review", on: "success", when: (result) => outputOf(result) === "over", to: done("over") },
      { from: "review", on: "success", to: backToInterrupted() },
      { from: "review", on: "failure", to: "stopped" },
      { from: "audit", on: "success", when: (result) => outputOf(result) === "leave", to: "elsewhere" },
      { from: "audit", on: "success", to: backToInterrupted() },
      { from: "elsewhere", on: "success", to: output },
    ],
  });
}
const outputOf = (result: object): unknown => Reflect.get(result, "output");
const options = (tools: readonly Tool[] = [changing()]) => ({
  model: noModel,
  cwd,
  mode: "yolo" as const,
  tools: [...tools],
});
const executionsOf = (stages: readonly { readonly executionId: string; readonly status: string }[]) =>
  stages.map(({ executionId, status }) => `${executionId} ${status}`);

describe("a changed file of an interrupt", () => {
  test("runs its handler, and the same execution continues with what it returned", async () => {
    const live = session(options());
    const run = live.start(interrupted({ work: changes(["src/a.ts", "src/b.ts"], ["other"]) }), {});
    const result = await run;
    expect(result).toMatchObject({
      status: "completed",
      output: [
        {
          id: "t1.c0",
          ok: true,
          output: "changed",
          interrupts: [
            {
              interrupt: "REVIEW",
              files: ["src/a.ts", "src/b.ts"],
              by: "review#1",
              output: { handled: { interrupt: "REVIEW", files: ["src/a.ts", "src/b.ts"] }, by: "review" },
            },
          ],
        },
        { id: "t1.c1", ok: false, output: { code: "interrupted" } },
      ],
    });
    expect(executionsOf(result.stages)).toEqual(["review#1 completed", "work#1 completed"]);
    const events = await eventsOf(live.host, run.runId);
    expect(dataOf(events, "interrupt.started")).toEqual([
      { interrupt: "REVIEW", files: ["src/a.ts", "src/b.ts"], to: "review" },
    ]);
    expect(dataOf(events, "interrupt.returned")).toEqual([{ interrupt: "REVIEW", by: "review#1" }]);
  });

  test("is one that its tool reports, or one that the call was allowed to write", async () => {
    for (const [report, expected] of [
      [() => ["src/deep/a.ts"], ["src/deep/a.ts"]],
      [() => [], undefined],
    ] as const) {
      const live = session(options([changing(report)]));
      const run = live.start(interrupted(), {});
      expect(await run).toMatchObject({ status: "completed" });
      const files = dataOf(await eventsOf(live.host, run.runId), "interrupt.started").map((data) => data.files);
      expect(files).toEqual(expected === undefined ? [] : [expected]);
    }
  });

  test("of another path, or a call that was denied, interrupts nothing", async () => {
    const live = session({ ...options(), mode: "ask" });
    const run = live.start(interrupted({ work: changes(["docs/a.md"]) }), {});
    await run;
    expect(dataOf(await eventsOf(live.host, run.runId), "interrupt.started")).toEqual([]);
    const denied = live.start(interrupted(), {});
    await denied;
    const events = await eventsOf(live.host, denied.runId);
    expect(dataOf(events, "call.decided")).toMatchObject([{ verdict: "refused" }]);
    expect(dataOf(events, "interrupt.started")).toEqual([]);
  });

  test("of several interrupts queues their handlers", async () => {
    const live = session(options());
    const result = await live.run(interrupted({ work: changes(["src/a.ts", "x.lock"]) }), {});
    expect(result).toMatchObject({
      output: [
        {
          interrupts: [
            { interrupt: "REVIEW", by: "review#1" },
            { interrupt: "AUDIT", by: "audit#1" },
          ],
        },
      ],
    });
    expect(executionsOf(result.stages)).toEqual(["review#1 completed", "audit#1 completed", "work#1 completed"]);
  });

  test("that the handler changes does not interrupt it again, and another one does", async () => {
    const live = session(options());
    const result = await live.run(
      interrupted({ review: changes(["src/b.ts", "x.lock"]), audit: changes(["src/c.ts", "y.lock"]) }),
      {},
    );
    expect(result).toMatchObject({
      status: "completed",
      output: [{ interrupts: [{ interrupt: "REVIEW", output: [{ interrupts: [{ interrupt: "AUDIT" }] }] }] }],
    });
    expect(executionsOf(result.stages)).toEqual(["audit#1 completed", "review#1 completed", "work#1 completed"]);
  });

  test("interrupts each turn again, and the handler's visits count", async () => {
    const live = session(options());
    const twice: Act = async (scope) =>
      completed(json([await turn(scope, 1, [["src/a.ts"]]), await turn(scope, 2, [["src/b.ts"]])]));
    const result = await live.run(interrupted({ work: twice }), {});
    expect(executionsOf(result.stages)).toEqual(["review#1 completed", "review#2 completed", "work#1 completed"]);
  });

  test("whose handler throws stops the run, even if the state catches what its call rejects with", async () => {
    const memory = createMemoryJournals();
    const caught: unknown[] = [];
    const careful: Act = async (scope) => {
      const [ended] = await Promise.allSettled([turn(scope, 1, [["src/a.ts"]])]);
      if (ended.status === "fulfilled") return completed("reviewed");
      caught.push(ended.reason);
      // Nothing can be done with it.
      const [again] = await Promise.allSettled([turn(scope, 2, [["src/b.ts"]])]);
      if (again.status === "rejected") caught.push(again.reason);
      return completed("not reviewed");
    };
    const failing = () => {
      throw new Error("the reviewer is not there");
    };
    const first = session({ ...options(), host: createHost(memory.connect()) });
    const run = first.start(interrupted({ work: careful, review: failing }), {});
    await expect(run).rejects.toMatchObject({ message: "the reviewer is not there" });
    expect(caught).toMatchObject([{ message: "the reviewer is not there" }, { code: "step_overlap" }]);
    const next = session({ ...options(), host: createHost(memory.connect()) });
    const resumed = await next.resume(interrupted({ work: careful }), run.runId);
    expect(resumed).toMatchObject({ status: "completed", output: "reviewed" });
    expect(executionsOf(resumed.stages)).toEqual(["review#1 completed", "work#1 completed"]);
  });

  test("is handled before what the state returned counts, even if the state does not await its call", async () => {
    let isReviewing = false;
    const careless: Act = async (scope) => {
      turn(scope, 1, [["src/a.ts", "yarn.lock"]]).catch(() => undefined);
      await eventually(() => isReviewing);
      return completed("not reviewed");
    };
    const review: Act = async () => {
      isReviewing = true;
      await quiet();
      return completed("reviewed");
    };
    const audit: Act = async () => {
      await quiet();
      return completed("leave");
    };
    const result = await session(options()).run(interrupted({ work: careless, review, audit }), {});
    expect(result).toMatchObject({ status: "completed", output: { elsewhere: {} } });
    expect(executionsOf(result.stages)).toEqual([
      ...["review#1 completed", "audit#1 completed", "work#1 cancelled", "elsewhere#1 completed"],
    ]);
  });

  test("needs no second slot, and the wait is outside the time cap of the execution", async () => {
    const live = session({ ...options(), maxParallel: 1 });
    const slow: Act = async () => {
      live.clock.turn(60_000);
      return completed("slow");
    };
    const pipelineOf = interrupted({ review: slow });
    expect(await live.run(pipelineOf, {})).toMatchObject({ status: "completed" });
  });
});

describe("a writing call that a killed process began", () => {
  test.each([
    ["took effect", "write", "done", "recovered"],
    ["may have taken effect", "write", "unknown", "outcome_unknown"],
    ["took effect", "read", "done", "recovered"],
    ["may have taken effect", "read", "unknown", "outcome_unknown"],
  ] as const)("and that %s interrupts, too, if its tool can %s by now", async (_name, effect, answer, outcome) => {
    const memory = createMemoryJournals();
    const process = (store: JournalStore, effect: "read" | "write") =>
      session({
        ...options([tool("Change", { ...changeSpec, effect, recover: () => answer })]),
        host: createHost(store),
      });
    const before = process(failingAt(memory.connect(), /#1\/a1\/turn\/1\/0\/call$/, "done"), "write");
    const defined = interrupted();
    const run = before.start(defined, {});
    await expect(run).rejects.toMatchObject({ code: "store_io" });
    const after = process(memory.connect(), effect);
    const result = await after.resume(defined, run.runId, { allowChanged: true });
    expect(executionsOf(result.stages)).toEqual(["review#1 completed", "work#1 completed"]);
    expect(dataOf(await eventsOf(after.host, run.runId), "call.finished")[0]).toMatchObject({ outcome });
  });
});

test("an execution can do nothing else while a handler works", async () => {
  const live = session(options());
  const greedy: Act = async (scope) => {
    const changed = turn(scope, 1, [["src/a.ts"]]);
    await eventually(() => handling);
    await expect(scope.steps.run("beside", () => null)).rejects.toMatchObject({ code: "step_overlap" });
    release();
    return completed(json(await changed));
  };
  let handling = false;
  let release = (): void => undefined;
  const slow: Act = async () => {
    handling = true;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return completed("slow");
  };
  expect(await live.run(interrupted({ work: greedy, review: slow }), {})).toMatchObject({ status: "completed" });
});

describe("a handler that does not return", () => {
  test("leaves the suspended executions, innermost first, with their exit hooks, and its own move follows", async () => {
    const exits: string[] = [];
    const live = session(options());
    const run = live.start(
      interrupted({
        review: changes(["x.lock"]),
        audit: () => completed("leave"),
        exit: (state) => exits.push(state),
      }),
      {},
    );
    const result = await run;
    expect(result).toMatchObject({ status: "completed", output: { elsewhere: {} } });
    expect(executionsOf(result.stages)).toEqual([
      "audit#1 completed",
      "review#1 cancelled",
      "work#1 cancelled",
      "elsewhere#1 completed",
    ]);
    expect(exits).toEqual(["audit", "review", "work"]);
  });

  test("aborts the signal of the suspended execution, and nothing that it does later counts", async () => {
    let held: ActScope | undefined;
    const seen: unknown[] = [];
    const live = session(options());
    /** Ignores the abort. */
    const stubborn: Act = async (scope) => {
      held = scope;
      await turn(scope, 1, [["src/a.ts"]]);
      seen.push(scope.signal.aborted);
      await scope.steps
        .run("more", () => null)
        .catch((thrown: unknown) => seen.push(Reflect.get(Object(thrown), "code")));
      return completed("ignored");
    };
    const result = await live.run(interrupted({ work: stubborn, review: () => completed("leave") }), {});
    expect(result).toMatchObject({ status: "completed", output: { elsewhere: { left: true } } });
    expect(seen).toEqual([true, "attempt_over"]);
    expect(executionsOf(result.stages)).toContain("work#1 cancelled");
    await expect(held?.accept({ turn: 2, event: "X", data: {} })).rejects.toMatchObject({ code: "attempt_over" });
  });

  test("leaves its turns counted, for a later visit of the state", async () => {
    const live = session(options());
    const again = pipeline({
      id: "again",
      input,
      interrupts: { REVIEW: { files: "src/**", target: "review" } },
      stages: {
        work: work<Json, unknown>({
          act: async (scope) => {
            if (scope.ctx.visit === 2) return completed(scope.turnsBefore);
            await turn(scope, 1, [["src/a.ts"]]);
            return { ...cancelled(), turns: 3 };
          },
        }),
        review: work<Json, unknown>({}),
      },
      initial: "work",
      transitions: [
        { from: "work", on: "success", to: output },
        { from: "review", on: "success", to: "work" },
      ],
    });
    expect(await live.run(again, {})).toMatchObject({ status: "completed", output: 3 });
  });

  test("may end the run, or fail it", async () => {
    const live = session(options());
    expect(await live.run(interrupted({ review: () => completed("over") }), {})).toMatchObject({
      status: "completed",
      output: "over",
      stages: [{ executionId: "review#1" }, { executionId: "work#1", status: "cancelled" }],
    });
    expect(await live.run(interrupted({ review: () => failed("no") }), {})).toMatchObject({
      status: "failed",
      state: "stopped",
    });
  });

  test("in a sibling fails that sibling, which has no other way on", async () => {
    const live = session(options());
    const run = live.start(inFanOut(), { leave: true });
    const result = await run;
    expect(result).toMatchObject({
      output: { one: { status: "failed", code: "interrupted" }, two: { status: "completed" } },
    });
    const events = await eventsOf(live.host, run.runId);
    const ends = events.filter(({ type, executionId }) => type === "attempt.finished" && executionId === "one#1");
    expect(ends.map(({ data }) => data)).toMatchObject([{ outcome: "failed", code: "interrupted" }]);
    expect(executionsOf(result.stages)).toContain("one#1 failed");
    const returned = await live.run(inFanOut(), { leave: false });
    expect(returned).toMatchObject({ output: { one: { status: "completed" }, two: { status: "completed" } } });
    expect(executionsOf(returned.stages)).toContain("review#1 completed");
  });

  test("in a sibling, because it may not be entered again, fails that sibling with the limit", async () => {
    const live = session(options());
    const twice: Act = async (scope) =>
      completed(json([await turn(scope, 1, [["src/a.ts"]]), await turn(scope, 2, [["src/b.ts"]])]));
    const run = live.start(inFanOut({ one: twice, maxVisits: 1 }), { leave: false });
    expect(await run).toMatchObject({
      output: { one: { status: "failed", code: "interrupted", message: "state review was entered 1 times" } },
    });
    const reached = (await eventsOf(live.host, run.runId)).filter(({ type }) => type === "limit.reached");
    expect(reached).toMatchObject([
      { runId: `${run.runId}/fan-1/one`, data: { limit: "maxVisits", message: "state review was entered 1 times" } },
    ]);
  });

  test("in a sibling, because its route cancels, fails that sibling", async () => {
    const live = session(options());
    expect(await live.run(inFanOut(), { leave: "cancel" })).toMatchObject({
      output: { one: { status: "failed", code: "interrupted" } },
    });
  });

  test("in a sibling, because it ended as cancelled, ends that sibling as cancelled", async () => {
    const live = session(options());
    const review: Act = () => ({ ...cancelled(), reason: "it gave up" });
    expect(await live.run(inFanOut({ review }), {})).toMatchObject({
      output: { one: { status: "cancelled", code: "cancelled", message: "it gave up" } },
    });
  });

  test("in a sibling whose run is cancelled ends that sibling's run as cancelled", async () => {
    const live = session(options());
    let working = false;
    const review: Act = async (scope) => {
      working = true;
      await scope.wait("wait", Number.MAX_SAFE_INTEGER);
      return cancelled();
    };
    const run = live.start(inFanOut({ review }), {});
    await eventually(() => working && live.clock.waiting() > 0);
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled" });
    const events = await eventsOf(live.host, run.runId);
    const ended = events.filter(({ type, runId }) => type === "run.finished" && runId.endsWith("/one"));
    expect(ended.map(({ data }) => data)).toMatchObject([{ status: "cancelled" }]);
    const attempts = events.filter(({ type, executionId }) => type === "attempt.finished" && executionId === "one#1");
    expect(attempts.map(({ data }) => data.outcome)).toEqual(["cancelled"]);
  });
});

/** `one` changes a file of an interrupt in a fan-out beside `two`; the handler goes to the join if the run's input says so. */
function inFanOut(own: { readonly one?: Act; readonly review?: Act; readonly maxVisits?: number } = {}) {
  const { one = changes(["src/a.ts"]), review = ({ ctx }) => completed(json(ctx.run.input)), maxVisits = 10 } = own;
  return pipeline({
    id: "siblings",
    input,
    limits: { maxVisits },
    interrupts: { REVIEW: { files: "src/**", target: "review" } },
    stages: {
      start: work<Json, unknown>({}),
      one: work<Json, unknown>({ act: one }),
      two: work<Json, unknown>({ act: changes(["docs/a.md"]) }),
      review: work<Json, unknown>({ act: review }),
      join: work<Json, unknown>({ act: ({ ctx }) => completed(json(ctx.fork)) }),
    },
    initial: "start",
    transitions: [
      {
        from: "start",
        on: "success",
        to: { kind: "fanOut", siblings: ["one", "two"], join: "join", onFailure: "settle" },
      },
      {
        from: "review",
        on: "success",
        when: (result) => Reflect.get(Object(outputOf(result)), "leave") === true,
        to: "join",
      },
      {
        from: "review",
        on: "success",
        when: (result) => Reflect.get(Object(outputOf(result)), "leave") === "cancel",
        to: cancel("not this way"),
      },
      { from: "review", on: "success", to: backToInterrupted() },
      { from: "join", on: "success", to: output },
    ],
  });
}

test("a run that is cancelled by the call that changed the file starts no handler", async () => {
  let stop = (): unknown => undefined;
  const stopping = tool("Change", {
    ...changeSpec,
    execute: async () => {
      void stop();
      return { ok: true, output: "changed" };
    },
  });
  const live = session(options([stopping]));
  const run = live.start(interrupted(), {});
  stop = () => run.cancel("enough");
  expect(await run).toMatchObject({ status: "cancelled", stages: [{ executionId: "work#1", status: "cancelled" }] });
  expect(dataOf(await eventsOf(live.host, run.runId), "interrupt.started")).toEqual([]);
});

test("a run that is cancelled while a handler works ends all of it as cancelled, in order", async () => {
  const live = session(options());
  const exits: string[] = [];
  let working = false;
  const waiting: Act = async (scope) => {
    working = true;
    await scope.wait("wait", Number.MAX_SAFE_INTEGER);
    return cancelled();
  };
  const run = live.start(interrupted({ review: waiting, exit: (state) => exits.push(state) }), {});
  await eventually(() => working && live.clock.waiting() > 0);
  await run.cancel("enough");
  const result = await run;
  expect(result).toMatchObject({ status: "cancelled", error: { code: "cancelled" } });
  expect(executionsOf(result.stages)).toEqual(["review#1 cancelled", "work#1 cancelled"]);
  expect(exits).toEqual(["review", "work"]);
});

describe("an interrupt that the pipeline lost after a call had started it", () => {
  const twice = { work: changes(["src/a.ts", "x.lock"]) };
  const without = interrupted({ ...twice, named: "RENAMED" });
  /** A run whose store fails at a step, and what becomes of it with each pipeline. */
  async function stopped(step: RegExp) {
    const memory = createMemoryJournals();
    const clock = handClock();
    const before = session({ ...options(), clock, host: createHost(failingAt(memory.connect(), step), { clock }) });
    const run = before.start(interrupted(twice), {});
    await expect(run).rejects.toMatchObject({ code: "store_io" });
    await before.host.close();
    const after = session({ ...options(), clock, host: createHost(memory.connect(), { clock }) });
    return {
      events: () => eventsOf(after.host, run.runId),
      resume: async (of: typeof without) => await after.resume(of, run.runId, { allowChanged: true }),
    };
  }

  test("is left out, and the other ones are handled", async () => {
    const { resume, events } = await stopped(/\/interrupt\/0/);
    const result = await resume(without);
    expect(executionsOf(result.stages)).toEqual(["audit#1 completed", "work#1 completed"]);
    expect(dataOf(await events(), "interrupt.started")).toEqual([
      { interrupt: "AUDIT", files: ["x.lock"], to: "audit" },
    ]);
  });

  test("does not give its recorded handler to another one: the run continues with the old pipeline", async () => {
    const { resume } = await stopped(/\/interrupt\/1/);
    await expect(resume(without)).rejects.toMatchObject({ code: "journal_mismatch" });
    const result = await resume(interrupted(twice));
    expect(executionsOf(result.stages)).toEqual(["review#1 completed", "audit#1 completed", "work#1 completed"]);
  });
});

describe("an interrupted run that is killed before any record", () => {
  test.each<[string, Scene]>([
    ["whose handler returns", { work: changes(["src/a.ts"], ["other"]) }],
    ["with handlers in handlers", { review: changes(["x.lock"]), audit: changes(["src/c.ts"]) }],
    ["with queued handlers", { work: changes(["src/a.ts", "x.lock"]) }],
    ["whose handler leaves", { review: changes(["x.lock"]), audit: () => completed("leave") }],
    ["whose handler ends the run", { review: () => completed("over") }],
    ["whose handler fails", { review: () => failed("no") }],
  ])("comes to the same end: %s", async (_name, scene) => {
    const make = (): KilledRun => ({ pipeline: interrupted(scene), input: {}, options: options() });
    const { whole, killed } = await killedEverywhere(make);
    expect(killed.length).toBeGreaterThan(5);
    for (const facts of killed) expect(facts).toEqual(whole);
  });
});
