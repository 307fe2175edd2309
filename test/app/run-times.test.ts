import type { JsonObject, SluiceEvent } from "@sluice/core";
import { expect, test } from "vitest";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { idleOf } from "../../packages/view/src/projection/time/idle.ts";
import { workedMs, workedTogetherMs } from "../../packages/view/src/projection/time/rests.ts";
import { parsePage, sectionIn, textIn } from "../support/page-parts.ts";
import { pageOf } from "../support/report-kit.ts";

// What a run knows of its times when its process ends without a word, or its clock is set back.

const TURN = { turn: 1, try: 1, model: "m" };
const LEFT = { phase: "left", outcome: "completed" };

function eventsFrom(
  ...list: readonly (readonly [
    at: number,
    type: SluiceEvent["type"],
    data?: JsonObject,
    of?: string | undefined,
    runId?: string,
  ])[]
): readonly SluiceEvent[] {
  const next = new Map<string, number>();
  return list.map(([at, type, data = {}, executionId, runId = "r1"]) => {
    const seq = next.get(runId) ?? 0;
    next.set(runId, seq + 1);
    const of = executionId === undefined ? {} : { executionId, attempt: 1 };
    return { id: `${runId}/${seq}/0`, runId, at, type, data, ...of };
  });
}

const worked = (view: RunView, now = view.updatedAt): object =>
  Object.fromEntries(view.executions.map((one) => [one.executionId, workedMs(one, now)]));

const KILLED = eventsFrom(
  [0, "run.started", { pipeline: "p" }],
  [10, "attempt.started", {}, "plan#1"],
  [20, "turn.started", TURN, "plan#1"],
  [1_020, "call.started", { callId: "t1.c0", tool: "Bash" }, "plan#1"],
  [1_500, "limit.near", { limit: "context", message: "m" }, "plan#1"],
);

test("a killed run counts no time after its last record, however long ago that was", () => {
  const reducer = reduceRun("r1", KILLED);
  reducer.setRunning(false);
  const view = reducer.view();
  expect(view.status).toBe("suspended");
  expect(worked(view, 9_000_000)).toEqual({ "plan#1": 1_490 });
  expect([...view.spans]).toMatchObject([
    { kind: "model", from: 20, to: 1_500 },
    { kind: "tool", from: 1_020, to: 1_500, label: "Bash: not recorded how it ended" },
    { kind: "unknown", from: 1_500 },
  ]);
  expect(idleOf(view)).toEqual({ suspendedMs: 0, unknownMs: 0, unknownSince: 1_500 });
  // What its process wrote before it died may be read later.
  for (const event of KILLED.slice(4)) reducer.event({ ...event, id: "r1/5/0", at: 1_800 });
  expect(worked(reducer.view(), 9_000_000)).toEqual({ "plan#1": 1_790 });
  expect(idleOf(reducer.view())).toMatchObject({ unknownSince: 1_800 });
});

test("a turn that a kill cut short counts the times of both processes, and not the time between them", () => {
  const events = eventsFrom(
    ...KILLED.slice(0, 3).map(({ at, type, data, executionId }) => [at, type, data, executionId] as const),
    [8_020, "run.resumed"],
    [8_020, "turn.started", TURN, "plan#1"],
    [8_520, "turn.finished", { turn: 1, calls: 0 }, "plan#1"],
    [8_530, "stage.exit", LEFT, "plan#1"],
    [8_530, "run.finished", { status: "completed" }],
  );
  const view = reduceRun("r1", events).view();
  expect(view.executions[0]?.turnLog).toMatchObject([{ from: 20, to: 8_520, restMs: 8_000 }]);
  const page = parsePage(pageOf(view));
  expect(textIn(sectionIn(page, "timeline"))).toContain("plan#1: done, from 10 ms, worked 520 ms: model 500 ms");
  expect(textIn(sectionIn(page, "timeline"))).toContain("unknown: the process ended, 8.0 s");
  expect(textIn(page)).toContain("unknown8.0 s after a process ended");
});

test("what is cancelled without a process ended when its process did", () => {
  const child = "r1/fan-1/a";
  const events = eventsFrom(
    [0, "run.started", { pipeline: "p" }],
    [1, "fanOut.started", { fanOut: "fan-1", siblings: ["a"], join: "b" }],
    [2, "run.started", { pipeline: "p" }, undefined, child],
    [3, "attempt.started", {}, "a#1", child],
    [503, "turn.started", TURN, "a#1", child],
    [60_000, "run.finished", { status: "cancelled", unattended: true }, undefined, child],
    [60_001, "run.finished", { status: "cancelled", unattended: true }],
  );
  const view = reduceRun("r1", events).view();
  expect(worked(view)).toEqual({ "a#1": 500 });
  expect(idleOf(view)).toEqual({ suspendedMs: 0, unknownMs: 60_001 - 503 });
});

test("a clock that is set back in the middle of a stage loses the time until its next record, and no more", () => {
  const events = eventsFrom(
    [100_000, "run.started", { pipeline: "p" }],
    [100_000, "attempt.started", {}, "plan#1"],
    [105_000, "turn.started", TURN, "plan#1"],
    [42_000, "turn.finished", { turn: 1, calls: 0 }, "plan#1"],
    [44_000, "stage.exit", LEFT, "plan#1"],
    [44_000, "run.finished", { status: "completed" }],
  );
  const view = reduceRun("r1", events).view();
  expect(worked(view)).toEqual({ "plan#1": 7_000 });
  expect(view).toMatchObject({ startedAt: 100_000, endedAt: 107_000, shiftedMs: 63_000 });
  expect(textIn(parsePage(pageOf(view)))).toContain(
    "clockwas set back; the latest times here are 1 min 3 s later than recorded",
  );
});

test("an execution that a provider's fault suspended rests until it continues, also across a kill", () => {
  const events = eventsFrom(
    [0, "run.started", { pipeline: "p" }],
    [0, "attempt.started", {}, "plan#1"],
    [10, "turn.started", TURN, "plan#1"],
    [60, "execution.suspended", { reason: "provider", code: "overloaded", message: "busy" }, "plan#1"],
    [900, "run.resumed"],
    [900, "execution.continued", { by: "resume" }, "plan#1"],
    [900, "turn.started", TURN, "plan#1"],
    [940, "turn.finished", { turn: 1, calls: 0 }, "plan#1"],
    [950, "stage.exit", LEFT, "plan#1"],
  );
  const view = reduceRun("r1", events).view();
  expect(worked(view)).toEqual({ "plan#1": 110 });
  expect([...view.spans]).toMatchObject([
    { kind: "model", from: 10, to: 60 },
    { kind: "pause", from: 60, to: 900, label: "waiting for the provider: overloaded" },
    { kind: "unknown", from: 60, to: 900 },
    { kind: "model", from: 900, to: 940 },
  ]);
  expect(view.executions[0]?.turnLog).toMatchObject([{ restMs: 840 }]);
});

test("a fork has the times of what it copied, although it began later", () => {
  const events = eventsFrom(
    [500_000, "run.started", { pipeline: "p", forkedFrom: { runId: "r0", execution: "b#1", head: "" } }],
    [1_000, "attempt.started", {}, "a#1"],
    [1_400, "stage.exit", LEFT, "a#1"],
    [1_500, "attempt.started", {}, "b#1"],
    [1_600, "turn.started", TURN, "b#1"],
    [500_000, "run.forked", { from: "r0" }],
    [500_000, "turn.started", TURN, "b#1"],
    [500_300, "turn.finished", { turn: 1, calls: 0 }, "b#1"],
    [500_300, "stage.exit", LEFT, "b#1"],
  );
  const view = reduceRun("r1", events).view();
  expect(worked(view)).toEqual({ "a#1": 400, "b#1": 400 });
  expect(view).not.toHaveProperty("shiftedMs");
  expect(idleOf(view)).toEqual({ suspendedMs: 0, unknownMs: 0 });
});

test("a list worked while one of its items did", () => {
  const item = (startedAt: number, endedAt: number, rests: readonly { from: number; to?: number }[] = []) => ({
    startedAt,
    endedAt,
    rests,
  });
  expect(workedTogetherMs([item(0, 10), item(5, 20), item(30, 40)], 99)).toBe(30);
  const killed = [{ from: 6, to: 16 }];
  expect(workedTogetherMs([item(0, 20, killed), item(2, 8, [{ from: 6, to: 8 }])], 99)).toBe(10);
  expect(workedTogetherMs([{ startedAt: 0, rests: [{ from: 4 }] }], 99)).toBe(4);
  expect(workedTogetherMs([], 99)).toBe(0);
});
