import { expect, onTestFinished, test } from "vitest";
import { startScheduler, type WakeVerdict } from "../../packages/cli/src/waking/scheduler.ts";
import { type HandClock, handClock } from "../support/hand-clock.ts";

const SECOND = 1_000;
const POLL_MS = 30 * SECOND;

interface World {
  /** The wall clock, which may differ from the timers'. */
  skew: number;
  /** When each sleeping run is due. */
  readonly sleeping: Map<string, number>;
  /** Each wake, with its time. */
  readonly woken: (readonly [runId: string, at: number])[];
  /** How often the store was asked. */
  looks: number;
  /** What each wake comes to. */
  verdict: (runId: string) => Promise<WakeVerdict>;
  changed: () => void;
  readonly faults: unknown[];
}

/** A scheduler over runs in memory; a run that is awake does not sleep. */
function world({
  clock = handClock(),
  maxParallel = 2,
  ...given
}: { clock?: HandClock; maxParallel?: number } & Partial<World> = {}) {
  const listeners = new Set<() => void>();
  const it: World = {
    skew: 0,
    sleeping: new Map(),
    woken: [],
    looks: 0,
    verdict: async () => "done",
    changed: () => {
      for (const listener of listeners) listener();
    },
    faults: [],
    ...given,
  };
  const now = (): number => clock.now() + it.skew;
  const scheduler = startScheduler({
    due: async (limit) => {
      it.looks += 1;
      const byTime = [...it.sleeping].sort((one, other) => one[1] - other[1]);
      const runs = byTime.filter(([, at]) => at <= now()).map(([runId]) => runId);
      return { runs: runs.slice(0, limit), next: byTime.find(([, at]) => at > now())?.[1] };
    },
    wake: async (runId) => {
      it.woken.push([runId, now()]);
      // A run that a live process owns is not due.
      const at = it.sleeping.get(runId) ?? 0;
      it.sleeping.delete(runId);
      const verdict = await it.verdict(runId);
      if (verdict !== "done") it.sleeping.set(runId, at);
      return verdict;
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    clock: { now, after: (ms, fn) => clock.after(ms, fn) },
    maxParallel,
    pollMs: POLL_MS,
    onFault: (thrown) => it.faults.push(thrown),
  });
  onTestFinished(() => scheduler.stop());
  return { it, clock, scheduler, now };
}

/** Lets what was started continue to its next wait. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n += 1) await Promise.resolve();
}
/** Turns the clock in steps, as time passes. */
async function pass(clock: HandClock, ms: number, step = 5): Promise<void> {
  for (let left = ms; left > 0; left -= step) {
    clock.turn(Math.min(step, left));
    await settle();
  }
}

test("each run is woken at its time, once, and the store is read only when something is due or changed", async () => {
  const { it, clock, now } = world();
  const from = now();
  it.sleeping.set("a", from + 500).set("b", from + 20 * SECOND);
  it.changed();
  await pass(clock, 600);
  expect(it.woken).toEqual([["a", from + 500]]);
  const looks = it.looks;
  await pass(clock, 19 * SECOND);
  expect(it.looks - looks).toBeLessThanOrEqual(1);
  await pass(clock, 500);
  expect(it.woken.at(-1)).toEqual(["b", from + 20 * SECOND]);
  expect(it.woken).toHaveLength(2);
});

test("a run that falls asleep later is woken at its time, also while a timer for a later one is armed", async () => {
  const { it, clock, now } = world();
  it.sleeping.set("late", now() + 25 * SECOND);
  await settle();
  const at = now() + SECOND;
  it.sleeping.set("soon", at);
  it.changed();
  await pass(clock, 2 * SECOND);
  expect(it.woken).toEqual([["soon", at]]);
});

test("a clock that is set forward wakes late runs once, within the poll", async () => {
  const { it, clock, now } = world();
  it.sleeping.set("a", now() + 3_600 * SECOND);
  it.changed();
  await settle();
  it.skew = 2 * 3_600 * SECOND;
  await pass(clock, POLL_MS, SECOND);
  expect(it.woken.map(([runId]) => runId)).toEqual(["a"]);
  await pass(clock, 2 * POLL_MS, SECOND);
  expect(it.woken).toHaveLength(1);
});

test("a clock that is set back wakes nothing early and nothing twice, and the run at its new time", async () => {
  const { it, clock, now } = world();
  it.sleeping.set("a", now() + SECOND);
  it.changed();
  await pass(clock, 1_500);
  expect(it.woken).toHaveLength(1);
  const at = now() + SECOND;
  it.sleeping.set("b", at);
  it.changed();
  await settle();
  it.skew = -3_600 * SECOND;
  await pass(clock, 60 * SECOND, SECOND);
  expect(it.woken).toHaveLength(1);
  it.skew = 0;
  await pass(clock, POLL_MS, SECOND);
  expect(it.woken.map(([runId]) => runId)).toEqual(["a", "b"]);
});

test("at most so many runs are awake, and the next begins when one ends", async () => {
  const { it, clock, now, scheduler } = world({ maxParallel: 2 });
  const ends = new Map<string, () => void>();
  it.verdict = (runId) => new Promise((resolve) => ends.set(runId, () => resolve("done")));
  for (const [index, runId] of ["a", "b", "c"].entries()) it.sleeping.set(runId, now() + index);
  it.changed();
  await pass(clock, SECOND);
  it.changed();
  await pass(clock, SECOND);
  expect(scheduler.counts()).toEqual({ active: 2, heldBack: 0 });
  const looks = it.looks;
  await pass(clock, 10 * SECOND, 100);
  expect(it.looks - looks, "it does not poll for a place").toBeLessThanOrEqual(2);
  ends.get("a")?.();
  await pass(clock, 100);
  expect(it.woken.map(([runId]) => runId)).toEqual(["a", "b", "c"]);
  for (const end of ends.values()) end();
});

test("a run that cannot be continued is left longer each time, and stops no other", async () => {
  const { it, clock, now } = world({ maxParallel: 1 });
  it.verdict = async (runId) => (runId === "bad" ? "retry" : "done");
  const from = now();
  it.sleeping.set("bad", from).set("good", from + SECOND);
  it.changed();
  await pass(clock, 2 * SECOND);
  expect(it.woken.filter(([runId]) => runId === "good")).toEqual([["good", from + SECOND]]);
  await pass(clock, 3_600 * SECOND, SECOND);
  const tries = it.woken.filter(([runId]) => runId === "bad").map(([, at]) => at - from);
  const pauses = tries.slice(1).map((at, index) => Math.floor((at - (tries[index] ?? 0)) / SECOND));
  expect(pauses.slice(0, 8)).toEqual([5, 10, 20, 40, 80, 160, 320, 600]);
  expect(Math.max(...pauses)).toBe(600);
});

test("a run that another process has is forgotten once it is not due, and woken at its next time", async () => {
  const { it, clock, now } = world();
  it.verdict = async () => "elsewhere";
  it.sleeping.set("a", now());
  it.changed();
  await pass(clock, 100);
  expect(it.woken).toHaveLength(1);
  const at = now() + SECOND;
  it.sleeping.set("a", at);
  it.changed();
  await pass(clock, 900);
  it.verdict = async () => "done";
  await pass(clock, 200);
  expect(it.woken.at(-1)).toEqual(["a", at]);
});

test("a store that changes all the time is not read all the time", async () => {
  const { it, clock } = world();
  await settle();
  for (let n = 0; n < SECOND; n += 1) {
    it.changed();
    clock.turn(1);
    await settle();
  }
  expect(it.looks).toBeLessThan(50);
  expect(it.looks).toBeGreaterThan(10);
});

test("a store that cannot be read is reported and read again", async () => {
  const clock = handClock();
  let broken = true;
  let looks = 0;
  const faults: unknown[] = [];
  const scheduler = startScheduler({
    due: async () => {
      looks += 1;
      if (broken) throw new Error("the disk failed");
      return { runs: [], next: undefined };
    },
    wake: async () => "done",
    onChange: () => () => undefined,
    clock,
    maxParallel: 1,
    pollMs: POLL_MS,
    onFault: (thrown) => faults.push(thrown),
  });
  onTestFinished(() => scheduler.stop());
  await settle();
  expect(faults).toHaveLength(1);
  broken = false;
  await pass(clock, 6 * SECOND, SECOND);
  expect([looks, faults.length]).toEqual([2, 1]);
});

test("a stopped scheduler wakes nothing, and waits for the runs that are awake", async () => {
  const { it, clock, now, scheduler } = world();
  const end = Promise.withResolvers<WakeVerdict>();
  it.verdict = () => end.promise;
  it.sleeping.set("a", now()).set("b", now() + SECOND);
  it.changed();
  await pass(clock, 100);
  let stopped = false;
  const stopping = scheduler.stop().then(() => {
    stopped = true;
  });
  await pass(clock, 5 * SECOND, 100);
  expect([it.woken.length, stopped]).toEqual([1, false]);
  end.resolve("done");
  await stopping;
  expect(clock.waiting()).toBe(0);
});

test("a look that a stop overtakes wakes nothing", async () => {
  const clock = handClock();
  const look = Promise.withResolvers<{ runs: readonly string[]; next: undefined }>();
  const woken: string[] = [];
  const scheduler = startScheduler({
    due: () => look.promise,
    wake: async (runId) => {
      woken.push(runId);
      return "done";
    },
    onChange: () => () => undefined,
    clock,
    maxParallel: 1,
    pollMs: POLL_MS,
    onFault: (thrown) => expect.fail(String(thrown)),
  });
  const stopping = scheduler.stop();
  look.resolve({ runs: ["a"], next: undefined });
  await stopping;
  expect([woken, clock.waiting()]).toEqual([[], 0]);
});
