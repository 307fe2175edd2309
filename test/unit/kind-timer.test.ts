import { done, fanOut, type Pipeline, pipeline, to } from "@sluice/core";
import { type Duration, timer } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { asWritten } from "../support/as-written.ts";
import { dataOf, eventsOf, eventually, noModel, session, twoHosts, work } from "../support/run-kit.ts";

const input = z.object({ at: z.unknown() });
type Time = Parameters<typeof timer>[0];

/** One timer, whose output is the run's. */
function waits(time: Time) {
  return waitsBy(timer(time));
}
function waitsBy(wait: ReturnType<typeof timer>) {
  return pipeline({
    id: "waits",
    input,
    stages: { wait },
    initial: "wait",
    next: { wait: ({ output }) => done(output) },
  });
}
/** The first run of a pipeline, at 1,000 ms of a clock that stands still. */
function started(made: Pipeline<z.infer<typeof input>, unknown>, at: unknown = null) {
  const live = session({ model: noModel });
  return { live, run: live.start(made, { at }) };
}

describe("a timer", () => {
  test.each<[string, Duration]>([
    ["milliseconds", 90_000],
    ["a text", "90s"],
    ["a text with a fraction", "1.5m"],
  ] as const)("for %s completes when the time has passed, and not before", async (_name, length) => {
    const { live, run } = started(waits({ for: length }));
    await eventually(async () => live.clock.waiting() === 1);
    live.clock.turn(89_999);
    expect((await live.host.get(run.runId))?.end).toBeUndefined();
    live.clock.turn(1);
    expect(await run).toMatchObject({ status: "completed", output: { elapsedMs: 90_000, timestamp: 91_000 } });
  });

  test.each([
    ["epoch milliseconds", 61_000, null],
    ["an ISO time", "1970-01-01T00:01:01Z", null],
    ["an ISO time with an offset", "1970-01-01T02:01:01.000+02:00", null],
    ["a template that gives milliseconds", "{{ctx.run.input.at}}", 61_000],
    ["a template that gives an ISO time", "{{ctx.run.input.at}}", "1970-01-01T00:01:01Z"],
  ])("until %s completes then", async (_name, until, at) => {
    const { live, run } = started(waits({ until }), at);
    await eventually(async () => live.clock.waiting() === 1);
    live.clock.turn(60_000);
    expect(await run).toMatchObject({ status: "completed", output: { elapsedMs: 60_000, timestamp: 61_000 } });
  });

  test("until a time that has passed completes at once", async () => {
    const { run } = started(waits({ until: 500 }));
    expect(await run).toMatchObject({ status: "completed", output: { elapsedMs: 0, timestamp: 1_000 } });
  });

  test("whose template gives a long text names its beginning, without a part of a secret", async () => {
    const { run } = started(
      waits({ until: "{{ctx.run.input.at}}" }),
      `${"soon ".repeat(16)}ghp_0123456789abcdefghij0123456789abcdef`,
    );
    const ended = JSON.stringify(await run);
    expect(ended).toContain("soon soon");
    expect(ended).not.toContain("0123");
  });

  test.each(["soon", "", "-5", "2027-01-31T09:00:00", "NaN", "1e30"])(
    "whose template gives %j fails, and a route can lead on",
    async (at) => {
      const made = pipeline({
        id: "routed",
        input,
        stages: { wait: timer({ until: "{{ctx.run.input.at}}" }), after: work() },
        initial: "wait",
        next: { wait: { completed: () => to("after"), failed: ({ code, message }) => done({ code, message }) } },
      });
      const { run } = started(made, at);
      expect(await run).toMatchObject({
        status: "completed",
        output: { code: "timer", message: expect.stringContaining("2027-01-31T09:00:00Z") },
      });
    },
  );

  test.each([
    ["neither for nor until", {}],
    ["both", { for: "1s", until: 5 }],
    ["no time", { for: "soon" }],
    ["0", { for: 0 }],
    ["a negative time", { for: -5 }],
    ["infinity", { for: Number.POSITIVE_INFINITY }],
    ["a point in time that is none", { until: Number.NaN }],
    ["a local time, which is another one in another process", { until: "2027-01-31T09:00" }],
    ["a template that leads nowhere", { until: "{{ctx.nothing}}" }],
    ["an unknown option", { for: "1s", unti: 5 }],
  ])("with %s is refused before a run", (_name, time) => {
    expect(() => waitsBy(asWritten(timer, time))).toThrow(expect.objectContaining({ code: "definition_invalid" }));
  });

  test("keeps its wake time when the process ends and another one continues", async () => {
    const { clock, first, second } = twoHosts();
    const made = waits({ for: "3h" });
    const before = session({ model: noModel, clock, host: first });
    const run = before.start(made, { at: null });
    await eventually(async () => clock.waiting() === 1);
    await first.close();
    clock.turn(2 * 3_600_000);
    const after = session({ model: noModel, clock, host: second });
    const resumed = after.resume(made, run.runId);
    await eventually(async () => clock.waiting() === 1);
    clock.turn(3_600_000 - 1);
    expect((await second.get(run.runId))?.end).toBeUndefined();
    clock.turn(1);
    expect(await resumed).toMatchObject({ status: "completed", output: { elapsedMs: 3 * 3_600_000 } });
    const events = await eventsOf(second, run.runId);
    expect(dataOf(events, "sleep.started")).toMatchObject([{ until: 3 * 3_600_000 + 1_000, sleeps: 1 }]);
    expect(dataOf(events, "sleep.ended")).toMatchObject([{ by: "time" }]);
  });

  test("ends when the run is cancelled", async () => {
    const { live, run } = started(waits({ for: "3h" }));
    await eventually(async () => live.clock.waiting() === 1);
    await run.cancel("not needed");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "not needed" } });
    expect(live.clock.waiting()).toBe(0);
  });

  test("holds no slot and does not count as working time", async () => {
    const made = pipeline({
      id: "capped",
      input,
      stages: { wait: timer({ for: "1h", limits: { timeoutMs: 1_000 } }) },
      initial: "wait",
      next: { wait: ({ output }) => done(output) },
    });
    const live = session({ model: noModel, maxParallel: 1 });
    const [first, second] = [live.start(made, { at: null }), live.start(made, { at: null })];
    await eventually(async () => live.clock.waiting() === 2);
    live.clock.turn(3_600_000);
    expect([(await first).status, (await second).status]).toEqual(["completed", "completed"]);
  });

  test("waits again in another attempt", async () => {
    let attempts = 0;
    const again = () => {
      attempts += 1;
      return attempts < 2 ? { retry: "once more" } : "ok";
    };
    const { live, run } = started(waits({ for: "1h", assert: again }));
    for (let times = 0; times < 2; times += 1) {
      await eventually(async () => live.clock.waiting() === 1);
      live.clock.turn(3_600_000);
    }
    expect(await run).toMatchObject({ output: { elapsedMs: 3_600_000, timestamp: 1_000 + 2 * 3_600_000 } });
    expect(dataOf(await eventsOf(live.host, run.runId), "sleep.ended")).toHaveLength(2);
  });

  test("sleeps beside others in a fan-out, and the run is due at the earliest", async () => {
    const made = pipeline({
      id: "beside",
      input,
      stages: { begin: work(), short: timer({ for: "1h" }), long: timer({ for: "3h" }), end: work() },
      initial: "begin",
      next: {
        begin: () => fanOut(["short", "long"], { join: "end" }),
        end: (_result, { upstream }) => done([upstream.short?.elapsedMs ?? 0, upstream.long?.elapsedMs ?? 0]),
      },
    });
    const { clock, first, second } = twoHosts();
    const before = session({ model: noModel, clock, host: first });
    const run = before.start(made, { at: null });
    await eventually(async () => clock.waiting() === 2);
    await first.close();
    expect(await second.due(10)).toEqual({ runs: [], next: 1_000 + 3_600_000 });
    clock.turn(3_600_000);
    expect((await second.due(10)).runs).toEqual([run.runId]);
    const after = session({ model: noModel, clock, host: second });
    const resumed = after.resume(made, run.runId);
    await eventually(async () => (await second.get(`${run.runId}/fan-1/short`))?.end !== undefined);
    clock.turn(2 * 3_600_000);
    expect(await resumed).toMatchObject({ output: [3_600_000, 3 * 3_600_000] });
    await eventsOf(second, run.runId);
  });

  test("that a person interrupts is entered again when the run is resumed, and sleeps as long again", async () => {
    const { live, run } = started(waits({ for: "1h" }));
    await eventually(async () => live.clock.waiting() === 1);
    live.clock.turn(1_800_000);
    await run.interrupt("not now");
    expect(await run).toMatchObject({ status: "suspended", reason: "interrupted" });
    expect(live.clock.waiting()).toBe(0);
    const resumed = live.resume(waits({ for: "1h" }), run.runId);
    await eventually(async () => live.clock.waiting() === 1);
    live.clock.turn(3_600_000);
    expect(await resumed).toMatchObject({ status: "completed", output: { elapsedMs: 3_600_000 } });
    const sleeps = dataOf(await eventsOf(live.host, run.runId), "sleep.started");
    expect(sleeps.map(({ until }) => until)).toEqual([3_601_000, 1_801_000 + 3_600_000]);
  });
});
