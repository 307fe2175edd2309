import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import type { ProgramEnd, RunHost, StepRunner } from "../../journal/seam.ts";
import type { HandClock } from "../hand-clock.ts";
import { completed, endOf, expectWhole, type Facts, isSettled, start, stepsOf, until } from "../world.ts";

const DAY = 86_400_000;

async function sleeping(steps: StepRunner, ms: number): Promise<ProgramEnd> {
  const from = await steps.now("from");
  await steps.sleepUntil("sleep", from + ms);
  return completed((await steps.now("to")) - from);
}
async function waiting(steps: StepRunner, timeoutMs: number): Promise<ProgramEnd> {
  const first = await steps.waitForSignal("news", { timeoutMs });
  const second = first === undefined ? undefined : await steps.waitForSignal("news", { timeoutMs });
  const payloadOf = (signal: typeof first): Json => signal?.payload ?? "timeout";
  return completed([payloadOf(first), payloadOf(second)]);
}
/** Resolves when the first wait has ended and the second has armed its timer. */
async function secondWait(host: RunHost, clock: HandClock): Promise<void> {
  await until(host, async () => (await stepsOf(host)).length === 3);
  await clock.untilArmed(1);
}
const news = (payload: Json) => ({ name: "news", payload, by: "test" });

/** Waits and sleeps follow the recorded clock, also in another process. */
export const waitFacts: Facts = {
  "a sleep ends exactly at its time": async ({ connect, clock }) => {
    const { host } = await connect();
    const task = await start(host, (steps) => sleeping(steps, 10_000));
    await clock.untilArmed(1);
    clock.advance(9_999);
    assert.equal(await isSettled(task.settled), false);
    clock.advance(1);
    assert.equal((await endOf(task)).value, 10_000);
    assert.deepEqual(await stepsOf(host), ["done from", "done sleep", "done to"]);
    assert.equal(clock.armed(), 0);
  },

  "a sleep until a time in the past ends at once": async ({ connect, clock }) => {
    const { host } = await connect();
    assert.equal((await endOf(await start(host, (steps) => sleeping(steps, -1)))).value, 0);
    assert.equal(clock.armed(), 0);
  },

  "a sleep longer than the longest timer survives kills and is not prolonged": async ({ connect, clock }) => {
    const first = await connect();
    await start(first.host, (steps) => sleeping(steps, 60 * DAY));
    await clock.untilArmed(1);
    clock.advance(20 * DAY);
    await first.crash();
    const second = await connect();
    const task = await second.host.resume("r1", (steps) => sleeping(steps, 60 * DAY));
    clock.advance(39 * DAY);
    assert.equal(await isSettled(task.settled), false);
    await task.suspend("interrupted");
    clock.advance(10 * DAY);
    const third = await connect();
    // The sleep's time passed while the run was suspended.
    const end = await endOf(await third.host.resume("r1", (steps) => sleeping(steps, 60 * DAY)));
    assert.equal(end.value, 69 * DAY);
    await expectWhole(third.host);
  },

  "a wait with a timeout returns a signal that arrives in time, else undefined": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, (steps) => waiting(steps, 60_000));
    await clock.untilArmed(1);
    clock.advance(59_999);
    await second.host.signal("r1", news("in time"));
    await secondWait(first.host, clock);
    assert.equal(await isSettled(task.settled), false);
    clock.advance(60_000);
    assert.deepEqual((await endOf(task)).value, ["in time", "timeout"]);
    await expectWhole(first.host);
  },

  "a timeout counts from the first entry into the wait, also across a kill": async ({ connect, clock }) => {
    const first = await connect();
    await start(first.host, (steps) => waiting(steps, 60_000));
    await clock.untilArmed(1);
    clock.advance(30_000);
    await first.crash();
    clock.advance(20_000);
    const second = await connect();
    const task = await second.host.resume("r1", (steps) => waiting(steps, 60_000));
    await clock.untilArmed(1);
    clock.advance(9_999);
    assert.equal(await isSettled(task.settled), false);
    clock.advance(1);
    assert.deepEqual((await endOf(task)).value, ["timeout", "timeout"]);
    await expectWhole(second.host);
  },

  "a signal that was accepted just before the timeout is not lost": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, (steps) => waiting(steps, 60_000));
    await clock.untilArmed(1);
    // The timer of the owner fires before the owner is notified of the signal.
    const sent = second.host.signal("r1", news("last moment"));
    assert.equal(await sent, "accepted");
    clock.advance(60_000);
    await secondWait(first.host, clock);
    clock.advance(60_000);
    assert.deepEqual((await endOf(task)).value, ["last moment", "timeout"]);
  },

  "a wait that timed out consumes no signal: the next wait gets it": async ({ connect, clock }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      const none = await steps.waitForSignal("news", { timeoutMs: 1_000 });
      const some = await steps.waitForSignal("news");
      return completed([none === undefined, some?.payload ?? null]);
    });
    await clock.untilArmed(1);
    clock.advance(1_000);
    await until(host, async () => (await stepsOf(host)).includes("done wait/news"));
    await host.signal("r1", news("late"));
    assert.deepEqual((await endOf(task)).value, [true, "late"]);
  },

  "many runs sleep until different times, and each ends at its own": async ({ connect, clock }) => {
    const { host } = await connect();
    const tasks = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        start(host, (steps) => sleeping(steps, (index + 1) * 1_000), { runId: `r${index}` }),
      ),
    );
    await clock.untilArmed(50);
    for (let second = 0; second < 50; second += 1) {
      clock.advance(1_000);
      assert.equal((await endOf(tasks[second] ?? assert.fail())).value, (second + 1) * 1_000);
    }
    assert.equal(clock.armed(), 0);
  },
};
