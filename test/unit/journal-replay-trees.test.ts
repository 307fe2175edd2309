import {
  type ChildRun,
  type EventDraft,
  isSluiceError,
  type Json,
  type RunChildrenOptions,
  type RunEnd,
  type RunJournal,
  type RunProgram,
} from "@sluice/core";
import { describe, expect, test } from "vitest";
import type { NextRecord } from "../../packages/core/src/journal/replay/replay-journals.ts";
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

const child = (key: string, more: Partial<ChildRun> = {}): ChildRun => ({ key, input: key, events: [], ...more });
const settle: RunChildrenOptions = { onFailure: "settle", failed: () => false, open: { events: [] }, joined: () => [] };

describe("a fork in a replay", () => {
  const forking =
    (children: readonly ChildRun[], own: (key: string) => Json, more: Partial<RunChildrenOptions> = {}): RunProgram =>
    async (runner, input) => {
      if (runner.runId !== "r1") {
        await runner.run("own", saying("own", own(String(input))), decides);
        return completed();
      }
      await runner.runChildren("fan", children, { ...settle, ...more });
      return completed();
    };
  const two = [child("x"), child("y")];
  const same = (): Json => 1;

  test("is other where it has other children, or joins with other events", async () => {
    const events: readonly EventDraft[] = [initEvent("joined")];
    const journals = await recorded(forking(two, same, { joined: () => events }));
    expect(await differenceOf(journals, forking(two, same, { joined: () => events }))).toBeUndefined();
    expect(await differenceOf(journals, forking([child("x"), child("z")], same))).toEqual({
      ...placeIn(journals, "fan", "open"),
      part: "announced",
      path: "$.children[1]",
      recorded: "y",
      now: "z",
      at: 1_000,
    });
    expect(await differenceOf(journals, forking(two, same, { joined: () => [initEvent("other")] }))).toMatchObject({
      ...placeIn(journals, "fan"),
      part: "event",
      event: "stage.init",
    });
    const given: string[] = [];
    const joined: RunChildrenOptions["joined"] = (ends) => {
      given.push(...Object.entries(ends).map(([key, { status, head }]) => `${key} ${status} ${head}`));
      return events;
    };
    await replayed(journals, forking(two, same, { joined }));
    expect(given).toEqual(journals.slice(1).map(({ runId, claimed }) => `${runId.at(-1)} completed ${claimed.head}`));
  });

  test("is other where a child that has done nothing yet is given another input", async () => {
    const [root, x, y] = await recorded(forking(two, same));
    const { records, end: _end, ...begun } = y ?? expect.fail();
    const open = cut([root ?? expect.fail(), x ?? expect.fail(), { ...begun, records: records.slice(0, 1) }], 2);
    expect(await differenceOf(open, forking(two, same))).toBeUndefined();
    const other = forking([child("x"), child("y", { input: "z" })], same);
    expect(await differenceOf(open, other)).toMatchObject({ runId: "r1/fan/y", part: "input", now: "z" });
  });

  test("is other where a child is given another input, or begins with other events", async () => {
    const journals = await recorded(forking(two, same));
    const first = { ...placeIn(journals, "start", "lifecycle", "r1/fan/y") };
    expect(await differenceOf(journals, forking([child("x"), child("y", { input: "z" })], same))).toMatchObject({
      ...first,
      part: "input",
      path: "$",
      recorded: "y",
      now: "z",
    });
    const events = [initEvent("begun")];
    expect(await differenceOf(journals, forking([child("x"), child("y", { events })], same))).toMatchObject({
      ...first,
      part: "event",
      event: "stage.init",
      recorded: undefined,
    });
  });

  test("tells of the child whose other record was written first, whatever the order of children", async () => {
    const { clock, host } = clocked();
    const slow: RunProgram = async (runner, input) => {
      if (runner.runId === "r1") return completed(await runner.runChildren("fan", two, settle).then(() => null));
      if (input === "x") await runner.sleepUntil("nap", 1_030);
      await runner.run("own", saying("own", 1), decides);
      return completed();
    };
    const task = await start(host, slow);
    await pass(clock);
    await endOf(task);
    const journals = await host.journal("r1");
    await host.close();
    const other: RunProgram = async (runner, input) => {
      if (runner.runId === "r1") return completed(await runner.runChildren("fan", two, settle).then(() => null));
      if (input === "x") await runner.sleepUntil("nap", 1_030);
      await runner.run("own", saying("own", 2), decides);
      return completed();
    };
    expect(await differenceOf(journals, other)).toMatchObject({ runId: "r1/fan/y", at: 1_000 });
    // Of two that were written in the same millisecond the first child's.
    const quick = await recorded(forking(two, same));
    const at = await differenceOf(
      quick,
      forking(two, () => 2),
    );
    expect(at).toMatchObject({ runId: "r1/fan/x", part: "value", recorded: 1, now: 2 });
    // Also where those after it are as they were.
    const first = forking(two, (key) => (key === "x" ? 2 : 1));
    expect(await differenceOf(quick, first)).toMatchObject({ runId: "r1/fan/x", part: "value" });
  });

  test("whose child's journal is not there takes what the join says of it", async () => {
    const journals = await recorded(forking(two, same));
    const [root, , y] = journals;
    const part = [root ?? expect.fail(), y ?? expect.fail()];
    expect(await replayed(part, forking(two, same))).toMatchObject({ decided: 1, taken: 1 });
    expect(await differenceOf(part, forking(two, same))).toBeUndefined();
  });

  test("that was open when the record ends is replayed as far as its children came", async () => {
    const journals = await recorded(forking(two, same));
    const open = cut(journals, 2);
    expect(await replayed(open, forking(two, same))).toEqual({
      runId: "r1",
      status: "unfinished",
      decided: 2,
      taken: 0,
    });
    const other = forking(two, (key) => (key === "y" ? 2 : 1));
    expect(await differenceOf(open, other)).toMatchObject({ runId: "r1/fan/y", part: "value" });
  });
});

describe("a run that was cancelled", () => {
  const program =
    (seen: unknown[]): RunProgram =>
    async (steps) => {
      for (const id of ["a", "b"]) {
        seen.push([id, steps.signal.aborted]);
        await steps.run(id, () => id);
      }
      seen.push(["end", steps.signal.aborted, steps.signal.reason]);
      return completed();
    };

  test("hears of it before what shows it first", async () => {
    const journals = await recorded(program([]));
    for (const [shown, heard] of [
      ["a", [true, true, true]],
      ["b", [false, true, true]],
      ["none", [false, false, false]],
    ] as const) {
      const seen: (readonly unknown[])[] = [];
      await replayed(
        journals,
        program(seen),
        (next) => "stepId" in next && next.stepId === shown && next.value === `"${shown}"`,
      );
      expect(seen.map(([, aborted]) => aborted)).toEqual(heard);
    }
    const ended: (readonly unknown[])[] = [];
    await replayed(journals, program(ended), (next) => "status" in next && next.status === "completed");
    expect(ended.map(([, aborted]) => aborted)).toEqual([false, false, true]);
    expect(ended[2]?.[2]).toMatchObject({ class: "Cancellation", code: "run_cancelled", message: "shown" });
  });

  test("hears the reason that is recorded, and nothing where its record ends before it shows", async () => {
    const { host } = clocked();
    const waiting: RunProgram = async (steps) => {
      await steps.run("a", () => "a");
      await steps.waitForSignal("go");
      return { ...completed(), status: "cancelled" };
    };
    const task = await start(host, waiting);
    await turns();
    await host.cancel("r1", "enough", "me");
    await endOf(task);
    const journals = await host.journal("r1");
    await host.close();
    const reasons: unknown[] = [];
    const listening: RunProgram = async (steps) => {
      await steps.run("a", () => "a");
      await steps.waitForSignal("go");
      reasons.push(steps.signal.reason);
      return { ...completed(), status: "cancelled" };
    };
    const ended = (next: NextRecord): boolean => "status" in next && next.status === "cancelled";
    expect((await replayed(journals, listening, ended)).difference).toBeUndefined();
    expect(reasons).toMatchObject([{ code: "run_cancelled", message: "enough" }]);
    reasons.length = 0;
    const asked: unknown[] = [];
    await replayed(cut(journals, 3), listening, (next) => {
      asked.push(next);
      return "status" in next;
    });
    expect(reasons).toEqual([undefined]);
    expect(asked).not.toContainEqual({ status: expect.anything() });
  });
});

describe("a step may be called what a record of the run's life is called", () => {
  const stepped =
    (name: string, reasons: unknown[] = []): RunProgram =>
    async (steps) => {
      await steps.run(name, () => ({ reason: "a step's", status: "failed" }));
      reasons.push(steps.signal.reason);
      return { ...completed(), status: "cancelled" };
    };

  test("cancel: it gives no reason", async () => {
    const reasons: unknown[] = [];
    await replayed(await recorded(stepped("cancel")), stepped("cancel", reasons), (next) => "status" in next);
    expect(reasons).toMatchObject([{ message: "shown" }]);
  });

  test("end: a record that ends with it has no end yet", async () => {
    const unfinished = cut(await recorded(stepped("end")), 2);
    expect(await replayed(unfinished, stepped("end"))).toMatchObject({ status: "unfinished", taken: 1 });
    expect(await differenceOf(unfinished, stepped("end"))).toBeUndefined();
  });
});

test("whatever the record of a cancel says, there is a reason", async () => {
  const { host } = clocked();
  const reasons: unknown[] = [];
  const program: RunProgram = async (steps) => {
    await steps.waitForSignal("go");
    reasons.push(steps.signal.reason);
    return { ...completed(), status: "cancelled" };
  };
  const task = await start(host, program);
  await turns();
  await host.cancel("r1", "enough", "me");
  await endOf(task);
  const [root] = await host.journal("r1");
  await host.close();
  const { records, ...rest } = root ?? expect.fail();
  for (const value of ["", "null", "7", "{}", '{"reason":7}']) {
    reasons.length = 0;
    const other = records.map((one) => (one.stepId === "cancel" ? { ...one, value } : one));
    await replayed([{ ...rest, records: other }], program, (next) => "status" in next);
    expect(reasons).toMatchObject([{ message: "cancelled" }]);
  }
});

describe("a run that began with the past of another", () => {
  const program =
    (said: string, how = "", keys: readonly string[] = ["x"]): RunProgram =>
    async (steps) => {
      const say = async (name: string) => await steps.run(name, () => said, decides);
      if (steps.runId.includes("/")) return completed(await say("own"));
      await say("first");
      await steps.run("acts", () => how, { open: { events: [initEvent(how)] } });
      const joined = [initEvent(how)];
      await steps.runChildren(
        "fan",
        keys.map((key) => child(key)),
        { ...settle, open: { events: joined }, joined: () => joined },
      );
      await say("last");
      return completed(await say("after"));
    };

  test("is replayed from there on: its past was decided elsewhere, and so were siblings that came along", async () => {
    const { host } = clocked();
    await endOf(await start(host, program("old")));
    const from = await host.journal("r1");
    const before = from[0]?.records.findIndex(({ stepId }) => stepId === "after") ?? -1;
    await host.copy({ runId: "r2", of: "r1", before, started: [], forked: [initEvent("forked")] });
    await endOf(await host.resume("r2", program("new")));
    const journals = await host.journal("r2");
    // A sibling that came along to a fork that joined later.
    const open = (from[0]?.records.findIndex(({ stepId }) => stepId === "fan") ?? -1) + 1;
    await host.copy({ runId: "r3", of: "r1", before: open, started: [], forked: [initEvent("forked")] });
    await endOf(await host.resume("r3", program("new")));
    expect(await replayed(await host.journal("r3"), program("new"))).toMatchObject({ decided: 2, taken: 3 });
    expect(await differenceOf(await host.journal("r3"), program("new"))).toBeUndefined();
    await host.close();
    for (const given of [journals, journals.toReversed()]) {
      expect(await replayed(given, program("new"))).toEqual({ runId: "r2", status: "completed", decided: 1, taken: 4 });
      expect(await differenceOf(given, program("old"))).toMatchObject({ stepId: "after", recorded: "new", now: "old" });
    }
    // Whatever the program makes of that past now.
    expect(await differenceOf(journals, program("new", "otherwise", ["y", "z"]))).toBeUndefined();
    expect(await differenceOf(from, program("old", "otherwise"))).toMatchObject({ part: "announced", stepId: "acts" });
    // The other run is replayed whole.
    expect(await differenceOf(from, program("new"))).toMatchObject({ stepId: "first", recorded: "old", now: "new" });
  });

  test("is none for a step that is called as a fork is", async () => {
    const said =
      (value: string): RunProgram =>
      async (steps) => {
        await steps.run("one", () => value, decides);
        await steps.run("forked", () => null);
        return completed();
      };
    const journals = await recorded(said("old"));
    expect(await differenceOf(journals, said("new"))).toMatchObject({ stepId: "one", recorded: "old", now: "new" });
  });
});

describe("journals that no run leaves are damage", () => {
  const program: RunProgram = async (steps) => {
    await steps.run("a", () => 1, { open: { events: [] } });
    await steps.run("b", () => 2);
    return completed();
  };
  const damaged = async (journals: readonly RunJournal[]): Promise<boolean> =>
    await replayed(journals, program).then(
      () => false,
      (thrown: unknown) => isSluiceError(thrown, "journal_damaged") && thrown.class === "Host",
    );
  type Records = RunJournal["records"];
  const changes: Readonly<Record<string, (records: Records) => Records>> = {
    "none at all": () => [],
    "another beginning": (records) => records.slice(1),
    "a step that is left out": (records) => records.toSpliced(1, 2),
    "a step before the first": (records) => records.map((one) => (one.stepId === "b" ? { ...one, ordinal: -2 } : one)),
    "a step that begins twice": (records) => records.toSpliced(1, 0, ...records.slice(1, 2)),
    "one step of two names": (records) =>
      records.map((one) => (one.phase === "done" && one.stepId === "a" ? { ...one, stepId: "z" } : one)),
  };

  test.each(Object.keys(changes))("%s", async (name) => {
    const [root] = await recorded(program);
    const records = changes[name]?.(root?.records ?? []) ?? expect.fail();
    expect(await damaged([{ ...(root ?? expect.fail()), records }])).toBe(true);
    expect(await damaged([root ?? expect.fail()])).toBe(false);
  });

  test("no journal, or only those of children", async () => {
    const [root] = await recorded(program);
    expect(await damaged([])).toBe(true);
    expect(await damaged([{ ...(root ?? expect.fail()), parentId: "r0" }])).toBe(true);
  });

  test("values that nest deeper than any that is recorded; brackets in a text are none", async () => {
    const nested = (depth: number): Json => JSON.parse("[".repeat(depth) + "]".repeat(depth));
    const saying =
      (value: Json): RunProgram =>
      async (steps) =>
        completed(await steps.run("say", () => value));
    const signs = ['"', "\\", '\\"', "]", "}"].map((sign) => sign + "[{".repeat(600));
    for (const value of [nested(200), signs, Array.from({ length: 600 }, () => [{}])]) {
      const journals = await recorded(saying(value));
      expect(await differenceOf(journals, saying(value))).toBeUndefined();
    }
    const [root] = await recorded(program);
    const { records, ...rest } = root ?? expect.fail();
    const deep = (text: string, key: "value" | "events"): boolean | Promise<boolean> =>
      damaged([{ ...rest, records: records.map((one) => (one.stepId === "b" ? { ...one, [key]: text } : one)) }]);
    for (const [left, right] of [
      ["[", "]"],
      ['{"a":', "}"],
    ] as const) {
      const text = (depth: number): string => `${left.repeat(depth)}1${right.repeat(depth)}`;
      expect([await deep(text(512), "value"), await deep(text(513), "value")]).toEqual([false, true]);
      expect(await deep(text(513), "events")).toBe(true);
    }
    expect(await deep(`["\\"",${"[".repeat(512)}${"]".repeat(512)}]`, "value")).toBe(true);
  });
});

test("a status is that of the run's end, also where it was closed from outside or failed", async () => {
  const ends: readonly RunEnd["status"][] = ["completed", "failed", "cancelled"];
  for (const status of ends) {
    const program: RunProgram = async () => ({ ...completed(), status });
    expect(await replayed(await recorded(program), program)).toMatchObject({ status, decided: 0, taken: 0 });
  }
  const { host } = clocked();
  const program: RunProgram = async (steps) => completed((await steps.waitForSignal("go"))?.payload ?? null);
  const task = await start(host, program);
  await turns();
  await task.suspend("interrupted");
  await host.cancel("r1", "enough", "me");
  const journals = await host.journal("r1");
  const report = { runId: "r1", status: "cancelled", decided: 0, taken: 0 };
  expect(await replayed(journals, program)).toStrictEqual(report);
  // None of its code saw that end.
  const heard: boolean[] = [];
  const noting: RunProgram = async (steps) => {
    await steps.waitForSignal("go").catch(() => undefined);
    heard.push(steps.signal.reason.code === "run_cancelled");
    return completed();
  };
  await replayed(journals, noting, (next) => "status" in next);
  expect(heard).toEqual([false]);
  await host.close();
});
