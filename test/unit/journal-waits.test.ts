import { getMaxListeners } from "node:events";
import { type EventDraft, type Json, SluiceError, type StepCall } from "@sluice/core";
import { describe, expect, test, vi } from "vitest";
import type { ActiveTree } from "../../packages/core/src/journal/host/active-run.ts";
import { Cancellation, SUSPENDED, type Wait, waitForSignal } from "../../packages/core/src/journal/host/active-run.ts";
import { Interruptions } from "../../packages/core/src/journal/host/interruptions.ts";
import { RunningCall } from "../../packages/core/src/journal/host/step-runner.ts";
import { handClock } from "../support/hand-clock.ts";
import { turns } from "../support/journal.ts";

const cancelled = new SluiceError("Cancellation", "run_cancelled", "enough");
const lost = new SluiceError("Host", "ownership_lost", "another process has it");
const suspended = new SluiceError("Host", SUSPENDED, "later");

/** A run at work, as far as steps and waits see it. */
function atWork() {
  const control = new Cancellation();
  const clock = handClock();
  const listeners = new Set<() => void>();
  const held: Promise<unknown>[] = [];
  const unused = (): never => expect.fail("not used here");
  const tree: ActiveTree = {
    runId: "r1",
    stop: unused,
    sent: () => Promise.resolve(),
    onSignal: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    emit: unused,
    heard: () => false,
    interruptions: new Interruptions(0, unused),
    hold: (work) => {
      held.push(work);
    },
    work: unused,
    rest: unused,
    wake: unused,
    wakeAt: unused,
    recovery: undefined,
  };
  const signal = (): void => {
    for (const listener of [...listeners]) listener();
  };
  return { run: { control, clock, tree }, control, clock, listeners, held, signal };
}

/** What became of a promise so far: `waiting`, `done`, or the code it was rejected with. */
async function stateOf(promise: Promise<unknown>): Promise<string> {
  let state = "waiting";
  promise.then(
    () => {
      state = "done";
    },
    (thrown: unknown) => {
      state = thrown instanceof SluiceError ? thrown.code : String(thrown);
    },
  );
  await turns(3);
  return state;
}

/** A step's function from its call to the end of the step. */
function callStep<T extends Json>(
  run: ReturnType<typeof atWork>["run"],
  fn: (call: StepCall) => Promise<T> | T,
  graceMs: number,
  opened: StepCall["opened"],
): Promise<{ value: T; events: readonly EventDraft[] }> | { value: T; events: readonly EventDraft[] } {
  const call = new RunningCall(run, { opened, graceMs, signals: async () => [] });
  const made = call.resultOf(fn);
  const ended = (value: T) => ({ value, events: call.events });
  return made instanceof Promise ? made.then(ended).finally(() => call.close()) : ended(made);
}

describe("whether a run may continue", () => {
  test("its signal aborts with the first reason, cancelled or stopped, and each keeps its own first reason", () => {
    const control = new Cancellation();
    expect([control.signal.aborted, control.cancelled, control.stopped]).toEqual([false, undefined, undefined]);
    control.cancel(cancelled);
    control.cancel(new SluiceError("Cancellation", "other", "later"));
    expect([control.signal.reason, control.cancelled, control.stopped]).toEqual([cancelled, cancelled, undefined]);
    control.stop(lost);
    control.stop(suspended);
    expect([control.signal.reason, control.cancelled, control.stopped]).toEqual([cancelled, cancelled, lost]);
    const stopped = new Cancellation();
    stopped.stop(lost);
    expect([stopped.signal.reason, stopped.cancelled]).toEqual([lost, undefined]);
  });

  test("the step that listens is notified of each once, and any number may listen to the signal", () => {
    const control = new Cancellation();
    const notified: string[] = [];
    const first = { controlChanged: () => notified.push("first") };
    const second = { controlChanged: () => notified.push("second") };
    control.listener = first;
    control.cancel(cancelled);
    control.cancel(cancelled);
    control.listener = second;
    control.stop(lost);
    control.stop(lost);
    expect(notified).toEqual(["first", "second"]);
    expect(getMaxListeners(control.signal)).toBe(0);
  });

  test("a call that ended late leaves the listener of the next one alone", async () => {
    const { run, control } = atWork();
    const { promise, resolve } = Promise.withResolvers<null>();
    const first = new RunningCall(run, { opened: undefined, graceMs: 0, signals: async () => [] });
    const done = first.resultOf(() => promise);
    const next = { controlChanged: () => undefined };
    control.listener = next;
    resolve(null);
    await done;
    first.close();
    expect(control.listener).toBe(next);
    control.listener = first;
    first.close();
    expect(control.listener).toBeUndefined();
  });
});

describe("a wait", () => {
  const waiting = (wait: Wait) => {
    const world = atWork();
    return { ...world, done: waitForSignal(world.run, wait) };
  };
  const nothingLeft = ({ clock, listeners }: ReturnType<typeof atWork>): void => {
    expect([clock.waiting(), listeners.size]).toEqual([0, 0]);
  };

  test("for what is there already is over, and arms nothing", async () => {
    const world = waiting({ until: 9_999, arrived: async () => true });
    expect(await stateOf(world.done)).toBe("done");
    nothingLeft(world);
  });

  test("asks again whenever something may have come, and ends when it did", async () => {
    let there = false;
    const arrived = vi.fn(async () => there);
    const world = waiting({ arrived });
    expect(await stateOf(world.done)).toBe("waiting");
    const asked = arrived.mock.calls.length;
    world.signal();
    expect(await stateOf(world.done)).toBe("waiting");
    expect(arrived).toHaveBeenCalledTimes(asked + 1);
    there = true;
    world.signal();
    expect(await stateOf(world.done)).toBe("done");
    nothingLeft(world);
  });

  test("for a time ends at that time, also when a timer comes early", async () => {
    const world = atWork();
    const timers: (() => void)[] = [];
    const clock = {
      now: world.clock.now,
      after: (_ms: number, fn: () => void) => {
        timers.push(fn);
        return () => undefined;
      },
    };
    const done = waitForSignal({ ...world.run, clock }, { until: 1_500 });
    expect(await stateOf(done)).toBe("waiting");
    timers[0]?.();
    expect(await stateOf(done)).toBe("waiting");
    expect(timers).toHaveLength(2);
    world.clock.turn(500);
    timers[1]?.();
    expect(await stateOf(done)).toBe("done");
  });

  test("waits exactly as long as is left, and not at all for a time that has passed", async () => {
    const world = waiting({ until: 1_500 });
    world.clock.turn(499);
    expect(await stateOf(world.done)).toBe("waiting");
    world.clock.turn(1);
    expect(await stateOf(world.done)).toBe("done");
    nothingLeft(world);
    expect(await stateOf(waiting({ until: 1_000 }).done)).toBe("done");
  });

  test("ends when the run is cancelled, and rejects when it has to stop, before or meanwhile", async () => {
    for (const until of [undefined, 9_999]) {
      const given = { arrived: async () => false, ...(until === undefined ? {} : { until }) };
      const world = waiting(given);
      expect(await stateOf(world.done)).toBe("waiting");
      world.control.cancel(cancelled);
      expect(await stateOf(world.done)).toBe("done");
      nothingLeft(world);
      const other = waiting(given);
      expect(await stateOf(other.done)).toBe("waiting");
      other.control.stop(lost);
      expect(await stateOf(other.done)).toBe("ownership_lost");
      nothingLeft(other);
      const late = atWork();
      late.control.cancel(cancelled);
      expect(await stateOf(waitForSignal(late.run, given))).toBe("done");
      late.control.stop(lost);
      expect(await stateOf(waitForSignal(late.run, given))).toBe("ownership_lost");
      nothingLeft(late);
    }
  });

  test("that cannot look rejects with the reason", async () => {
    let broken = false;
    const world = waiting({
      arrived: async () => {
        if (broken) throw new Error("disk gone");
        return false;
      },
    });
    expect(await stateOf(world.done)).toBe("waiting");
    broken = true;
    world.signal();
    expect(await stateOf(world.done)).toBe("Error: disk gone");
    nothingLeft(world);
  });

  test("sees what came in its last moment", async () => {
    let looks = 0;
    const world = waiting({
      until: 1_500,
      arrived: async () => {
        looks += 1;
        return false;
      },
    });
    await stateOf(world.done);
    const before = looks;
    world.clock.turn(500);
    expect(await stateOf(world.done)).toBe("done");
    expect(looks).toBe(before + 1);
  });
});

describe("a step's function", () => {
  const hanging = (): Promise<never> => new Promise(() => undefined);

  test("that returns at once is done at once, with its events in order", async () => {
    const { run } = atWork();
    const result = callStep(
      run,
      (call) => {
        call.event({ type: "call.started", data: { n: 1 } });
        call.event({ type: "call.finished", data: { n: 2 } });
        return "value";
      },
      0,
      undefined,
    );
    expect(result).toEqual({
      value: "value",
      events: [
        { type: "call.started", data: { n: 1 } },
        { type: "call.finished", data: { n: 2 } },
      ],
    });
    for (const value of [null, JSON.parse('{"then":1}'), ["a"]])
      expect(callStep(run, () => value, 0, undefined)).toMatchObject({ value });
  });

  test("sees its open record, and can keep the run owned", async () => {
    const { run, held } = atWork();
    const seen: StepCall["opened"][] = [];
    const work = Promise.resolve();
    const fn = (call: StepCall) => {
      seen.push(call.opened);
      call.hold(work);
      return call.opened?.incarnation ?? "none";
    };
    expect(callStep(run, fn, 0, { incarnation: "i1" })).toMatchObject({ value: "i1" });
    expect(callStep(run, fn, 0, undefined)).toMatchObject({ value: "none" });
    expect([seen, held]).toEqual([
      [{ incarnation: "i1" }, undefined],
      [work, work],
    ]);
  });

  test("that fails rejects with what it threw, and nothing keeps listening", async () => {
    const { run, clock, control } = atWork();
    await expect(async () => callStep(run, () => Promise.reject(new Error("no")), 5, undefined)).rejects.toThrow("no");
    control.stop(suspended);
    expect(clock.waiting()).toBe(0);
  });

  test("has a signal that aborts on cancel, whenever it is asked for, and may finish", async () => {
    const { run, control } = atWork();
    let given: StepCall | undefined;
    let finish: ((value: string) => void) | undefined;
    const done = Promise.resolve(
      callStep(
        run,
        (call) => {
          given = call;
          return new Promise<string>((resolve) => {
            finish = resolve;
          });
        },
        0,
        undefined,
      ),
    );
    const signal = given?.signal;
    expect(signal?.aborted).toBe(false);
    expect(getMaxListeners(signal ?? expect.fail())).toBe(0);
    control.cancel(cancelled);
    expect([signal?.reason, given?.signal === signal]).toEqual([cancelled, true]);
    expect(await stateOf(done)).toBe("waiting");
    finish?.("after all");
    expect(await done).toEqual({ value: "after all", events: [] });
    // Asked for only now, and in a step that begins after the cancel.
    const reasons: unknown[] = [];
    void callStep(run, (call) => reasons.push(call.signal.reason), 0, undefined);
    expect(reasons).toEqual([cancelled]);
  });

  test("is given up at once when the run is lost, aborted and still held", async () => {
    const { run, control, held, clock } = atWork();
    let signal: AbortSignal | undefined;
    const done = Promise.resolve(
      callStep(
        run,
        (call) => {
          ({ signal } = call);
          return hanging();
        },
        5_000,
        undefined,
      ),
    );
    control.stop(lost);
    expect(await stateOf(done)).toBe("ownership_lost");
    expect([signal?.reason, held.length, clock.waiting()]).toEqual([lost, 1, 0]);
  });

  test("has its grace when the run is suspended, once, and none without", async () => {
    const { run, control, held, clock } = atWork();
    let signal: AbortSignal | undefined;
    const fn = (call: StepCall): Promise<never> => {
      ({ signal } = call);
      return hanging();
    };
    const done = Promise.resolve(callStep(run, fn, 5_000, undefined));
    control.stop(suspended);
    control.cancel(cancelled);
    expect(clock.waiting()).toBe(1);
    clock.turn(4_999);
    expect([await stateOf(done), signal?.aborted, held.length]).toEqual(["waiting", false, 0]);
    clock.turn(1);
    expect([await stateOf(done), signal?.reason, held.length]).toEqual([SUSPENDED, suspended, 1]);
    const without = atWork();
    const at = Promise.resolve(callStep(without.run, fn, 0, undefined));
    without.control.stop(suspended);
    expect([await stateOf(at), without.clock.waiting()]).toEqual([SUSPENDED, 0]);
  });

  test("that finishes in its grace is done, and no timer is left", async () => {
    const { run, control, held, clock } = atWork();
    const done = Promise.resolve(callStep(run, () => turns(2).then(() => "in time"), 5_000, undefined));
    control.stop(suspended);
    expect(await done).toEqual({ value: "in time", events: [] });
    expect([clock.waiting(), held.length]).toEqual([0, 0]);
  });

  test("that stops its own run before it returns is given up too", async () => {
    const { run, control } = atWork();
    const done = callStep(
      run,
      () => {
        control.stop(lost);
        return hanging();
      },
      0,
      undefined,
    );
    expect(await stateOf(Promise.resolve(done))).toBe("ownership_lost");
  });

  test("that cancels its own run before it returns sees its signal abort", async () => {
    const { run, control } = atWork();
    const done = callStep(
      run,
      ({ signal }) => {
        control.cancel(cancelled);
        return new Promise<string>((resolve) =>
          signal.addEventListener("abort", () => resolve("aborted"), { once: true }),
        );
      },
      0,
      undefined,
    );
    expect(await stateOf(Promise.resolve(done))).toBe("done");
    expect(await done).toEqual({ value: "aborted", events: [] });
  });
});
