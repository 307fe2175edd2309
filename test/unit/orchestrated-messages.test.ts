import { SluiceError } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { interruptRun, type ScriptedTurn, timer } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { bye, directed, noting, select } from "../support/orchestrated.ts";
import { cancelled, completed, dataOf, eventsOf, eventually, quiet, session, work } from "../support/run-kit.ts";

const HOUR = 3_600_000;
const states = () => ({ wait: timer({ for: "3h" }), fix: work({ act: () => completed("fixed") }) });

/** A run that sleeps in `wait`, and what its orchestrator reads. */
async function asleep(turns: readonly ScriptedTurn[]) {
  const clock = handClock();
  const { model, prompts } = noting([select("wait"), ...turns]);
  const live = session({ model, clock });
  const handle = live.start(directed(states()), { task: "T" });
  const started = clock.now();
  const slept = (times: number): Promise<void> =>
    eventually(async () => {
      const isThere = (await live.host.get(handle.runId)) !== undefined;
      return isThere && dataOf(await eventsOf(live.host, handle.runId), "sleep.started").length === times;
    }, "a sleep");
  await slept(1);
  return { clock, live, handle, prompts, slept, started };
}

describe("a message to an orchestrated run that sleeps", () => {
  test("gets the orchestrator's answer at once, and the sleep goes on to the same time", async () => {
    const { clock, live, handle, prompts, slept, started } = await asleep([
      { text: "Two hours to go." },
      select("completed"),
      bye,
    ]);
    clock.turn(HOUR);
    await live.message(handle.runId, "How long?");
    await slept(2);
    expect(prompts[1]).toContain("How long?");
    expect(prompts[1]).toContain("sleeps until");
    clock.turn(2 * HOUR - 1);
    await quiet();
    expect(prompts).toHaveLength(2);
    clock.turn(1);
    const result = await handle;
    expect(result).toMatchObject({ status: "completed" });
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "sleep.started").map(({ until, sleeps }) => [until, sleeps])).toEqual([
      [started + 3 * HOUR, 1],
      [started + 3 * HOUR, 1],
    ]);
    expect(dataOf(events, "sleep.ended")).toEqual([{ by: "message" }, { by: "time" }]);
    expect(dataOf(events, "interrupt.started")).toEqual([{ interrupt: "message", files: [], to: "orchestrator" }]);
    expect(dataOf(events, "interrupt.returned")).toEqual([{ interrupt: "message", by: "orchestrator#2" }]);
    expect(result.stages.map(({ executionId, status }) => `${executionId} ${status}`)).toEqual([
      "orchestrator#1 completed",
      "orchestrator#2 completed",
      "wait#1 completed",
      "orchestrator#3 completed",
      "orchestrator#4 completed",
    ]);
    expect(result.stages[2]).toMatchObject({ output: { elapsedMs: 3 * HOUR } });
  });

  test("may redirect the run: the sleeping state ends as cancelled, and the run goes where the orchestrator chooses", async () => {
    const { live, handle } = await asleep([
      select("fix", undefined, "the person asked for it"),
      select("completed", 1),
      bye,
    ]);
    await live.message(handle.runId, "Do not wait. Fix it.");
    const result = await handle;
    expect(result).toMatchObject({ status: "completed", output: 1 });
    expect(result.stages.map(({ executionId, status }) => `${executionId} ${status}`)).toEqual([
      "orchestrator#1 completed",
      "orchestrator#2 completed",
      "wait#1 cancelled",
      "fix#1 completed",
      "orchestrator#3 completed",
      "orchestrator#4 completed",
    ]);
  });

  test("changes nothing when the orchestrator cannot answer, and does not interrupt the sleep again", async () => {
    const broken = { errors: [{ status: 400, message: "bad request" }] };
    const { clock, live, handle, slept } = await asleep([broken, select("completed", 1), bye]);
    await live.message(handle.runId, "How long?");
    await slept(2);
    await quiet();
    clock.turn(3 * HOUR);
    const result = await handle;
    expect(result).toMatchObject({ status: "completed", output: 1 });
    expect(dataOf(await eventsOf(live.host, handle.runId), "sleep.ended")).toEqual([{ by: "message" }, { by: "time" }]);
  });

  test("is answered by the process that wakes the run, if the one before it has ended", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const { model, prompts } = noting([select("wait"), { text: "Soon." }, select("completed", 1), bye]);
    const own = directed(states());
    const first = session({ model, clock, host: createHost(memory.connect(), { clock }), suspendSleepsOver: 1_000 });
    const asleep = await first.run(own, { task: "T" });
    expect(asleep).toMatchObject({ status: "suspended", reason: "sleeping" });
    const host = createHost(memory.connect(), { clock });
    const second = session({ model, clock, host, suspendSleepsOver: 1_000 });
    await second.message(asleep.runId, "Well?");
    expect((await host.due(9)).runs).toEqual([asleep.runId]);
    expect(await second.resume(own, asleep.runId)).toMatchObject({ status: "suspended", reason: "sleeping" });
    expect(prompts[1]).toContain("Well?");
    clock.turn(3 * HOUR);
    expect(await second.resume(own, asleep.runId)).toMatchObject({ status: "completed", output: 1 });
    expect(prompts).toHaveLength(4);
  });
});

test("after a person interrupted a state, the orchestrator chooses when the run continues", async () => {
  let began = false;
  const slow = work({
    act: async (scope) => {
      if (scope.ctx.visit > 1) return completed("all of it");
      await scope.steps.run("work", async (call) => {
        began = true;
        await new Promise<void>((resolve) => call.signal.addEventListener("abort", () => resolve(), { once: true }));
        return null;
      });
      return { ...cancelled("stopped"), partial: "half of it" };
    },
  });
  const own = directed({ slow });
  const { model, prompts } = noting([select("slow"), select("slow"), select("completed", 1), bye]);
  const live = session({ model });
  const handle = live.start(own, { task: "T" });
  await eventually(() => began);
  await interruptRun(live.host, handle.runId, "wrong branch", "the screen");
  expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
  const result = await live.resume(own, handle.runId);
  expect(prompts[1]).toContain("wrong branch");
  expect(prompts[1]).toContain("half of it");
  expect(result.stages.map(({ executionId, status }) => `${executionId} ${status}`)).toEqual([
    "orchestrator#1 completed",
    "slow#1 cancelled",
    "orchestrator#2 completed",
    "slow#2 completed",
    "orchestrator#3 completed",
    "orchestrator#4 completed",
  ]);
});

describe("a run with a message in its sleep that is killed before any of its records", () => {
  /** The run, killed before its record of this number, and resumed. */
  async function killedAt(turns: readonly ScriptedTurn[], record: number) {
    const clock = handClock();
    const memory = createMemoryJournals();
    const { model } = noting([select("wait"), ...turns]);
    const sent = { count: 0 };
    const live = { host: createHost(memory.connect(), { clock }) };
    // Sleeps until a time that has passed once the message was answered.
    const wait = work({
      act: async (scope) => {
        await scope.steps.run("send", async () => {
          if (sent.count === 0)
            await live.host.signal(scope.ctx.runId, { name: "message", payload: { text: "Well?" }, by: "me" });
          sent.count += 1;
          return null;
        });
        await scope.sleep("sleep", 0);
        return scope.signal.aborted ? cancelled("left") : completed("slept");
      },
    });
    const own = directed({ wait, fix: work({ act: () => completed("fixed") }) }, { acknowledges: false });
    let written = 0;
    const store = memory.connect();
    const count = (): void => {
      written += 1;
      if (written >= record) throw new SluiceError("Host", "store_io", "the process was killed");
    };
    const counted = {
      ...store,
      append: (commit: Parameters<typeof store.append>[0]) => {
        count();
        return store.append(commit);
      },
      create: (...seed: Parameters<typeof store.create>) => {
        count();
        return store.create(...seed);
      },
    };
    const first = session({ model, clock, host: createHost(counted, { clock }) });
    const handle = first.start(own, { task: "T" });
    const ended = await handle.then(
      (result) => result,
      () => undefined,
    );
    const second = session({ model, clock, host: createHost(memory.connect(), { clock }) });
    const { status, stages } = ended ?? (await second.resume(own, handle.runId));
    const events = await eventsOf(second.host, handle.runId);
    const lines = events
      .filter(({ type }) => type !== "run.resumed")
      .map(({ type, executionId }) => `${executionId} ${type}`);
    return {
      written,
      facts: { status, stages: stages.map(({ executionId, status: each }) => `${executionId} ${each}`), lines },
    };
  }

  test.each([
    ["comes to the same end when the orchestrator answers", [{ text: "Soon." }, select("completed", 1)]],
    ["comes to the same end when the orchestrator redirects it", [select("fix"), select("completed", 1)]],
  ])("%s", async (_what, turns) => {
    const whole = await killedAt(turns, Number.POSITIVE_INFINITY);
    expect(whole.facts.status).toBe("completed");
    expect(whole.facts.lines.join()).toContain("interrupt.started");
    for (let record = 2; record <= whole.written; record += 1)
      expect((await killedAt(turns, record)).facts).toEqual(whole.facts);
  });
});

test("an orchestrator that a person interrupted in its first turn chooses again when the run continues", async () => {
  const own = directed(states());
  const { model, prompts } = noting([{ ...select("fix"), delayMs: HOUR }, select("fix"), select("completed", 1), bye]);
  const live = session({ model });
  const handle = live.start(own, { task: "T" });
  await eventually(() => prompts.length === 1);
  await interruptRun(live.host, handle.runId, "not yet", "me");
  expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
  const result = await live.resume(own, handle.runId);
  expect(result).toMatchObject({ status: "completed", output: 1 });
  expect(result.stages.map(({ executionId, status }) => `${executionId} ${status}`).slice(0, 3)).toEqual([
    "orchestrator#1 cancelled",
    "orchestrator#2 completed",
    "fix#1 completed",
  ]);
});
