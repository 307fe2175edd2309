import { join } from "node:path";
import {
  type Clock,
  done,
  type JournalRecord,
  pipeline,
  type RecordPhase,
  type StateExecutor,
  state,
} from "@sluice/core";
import { deadResumes, verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type RunResult, replayRun } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { type HandClock, handClock } from "../support/hand-clock.ts";
import { scratch } from "../support/sqlite-store.ts";

const HOUR = 3_600_000;
const MINUTE = 60_000;

/** Sleeps `times` times for an hour each, and returns when it woke. */
const nap: StateExecutor = {
  kind: "nap",
  act: async (_input, scope) => {
    const { times } = z.object({ times: z.number() }).parse(scope.ctx.run.input);
    const woke: number[] = [];
    let from = await scope.steps.now("from");
    for (let n = 1; n <= times; n += 1) {
      await scope.sleep(`sleep/${n}`, from + HOUR);
      from = await scope.steps.now(`woke/${n}`);
      woke.push(from);
    }
    return { status: "completed", output: woke, turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
  },
};
const napping = pipeline({
  id: "napping",
  input: z.object({ times: z.number() }),
  stages: { nap: state({ kind: "nap", output: z.array(z.number()) }) },
  initial: "nap",
  next: { nap: ({ output }) => done(output) },
});

/** A process of its own, whose clock differs from that of the world. */
async function process<T>(
  folder: string,
  world: HandClock,
  skew: number,
  work: (session: ReturnType<typeof createSession>, clock: Clock) => Promise<T>,
): Promise<T> {
  const clock: Clock = { now: () => world.now() + skew, after: (ms, fn) => world.after(ms, fn) };
  const host = sqliteHost(join(folder, "store"), { clock });
  const session = createSession({ host, clock, executors: [nap], cwd: folder, env: {}, suspendSleepsOver: 0 });
  try {
    return await work(session, clock);
  } finally {
    await session.close();
    await host.close();
  }
}

function wakeTimeOf(result: RunResult<unknown>): number {
  if (result.status !== "suspended" || result.reason !== "sleeping" || result.wakeAt === undefined)
    throw new Error(`it does not sleep: ${JSON.stringify(result)}`);
  return result.wakeAt;
}

test("five hundred wakes in as many processes, with clocks seven minutes apart and messages in between, are each recorded once", async () => {
  const times = 500;
  const folder = scratch();
  const world = handClock(1_700_000_000_000);
  const skewOf = (wake: number): number => (wake % 2 === 0 ? 0 : 7 * MINUTE);
  let messages = 0;

  const first = await process(folder, world, 0, async (session) => await session.run(napping, { times }));
  const { runId } = first;
  let wakeAt = wakeTimeOf(first);
  for (let wake = 1; wake <= times; wake += 1) {
    if (wake % 50 === 0) {
      messages += 1;
      // A message never moves the time of a sleep.
      const after = await process(folder, world, skewOf(wake + 1), async (session) => {
        await session.host.signal(runId, { name: "news", payload: wake, by: "test" });
        expect(await session.host.due(9)).toMatchObject({ runs: [runId] });
        return await session.resume(napping, runId);
      });
      expect(wakeTimeOf(after)).toBe(wakeAt);
    }
    world.turn(wakeAt - world.now() - skewOf(wake) - 1);
    const result = await process(folder, world, skewOf(wake), async (session) => {
      expect(await session.host.due(9), "not before its time").toEqual({ runs: [], next: wakeAt });
      world.turn(1);
      expect((await session.host.due(9)).runs).toEqual([runId]);
      return await session.resume(napping, runId);
    });
    if (wake < times) wakeAt = wakeTimeOf(result);
    else expect(result).toMatchObject({ status: "completed", output: expect.any(Array) });
  }

  const host = sqliteHost(join(folder, "store"), { readOnly: true });
  const journals = await host.journal(runId);
  await host.close();
  expect(verifyJournal(journals).faults).toEqual([]);
  const steps = journals.flatMap(({ records }) => records).map(({ stepId, phase }) => `${phase} ${stepId}`);
  const sleeps = steps.filter((step) => /sleep\/\d+$/.test(step));
  expect(sleeps.filter((step) => step.startsWith("open"))).toHaveLength(times);
  expect(new Set(sleeps).size).toBe(2 * times);
  expect(steps.filter((step) => step === "lifecycle resume")).toHaveLength(times + messages);
  const replay = await replayRun(napping, journals, { executors: [nap], env: {} });
  expect(replay).toMatchObject({ identical: true, status: "completed", changes: [] });
});

test("a resume counts as dead only while no process records a step of the run or suspends it", async () => {
  const folder = scratch();
  const world = handClock(1_700_000_000_000);
  const first = await process(folder, world, 0, async (session) => await session.run(napping, { times: 2 }));
  const { runId } = first;
  const store = join(folder, "store");
  const dead = async (): Promise<number> => {
    const host = sqliteHost(store, { readOnly: true });
    const run = await host.get(runId);
    const count = run === undefined ? -1 : await deadResumes(host, run);
    await host.close();
    return count;
  };
  expect(await dead()).toBe(0);
  // Programs that fail before any step, as a process that dies does.
  for (let n = 1; n <= 6; n += 1) {
    const host = sqliteHost(store);
    const task = await host.resume(runId, async () => {
      throw new Error("it died");
    });
    await expect(task.settled).rejects.toThrow();
    await host.close();
    expect(await dead()).toBe(n);
  }
  await process(folder, world, 0, async (session) => await session.resume(napping, runId));
  expect(await dead(), "it was suspended in order").toBe(0);
});

test("what a child recorded counts for the processes that wrote it, and for those before", async () => {
  const record = (stepId: string, phase: RecordPhase, incarnation: string): JournalRecord => {
    return { seq: 0, ordinal: 0, stepId, phase, incarnation, value: "", events: "[]", hash: "" };
  };
  const resumes = ["i1", "i2", "i3", "i4"].map((incarnation) => record("resume", "lifecycle", incarnation));
  const deadAfter = async (children: Readonly<Record<string, readonly JournalRecord[]>>): Promise<number> => {
    const all = new Map(Object.entries({ r1: [record("fan", "open", "i0"), ...resumes], ...children }));
    const host = {
      records: async (runId: string, from = 0) => all.get(runId)?.slice(from) ?? [],
      tree: async () => [...all].map(([runId, records]) => ({ runId, records: records.length })),
    };
    return await deadResumes(host, { runId: "r1", records: 5 });
  };
  expect(await deadAfter({})).toBe(4);
  expect(await deadAfter({ "r1/fan/a": [record("s", "done", "i0")] })).toBe(4);
  expect(await deadAfter({ "r1/fan/a": [record("s", "done", "i2")], "r1/fan/b": [record("s", "done", "i1")] })).toBe(2);
  expect(await deadAfter({ "r1/fan/a": [record("s", "done", "i4")] })).toBe(0);
});
