import { timer } from "@sluice/stages";
import { expect, test } from "vitest";
import { endLines } from "../../packages/tui/src/run/end-rows.ts";
import { progressBar } from "../../packages/tui/src/run/progress-bar.ts";
import { timeline } from "../../packages/tui/src/run/timeline.ts";
import { transcriptLines } from "../../packages/tui/src/run/transcript.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { routeLines } from "../../packages/view/src/words/route-lines.ts";
import { handClock } from "../support/hand-clock.ts";
import { bye, directed, noting, select } from "../support/orchestrated.ts";
import { sectionIn, textIn } from "../support/page-parts.ts";
import { reportOf, soundPage } from "../support/report-kit.ts";
import { completed, eventsOf, eventually, session, work } from "../support/run-kit.ts";
import { readRecords, textOf, viewOf } from "../support/run-views.ts";

// What an orchestrated run shows: why it went where it went, what a message did, and the last word.

/** A run whose orchestrator chooses a timer, answers a message while that sleeps, chooses a fix, and ends the run. */
async function played() {
  const clock = handClock();
  const { model } = noting([
    select("nowhere"),
    select("wait", undefined, "it has to cool down"),
    { text: "Two hours to go." },
    select("fix"),
    select("completed", 1, "all is fixed"),
    bye,
  ]);
  const live = session({ model, clock });
  const states = { wait: timer({ for: "3h" }), fix: work({ act: () => completed("fixed") }) };
  const handle = live.start(directed(states), { task: "T" });
  const view = async (): Promise<RunView> => viewOf(handle.runId, await readRecords(live.host, handle.runId));
  const slept = (times: number): Promise<void> =>
    eventually(async () => (await view()).executions.some(({ sleeps }) => sleeps === times), "a sleep");
  await slept(1);
  clock.turn(3_600_000);
  await live.message(handle.runId, "How long?");
  await slept(2);
  const asleep = await view();
  clock.turn(2 * 3_600_000);
  await handle;
  return { live, runId: handle.runId, asleep, now: 3_601_000, ended: await view() };
}

const transcriptOf = (view: RunView, executionId: string): string => {
  const execution = view.executions.find((one) => one.executionId === executionId);
  return textOf([...(execution?.items ?? [])].flatMap((item) => transcriptLines(item, { width: 120, folded: true })));
};

test("a message to a run that sleeps says who read it, and the sleep continues to the same time", async () => {
  const { asleep, now, ended } = await played();
  expect(asleep).toMatchObject({ status: "sleeping", wakeAt: 10_801_000 });
  expect(asleep.messages).toMatchObject([
    { executionId: "orchestrator#2", turn: 1, text: "How long?", kind: "steer", sentAt: now },
  ]);
  expect(textOf(progressBar(asleep, { width: 160, maxRows: 3, now }))).toContain("☾ wait sleeping · wakes in 2h00m");
  expect(transcriptOf(ended, "wait#1")).toContain(
    [
      "· sleeps: for 3 h 0 min, until 1970-01-01 03:00:01Z",
      "! woke: by a message",
      "! interrupt: message, to orchestrator",
      "· continues: after message, which orchestrator#2 handled",
      "· sleeps: for 2 h 0 min, until 1970-01-01 03:00:01Z",
      "✔ waited 3 h 0 min",
    ].join("\n"),
  );
  expect(transcriptOf(ended, "orchestrator#2")).toContain("How long?\n\n  Two hours to go.");
  expect(ended.executions[1]).toMatchObject({ executionId: "wait#1", sleeps: 2, restMs: 10_800_000 });
});

test("each choice of an orchestrator has its reason, its targets, and what was refused", async () => {
  const { ended } = await played();
  const lines = textOf(routeLines(ended));
  expect(lines).toContain("orchestrator#1 chose nowhere, which was refused");
  expect(lines).toMatch(
    /orchestrator#1 to wait {2}the model's choice\n {2}the stage says: it has to cool down\n {2}✖ refused +nowhere\n.*no target.*\n {2}✔ chosen +wait\n {2}○ not chosen {2}fix/,
  );
  expect(lines).toContain("wait#1 to orchestrator, to handle an interrupt  a message");
  expect(transcriptOf(ended, "orchestrator#1")).toMatch(
    /✖ select_state nowhere {2}failed\n.*\n✔ select_state wait {2}done/,
  );
});

test("the end of a run has the last word of its orchestrator", async () => {
  const { live, runId, ended } = await played();
  const said = timeline(await eventsOf(live.host, runId)).at(-1);
  expect(said).toMatchObject({ what: "ended", more: "completed; the orchestrator says: All done." });
  const end = textOf([...ended.log].flatMap(({ item }) => (item.kind === "end" ? endLines(item, 80, ROOM) : [])));
  expect(end).toBe("\n✔ run completed\n  1\nthe orchestrator says:\n  All done.");
  const { page } = await reportOf(live.host, runId);
  expect(textIn(sectionIn(soundPage(page), "result"))).toMatch(/What the orchestrator says\s*All done\./);
});

const ROOM = { most: 9, rest: "" };
