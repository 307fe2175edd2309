import {
  type ActScope,
  backToInterrupted,
  callbackInteractor,
  done,
  fanOut,
  type Json,
  type Pipeline,
  pipeline,
  type RunHost,
  SluiceError,
  type SluiceEvent,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { interruptRun, replayRun, subPipeline } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import {
  caller,
  cancelled,
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  quiet,
  session,
  type TestSession,
  tool,
  twoHosts,
  work,
  workExecutor,
} from "../support/run-kit.ts";

const task = { task: "Fix it." };
const input = z.object({ task: z.string() });

/** Works in a step until it is stopped, and says how far it got. */
async function untilStopped(scope: ActScope, begun: () => void, partial: Json = "half of it") {
  await scope.steps.run("work", async (call) => {
    begun();
    await new Promise<void>((resolve) => {
      if (call.signal.aborted) resolve();
      else call.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    return null;
  });
  return { ...cancelled("stopped"), partial };
}

/** Two states; the first one works until it is stopped in its first visit. */
function world() {
  const seen: { readonly state: string; readonly visit: number; readonly feedback: string | undefined }[] = [];
  const exits: string[] = [];
  let began = false;
  const first = work<Json>({
    act: async (scope) => {
      const { visit, feedback } = scope.ctx;
      seen.push({ state: "first", visit, feedback });
      if (visit > 1) return completed("all of it");
      return await untilStopped(scope, () => {
        began = true;
      });
    },
    exit: ({ executionId, status }) => void exits.push(`${executionId} ${status}`),
  });
  const second = work<Json>({ act: () => completed("second") });
  const two = pipeline({
    id: "two",
    input,
    stages: { first, second },
    initial: "first",
    next: { first: () => to("second"), second: ({ output }) => done(output) },
  });
  return { two, seen, exits, begun: () => eventually(() => began) };
}
/** How often each execution ended. */
function ends(events: readonly SluiceEvent[]): Readonly<Record<string, number>> {
  const left = events.filter(({ type, data }) => type === "stage.exit" && data.phase === "left");
  return Object.fromEntries(
    Object.entries(
      Object.groupBy(left, ({ runId, executionId = "" }) => `${runId.split("/").slice(1).join("/")}${executionId}`),
    ).map(([id, all = []]) => [id, all.length]),
  );
}

/** A run that a person interrupts while the end of its call, which changed a watched file, is written; and a session that resumes it. */
async function interruptedAfterCall(watching: Pipeline<{ task: string }, Json>) {
  const memory = createMemoryJournals();
  const clock = handClock();
  const change = tool("Change", { execute: async () => ({ ok: true, output: "ok", changed: ["src/a.ts"] }) });
  const interactors = [callbackInteractor("ann", () => ({ kind: "approve" }))];
  const life = (store: JournalStore): TestSession =>
    session({ model: noModel, mode: "yolo", tools: [change], clock, interactors, host: createHost(store, { clock }) });
  const store = memory.connect();
  const live = life({
    ...store,
    append: async (commit) => {
      if (commit.record.phase === "done" && commit.record.stepId.endsWith("/call")) void run.interrupt("later");
      await quiet();
      return await store.append(commit);
    },
  });
  const run = live.start(watching, task);
  expect(await run).toMatchObject({ status: "suspended" });
  await live.host.close();
  return { runId: run.runId, after: life(memory.connect()) };
}

describe("a run that a person interrupts", () => {
  test("ends what it does with its partial output, is suspended, and enters the state again when it resumes", async () => {
    const { two, seen, exits, begun } = world();
    const live = session({ model: noModel });
    const handle = live.start(two, task);
    await begun();
    await handle.interrupt("the wrong folder");
    expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
    expect(exits).toEqual(["first#1 cancelled"]);
    const between = await eventsOf(live.host, handle.runId);
    expect(dataOf(between, "execution.interrupted")).toEqual([{ by: "api", reason: "the wrong folder", count: 1 }]);
    expect(ends(between)).toEqual({ "first#1": 1 });

    expect(await live.resume(two, handle.runId)).toMatchObject({
      status: "completed",
      stages: [
        { executionId: "first#1", status: "cancelled", partial: "half of it" },
        { executionId: "first#2", status: "completed" },
        { executionId: "second#1", status: "completed" },
      ],
    });
    expect(seen.at(-1)).toEqual({
      state: "first",
      visit: 2,
      feedback:
        "api interrupted the previous execution of this state, first#1, with this reason: the wrong folder. What it changed may still be there. Its output until then:\nhalf of it",
    });
    expect(ends(await eventsOf(live.host, handle.runId))).toEqual({ "first#1": 1, "first#2": 1, "second#1": 1 });
  });

  test("is interrupted by another process, and resumes in a third, whose replay is identical", async () => {
    const { first, second } = twoHosts();
    const { two, begun } = world();
    const handle = session({ model: noModel, host: first }).start(two, task);
    await begun();
    await interruptRun(second, handle.runId, "", "ann");
    expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
    const third = session({ model: noModel, host: second });
    expect(await third.resume(two, handle.runId)).toMatchObject({ status: "completed" });
    const journal = await second.journal(handle.runId);
    expect(await replayRun(two, journal, { env: {}, executors: [workExecutor] })).toMatchObject({ identical: true });
  });

  test("merges a second interruption into the first while that is carried out", async () => {
    const { first, second } = twoHosts();
    let began = false;
    let stop: (() => void) | undefined;
    const slow = pipeline({
      id: "slow",
      input,
      stages: {
        slow: work<Json>({
          act: async (scope) => {
            if (scope.ctx.visit > 1) return completed(scope.ctx.feedback ?? "");
            await scope.steps.run("work", async () => {
              began = true;
              await new Promise<void>((resolve) => {
                stop = resolve;
              });
              return null;
            });
            return cancelled("stopped");
          },
        }),
      },
      initial: "slow",
      next: { slow: ({ output }) => done(output) },
    });
    const live = session({ model: noModel, host: first });
    const handle = live.start(slow, task);
    await eventually(() => began);
    await interruptRun(second, handle.runId, "one", "ann");
    await interruptRun(second, handle.runId, "two", "bob");
    await eventually(async () => (await second.get(handle.runId))?.status === "running");
    await new Promise((resolve) => setImmediate(resolve));
    stop?.();
    expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
    expect(dataOf(await eventsOf(second, handle.runId), "execution.interrupted")).toHaveLength(1);
    const again = await live.resume(slow, handle.runId);
    expect(again).toMatchObject({ status: "completed", output: expect.stringMatching(/one.*two/) });
  });

  test("is closed once also if its process dies before it could record the interruption", async () => {
    const { first, second } = twoHosts();
    const { two, begun } = world();
    const handle = session({ model: noModel, host: first }).start(two, task);
    await begun();
    await handle.suspend();
    const events = await eventsOf(second, handle.runId);
    expect(ends(events)).toEqual({});
    const later = session({ model: noModel, host: second }).resume(two, handle.runId);
    await eventually(async () => (await second.get(handle.runId))?.status === "running");
    await later.interrupt("again");
    expect(await later).toMatchObject({ status: "suspended" });
    expect(ends(await eventsOf(second, handle.runId))).toEqual({ "first#1": 1 });
  });

  test("interrupts every child of a fan-out, and each enters its state again", async () => {
    const begun = new Set<string>();
    const side = (name: string) =>
      work<Json>({
        act: async (scope) => {
          if (scope.ctx.visit > 1) return completed(scope.ctx.feedback?.includes(name) === true);
          return await untilStopped(scope, () => void begun.add(name), `half of ${name}`);
        },
      });
    const wide = pipeline({
      id: "wide",
      input,
      stages: {
        split: work<Json>(),
        left: side("left"),
        right: side("right"),
        join: work<Json>({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
      },
      initial: "split",
      next: {
        split: () => fanOut(["left", "right"], { join: "join" }),
        left: () => done(null),
        right: () => done(null),
        join: ({ output }) => done(output),
      },
    });
    const live = session({ model: noModel });
    const handle = live.start(wide, task);
    await eventually(() => begun.size === 2);
    await handle.interrupt("look at it first");
    const between = await eventsOf(live.host, handle.runId);
    expect(dataOf(between, "execution.interrupted")).toHaveLength(2);
    expect(await live.resume(wide, handle.runId)).toMatchObject({
      status: "completed",
      output: { left: true, right: true },
    });
    const all = ends(await eventsOf(live.host, handle.runId));
    expect(Object.values(all)).toEqual(Object.values(all).map(() => 1));
    expect(Object.keys(all)).toHaveLength(6);
  });

  test("ends once, is interrupted once and completes, wherever its process is killed", async () => {
    let kills = 0;
    for (let isKilled = true; isKilled; kills += 1) {
      const killedAt = kills + 1;
      const clock = handClock();
      const memory = createMemoryJournals();
      const store = memory.connect();
      let written = 0;
      const write = (): void => {
        written += 1;
        if (written === killedAt) throw new SluiceError("Host", "store_io", "the process was killed");
      };
      const dying: JournalStore = {
        ...store,
        append: (commit) => {
          write();
          return store.append(commit);
        },
      };
      const calm = createHost(memory.connect(), { clock });
      let isAsked = false;
      const once = pipeline({
        id: "once",
        input,
        stages: {
          first: work<Json>({
            act: async (scope) => {
              if (scope.ctx.visit > 1) return completed(scope.ctx.feedback ?? null);
              await scope.steps.run("before", () => 1);
              if (!isAsked) await interruptRun(calm, scope.ctx.runId, "wrong", "ann");
              isAsked = true;
              return await untilStopped(scope, () => undefined);
            },
          }),
          second: work<Json>({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
        },
        initial: "first",
        next: { first: () => to("second"), second: ({ output }) => done(output) },
      });
      const first = session({ model: noModel, clock, host: createHost(dying, { clock }) });
      const { runId } = await first
        .start(once, task)
        .then(
          (result) => result,
          () => ({ runId: "" }),
        )
        .then(async (result) => (result.runId === "" ? ((await calm.list())[0] ?? result) : result));
      const next = (): TestSession => session({ model: noModel, clock, host: createHost(memory.connect(), { clock }) });
      let result = await next().resume(once, runId);
      if (result.status === "suspended") result = await next().resume(once, runId);
      expect(result, `killed at ${killedAt}`).toMatchObject({ status: "completed" });
      const events = await eventsOf(calm, runId);
      expect(dataOf(events, "execution.interrupted"), `killed at ${killedAt}`).toHaveLength(1);
      expect(ends(events), `killed at ${killedAt}`).toEqual({ "first#1": 1, "first#2": 1, "second#1": 1 });
      expect(result).toMatchObject({ output: { first: expect.stringContaining("half of it") } });
      isKilled = written >= killedAt;
    }
    expect(kills).toBeGreaterThan(5);
  });

  test("interrupts the handler of an interrupt alone, which is entered again and then returns", async () => {
    const seen: string[] = [];
    let isHandling = false;
    const change = tool("Change", { execute: async () => ({ ok: true, output: "ok", changed: ["src/a.ts"] }) });
    const watching = pipeline({
      id: "watching",
      input,
      interrupts: { SOURCES: { files: "src/**", target: "review" } },
      stages: {
        work: work<Json>({
          act: async (scope) => {
            await caller(scope)("Change");
            seen.push(`work#${scope.ctx.visit} ${scope.signal.aborted ? "stopped" : "continues"}`);
            return completed("worked");
          },
        }),
        review: work<Json>({
          act: async (scope) => {
            seen.push(`review#${scope.ctx.visit}`);
            if (scope.ctx.visit > 1) return completed("fine");
            return await untilStopped(scope, () => {
              isHandling = true;
            });
          },
        }),
      },
      initial: "work",
      transitions: [
        { from: "work", on: "success", to: done("over") },
        { from: "review", on: "success", to: backToInterrupted() },
      ],
    });
    const live = session({ model: noModel, mode: "yolo", tools: [change] });
    const handle = live.start(watching, task);
    await eventually(() => isHandling);
    await handle.interrupt("later");
    expect(ends(await eventsOf(live.host, handle.runId))).toEqual({ "review#1": 1 });
    expect(await live.resume(watching, handle.runId)).toMatchObject({ status: "completed", output: "over" });
    expect(seen.filter((one, index) => seen.indexOf(one) === index)).toEqual([
      "review#1",
      "review#2",
      "work#1 continues",
    ]);
    const all = ends(await eventsOf(live.host, handle.runId));
    expect(all).toEqual({ "review#1": 1, "review#2": 1, "work#1": 1 });
  });

  test("suspends a run as it is where nothing can be interrupted, such as a route that waits for approval", async () => {
    const approving = pipeline({
      id: "approving",
      input,
      stages: { first: work<Json>({ act: () => completed(1) }), second: work<Json>({ act: () => completed(2) }) },
      initial: "first",
      transitions: [
        { from: "first", on: "success", to: to("second"), approval: { message: "Go?" } },
        { from: "second", on: "success", to: done("over") },
      ],
    });
    const live = session({ model: noModel, wait: true });
    const handle = live.start(approving, task);
    await eventually(async () => (await live.host.requests(handle.runId)).length === 1);
    await handle.interrupt("later");
    expect(dataOf(await eventsOf(live.host, handle.runId), "execution.interrupted")).toEqual([]);
    const again = live.resume(approving, handle.runId);
    await eventually(async () => (await live.host.get(handle.runId))?.status === "running");
    await again.suspend();
    expect(await live.host.requests(handle.runId)).toHaveLength(1);
  });

  test.each([
    ["while its process works", false],
    ["while it waits without a process", true],
  ])("suspends a run as it is where the way back of a handler waits for approval: %s", async (_when, isLeft) => {
    const change = tool("Change", { execute: async () => ({ ok: true, output: "ok", changed: ["src/a.ts"] }) });
    const watching = pipeline({
      id: "watching",
      input,
      interrupts: { SOURCES: { files: "src/**", target: "review" } },
      stages: {
        work: work<Json>({ act: async (scope) => completed(await caller(scope)("Change")) }),
        review: work<Json>({ act: () => completed("fine") }),
      },
      initial: "work",
      transitions: [
        { from: "work", on: "success", to: done("over") },
        { from: "review", on: "success", to: backToInterrupted(), approval: { message: "Is it reviewed?" } },
      ],
    });
    const live = session({ model: noModel, mode: "yolo", tools: [change], wait: true });
    const handle = live.start(watching, task);
    await eventually(async () => (await live.host.requests(handle.runId)).length === 1);
    if (isLeft) {
      await handle.suspend();
      await interruptRun(live.host, handle.runId, "later", "ann");
      await live.resume(watching, handle.runId);
    } else await handle.interrupt("later");
    expect(await handle).toMatchObject({ status: "suspended" });
    expect(dataOf(await eventsOf(live.host, handle.runId), "execution.interrupted")).toEqual([]);
    live.attach(callbackInteractor("ann", () => ({ kind: "approve" })));
    expect(await live.resume(watching, handle.runId)).toMatchObject({ status: "completed", output: "over" });
  });

  test.each([
    ["", false],
    [", also after it was interrupted again before it acted", true],
  ])(
    "whose call changed a file just before runs the handler of the interrupt first when it resumes%s",
    async (_what, isTwice) => {
      const seen: string[] = [];
      let interrupt = (): unknown => undefined;
      const watching = pipeline({
        id: "watching",
        input,
        interrupts: { SOURCES: { files: "src/**", target: "review" } },
        stages: {
          work: work<Json>({
            setup: async ({ visit }) => {
              if (!isTwice || visit !== 2) return null;
              void interrupt();
              await quiet();
              return null;
            },
            act: async (scope) => {
              if (scope.ctx.visit === 1) await caller(scope)("Change");
              seen.push(`work#${scope.ctx.visit}`);
              return scope.signal.aborted ? cancelled("stopped") : completed("worked");
            },
          }),
          review: work<Json>({ act: ({ ctx }) => completed(seen.push(`review#${ctx.visit}`)) }),
        },
        initial: "work",
        transitions: [
          { from: "work", on: "success", to: done("over") },
          { from: "review", on: "success", to: backToInterrupted(), approval: { message: "Is it reviewed?" } },
        ],
      });
      const { runId, after } = await interruptedAfterCall(watching);
      if (isTwice) {
        const again = after.resume(watching, runId);
        interrupt = () => again.interrupt("later");
        expect(await again).toMatchObject({ status: "suspended" });
      }
      expect(await after.resume(watching, runId)).toMatchObject({ status: "completed", output: "over" });
      const first = seen.filter((one, index) => seen.indexOf(one) === index);
      expect(first).toEqual(["work#1", "review#1", isTwice ? "work#3" : "work#2"]);
    },
  );

  test("has nothing to interrupt once it is suspended or finished", async () => {
    const { two, begun } = world();
    const live = session({ model: noModel });
    const handle = live.start(two, task);
    await begun();
    await handle.interrupt();
    await expect(interruptRun(live.host, handle.runId, "", "ann")).rejects.toMatchObject({ code: "run_suspended" });
    await live.resume(two, handle.runId);
    await expect(interruptRun(live.host, handle.runId, "", "ann")).rejects.toMatchObject({ code: "run_finished" });
    await expect(interruptRun(live.host, "nobody", "", "ann")).rejects.toMatchObject({ code: "run_unknown" });
  });
});

describe("an interruption that arrives while a record is appended", () => {
  /** Takes steps and makes calls, and stops at the first one after which it is interrupted. */
  const steps = work<Json>({
    act: async (scope) => {
      const call = caller(scope);
      for (const step of ["one", "two"]) {
        await scope.steps.run(step, () => 1);
        if (scope.signal.aborted) return { ...cancelled("stopped"), partial: step };
        await call("Change", { step });
        if (scope.signal.aborted) return { ...cancelled("stopped"), partial: `${step} changed` };
      }
      return completed(scope.ctx.feedback ?? null);
    },
  });
  const inner = pipeline({
    id: "inner",
    input,
    stages: { first: steps, second: steps },
    initial: "first",
    next: { first: () => to("second"), second: ({ output }) => done(output) },
  });
  const around = pipeline({
    id: "around",
    input,
    stages: { run: subPipeline({ pipeline: "inner", of: inner }), left: steps, right: steps, join: work() },
    initial: "run",
    pipelines: { inner },
    next: {
      run: () => fanOut(["left", "right"], { join: "join" }),
      left: () => done(null),
      right: () => done(null),
      join: () => done("joined"),
    },
  });

  /** Runs with an interruption at this record, then to its end in another process. */
  async function interruptedAt(record: number, made: Pipeline<{ task: string }, Json>) {
    const clock = handClock();
    const memory = createMemoryJournals();
    const store = memory.connect();
    const other = createHost(memory.connect(), { clock });
    const calls: Json[] = [];
    const change = tool("Change", { execute: async (input: Json) => ({ ok: true, output: calls.push(input) }) });
    let [appended, callsBefore] = [0, 0];
    const slow: JournalStore = {
      ...store,
      append: async (commit) => {
        appended += 1;
        if (appended === record) {
          await interruptRun(other, handle.runId, "wrong", "ann");
          await quiet();
          callsBefore = calls.length;
        }
        return await store.append(commit);
      },
    };
    const living = (host: RunHost): TestSession =>
      session({ model: noModel, mode: "yolo", tools: [change], clock, host });
    const handle = living(createHost(slow, { clock })).start(made, task);
    const { status } = await handle;
    if (appended < record) return undefined;
    const callsAfter = calls.length - callsBefore;
    const result = status === "suspended" ? await living(other).resume(made, handle.runId) : undefined;
    const events = await eventsOf(other, handle.runId);
    const journal = await other.journal(handle.runId);
    const replayed = await replayRun(made, journal, { env: {}, executors: [workExecutor] });
    return {
      interruptions: dataOf(events, "execution.interrupted").length,
      outcome: {
        status: result?.status ?? status,
        callsAfter,
        endedTwice: Object.entries(ends(events)).filter(([, times]) => times > 1),
        difference: replayed.divergence?.message,
      },
    };
  }

  test.each([
    ["a stage", inner],
    ["pipelines within pipelines", around],
  ])("begins nothing more, and the run resumes as it went, whichever record of %s it was", async (_of, made) => {
    const outcome = { status: "completed", callsAfter: 0, endedTwice: [], difference: undefined };
    let interruptions = 0;
    let record = 1;
    for (; ; record += 1) {
      const found = await interruptedAt(record, made);
      if (found === undefined) break;
      expect(found.outcome, `record ${record}`).toEqual(outcome);
      interruptions += found.interruptions;
    }
    expect(interruptions).toBeGreaterThan(record / 2);
  });

  test.each(["skips the state", "waits"])(
    "whose call's handler leads elsewhere when it resumes goes there at once, though the precondition %s then",
    async (how) => {
      const watching = pipeline({
        id: "watching",
        input,
        interrupts: { SOURCES: { files: "src/**", target: "review" } },
        stages: {
          work: work<Json>({
            precondition: ({ visit }) => {
              if (visit === 1) return "proceed";
              return how === "waits" ? { retryAfterMs: 60_000 } : "skip";
            },
            act: async (scope) => {
              await caller(scope)("Change");
              return scope.signal.aborted ? cancelled("stopped") : completed("worked");
            },
          }),
          review: work<Json>(),
          repair: work<Json>(),
        },
        initial: "work",
        transitions: [
          { from: "work", on: "success", to: done("over") },
          { from: "work", on: "skipped", to: done("skipped") },
          { from: "review", on: "success", to: "repair" },
          { from: "repair", on: "success", to: done("repaired") },
        ],
      });
      const { runId, after } = await interruptedAfterCall(watching);
      expect(await after.resume(watching, runId)).toMatchObject({ status: "completed", output: "repaired" });
      const decided = (await eventsOf(after.host, runId)).filter(({ type }) => type === "route.decided");
      expect(decided.map(({ executionId }) => executionId)).toEqual(["review#1", "repair#1"]);
    },
  );
});

test("while a branch ends what a person interrupted, twice, no other one begins, though it gets a slot", async () => {
  const begun: string[] = [];
  const { promise: slow, resolve: end } = Promise.withResolvers<void>();
  const branch = (name: string) =>
    work<Json>({
      setup: () => {
        begun.push(name);
        return null;
      },
      act: async (scope) => {
        if (scope.ctx.visit > 1 || name === "three") return completed(null);
        const result = await untilStopped(scope, () => undefined);
        if (name === "two") await slow;
        return result;
      },
    });
  const branches = pipeline({
    id: "branches",
    input,
    stages: { start: work(), one: branch("one"), two: branch("two"), three: branch("three"), last: work() },
    initial: "start",
    next: {
      start: () => fanOut(["one", "two", "three"], { join: "last" }),
      one: () => to("last"),
      two: () => to("last"),
      three: () => to("last"),
      last: () => done("over"),
    },
  });
  const live = session({ model: noModel, maxParallel: 2 });
  const run = live.start(branches, task);
  await eventually(() => begun.length === 2);
  await quiet();
  void run.interrupt("wait");
  await quiet();
  void run.interrupt("now");
  await quiet();
  end();
  expect((await run).status).toBe("suspended");
  expect(begun).toEqual(["one", "two"]);
  expect(await live.resume(branches, run.runId)).toMatchObject({ status: "completed", output: "over" });
});

test.each(["whose request was just answered", "that was just resumed"])(
  "a run %s and waits for a slot is interrupted at once, and enters its state again when it resumes",
  async (how) => {
    const { promise: busy, resolve: finish } = Promise.withResolvers<void>();
    const memory = createMemoryJournals();
    const clock = handClock();
    const called: string[] = [];
    const look = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: called.push("Look") }) });
    const single = (act: (scope: ActScope) => Promise<ReturnType<typeof completed>>) =>
      pipeline({
        id: "single",
        input,
        stages: { only: work<Json>({ act, allowedTools: ["Look"] }) },
        initial: "only",
        next: { only: ({ output }) => done(output) },
      });
    let isBusy = false;
    const blocking = single(async () => {
      isBusy = true;
      await busy;
      return completed(null);
    });
    const feedback: unknown[] = [];
    const asking = single(async (scope) => {
      feedback.push(scope.ctx.feedback);
      await scope.steps.run("first", () => null);
      if (scope.ctx.visit === 1)
        await scope.ask({ name: "ok", question: { question: "Ok?", answer: { type: "string" } } });
      await caller(scope)("Look");
      return completed("looked");
    });
    const life = () =>
      session({
        ...{ model: noModel, tools: [look], clock, maxParallel: 1, wait: true },
        host: createHost(memory.connect(), { clock }),
      });
    let live = life();
    let run = live.start(asking, task);
    const isAsked = async (): Promise<boolean> => (await live.host.requests(run.runId).catch(() => [])).length === 1;
    await eventually(isAsked);
    if (how === "that was just resumed") {
      await run.suspend();
      const { requestId = "", runId = "", digest = "" } = (await live.host.requests(run.runId))[0] ?? {};
      const payload = { kind: "value", value: "yes", digest };
      await live.host.signal(runId, { name: `request/${requestId}`, payload, digest, by: "ann" });
      await live.host.close();
      live = life();
    }
    const other = live.start(blocking, task);
    await eventually(() => isBusy);
    if (how === "that was just resumed") run = live.resume(asking, run.runId);
    else
      for (const request of await live.host.requests(run.runId))
        await live.answer(request, { kind: "value", value: "yes" }, "ann");
    await eventually(async () => {
      const journals = await live.host.journal(run.runId);
      return journals[0]?.records.at(-1)?.stepId.startsWith("wait/request") === true;
    });
    await quiet();
    await run.interrupt("not so");
    expect([await run, called]).toMatchObject([{ status: "suspended", reason: "interrupted" }, []]);
    finish();
    expect((await other).status).toBe("completed");
    expect(await live.resume(asking, run.runId)).toMatchObject({ status: "completed", output: "looked" });
    expect(JSON.stringify(feedback.at(-1))).toContain("not so");
  },
);
