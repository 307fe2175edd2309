import {
  isSluiceError,
  type Json,
  type ProgramEnd,
  type RunChildrenOptions,
  type RunProgram,
  type StepRunner,
} from "@sluice/core";
import { describe, expect, test } from "vitest";
import { completed, endOf, start, turns } from "../support/journal.ts";
import {
  clocked,
  cut,
  decides,
  differenceOf,
  initEvent,
  pass,
  placeIn,
  recorded,
  replayed,
  saying,
} from "../support/replay-kit.ts";

const settle: RunChildrenOptions = { onFailure: "settle", failed: () => false, open: { events: [] }, joined: () => [] };

describe("a replay over a record", () => {
  const open = { open: { events: [initEvent("announced")], intent: { file: "a" } } };
  const everything =
    (ran: string[], seen: Json[]): RunProgram =>
    async (steps, input) => {
      const note = <T>(name: string, value: T): T => {
        ran.push(`${steps.runId} ${name}`);
        return value;
      };
      seen.push(input, await steps.run("decided", () => note("decided", { a: [1] }), decides));
      if (steps.runId !== "r1") return completed(input);
      seen.push(await steps.run("acted", () => note("acted", "done"), open));
      seen.push(await steps.run("asked", () => note("asked", ran.length), { decides: () => false }));
      const at = await steps.now("at");
      await steps.sleepUntil("nap", at + 10);
      const got = await steps.waitForSignal("go", { timeoutMs: 50 });
      const none = await steps.waitForSignal("never", { timeoutMs: 10 });
      const more = await steps.takeSignals("more", "go");
      const ends = await steps.runChildren(
        "fan",
        ["x", "y"].map((key) => ({ key, input: key, events: [] })),
        settle,
      );
      steps.emit("text", "live");
      seen.push(at, [got?.payload ?? null, none === undefined, more.length], Object.keys(ends), steps.heard());
      return completed(seen.length);
    };

  test("asks again what decides, hands back all else with what the run saw, and counts both", async () => {
    const { clock, host } = clocked();
    const [live, again]: [Json[], Json[]] = [[], []];
    const task = await start(host, everything([], live), "r1", { task: "x" });
    for (const payload of [1, 2]) await host.signal("r1", { name: "go", payload, by: "me" });
    await pass(clock);
    await endOf(task);
    const journals = await host.journal("r1");
    const ran: string[] = [];
    const report = await replayed(journals, everything(ran, again));
    expect(report).toEqual({ runId: "r1", status: "completed", decided: 3, taken: 8 });
    expect(ran).toEqual(["r1 decided", "r1/fan/x decided", "r1/fan/y decided"]);
    expect(again).toEqual(live);
    expect(live).toContainEqual([1, true, 1]);
    await host.close();
  });

  test("shows the program the run's id and incarnation, and a step what it was recorded with", async () => {
    const seen: unknown[] = [];
    const program: RunProgram = async (steps) => {
      seen.push(steps.runId, steps.incarnation);
      await steps.run(
        "one",
        async (call) => {
          call.event(initEvent("x"));
          call.hold(Promise.resolve());
          seen.push(call.recorded, await call.signals(), call.signal === steps.signal);
          return 7;
        },
        decides,
      );
      return completed();
    };
    const journals = await recorded(program);
    const { incarnation } = journals[0]?.records[0] ?? expect.fail();
    seen.length = 0;
    expect(await differenceOf(journals, program)).toBeUndefined();
    const event = { ...initEvent("x"), id: "r1/1/0", runId: "r1", at: 1_000 };
    expect(seen).toEqual(["r1", incarnation, { value: "7", events: [event] }, [], true]);
  });

  test("gives a step that decides what JSON makes of its value, as a resume does", async () => {
    const seen: Json[] = [];
    const program: RunProgram = async (steps) => {
      const odd = (): Json => Object.assign(Object.create(null), { a: 1, date: new Date(0), none: undefined });
      seen.push(await steps.run("odd", odd, decides));
      return completed();
    };
    expect(await differenceOf(await recorded(program), program)).toBeUndefined();
    expect(seen).toEqual([
      { a: 1, date: "1970-01-01T00:00:00.000Z" },
      { a: 1, date: "1970-01-01T00:00:00.000Z" },
    ]);
  });

  test("of an unfinished run goes as far as the record does, and says so", async () => {
    const ran: string[] = [];
    const program: RunProgram = async (steps) => {
      for (const id of ["a", "b", "c"])
        await steps.run(
          id,
          () => {
            ran.push(id);
            return id;
          },
          decides,
        );
      throw new Error("never comes here in a replay");
    };
    const whole = await recorded(async (steps) => await program(steps, null).catch(() => completed()));
    ran.length = 0;
    expect(await replayed(cut(whole, 3), program)).toEqual({
      runId: "r1",
      status: "unfinished",
      decided: 2,
      taken: 0,
    });
    expect(ran).toEqual(["a", "b"]);
    // Nobody knows what came of code that runs where the record ends.
    expect(await differenceOf(cut(whole, 4), program)).toBeUndefined();
    // One step before that it is known that it went on.
    const early: RunProgram = async (steps) => {
      await steps.run("a", () => "a", decides);
      throw new Error("early");
    };
    expect(await differenceOf(cut(whole, 3), early)).toMatchObject({
      part: "fault",
      now: "early",
      stepId: "a",
      seq: 1,
    });
  });

  test("ends in a step that was at work when the record ends: nothing of it runs", async () => {
    const program: RunProgram = async (steps) => {
      await steps.run("one", () => 1, { open: { events: [] }, ...decides });
      return completed();
    };
    const whole = await recorded(program);
    const caught: unknown[] = [];
    const catching: RunProgram = async (steps) => {
      const one = steps.run("one", () => expect.fail("ran"), { open: { events: [] }, ...decides });
      await one.catch((thrown: unknown) => caught.push(thrown));
      await steps.run("two", () => expect.fail("ran"), decides).catch((thrown: unknown) => caught.push(thrown));
      caught.push(steps.signal.reason);
      return completed("another end");
    };
    expect(await replayed(cut(whole, 2), catching)).toEqual({
      runId: "r1",
      status: "unfinished",
      decided: 0,
      taken: 0,
    });
    expect(caught.map((thrown) => isSluiceError(thrown, "run_stopped"))).toEqual([true, true, true]);
  });
});

describe("a program is other than the record", () => {
  const steps =
    (ids: readonly string[], end: Partial<ProgramEnd> = {}): RunProgram =>
    async (runner) => {
      for (const id of ids) await runner.run(id, saying(id, id), decides);
      return { ...completed(), ...end };
    };

  test("where it takes another step, one step less or one more: the record there is named, or the last one", async () => {
    const journals = await recorded(steps(["a", "b"]));
    const part = { part: "step", path: "$", at: 1_000 };
    expect(await differenceOf(journals, steps(["a", "c"]))).toEqual({
      ...part,
      ...placeIn(journals, "b"),
      stepId: "c",
      recorded: "b",
      now: "c",
    });
    expect(await differenceOf(journals, steps(["a"]))).toEqual({
      ...part,
      ...placeIn(journals, "b"),
      recorded: "b",
      now: undefined,
    });
    expect(await differenceOf(journals, steps(["a", "b", "c"]))).toEqual({
      ...part,
      ...placeIn(journals, "end", "lifecycle"),
      stepId: "c",
      recorded: undefined,
      now: "c",
    });
  });

  test("where a step that was begun is left out: its first record is named", async () => {
    const open = { open: { events: [] } };
    const journals = await recorded(async (runner) => {
      await runner.run("a", () => 1, open);
      return completed();
    });
    expect(await differenceOf(journals, async () => completed())).toMatchObject(placeIn(journals, "a", "open"));
    const other: RunProgram = async (runner) => completed(await runner.run("b", () => 1, open));
    expect(await differenceOf(journals, other)).toMatchObject(
      placeIn(journals, "a", "open").seq === 1 ? { seq: 1 } : {},
    );
  });

  test("in a value, in an event, and in what is announced", async () => {
    const one =
      (value: Json, event: string, announced: string): RunProgram =>
      async (runner) => {
        await runner.run(
          "one",
          (call) => {
            call.event(initEvent(event));
            return value;
          },
          { open: { events: [initEvent(announced)] }, ...decides },
        );
        return completed();
      };
    const journals = await recorded(one({ a: [1, 2] }, "e", "n"));
    const done = { ...placeIn(journals, "one"), at: 1_000 };
    expect(await differenceOf(journals, one({ a: [1, 3] }, "e", "n"))).toEqual({
      ...done,
      part: "value",
      path: "$.a[1]",
      recorded: 2,
      now: 3,
    });
    const event = { event: "stage.init", path: "$.data.text" };
    expect(await differenceOf(journals, one({ a: [1, 2] }, "f", "n"))).toEqual({
      ...done,
      ...event,
      part: "event",
      recorded: "e",
      now: "f",
    });
    expect(await differenceOf(journals, one({ a: [1, 2] }, "e", "o"))).toEqual({
      ...done,
      ...event,
      ...placeIn(journals, "one", "open"),
      part: "announced",
      recorded: "n",
      now: "o",
    });
  });

  test("where a step begins behind a record of its own, and did not, or the other way round", async () => {
    const begun = "has an open record";
    const done = "has no open record";
    const one =
      (open: object): RunProgram =>
      async (runner) =>
        completed(await runner.run("one", () => 1, open));
    const opened = await recorded(one({ open: { events: [] } }));
    const plain = await recorded(one({}));
    const part = { part: "announced", path: "$" };
    expect(await differenceOf(opened, one({}))).toMatchObject({
      ...part,
      ...placeIn(opened, "one", "open"),
      recorded: begun,
      now: done,
    });
    expect(await differenceOf(plain, one({ open: { events: [] } }))).toMatchObject({
      ...part,
      ...placeIn(plain, "one"),
      recorded: done,
      now: begun,
    });
    const timed =
      (timeoutMs?: number): RunProgram =>
      async (runner) =>
        completed((await runner.waitForSignal("go", timeoutMs === undefined ? {} : { timeoutMs }))?.by ?? null);
    const waited = await recorded(timed(10));
    expect(await differenceOf(waited, timed(10))).toBeUndefined();
    expect(await differenceOf(waited, timed())).toMatchObject({ ...part, stepId: "wait/go", now: done });
  });

  test("in how it ends, and in the events of its end", async () => {
    const journals = await recorded(steps([], { value: { a: 1 } }));
    const place = { ...placeIn(journals, "end", "lifecycle"), at: 1_000 };
    const end = { ...place, part: "end" };
    expect(await differenceOf(journals, steps([], { value: { a: 1 }, status: "failed" }))).toEqual({
      ...end,
      path: "$.status",
      recorded: "completed",
      now: "failed",
    });
    expect(await differenceOf(journals, steps([], { value: { a: 2 } }))).toEqual({
      ...end,
      path: "$.value.a",
      recorded: 1,
      now: 2,
    });
    expect(await differenceOf(journals, steps([], { value: { a: 1 }, events: [] }))).toMatchObject({
      ...place,
      part: "event",
      event: "run.finished",
      path: "$",
      now: undefined,
    });
  });

  test("where it throws: in a step, between steps, or before the first", async () => {
    const journals = await recorded(steps(["a", "b"]));
    const part = { part: "fault", path: "$", recorded: undefined, at: 1_000 };
    const inStep: RunProgram = async (runner) => {
      await runner.run("a", saying("a", "a"), decides);
      await runner.run("b", () => Promise.reject(new Error("boom")), decides);
      return completed();
    };
    expect(await differenceOf(journals, inStep)).toEqual({ ...part, ...placeIn(journals, "b"), now: "boom" });
    const between: RunProgram = async (runner) => {
      await runner.run("a", saying("a", "a"), decides);
      throw new Error("gap");
    };
    expect(await differenceOf(journals, between)).toEqual({ ...part, ...placeIn(journals, "a"), now: "gap" });
    const before: RunProgram = () => Promise.reject(new Error("first"));
    expect(await differenceOf(journals, before)).toEqual({
      ...part,
      ...placeIn(journals, "a"),
      stepId: "",
      now: "first",
    });
    const none = await recorded(steps([]));
    expect(await differenceOf(none, before)).toEqual({
      ...part,
      ...placeIn(none, "end", "lifecycle"),
      stepId: "",
      now: "first",
    });
  });

  test("where it takes two steps at once", async () => {
    const journals = await recorded(steps(["a", "b"]));
    const both: RunProgram = async (runner) => {
      const all = ["a", "b"].map((id) => runner.run(id, saying(id, id), decides));
      await Promise.allSettled(all);
      return completed();
    };
    const found = await differenceOf(journals, both);
    expect(found).toMatchObject({ part: "fault", stepId: "b" });
    expect(found?.now).toBe("run r1: step b was started while a is open; use runChildren() for concurrency");
    // One whose step nobody waits for does not bring the process down.
    const careless: RunProgram = async (runner) => {
      void runner.run("other", () => 1);
      await turns(2);
      return completed();
    };
    expect(await differenceOf(journals, careless)).toMatchObject({ part: "step", recorded: "a", now: "other" });
  });

  test("and the first place that differs is reported, whatever the program makes of it", async () => {
    const journals = await recorded(steps(["a", "b"]));
    const caught: unknown[] = [];
    const program: RunProgram = async (runner) => {
      for (const id of ["x", "a", "b"])
        await runner.run(id, saying(id, id), decides).catch((thrown: unknown) => caught.push(thrown));
      throw new Error("later");
    };
    expect(await differenceOf(journals, program)).toMatchObject({ part: "step", recorded: "a", now: "x" });
    const stopped = { class: "Host", code: "run_stopped", message: "the replay of run r1 ends here" };
    expect(caught).toMatchObject([stopped, stopped, stopped]);
    // Also where the step that was open continues, and differs.
    const beside: RunProgram = async (runner) => {
      const a = runner.run("a", () => "other", decides);
      await Promise.allSettled([a, runner.run("b", () => "b", decides)]);
      return completed();
    };
    expect(await differenceOf(journals, beside)).toMatchObject({ part: "fault", stepId: "b" });
  });

  test("at the time of its record, or of the last one before it that has a time", async () => {
    const { clock, host } = clocked();
    const program =
      (value: Json, last: Json = 1): RunProgram =>
      async (runner) => {
        clock.turn(7);
        await runner.run("timed", saying("x", 1), decides);
        clock.turn(5);
        await runner.run("plain", () => value, decides);
        await runner.run("open", () => last, { open: { events: [initEvent("y")] }, ...decides });
        return completed();
      };
    clock.turn(100);
    await endOf(await start(host, program(1)));
    const journals = await host.journal("r1");
    await host.close();
    expect((await differenceOf(journals, program(2)))?.at).toBe(1_107);
    expect((await differenceOf(journals, program(1, 2)))?.at).toBe(1_112);
    // Before anything else has a time, that of the beginning.
    const untimed = async (runner: StepRunner) => completed(await runner.run("timed", () => 1));
    const first = await recorded(untimed);
    expect((await differenceOf(first, async () => completed()))?.at).toBe(1_000);
  });
});
