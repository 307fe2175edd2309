import {
  type AnyState,
  cancel,
  done,
  fail,
  fanOut,
  type Json,
  pipeline,
  type RunJournal,
  type RunLimits,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { type RunReplay, replayRun } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { changed } from "../support/journal.ts";
import {
  cancelled,
  completed,
  eventually,
  failed,
  noModel,
  quiet,
  session,
  type WorkOptions,
  work,
  workExecutor,
} from "../support/run-kit.ts";

const OWN = { env: {}, executors: [workExecutor] };
const never = new Promise<never>(() => undefined);
type Over = ReturnType<typeof done | typeof cancel | typeof fail>;
type Route = () => Over;
/** Routes and prompts are typed as synchronous; JavaScript may return a promise all the same. */
const late: { readonly prompt: Json } = Object.assign({ prompt: null }, { prompt: never });
const hanging: { readonly route: Over } = Object.assign({ route: done(null) }, { route: never });

function one(state: WorkOptions, { limits = {}, next = () => done(null) }: { limits?: RunLimits; next?: Route } = {}) {
  return pipeline({
    id: "one",
    input: z.object({}),
    limits,
    stages: { a: work(state) },
    initial: "a",
    next: { a: next },
  });
}

/** What a pipeline records, while whatever it waits for happens. */
async function recorded(
  pipe: ReturnType<typeof one>,
  meanwhile: (live: ReturnType<typeof session>, runId: string) => Promise<void> = async () => undefined,
): Promise<readonly RunJournal[]> {
  const live = session({ model: noModel });
  const handle = live.start(pipe, {});
  await meanwhile(live, handle.runId);
  await handle;
  return await live.host.journal(handle.runId);
}
const turning = (ms: number) => async (live: ReturnType<typeof session>) => {
  await quiet();
  live.clock.turn(ms);
};
async function replayed(pipe: ReturnType<typeof one>, journals: readonly RunJournal[]): Promise<RunReplay> {
  return await replayRun(pipe, journals, OWN);
}
/** Notes that something was called. */
function counting() {
  const called: string[] = [];
  return {
    called,
    note: <T>(name: string, value: T): T => {
      called.push(name);
      return value;
    },
    threw: (name: string) => (): never => {
      called.push(name);
      throw new Error(`${name} is broken`);
    },
  };
}

const waiting = async (): Promise<number> => {
  await quiet();
  return 1;
};

describe("a state that was entered", () => {
  test("with a hook for setup that threw is taken as it is, whatever comes after it now", async () => {
    const { called, threw, note } = counting();
    const pipe = one({ setup: threw("setup"), init: () => note("init", 1), assert: () => "ok" });
    const journals = await recorded(pipe);
    expect(called).toEqual(["setup"]);
    expect(await replayed(pipe, journals)).toMatchObject({ identical: true, status: "failed" });
    const fixed = one({ setup: () => 1, init: () => note("init", 2) });
    expect(await replayed(fixed, journals)).toMatchObject({ identical: true });
    expect(called).toEqual(["setup"]);
  });

  test("with a prompt that threw is asked for it again, where nothing before it reads the world", async () => {
    const { called, threw } = counting();
    const pipe = one({ init: threw("init") });
    const journals = await recorded(pipe);
    expect(await replayed(pipe, journals)).toMatchObject({ identical: true });
    expect(called).toEqual(["init", "init"]);
    expect((await replayed(one({ init: () => "fixed" }), journals)).divergence).toMatchObject({
      stepId: "a#1/a1/enter",
      part: "value",
      path: "$.kind",
      recorded: "ended",
      now: "ready",
    });
    const other = one({ init: counting().threw("another") });
    expect((await replayed(other, journals)).divergence).toMatchObject({ path: "$.why.message" });
  });

  test("with a prompt that threw asks no gate, also where the prompt is there now", async () => {
    const { called, note, threw } = counting();
    const journals = await recorded(one({ init: threw("init"), precondition: () => note("gate", "skip") }));
    const fixed = one({ init: () => "fixed", precondition: () => note("gate", "skip") });
    expect((await replayed(fixed, journals)).divergence).toMatchObject({
      path: "$.kind",
      recorded: "ended",
      now: "ready",
    });
    expect(called).toEqual(["init"]);
  });

  test("with a prompt that was late is asked for it again, too", async () => {
    const limits = { timeoutMs: 50 };
    // A prompt may be made later, whatever its type says.
    const journals = await recorded(one({ init: () => late.prompt, limits }), turning(100));
    expect(JSON.stringify(journals)).toContain("may run for 50 ms");
    expect((await replayed(one({ init: () => "quick", limits }), journals)).divergence).toMatchObject({
      path: "$.kind",
      recorded: "ended",
      now: "ready",
    });
  });

  test("late in a run, and with a prompt that threw, was entered when it was", async () => {
    const clock = handClock();
    const pipe = pipeline({
      id: "two",
      input: z.object({}),
      stages: {
        a: work({
          act: () => {
            clock.turn(70);
            return completed(1);
          },
        }),
        b: work({ init: counting().threw("init") }),
      },
      initial: "a",
      next: { a: () => to("b"), b: () => done(null) },
    });
    const live = session({ model: noModel, clock });
    const { runId } = await live.run(pipe, {});
    const journals = await live.host.journal(runId);
    expect(JSON.stringify(journals)).toContain('\\"at\\":1070');
    expect((await replayRun(pipe, journals, OWN)).divergence?.message).toBeUndefined();
  });

  test("with a prompt that threw after a setup, or a gate that did, is not asked again", async () => {
    const after = counting();
    const broken = one({ setup: () => after.note("setup", 1), init: after.threw("init") });
    expect(await replayed(broken, await recorded(broken))).toMatchObject({ identical: true });
    expect(after.called).toEqual(["setup", "init"]);
    const gated = counting();
    const pipe = one({ init: () => gated.note("init", 1), precondition: gated.threw("gate") });
    expect(await replayed(pipe, await recorded(pipe))).toMatchObject({ identical: true });
    expect(gated.called).toEqual(["init", "gate"]);
  });

  test("has the setup, the gate's answer and the time that were recorded", async () => {
    let times = 0;
    const pipe = one({
      setup: () => {
        times += 1;
        return { times };
      },
      init: ({ setup }) => setup,
      precondition: () => "skip",
      assert: () => expect.fail("skipped states are not asserted"),
    });
    const journals = await recorded(pipe);
    expect(await replayed(pipe, journals)).toMatchObject({ identical: true });
    expect(times).toBe(1);
  });
});

describe("a state that was left", () => {
  test("has the time it took then, also in an attempt that was sent back", async () => {
    const took: number[] = [];
    const state: WorkOptions = {
      retryPolicy: { maxAttempts: 2 },
      act: async ({ steps }) => completed(await steps.run("slow", waiting)),
      assert: (result) => {
        took.push(result.ms);
        return took.length % 2 === 1 ? { retry: "again" } : "ok";
      },
    };
    const journals = await recorded(one(state), async (live) => {
      for (let turn = 0; turn < 20; turn += 1) {
        live.clock.turn(10);
        await quiet();
      }
    });
    const live = [...took];
    expect(live[0]).toBeGreaterThan(0);
    expect(live[1]).toBeGreaterThan(live[0] ?? 0);
    expect(await replayed(one(state), journals)).toMatchObject({ identical: true });
    expect(took.slice(2)).toEqual(live);
  });

  test("is asserted and routed again: another answer is a difference", async () => {
    const journals = await recorded(one({ assert: () => "ok" }));
    const { divergence } = await replayed(one({ assert: () => ({ fail: "no" }) }), journals);
    expect(divergence).toMatchObject({ stepId: "a#1/a1/leave", path: "$.result.status", recorded: "completed" });
    const sent = await recorded(
      one({
        retryPolicy: { maxAttempts: 2 },
        assert: (_result, { attempt }) => (attempt === 1 ? { retry: "x" } : "ok"),
      }),
    );
    expect((await replayed(one({ assert: () => "ok" }), sent)).divergence).toMatchObject({
      path: "$.kind",
      recorded: "retry",
    });
  });

  test.each<readonly [string, WorkOptions, RunLimits]>([
    ["state.maxTokens", { limits: { maxTokens: 10 } }, {}],
    ["run.maxTokens", {}, { maxTokens: 10 }],
    ["state.maxCostUsd", { limits: { maxCostUsd: 1.5 } }, {}],
    ["run.maxCostUsd", {}, { maxCostUsd: 1.5 }],
    ["state.timeoutMs", { limits: { timeoutMs: 50 } }, {}],
    ["run.timeoutMs", {}, { timeoutMs: 50 }],
  ])("past %s is past it again, and what assert sees of it is the same", async (limit, more, limits) => {
    const results: Json[] = [];
    const state: WorkOptions = {
      ...more,
      act: async ({ budget, steps }) => {
        const spending = async () => {
          budget.reserve({ inputTokens: 3, outputTokens: 2, costUsd: 1 });
          return await waiting();
        };
        await steps.run("slow", spending, { cost: () => ({ inputTokens: 7, outputTokens: 4, costUsd: 2 }) });
        return completed("done");
      },
      assert: (result) => {
        results.push(JSON.parse(JSON.stringify(result)));
        return "ok";
      },
    };
    const pipe = one(state, { limits });
    const journals = await recorded(pipe, turning(100));
    expect(results).toMatchObject([
      { status: "failed", code: limit.endsWith("Ms") ? "timeout" : "budget", detail: { limit } },
    ]);
    expect(await replayed(pipe, journals)).toMatchObject({ identical: true, status: "failed" });
    expect(results[1]).toEqual(results[0]);
    expect(
      (await replayed(one({ ...state, assert: () => ({ fail: "other" }) }, { limits }), journals)).divergence,
    ).toMatchObject({
      path: "$.result.code",
      now: "assert",
    });
  });

  test("is past no cap for what an executor says of limits of its own", async () => {
    for (const limit of ["turnCap", "my state.maxTokens", "state.maxTokens.soft", "run.maxTurns", "other.timeoutMs"]) {
      const pipe = one({
        act: ({ note }) => {
          note({ type: "limit.reached", data: { limit, message: "of its own" } });
          note({ type: "limit.near", data: { limit: "state.maxTokens", message: "near", used: 8, max: 10 } });
          return completed("done");
        },
      });
      const journals = await recorded(pipe);
      expect(await replayed(pipe, journals)).toMatchObject({ identical: true, status: "completed" });
    }
  });

  test("keeps what its exit hook came to, without asking it", async () => {
    const message = "ghp_0123456789abcdefghijABCDEFGHIJ is wrong";
    const { called, note } = counting();
    const exits: readonly (() => never | Promise<never>)[] = [
      () => {
        throw new Error(note("threw", message));
      },
      () => note("hung", never),
    ];
    for (const exit of exits)
      for (const act of [() => completed(1), () => failed("first")]) {
        called.length = 0;
        const pipe = one({ act, exit });
        const journals = await recorded(pipe, turning(5_000));
        expect(called).toHaveLength(1);
        const report = await replayed(pipe, journals);
        expect([report.divergence?.message, report.status]).toEqual([undefined, "failed"]);
        expect(called).toHaveLength(1);
      }
  });

  test("whose assert threw has no fault of its exit hook", async () => {
    const { called, note, threw } = counting();
    const pipe = one({ assert: threw("assert"), exit: () => note("exit", undefined) });
    const report = await replayed(pipe, await recorded(pipe));
    expect([report.divergence?.message, report.status]).toEqual([undefined, "failed"]);
    expect(called).toEqual(["assert", "exit", "assert"]);
  });

  test("whose exit hook failed, too, after a hook before it had, keeps both faults apart", async () => {
    const broken = counting();
    for (const state of [
      { assert: broken.threw("assert"), exit: broken.threw("exit") },
      { setup: broken.threw("setup"), exit: broken.threw("exit") },
      { act: () => cancelled("enough"), exit: broken.threw("exit") },
      { precondition: () => "skip" as const, exit: broken.threw("exit") },
    ]) {
      const journals = await recorded(one(state));
      expect(JSON.stringify(journals)).toContain("the exit hook threw: exit is broken");
      expect((await replayed(one(state), journals)).divergence?.message).toBeUndefined();
    }
  });

  test("is taken as it is where a time cap passed while assert was at work", async () => {
    const { called, note } = counting();
    const pipe = one({ limits: { timeoutMs: 50 }, assert: () => note("assert", never) });
    const journals = await recorded(pipe, turning(100));
    expect(await replayed(pipe, journals)).toMatchObject({ identical: true, status: "failed" });
    expect(called).toEqual(["assert"]);
    expect(await replayed(one({ assert: () => ({ fail: "now" }) }), journals)).toMatchObject({ identical: true });
  });

  test("is taken as it is where the run was cancelled over its assert, its route or its work", async () => {
    const { called, note } = counting();
    const cancelling = async (live: ReturnType<typeof session>, runId: string): Promise<void> => {
      await eventually(() => called.length === 1);
      await live.host.cancel(runId, "enough", "me");
    };
    const over = [
      one({ assert: () => note("assert", never) }),
      one({}, { next: () => note("route", hanging.route) }),
      one({
        act: async ({ signal }) =>
          note(
            "act",
            new Promise((resolve) =>
              signal.addEventListener("abort", () =>
                resolve({ ...completed(1), status: "cancelled", reason: "enough" }),
              ),
            ),
          ),
      }),
    ];
    for (const pipe of over) {
      called.length = 0;
      const journals = await recorded(pipe, cancelling);
      const report = await Promise.race([replayed(pipe, journals), eventually(() => false).catch(() => undefined)]);
      expect([report?.divergence?.message, report?.status]).toEqual([undefined, "cancelled"]);
    }
  });

  test("is routed again where its route cancels or fails the run itself", async () => {
    for (const [next, kind, status] of [
      [() => cancel("enough"), "cancel", "cancelled"],
      [() => fail("no"), "fail", "failed"],
    ] as const) {
      const journals = await recorded(one({}, { next }));
      expect(await replayed(one({}, { next }), journals)).toMatchObject({ identical: true, status });
      expect((await replayed(one({}), journals)).divergence).toMatchObject({
        stepId: "a#1/a1/leave",
        path: "$.next.choice.kind",
        recorded: kind,
        now: "done",
      });
    }
  });
});

describe("a route after a fork that failed", () => {
  const forking = (next: Route) => {
    const stages: Record<string, AnyState> = { start: work(), x: work({ act: () => failed("broken") }), end: work() };
    return pipeline({
      id: "one",
      input: z.object({}),
      stages,
      initial: "start",
      next: {
        start: { completed: () => fanOut(["x"], { join: "end", onFailure: "cancel" }), failed: next },
        end: () => done(null),
      },
    });
  };

  test("is asked again, and not where the run was cancelled over it", async () => {
    const journals = await recorded(forking(() => fail("no")));
    expect(
      await replayed(
        forking(() => fail("no")),
        journals,
      ),
    ).toMatchObject({ identical: true, status: "failed" });
    expect(
      (
        await replayed(
          forking(() => done(1)),
          journals,
        )
      ).divergence,
    ).toMatchObject({
      stepId: "fan-1/failed",
      path: "$.choice.kind",
      recorded: "fail",
      now: "done",
    });
    const own = await recorded(forking(() => cancel("enough")));
    expect(
      (
        await replayed(
          forking(() => done(1)),
          own,
        )
      ).divergence,
    ).toMatchObject({ recorded: "cancel", now: "done" });
    const { called, note } = counting();
    const endless = forking(() => note("route", hanging.route));
    const cancelled = await recorded(endless, async (live, runId) => {
      await eventually(() => called.length === 1);
      await live.host.cancel(runId, "enough", "me");
    });
    expect(
      await replayed(
        forking(() => note("again", done(1))),
        cancelled,
      ),
    ).toMatchObject({ identical: true, status: "cancelled" });
    expect(called).toEqual(["route"]);
  });
});

describe("a run", () => {
  test("that was cancelled between two states ends there again", async () => {
    const clock = handClock();
    const asked: string[] = [];
    const pipe = pipeline({
      id: "two",
      input: z.object({}),
      stages: { a: work(), b: work({ setup: () => asked.push("setup"), init: () => asked.push("init") }) },
      initial: "a",
      next: { a: () => to("b"), b: () => done(null) },
    });
    const store = createMemoryJournals().connect();
    const append: typeof store.append = (commit) => {
      const written = store.append(commit);
      if (commit.record.stepId === "a#1/a1/leave") void handle.cancel("enough");
      return written;
    };
    const live = session({ model: noModel, clock, host: createHost(changed(store, { append }), { clock }) });
    const handle = live.start(pipe, {});
    await handle;
    const journals = await live.host.journal(handle.runId);
    expect(JSON.stringify(journals)).toContain("a#1/a1/leave");
    expect(JSON.stringify(journals)).not.toContain("b#1");
    const report = await replayRun(pipe, journals, OWN);
    expect([report.divergence?.message, report.status, asked]).toEqual([undefined, "cancelled", []]);
  });

  test("has nothing against its caps when it begins, and counts what it sets aside", async () => {
    const answers: boolean[] = [];
    const limits = { maxTokens: 10 };
    const act: WorkOptions["act"] = ({ budget }) => {
      for (const inputTokens of [6, 4, 1]) answers.push(budget.reserve({ inputTokens, outputTokens: 0 }) === undefined);
      return completed(1);
    };
    const journals = await recorded(one({ act }, { limits }));
    expect(await replayed(one({ act }, { limits }), journals)).toMatchObject({ identical: true, status: "completed" });
    expect(answers).toEqual([true, true, false, true, true, false]);
  });
});
