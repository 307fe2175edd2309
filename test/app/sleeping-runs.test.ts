import { expect, test } from "vitest";
import { beginDelivery, playDelivery } from "../support/kinds-run.ts";
import { plain, readRecords, textOf, viewOf } from "../support/run-views.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import { progressBar } from "../../packages/tui/src/run/progress-bar.ts";
import { transcriptLines } from "../../packages/tui/src/run/transcript.ts";
import { routeLines } from "../../packages/view/src/words/route-lines.ts";
import { eventsOf } from "../support/run-kit.ts";
import { timeline } from "../../packages/tui/src/run/timeline.ts";

test("x", async () => {
  const run = beginDelivery();
  const seen = await run.asleep("ready#1");
  console.log(textOf(progressBar(seen, { width: 160, maxRows: 3, now: run.clock.now() })), seen.status, seen.wakeAt);
  await playDelivery(run);
  const view = await run.view();
  console.log(view.status, JSON.stringify(view.error));
  for (const e of view.executions) {
    console.log("==", e.executionId, e.status, e.sleeps, e.restMs, e.restingSince, e.startedAt, e.endedAt);
    console.log(textOf([...e.items].flatMap((i) => transcriptLines(i, { width: 100, folded: true }))));
  }
  console.log([...view.spans]);
  console.log(textOf(routeLines(view)));
  console.log(timeline(await eventsOf(run.live.host, run.handle.runId)).filter((e) => !e.isDetail).map(({ who, what, more }) => `${who} ${what} ${more}`).join("\n"));
});
