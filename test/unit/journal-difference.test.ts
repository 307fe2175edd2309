import type { EventDraft, Json, RunProgram } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { completed } from "../support/journal.ts";
import { decides, differenceOf, recorded } from "../support/replay-kit.ts";

/** A run of one step that decides. */
const saying =
  (value: Json, events: readonly EventDraft[] = []): RunProgram =>
  async (steps) => {
    const said = (call: { event(draft: EventDraft): void }): Json => {
      for (const event of events) call.event(event);
      return value;
    };
    await steps.run("say", said, decides);
    return completed();
  };

describe("what is reported of two values", () => {
  const found = async (was: Json, is: Json): Promise<unknown> => {
    const difference = await differenceOf(await recorded(saying(was)), saying(is));
    return difference === undefined ? undefined : [difference.path, difference.recorded, difference.now];
  };

  test.each<readonly [Json, Json, string, Json | undefined, Json | undefined]>([
    [1, 2, "$", 1, 2],
    ["1", 1, "$", "1", 1],
    [null, false, "$", null, false],
    [{ a: 1 }, { a: 2 }, "$.a", 1, 2],
    [{ a: 1, b: { c: [0, { d: 1 }] } }, { a: 1, b: { c: [0, { d: 2 }] } }, "$.b.c[1].d", 1, 2],
    // What is not there, on either side.
    [{ a: 1 }, {}, "$.a", 1, undefined],
    [{}, { a: 1 }, "$.a", undefined, 1],
    [{ a: 1 }, { a: 1, b: null }, "$.b", undefined, null],
    [[1, 2], [1], "$[1]", 2, undefined],
    [[1], [1, 2], "$[1]", undefined, 2],
    [[], [null], "$[0]", undefined, null],
    // Of two kinds, whatever is in them.
    [[1], { 0: 1 }, "$", [1], { 0: 1 }],
    [{ 0: 1 }, [1], "$", { 0: 1 }, [1]],
    [[], null, "$", [], null],
    [null, [], "$", null, []],
    [[], "", "$", [], ""],
    [{}, null, "$", {}, null],
    [null, {}, "$", null, {}],
    [{}, "", "$", {}, ""],
    [{}, [], "$", {}, []],
    // The first in the recorded order, then what was not recorded.
    [{ b: 1, a: 1 }, { a: 2, b: 2, c: 2 }, "$.b", 1, 2],
    [{ b: 1 }, { a: 2, b: 1, c: 2 }, "$.a", undefined, 2],
    [[{ a: 1 }, 2], [{ a: 3 }, 4], "$[0].a", 1, 3],
    [{ constructor: 1 }, {}, "$.constructor", 1, undefined],
    [{}, { toString: 1 }, "$.toString", undefined, 1],
  ])("%j, %j: %s", async (was, is, path, before, now) => {
    expect(await found(was, is)).toEqual([path, before, now]);
  });

  test.each<readonly [Json, Json]>([
    [
      { a: 1, b: { c: 1, d: 2 } },
      { b: { d: 2, c: 1 }, a: 1 },
    ],
    [-0, 0],
    [[], []],
    [{}, {}],
    ["a", "a"],
  ])("none where both say the same, in whatever order: %j, %j", async (was, is) => {
    expect(await found(was, is)).toBeUndefined();
  });
});

describe("what is reported of two lists of events", () => {
  const one: EventDraft = { type: "stage.init", executionId: "a#1", attempt: 1, data: { text: "x" } };
  const found = async (was: readonly EventDraft[], is: readonly EventDraft[]): Promise<unknown> => {
    const difference = await differenceOf(await recorded(saying(1, was)), saying(1, is));
    if (difference === undefined) return undefined;
    const { part, event, path, recorded: before, now } = difference;
    expect(part).toBe("event");
    return [event, path, before, now];
  };
  const { executionId: _execution, ...shared } = one;
  const { attempt: _attempt, ...untried } = one;

  test.each<readonly [string, readonly EventDraft[], readonly EventDraft[], readonly unknown[]]>([
    [
      "an event of another type, whole",
      [one],
      [{ ...one, type: "stage.act" }],
      ["stage.init", "$", one, { ...one, type: "stage.act" }],
    ],
    ["an execution", [one], [{ ...one, executionId: "b#1" }], ["stage.init", "$.executionId", "a#1", "b#1"]],
    ["an execution that was not", [shared], [one], ["stage.init", "$.executionId", undefined, "a#1"]],
    ["an attempt", [one], [{ ...one, attempt: 2 }], ["stage.init", "$.attempt", 1, 2]],
    ["an attempt that is no more", [one], [untried], ["stage.init", "$.attempt", 1, undefined]],
    ["what is in it", [one, one], [one, { ...one, data: {} }], ["stage.init", "$.data.text", "x", undefined]],
    [
      "one more",
      [one],
      [one, { ...one, type: "stage.act" }],
      ["stage.act", "$", undefined, { ...one, type: "stage.act" }],
    ],
    [
      "one less",
      [one, { ...one, type: "stage.act" }],
      [one],
      ["stage.act", "$", { ...one, type: "stage.act" }, undefined],
    ],
    [
      "the first of several",
      [one, one],
      [
        { ...one, attempt: 2 },
        { ...one, attempt: 3 },
      ],
      ["stage.init", "$.attempt", 1, 2],
    ],
  ])("%s", async (_what, was, is, difference) => {
    expect(await found(was, is)).toEqual(difference);
  });

  test("nothing of how long a run had worked and which model answered when a turn began", async () => {
    const turn = (data: Record<string, Json>, type: EventDraft["type"] = "turn.started"): EventDraft[] => [
      { ...one, type, data },
    ];
    const was = { turn: 1, elapsedMs: 5, model: "m" };
    expect(await found(turn(was), turn({ turn: 1, elapsedMs: 6, model: "n" }))).toBeUndefined();
    expect(await found(turn(was), turn({ turn: 1 }))).toBeUndefined();
    expect(await found(turn(was), turn({ ...was, turn: 2 }))).toEqual(["turn.started", "$.data.turn", 1, 2]);
    for (const [key, value] of [
      ["elapsedMs", 6],
      ["model", "n"],
    ] as const)
      expect(await found(turn(was, "turn.finished"), turn({ ...was, [key]: value }, "turn.finished"))).toEqual([
        "turn.finished",
        `$.data.${key}`,
        was[key],
        value,
      ]);
  });

  test("none that is redacted in the record and made again", async () => {
    const secret = { ...one, data: { text: "password=hunter2hunter2" } };
    expect(await found([secret], [secret])).toBeUndefined();
    expect(await found([one], [one])).toBeUndefined();
    expect(await found([], [])).toBeUndefined();
  });
});
