import { done, type JsonObject, pipeline, type SluiceEvent } from "@sluice/core";
import { subPipeline, timer } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { bodyLines } from "../../packages/tui/src/cards/body.ts";
import { bodyWidth, cardLines } from "../../packages/tui/src/cards/card.ts";
import { progressBar } from "../../packages/tui/src/run/progress-bar.ts";
import { timeline } from "../../packages/tui/src/run/timeline.ts";
import { transcriptLines } from "../../packages/tui/src/run/transcript.ts";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { RunView, TranscriptItem } from "../../packages/view/src/projection/run-view.ts";
import { workedMs } from "../../packages/view/src/projection/time/rests.ts";
import { routeLines } from "../../packages/view/src/words/route-lines.ts";
import { deskOf } from "../support/desk.ts";
import { handClock } from "../support/hand-clock.ts";
import { beginDelivery, playDelivery } from "../support/kinds-run.ts";
import { elementsIn, sectionIn, textIn } from "../support/page-parts.ts";
import { pageOf, reportOf, soundPage } from "../support/report-kit.ts";
import { eventsOf, eventually, noModel, session } from "../support/run-kit.ts";
import { plain, readRecords, textOf, viewOf } from "../support/run-views.ts";

// What a run shows of its commands, its sleeps, its questions and the choices of its router.

const rail = (view: RunView, now: number, width = 200): string => textOf(progressBar(view, { width, maxRows: 3, now }));
const transcriptOf = (view: RunView, executionId: string, folded = true): string => {
  const execution = view.executions.find((one) => one.executionId === executionId);
  return textOf([...(execution?.items ?? [])].flatMap((item) => transcriptLines(item, { width: 120, folded })));
};

test("a state that sleeps says when it wakes, and its run sleeps with it", async () => {
  const run = beginDelivery();
  const first = await run.asleep("ready#1");
  expect(first).toMatchObject({ status: "sleeping", wakeAt: 31_000 });
  expect(first.executions[1]).toMatchObject({ status: "sleeping", sleeps: 1, nextWakeAt: 31_000 });
  expect(rail(first, 1_000)).toContain("☾ ready sleeping · attempt 1, exit 1 · wakes in 30s");
  expect(rail(first, 30_001)).toContain("☾ ready sleeping · attempt 1, exit 1 · wakes in 1s");
  run.clock.turn(30_000);
  expect((await run.asleep("ready#1", 2)).executions[1]).toMatchObject({ sleeps: 2, nextWakeAt: 61_000 });
  await run.live.close();
});

test("the time that a state slept is its own kind of span, and nobody's work", async () => {
  const view = await (await playDelivery()).view();
  expect([...view.spans].filter(({ kind }) => kind === "sleep")).toMatchObject([
    { from: 1_000, to: 31_000, label: "asleep until 1970-01-01 00:00:31Z" },
    { from: 31_000, to: 61_000 },
    { from: 61_000, to: 91_000 },
    { from: 91_000, to: 86_491_000 },
  ]);
  const worked = view.executions.map((one) => [one.stateId, workedMs(one, view.updatedAt)]);
  expect(Object.fromEntries(worked)).toMatchObject({ ready: 0, soak: 0, approve: 60_000 });
  expect(view.executions[1]).toMatchObject({ restMs: 90_000, sleeps: 3 });
  expect(view.executions[1]).not.toHaveProperty("nextWakeAt");
});

test("each attempt of a poll says how it ended, what it printed last, and when the next one is", async () => {
  const view = await (await playDelivery()).view();
  expect(transcriptOf(view, "ready#1")).toMatch(
    /↻ attempt 1 \$ .*not yet · exit 1 · 0 ms · next at 1970-01-01 00:00:31Z\n {2}│ try 1\n↻ attempt 2 {2}not yet.*\n.*try 2\n↻ attempt 3 .*\n.*try 3\n✔ attempt 4 {2}done · exit 0 · 0 ms\n {2}│ try 4\n/,
  );
});

test("a script shows its command, its exit code and the end of what it printed", async () => {
  const view = await (await playDelivery()).view();
  expect(transcriptOf(view, "build#1")).toMatch(
    /✔ \$ …\/node -e "console\.log.* {2}done · exit 0 · 0 ms\n {2}│ built\n/,
  );
  expect(transcriptOf(view, "build#1", false)).toContain("errors:\n  │ 1 warning");
  expect(transcriptOf(view, "ship#1")).toContain('✖ $ echo "$FILES" && exit 3  failed · exit 3 · 0 ms\n  │ ["a.ts"]');
});

test("a timer says how long it waits, and how long it waited", async () => {
  const view = await (await playDelivery()).view();
  expect(transcriptOf(view, "soak#1")).toContain(
    "· sleeps: for 24 h 0 min, until 1970-01-02 00:01:31Z\n✔ waited 24 h 0 min",
  );
});

test("a question shows its deadline, and what it was answered with", async () => {
  const view = await (await playDelivery()).view();
  expect(transcriptOf(view, "approve#1")).toContain(
    '! asks: Ship v2? (until 1970-01-02 03:01:31Z)\n· answered: value by ann\n✔ answer  "yes"',
  );
});

test("a question with a deadline counts down on the rail and on its card", async () => {
  const run = beginDelivery();
  for (const sleeps of [1, 2, 3]) {
    await run.asleep("ready#1", sleeps);
    run.clock.turn(30_000);
  }
  await run.asleep("soak#1");
  run.clock.turn(86_400_000);
  let view = await run.view();
  await eventually(async () => {
    view = await run.view();
    return view.requests.length > 0;
  }, "the question");
  const now = run.clock.now();
  expect(view.status).toBe("waiting");
  expect(rail(view, now)).toContain("◆ approve waiting for you · 3h00m left · 0s");
  expect(rail(view, now + 3 * 3_600_000 - 500)).toContain("waiting for you · 1s left");
  expect(rail(view, now + 3 * 3_600_000)).toContain("waiting for you · time is up");
  const [request] = view.requests;
  const at = request === undefined ? undefined : deskOf(request);
  const up = at?.up;
  if (at === undefined || up === undefined) throw new Error("no card is up");
  const size = { width: 100, height: 24, now: now + 60_000 };
  const card = cardLines(at.stack, bodyLines(up.card, {}, bodyWidth(100), false), size);
  const shown = textOf(card?.lines ?? []);
  expect(shown).toContain(" · 2h59m left · approve#1");
  expect(shown).toContain("It can be answered until 1970-01-02 03:01:31Z.");
  await run.live.close();
});

test("a route that a model chose says which targets it had, and why its other choices were refused", async () => {
  const view = await (await playDelivery()).view();
  const refused = { to: "nowhere", verdict: "refused", why: expect.stringContaining('no target "nowhere"') };
  expect(view.routes.filter(({ from }) => from === "pick")).toMatchObject([
    { outcome: "stayed", named: "nowhere" },
    {
      outcome: "moved",
      rationale: "it is ready",
      considered: [refused, { to: "ship", verdict: "chosen" }, { to: "drop", verdict: "not chosen" }],
    },
  ]);
  const lines = textOf(routeLines(view));
  expect(lines).toContain("pick#1 chose nowhere, which was refused  the machine");
  expect(lines).toMatch(
    /pick#1 to ship {2}the model's choice\n {2}the stage says: it is ready\n {2}✖ refused +nowhere\n.*no target/,
  );
  expect(lines).toMatch(/ {2}✔ chosen +ship\n {2}○ not chosen {2}drop/);
  expect(transcriptOf(view, "pick#1")).toMatch(/✖ choose nowhere {2}failed\n.*no target.*\n✔ choose ship {2}done/);
  expect(transcriptOf(view, "pick#1")).toContain(
    "· next: ship: it is ready; refused: nowhere ($.choice.to there is no target",
  );
});

test("every event of such a run is in words", async () => {
  const run = await playDelivery();
  const said = timeline(await eventsOf(run.live.host, run.handle.runId)).map(
    ({ who, what, more, by }) => `${who} ${what} ${more} ${by}`,
  );
  expect(said).toContain("ready#1 sleeps attempt 2: exit 1; next in 30.0 s, at 1970-01-01 00:01:01Z ");
  expect(said.filter((line) => line.includes(" woke "))).toHaveLength(4);
  expect(
    said.some((line) => line.startsWith("pick#1 next ship: it is ready") && line.endsWith("the model's choice")),
  ).toBe(true);
});

test("the view is the same however its records are cut into pieces, delivered twice or event by event", async () => {
  const run = await playDelivery();
  const { runId } = run.handle;
  const records = await readRecords(run.live.host, runId);
  const whole = plain(viewOf(runId, records));
  fc.assert(
    fc.property(fc.nat(records.length), fc.nat(records.length), (cut, from) => {
      const reducer = reduceRun(runId);
      for (const record of records.slice(0, cut)) {
        reducer.record(record);
        reducer.view();
      }
      for (const record of records.slice(Math.min(from, cut))) reducer.record(record);
      expect(plain(reducer.view())).toEqual(whole);
    }),
    { numRuns: 30 },
  );
  const events = records.flatMap((record) => record.events);
  const { executions, spans, routes } = reduceRun(runId, events).view();
  const seen = viewOf(runId, records);
  expect(executions.map(({ items: _items, ...one }) => one)).toEqual(
    seen.executions.map(({ items: _items, ...one }) => one),
  );
  expect([...spans]).toEqual([...seen.spans]);
  expect(routes).toEqual(seen.routes);
});

test("a run that is suspended while it sleeps says when it wakes, and wakes late without counting that as work", async () => {
  const run = beginDelivery(undefined, { suspendSleepsOver: 60_000 });
  for (const sleeps of [1, 2, 3]) {
    await run.asleep("ready#1", sleeps);
    run.clock.turn(30_000);
  }
  expect(await run.handle).toMatchObject({ status: "suspended", reason: "sleeping" });
  const view = await run.view();
  expect(view).toMatchObject({ status: "sleeping", wakeAt: 86_491_000 });
  expect(view.executions[2]).toMatchObject({ status: "sleeping", restingSince: 91_000 });
  expect(view.last).toBe("run suspended it wakes at 1970-01-02 00:01:31Z");
  run.clock.turn(86_400_000 + 7_000);
  const again = run.live.resume(run.pipeline, run.handle.runId);
  await eventually(async () => (await run.view()).requests.length > 0, "the question");
  const later = await run.view();
  expect(later.executions[2]).toMatchObject({ status: "completed", restMs: 86_407_000 });
  const said = timeline(await eventsOf(run.live.host, run.handle.runId)).map(
    ({ who, what, more }) => `${who} ${what} ${more}`,
  );
  expect(said).toContain("soak#1 woke 7.0 s after its time");
  await run.live.close();
  await again;
});

test("a state that runs another pipeline does not work while that sleeps", async () => {
  const clock = handClock();
  const live = session({ clock, model: noModel });
  const inner = pipeline({
    id: "inner",
    input: z.object({}),
    stages: { nap: timer({ for: "2h" }) },
    initial: "nap",
    next: { nap: () => done(1) },
  });
  const outer = pipeline({
    id: "outer",
    input: z.object({}),
    stages: { call: subPipeline({ pipeline: "inner", of: inner, input: {} }) },
    initial: "call",
    next: { call: ({ output }) => done(output) },
    pipelines: { inner },
  });
  const handle = live.start(outer, {});
  const view = async (): Promise<RunView> => viewOf(handle.runId, await readRecords(live.host, handle.runId));
  await eventually(async () => (await view()).wakeAt !== undefined && clock.waiting() > 0, "the sleep");
  const asleep = await view();
  expect(asleep).toMatchObject({ status: "sleeping", wakeAt: 7_201_000 });
  expect(asleep.executions.map(({ stateId, restingSince }) => [stateId, restingSince])).toEqual([
    ["call", 1_000],
    ["nap", 1_000],
  ]);
  clock.turn(2 * 3_600_000);
  await handle;
  const ended = await view();
  expect(ended.executions.map((one) => workedMs(one, ended.updatedAt))).toEqual([0, 0]);
  expect(transcriptOf(ended, "call#1")).toContain("✔ output  1");
});

test("the report has the sleeps, the attempts, the streams, the answer and the targets of a choice", async () => {
  const run = await playDelivery();
  const { page } = await reportOf(run.live.host, run.handle.runId);
  const root = soundPage(page);
  const timeline = textIn(sectionIn(root, "timeline"));
  expect(timeline).toContain("asleep until 1970-01-02 00:01:31Z, 24 h 0 min");
  expect(timeline).toContain("ready#1: done, from 0 ms, worked 0 ms: sleep 1 min 30 s");
  const stages = textIn(sectionIn(root, "stages"));
  expect(stages).toMatch(/ready#1 done 0 ms · 3 sleeps/);
  expect(stages).toMatch(
    /4 attempts of a command.*1\s*↻ not yet, exit 1.*1970-01-01 00:00:31Z.*try 1.*4\s*✔ done, exit 0.*try 4/s,
  );
  expect(stages).toMatch(/✔ done, exit 0 command …\/node -e .*output\s*built\s*errors\s*1 warning/s);
  expect(stages).toMatch(/✖ failed, exit 3 command echo "\$FILES" && exit 3/);
  expect(stages).toContain("asks: Ship v2? (until 1970-01-02 03:01:31Z)");
  expect(stages).toMatch(/answered: value by ann.*answer\s*yes/s);
  expect(stages).toContain("waited 24 h 0 min");
  const routes = sectionIn(root, "routes");
  expect(textIn(routes)).toMatch(
    /3 targets considered.*nowhere\s*✖ refused.*no target.*ship\s*✔ chosen.*drop\s*○ not chosen/s,
  );
  expect(textIn(routes)).toContain("✖ refused nowhere");
  expect(
    elementsIn(routes)
      .filter(({ tag }) => tag === "details")
      .every(({ attributes }) => !attributes.has("open")),
  ).toBe(true);
});

test("the time in which a command ran is drawn as work, and the sleeps between its attempts are not", () => {
  const event = eventMaker();
  const view = reduceRun("r1", [
    event(0, "run.started", { pipeline: "p" }),
    event(0, "attempt.started", {}, "ready#1"),
    event(10_000, "sleep.started", { until: 3_610_000, sleeps: 1, attempt: 1, exitCode: 1 }, "ready#1"),
    event(3_610_000, "sleep.ended", { by: "time" }, "ready#1"),
    event(3_620_000, "stage.exit", { phase: "left", outcome: "completed" }, "ready#1"),
  ]).view();
  const command: TranscriptItem = {
    ...{ kind: "command", attempt: 1, number: 1, isPoll: true, words: ["npm", "view"], state: "ok", why: "" },
    ...{ stdout: "", stderr: "", files: [] },
  };
  const items = new ListBuilder<TranscriptItem>();
  items.push(command);
  const executions = view.executions.map((one) => ({ ...one, items: items.view() }));
  const timeline = textIn(sectionIn(soundPage(pageOf({ ...view, executions })), "timeline"));
  expect(timeline).toContain("ready#1: done, from 0 ms, worked 20.0 s: tool 20.0 s, sleep 1 h 0 min");
  expect(timeline).toContain("command: npm view, 10.0 s");
  expect(timeline).toContain("idle, drawn shorter than it was: 1 h 0 min");
});

test("a pipeline that keeps its contents out of reports keeps out what commands print and people answer", async () => {
  const run = await playDelivery();
  const seen = await run.view();
  const page = pageOf({ ...seen, meta: { captureOutput: false } });
  const stages = textIn(sectionIn(soundPage(page), "stages"));
  for (const hidden of ["built", "1 warning", "try 1", "1 turn", "Ship v2", "yes", "it is ready", "nowhere", "-e"])
    expect([hidden, page.includes(`>${hidden}`)]).toEqual([hidden, false]);
  expect(stages).toMatch(/✔ done, exit 0/);
  expect(stages).toContain("4 attempts of a command");
});

/** An event as a journal has it. */
function eventMaker() {
  let seq = -1;
  return (at: number, type: SluiceEvent["type"], data: JsonObject = {}, executionId?: string): SluiceEvent => {
    seq += 1;
    return {
      id: `r1/${seq}/0`,
      runId: "r1",
      at,
      type,
      data,
      ...(executionId === undefined ? {} : { executionId, attempt: 1 }),
    };
  };
}

test("what follows the last record of a killed process is unknown until the resume, and no stage's or turn's time", () => {
  const event = eventMaker();
  const turn = { turn: 1, try: 1, model: "m" };
  const events = [
    event(0, "run.started", { pipeline: "p" }),
    event(10, "attempt.started", {}, "plan#1"),
    event(20, "turn.started", turn, "plan#1"),
    // Its process died here.
    event(5_000, "run.resumed"),
    event(5_010, "turn.started", turn, "plan#1"),
    event(6_010, "turn.finished", { turn: 1, calls: 0 }, "plan#1"),
    event(6_020, "stage.exit", { phase: "left", outcome: "completed" }, "plan#1"),
  ];
  const view = reduceRun("r1", events).view();
  expect([...view.spans]).toMatchObject([
    { kind: "model", from: 20, to: 20 },
    { kind: "unknown", from: 20, to: 5_000 },
    { kind: "model", from: 5_010, to: 6_010 },
  ]);
  expect(view.executions[0]).toMatchObject({ restMs: 4_980, endedAt: 6_020 });
});

test("a killed run that slept sleeps on, and its late wake counts as sleep", () => {
  const event = eventMaker();
  const begun = [
    event(0, "run.started", { pipeline: "p" }),
    event(10, "attempt.started", {}, "wait#1"),
    event(20, "sleep.started", { until: 1_000, sleeps: 1 }, "wait#1"),
  ];
  const reducer = reduceRun("r1", begun);
  // No process executes it any more.
  reducer.setRunning(false);
  expect(reducer.view()).toMatchObject({ status: "sleeping", wakeAt: 1_000, unattended: true });
  const woken = [
    event(9_000, "run.resumed"),
    event(9_000, "sleep.ended", { by: "time" }, "wait#1"),
    event(9_005, "stage.exit", { phase: "left", outcome: "completed" }, "wait#1"),
  ];
  for (const one of woken) reducer.event(one);
  expect(reducer.view().executions[0]).toMatchObject({ sleeps: 1, restMs: 8_980 });
  expect([...reducer.view().spans]).toMatchObject([
    { kind: "sleep", from: 20, to: 9_000 },
    { kind: "unknown", from: 20, to: 9_000 },
  ]);
});

test("a run that a person suspended while it slept does not say that it wakes", () => {
  const event = eventMaker();
  const events = [
    event(0, "run.started", { pipeline: "p" }),
    event(10, "attempt.started", {}, "wait#1"),
    event(20, "sleep.started", { until: 1_000, sleeps: 1 }, "wait#1"),
    event(30, "run.suspended", { reason: "interrupted" }),
  ];
  const view = reduceRun("r1", events).view();
  expect(view.status).toBe("suspended");
  expect(view).not.toHaveProperty("wakeAt");
  expect(view.executions[0]).toMatchObject({ status: "suspended", sleeps: 1 });
});

test("a run sleeps only while all of its branches do, and a state that runs another pipeline sleeps with that", () => {
  const started = (
    runId: string,
    at: number,
    type: SluiceEvent["type"],
    data: JsonObject = {},
    executionId?: string,
  ) => ({
    ...{ id: `${runId}/${at}/0`, runId, at, type, data },
    ...(executionId === undefined ? {} : { executionId, attempt: 1 }),
  });
  const reducer = reduceRun("r1", [
    started("r1", 0, "run.started", { pipeline: "p" }),
    started("r1", 1, "attempt.started", {}, "outer#1"),
    started("r1", 2, "fanOut.started", { fanOut: "outer#1:a1:run", siblings: ["a", "b"], join: "outer" }),
    started("r1/outer#1:a1:run/a", 3, "run.started", { pipeline: "q" }),
    started("r1/outer#1:a1:run/a", 4, "attempt.started", {}, "nap#1"),
    started("r1/outer#1:a1:run/a", 5, "sleep.started", { until: 700, sleeps: 1 }, "nap#1"),
    started("r1/outer#1:a1:run/b", 6, "run.started", { pipeline: "q" }),
    started("r1/outer#1:a1:run/b", 7, "attempt.started", {}, "nap#1"),
  ]);
  expect(reducer.view()).toMatchObject({ status: "running", wakeAt: 700 });
  expect(reducer.view().executions[0]).toMatchObject({ executionId: "outer#1", restMs: 0 });
  reducer.event(started("r1/outer#1:a1:run/b", 8, "sleep.started", { until: 500, sleeps: 1 }, "nap#1"));
  expect(reducer.view()).toMatchObject({ status: "sleeping", wakeAt: 500 });
  expect(reducer.view().executions[0]).toMatchObject({ executionId: "outer#1", restMs: 0, restingSince: 8 });
  // It rests while all that it waits for rest: from 8 until the first wakes, and once that has ended.
  for (const event of [
    started("r1/outer#1:a1:run/b", 500, "sleep.ended", { by: "time" }, "nap#1"),
    started("r1/outer#1:a1:run/b", 510, "stage.exit", { phase: "left", outcome: "completed" }, "nap#1"),
    started("r1/outer#1:a1:run/b", 511, "run.finished", { status: "completed" }),
    started("r1/outer#1:a1:run/a", 700, "sleep.ended", { by: "time" }, "nap#1"),
    started("r1/outer#1:a1:run/a", 710, "run.finished", { status: "completed" }),
    started("r1", 720, "stage.exit", { phase: "left", outcome: "completed" }, "outer#1"),
  ])
    reducer.event(event);
  const outer = reducer.view().executions.find(({ executionId }) => executionId === "outer#1");
  expect(outer).toMatchObject({ startedAt: 1, endedAt: 720, restMs: 500 - 8 + (700 - 511) });
});
