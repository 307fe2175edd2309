import assert from "node:assert/strict";
import type { ProgramEnd, SleepEnd, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  isSettled,
  recordsOf,
  start,
  until,
} from "../world.ts";

const MINUTE = 60_000;

function sleepOf(steps: StepRunner, id: string, at: number, signal?: string): Promise<SleepEnd> {
  return steps.sleep(id, at, {
    ...(signal === undefined ? {} : { signal }),
    open: { events: [{ type: "sleep.started", data: { until: at, sleeps: 1 } }] },
    ended: (by) => [{ type: "sleep.ended", data: { by } }],
  });
}
/** Sleeps for a minute, then works, then sleeps again. */
async function twoSleeps(steps: StepRunner): Promise<ProgramEnd> {
  const from = await steps.now("from");
  const first = await sleepOf(steps, "first", from + MINUTE);
  await steps.run("work", () => null);
  const second = await sleepOf(steps, "second", from + 2 * MINUTE);
  return completed([first, second]);
}

/** Runs that sleep, of which the store knows when they continue. */
export const sleepFacts: Facts = {
  "a run that sleeps is suspended as sleeping, and is due at its time": async ({ connect, clock }) => {
    const first = await connect();
    const task = await start(first.host, twoSleeps);
    const wakeAt = clock.now() + MINUTE;
    await clock.untilArmed(1);
    await task.suspend("interrupted");
    assert.deepEqual(await task.settled, { suspended: "sleeping", wakeAt });
    const run = await first.host.get("r1");
    assert.deepEqual([run?.status, run?.suspended, run?.wakeAt], ["suspended", "sleeping", wakeAt]);
    assert.deepEqual(await first.host.due(10), { runs: [], next: wakeAt });
    const last = (await eventsOf(first.host)).at(-1);
    assert.deepEqual([last?.type, last?.data], ["run.suspended", { reason: "sleeping", wakeAt }]);
    clock.advance(MINUTE);
    assert.deepEqual(await first.host.due(10), { runs: ["r1"], next: undefined });
    await expectWhole(first.host);
  },

  "a run that sleeps continues in another process, each sleep once": async ({ connect, clock }) => {
    const first = await connect();
    await start(first.host, twoSleeps);
    await clock.untilArmed(1);
    await first.crash();
    clock.advance(MINUTE);
    const second = await connect();
    assert.deepEqual((await second.host.due(10)).runs, ["r1"]);
    const task = await second.host.resume("r1", twoSleeps);
    await until(second.host, async () => (await recordsOf(second.host)).includes("open second"));
    assert.deepEqual((await second.host.due(10)).runs, [], "it has a live owner");
    await second.crash();
    const third = await connect();
    assert.deepEqual(await third.host.due(10), { runs: [], next: clock.now() + MINUTE });
    clock.advance(3 * MINUTE);
    const end = await endOf(await third.host.resume("r1", twoSleeps));
    assert.deepEqual(end.value, ["time", "time"]);
    assert.equal((await recordsOf(third.host)).filter((record) => record === "done first").length, 1);
    assert.deepEqual(await third.host.due(10), { runs: [], next: undefined });
    await isSettled(task.settled);
    await expectWhole(third.host);
  },

  "a run whose process died after it had slept is due at once; one that was interrupted on purpose is not": async ({
    connect,
    clock,
  }) => {
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      await sleepOf(steps, "sleep", (await steps.now("from")) + MINUTE);
      await steps.run(
        "work",
        ({ signal }) => new Promise<null>((_resolve, reject) => signal.addEventListener("abort", reject)),
      );
      return completed();
    };
    for (const [runId, purpose] of [
      ["r1", false],
      ["r2", true],
    ] as const) {
      const { host, crash } = await connect();
      const task = await start(host, program, { runId });
      await clock.untilArmed(1);
      clock.advance(MINUTE);
      await until(host, async () => (await recordsOf(host, runId)).includes("done sleep"));
      if (purpose) await task.suspend("interrupted");
      await crash();
    }
    const { host } = await connect();
    assert.deepEqual((await host.due(10)).runs, ["r1"]);
    assert.equal((await host.get("r1"))?.suspended, "interrupted");
  },

  "a signal makes a suspended run due, once": async ({ connect, clock }) => {
    const first = await connect();
    const task = await start(first.host, twoSleeps);
    await clock.untilArmed(1);
    await task.suspend("interrupted");
    const wakeAt = clock.now() + MINUTE;
    await first.host.signal("r1", { name: "news", payload: 1, by: "test" });
    assert.deepEqual(await first.host.due(10), { runs: ["r1"], next: wakeAt });
    const again = await first.host.resume("r1", twoSleeps);
    await clock.untilArmed(1);
    await again.suspend("interrupted");
    assert.deepEqual(await first.host.due(10), { runs: [], next: wakeAt }, "the message did not move its time");
    assert.equal((await first.host.get("r1"))?.wakeAt, wakeAt);
  },

  "a sleep that listens ends at a signal, and leaves the signal to a later step": async ({ connect, clock }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      const at = (await steps.now("from")) + MINUTE;
      const first = await sleepOf(steps, "first", at, "news");
      const taken = await steps.takeSignals("take", "news");
      const second = await sleepOf(steps, "second", at, "news");
      return completed([first, taken.length, second, await steps.now("to")]);
    });
    const wakeAt = clock.now() + MINUTE;
    await clock.untilArmed(1);
    await host.signal("r1", { name: "news", payload: 1, by: "test" });
    await until(host, async () => (await recordsOf(host)).includes("open second"));
    await clock.untilArmed(1);
    clock.advance(MINUTE);
    assert.deepEqual((await endOf(task)).value, ["signal", 1, "time", wakeAt]);
    await expectWhole(host);
  },

  "a cancelled sleep ends at once and says so": async ({ connect, clock }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) =>
      completed(await sleepOf(steps, "sleep", (await steps.now("from")) + MINUTE)),
    );
    await clock.untilArmed(1);
    await host.cancel("r1", "enough", "test");
    assert.equal((await endOf(task)).value, "cancelled");
    assert.deepEqual(await host.due(10), { runs: [], next: undefined });
  },

  "a tree is asleep when nothing of it works, until the earliest of its sleeps": async ({ connect, clock }) => {
    const { host } = await connect();
    const from = clock.now();
    const work = Promise.withResolvers<null>();
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("a"), child("b"), child("c")], fanOutOptions());
        return completed();
      }
      if (steps.runId.endsWith("c")) await steps.run("work", () => work.promise);
      else await sleepOf(steps, "sleep", from + (steps.runId.endsWith("a") ? 2 : 1) * MINUTE);
      return completed();
    });
    const asleep: unknown[] = [];
    const fallen = Promise.withResolvers<void>();
    task.onAsleep((now) => {
      asleep.push(now);
      fallen.resolve();
    });
    await clock.untilArmed(2);
    assert.equal(await isSettled(task.settled), false);
    assert.deepEqual(asleep, [], "one of its children works");
    work.resolve(null);
    await fallen.promise;
    assert.deepEqual(asleep[0], { wakeAt: from + MINUTE, waiting: 0 });
    await task.suspend("sleeping");
    assert.equal((await host.get("r1"))?.wakeAt, from + MINUTE);
    clock.advance(MINUTE);
    assert.deepEqual((await host.due(10)).runs, ["r1"]);
  },

  "a wait for a signal with a deadline is due at its deadline, and at once after the signal": async ({
    connect,
    clock,
  }) => {
    const first = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> =>
      completed((await steps.waitForSignal("news", { timeoutMs: MINUTE }))?.payload ?? "none");
    for (const runId of ["r1", "r2"]) await start(first.host, program, { runId });
    await clock.untilArmed(2);
    const wakeAt = clock.now() + MINUTE;
    await first.crash();
    const { host } = await connect();
    assert.deepEqual(await host.due(10), { runs: [], next: wakeAt });
    await host.signal("r2", { name: "news", payload: "in time", by: "test" });
    assert.deepEqual((await host.due(10)).runs, ["r2"]);
    clock.advance(MINUTE);
    assert.deepEqual((await host.due(10)).runs.toSorted(), ["r1", "r2"]);
    for (const [runId, value] of [
      ["r1", "none"],
      ["r2", "in time"],
    ] as const)
      assert.equal((await endOf(await host.resume(runId, program))).value, value);
    assert.deepEqual(await host.due(10), { runs: [], next: undefined });
  },

  "due runs come earliest first, at most as many as asked for": async ({ connect, clock }) => {
    const { host, crash } = await connect();
    for (const [index, runId] of ["r1", "r2", "r3"].entries())
      await start(host, async (steps) => completed(await sleepOf(steps, "sleep", clock.now() + (9 - index) * MINUTE)), {
        runId,
      });
    await clock.untilArmed(3);
    await crash();
    clock.advance(10 * MINUTE);
    const { host: other } = await connect();
    assert.deepEqual((await other.due(2)).runs, ["r3", "r2"]);
  },
};
