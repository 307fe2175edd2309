import fc from "fast-check";
import { expect, test } from "vitest";
import { reportOf as commandReport, totalsOf } from "../../packages/cli/src/output/run-report.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { idleOf } from "../../packages/view/src/projection/time/idle.ts";
import { workedMs } from "../../packages/view/src/projection/time/rests.ts";
import { executionName } from "../../packages/view/src/words/describe-event.ts";
import { milliseconds } from "../../packages/view/src/words/words.ts";
import { knownTimes, playTimes, type RunTimesPlan, type TimedRun, timesPlan } from "../support/known-times.ts";
import { elementsIn, parsePage, sectionIn, textIn } from "../support/page-parts.ts";
import { pageOf } from "../support/report-kit.ts";
import { eventsOf } from "../support/run-kit.ts";
import { readRecords } from "../support/run-views.ts";

async function viewsOf(
  run: TimedRun,
): Promise<{ readonly report: RunView; readonly show: RunView; readonly live: RunView }> {
  const records = await readRecords(run.host, run.runId);
  const [report, show, live] = [
    reduceRun(run.runId),
    reduceRun(run.runId, await eventsOf(run.host, run.runId)),
    reduceRun(run.runId, run.live),
  ];
  for (const record of records) report.record(record);
  for (const reducer of [report, show, live]) reducer.setRunning(!run.isKilled);
  return { report: report.view(), show: show.view(), live: live.view() };
}

const workedOf = (view: RunView): object =>
  Object.fromEntries(view.executions.map((one) => [one.key, workedMs(one, view.updatedAt)]));

/** The times that the page's table of stages shows. */
function timesOnPage(view: RunView): readonly string[] {
  const [table] = elementsIn(sectionIn(parsePage(pageOf(view)), "spending")).filter(({ tag }) => tag === "table");
  if (table === undefined) throw new Error("the page has no table of stages");
  return elementsIn(table)
    .filter(({ tag }) => tag === "tr")
    .slice(1)
    .map((row) =>
      textIn(
        elementsIn(row)
          .filter(({ tag }) => tag === "td")
          .at(-1) ?? row,
      ),
    );
}

async function agree(plan: RunTimesPlan): Promise<void> {
  const run = await playTimes(plan);
  const known = knownTimes(run);
  const { report, show, live } = await viewsOf(run);
  const expected = Object.fromEntries([...known.executions].map(([key, { workedMs: ms }]) => [key, ms]));
  for (const view of [report, show]) {
    expect(workedOf(view)).toEqual(expected);
    // Time that passes after the last record of a killed process changes nothing.
    if (run.isKilled) for (const one of view.executions) expect(workedMs(one, run.now() + 1e9)).toBe(expected[one.key]);
    const { suspendedMs, unknownMs, unknownSince } = idleOf(view);
    expect({ suspendedMs, unknownMs }).toEqual({ suspendedMs: known.suspendedMs, unknownMs: known.unknownMs });
    expect(unknownSince !== undefined).toBe(known.isUnknownNow);
    for (const { key, turnLog } of view.executions) {
      const turns = turnLog.flatMap(({ attempt, turn, from, to, restMs }) =>
        to === undefined ? [] : [[`${attempt}.${turn}`, to - from - restMs]],
      );
      expect(Object.fromEntries(turns)).toEqual(Object.fromEntries(known.executions.get(key)?.turns ?? []));
    }
  }
  // The account that a command keeps while it follows the run, and the JSON that it prints at the end.
  if (plan.last !== "cancelled") expect(workedOf(live)).toEqual(expected);
  expect(totalsOf(show).stages.map(({ runId, executionId, ms }) => [`${runId}:${executionId}`, ms])).toEqual(
    report.executions.map(({ key }) => [key, expected[key]]),
  );
  if (run.result !== undefined && run.result.status !== "suspended") {
    const printed: readonly unknown[] = commandReport(run.result, totalsOf(show), "").stages;
    const names = Object.fromEntries(report.executions.map(({ executionId, key }) => [executionId, expected[key]]));
    for (const stage of printed) expect(stage).toMatchObject({ ms: names[Object(stage).executionId] });
  }
  expect(timesOnPage(report)).toEqual(report.executions.map(({ key }) => milliseconds(expected[key] ?? 0)));
  expect(report.executions.map(executionName)).toEqual(show.executions.map(executionName));
}

test("after kills, suspensions and resumes at random moments, report, show and account know the times to the last record", async () => {
  await fc.assert(fc.asyncProperty(timesPlan(fc.constant(0)), agree), { numRuns: 80 });
});

test("a clock that is set back between two processes takes nothing from any time", async () => {
  // What a process records that only cancels a run is read in another order than it was written.
  const plans = timesPlan(fc.nat(1_000_000)).filter(({ last }) => last !== "cancelled");
  await fc.assert(fc.asyncProperty(plans, agree), { numRuns: 60 });
});
