import { done, type Json, type Pipeline, pipeline, type State } from "@sluice/core";
import { human, parseDuration, sendMessage, timer } from "@sluice/stages";
import { describe, expect } from "vitest";
import { z } from "zod";
import { asWritten } from "../../support/as-written.ts";
import { defect, fact, ours } from "../../support/duet.ts";
import { completed, dataOf, eventsOf, eventually, noModel, session, twoHosts, work } from "../../support/run-kit.ts";

// Timers and questions, and runs that sleep.

const HOUR = 3_600_000;
const input = z.object({ task: z.string() });

/** One state, whose output is the run's. A failure completes it too, with what the failure says. */
function only<O>(wait: State<O, undefined>) {
  return pipeline({
    id: "only",
    input,
    stages: { wait },
    initial: "wait",
    next: {
      wait: {
        completed: ({ output }) => done({ output }),
        failed: ({ code, detail = null }) => done({ code, detail }),
      },
    },
  });
}
/** Sleeps for an hour, then does what `act` does. */
function sleepsFirst(act: () => Promise<null> = async () => null, starts: string[] = []) {
  const after = work<Json>({
    act: async ({ steps }) => {
      starts.push("after");
      return completed(await steps.run("after", act));
    },
  });
  return pipeline({
    id: "sleeps",
    input,
    stages: { wait: timer({ for: "1h" }), after },
    initial: "wait",
    next: { wait: () => ({ kind: "to", state: "after", input: undefined }), after: () => done("over") },
  });
}
/** Two processes on one store; the run has fallen asleep in the first, which has ended. */
async function asleep(made: Pipeline<{ task: string }, unknown>) {
  const { clock, first, second } = twoHosts();
  const before = session({ model: noModel, clock, host: first });
  const run = before.start(made, { task: "T" });
  await eventually(async () => clock.waiting() === 1);
  await first.close();
  return { clock, second, runId: run.runId, after: session({ model: noModel, clock, host: second }) };
}

describe("a question", () => {
  fact(30, "with no choice to answer with is refused before a run, and the place is named", () => {
    expect(() => only(asWritten<State<unknown, undefined>>(human, { question: "?", answer: { enum: [] } }))).toThrow(
      "stages.wait.answer",
    );
    expect(() => only(human({ question: " " }))).toThrow("stages.wait.question");
  });

  ours(62, "a state that asks a person is there until it is answered, and no model is reminded of it", async () => {
    const live = session({ model: noModel, wait: true });
    const run = live.start(only(human({ question: "Go on?" })), { task: "T" });
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    live.clock.turn(365 * 24 * HOUR);
    const [request] = await live.host.requests(run.runId);
    await live.answer(request ?? expect.fail(), { kind: "value", value: "yes" }, "Ada");
    expect(await run).toMatchObject({ output: { output: "yes" }, usage: { inputTokens: 0 } });
    expect(dataOf(await eventsOf(live.host, run.runId), "request.opened")).toHaveLength(1);
  });

  defect("D14", "a question does not end the run, and its answer leads on by a route", async () => {
    const live = session({ model: noModel, wait: true });
    const made = pipeline({
      id: "leads",
      input,
      stages: { ask: human({ question: "Which?", answer: z.enum(["left", "right"]) }), left: work(), right: work() },
      initial: "ask",
      next: {
        ask: ({ output }) => ({ kind: "to", state: output, input: undefined }),
        left: () => done("went left"),
        right: () => done("went right"),
      },
    });
    const run = live.start(made, { task: "T" });
    await eventually(async () => (await live.host.requests(run.runId)).length === 1);
    const [request] = await live.host.requests(run.runId);
    await live.answer(request ?? expect.fail(), { kind: "value", value: "right" }, "Ada");
    expect(await run).toMatchObject({ status: "completed", output: "went right" });
  });
});

describe("a timer", () => {
  fact(60, "sleeps first, and then has elapsed time and timestamp, for every form of its time", async () => {
    const at = 1_000 + HOUR;
    for (const time of [{ for: HOUR }, { for: "1h" }, { until: at }, { until: new Date(at).toISOString() }] as const) {
      const live = session({ model: noModel });
      const run = live.start(only(timer(time)), { task: "T" });
      await eventually(async () => live.clock.waiting() === 1);
      live.clock.turn(HOUR);
      expect(await run).toMatchObject({ output: { output: { elapsedMs: HOUR, timestamp: at } } });
      expect(dataOf(await eventsOf(live.host, run.runId), "sleep.started")).toMatchObject([{ until: at }]);
    }
    const live = session({ model: noModel });
    expect(await live.run(only(timer({ until: 1 })), { task: "T" })).toMatchObject({
      output: { output: { elapsedMs: 0 } },
    });
  });

  fact(61, "takes milliseconds and texts with a unit, with spaces around them, and no time of 0 or less", () => {
    const times = [1_500, "3h", " 5d ", "15m", "30s", "1.5s"].map((text) => parseDuration(text));
    expect(times.map((read) => (read.ok ? read.ms : read.message))).toEqual([
      1_500,
      3 * HOUR,
      120 * HOUR,
      900_000,
      30_000,
      1_500,
    ]);
    const none = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "", " ", "h", "3", "3 weeks", "-3h", "0s", "soon", null];
    expect(none.filter((value) => parseDuration(value).ok)).toEqual([]);
  });

  defect("D17", "is checked in the same way however its pipeline is defined", () => {
    const faulty = { for: "soon" };
    expect(() => only(asWritten(timer, faulty))).toThrow("stages.wait.for");
    expect(() =>
      pipeline({
        id: "table",
        input,
        stages: { wait: asWritten(timer, faulty) },
        initial: "wait",
        transitions: [{ from: "wait", on: "success", to: done(null) }],
      }),
    ).toThrow("stages.wait.for");
  });

  defect("D18", "and everything that is recorded of it have one clock", async () => {
    const live = session({ model: noModel });
    const run = live.start(only(timer({ for: "1h" })), { task: "T" });
    await eventually(async () => live.clock.waiting() === 1);
    live.clock.turn(HOUR);
    const result = await run;
    expect(result.stages).toMatchObject([{ ms: HOUR }]);
    const times = new Set((await eventsOf(live.host, run.runId)).map(({ at }) => at));
    expect([...times]).toEqual([1_000, 1_000 + HOUR]);
  });
});

describe("a run that sleeps", () => {
  fact(64, "is the only one that a wake continues: with nothing asleep, nothing is due", async () => {
    const { clock, first } = twoHosts();
    const live = session({ model: noModel, clock, host: first });
    const run = await live.run(only(timer({ until: 1 })), { task: "T" });
    expect(await first.due(10)).toEqual({ runs: [], next: undefined });
    await expect(live.resume(only(timer({ until: 1 })), run.runId)).rejects.toMatchObject({ code: "run_finished" });
  });

  fact(65, "and is then suspended on purpose while it works is not due, however often one looks", async () => {
    const working = Promise.withResolvers<null>();
    const starts: string[] = [];
    const { clock, first, second } = twoHosts();
    const live = session({ model: noModel, clock, host: first });
    const run = live.start(
      sleepsFirst(() => working.promise, starts),
      { task: "T" },
    );
    await eventually(async () => clock.waiting() === 1);
    clock.turn(HOUR);
    await eventually(() => starts.length === 1);
    const suspended = run.suspend();
    working.resolve(null);
    await suspended;
    for (let times = 0; times < 3; times += 1) {
      clock.turn(24 * HOUR);
      expect(await second.due(10)).toEqual({ runs: [], next: undefined });
    }
    expect(await second.get(run.runId)).toMatchObject({ status: "suspended", suspended: "interrupted" });
  });

  fact(66, "is continued by one process, and a wake that comes late changes no end", async () => {
    const { clock, second, runId, after } = await asleep(sleepsFirst());
    clock.turn(HOUR);
    expect((await second.due(10)).runs).toEqual([runId]);
    expect(await after.resume(sleepsFirst(), runId)).toMatchObject({ status: "completed", output: "over" });
    await expect(after.resume(sleepsFirst(), runId)).rejects.toMatchObject({ code: "run_finished" });
    expect(await second.get(runId)).toMatchObject({ status: "completed", end: { value: { output: "over" } } });
  });

  ours(67, "keeps its wake time when a message arrives; the next model call reads the message", async () => {
    const { clock, second, runId, after } = await asleep(sleepsFirst());
    await sendMessage(second, runId, "How is it?", "Ada");
    // It is due once, to hear the message, and then sleeps until the same time.
    expect(await second.due(10)).toEqual({ runs: [runId], next: 1_000 + HOUR });
    const run = after.resume(sleepsFirst(), runId);
    await eventually(async () => clock.waiting() === 1);
    expect((await second.get(runId))?.wakeAt).toBe(1_000 + HOUR);
    clock.turn(HOUR);
    expect(await run).toMatchObject({ status: "completed" });
    expect(dataOf(await eventsOf(second, runId), "sleep.started")).toMatchObject([{ until: 1_000 + HOUR }]);
  });

  fact(68, "wakes once, also if its time has passed long before and it is resumed twice", async () => {
    const starts: string[] = [];
    const made = sleepsFirst(undefined, starts);
    const { clock, second, runId, after } = await asleep(made);
    clock.turn(72 * HOUR);
    const both = await Promise.allSettled([after.resume(made, runId), after.resume(made, runId)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(starts).toEqual(["after"]);
    expect(dataOf(await eventsOf(second, runId), "sleep.ended")).toEqual([{ by: "time" }]);
  });

  fact(70, "and is cancelled in another process ends there, with an event that ends the sleep", async () => {
    const { clock, second, runId, after } = await asleep(sleepsFirst());
    const run = after.resume(sleepsFirst(), runId);
    await eventually(async () => clock.waiting() === 1);
    await run.cancel("not needed");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "not needed" } });
    const events = await eventsOf(second, runId);
    expect(dataOf(events, "sleep.ended")).toEqual([{ by: "cancelled" }]);
    expect(dataOf(events, "run.finished")).toHaveLength(1);
    expect(clock.waiting()).toBe(0);
    expect(await second.due(10)).toEqual({ runs: [], next: undefined });
  });
});
