import { forkPointsOf, type RunHost, SluiceError } from "@sluice/core";
import { type ChangedSince, changedSince, forkPointBefore } from "@sluice/stages";
import { readRunStarted } from "@sluice/view";
import { count } from "@sluice/view/words";
import type { ProjectPaths } from "../project/project-paths.ts";
import { requireRun } from "./lookup.ts";
import type { RunSnapshot } from "./resume-plan.ts";

/** The past that a new run begins with. */
export interface ForkPast {
  readonly soFar: RunSnapshot;
  /** The execution before which the new run leaves the old one. */
  readonly execution: string;
  readonly records: number;
  readonly since: ChangedSince;
}

/** Of a run in whatever state it is, without touching it. `naming` is how the user says which execution. */
export async function readForkPast(
  host: RunHost,
  place: ProjectPaths,
  { runId, from, naming }: { readonly runId: string; readonly from: string | undefined; readonly naming: string },
): Promise<ForkPast> {
  await requireRun(host, place, runId);
  const journals = await host.journal(runId);
  if (from === undefined) {
    const ids = forkPointsOf(journals).map(({ executionId }) => executionId);
    const there = ids.length === 0 ? "it has entered none yet" : ids.join(", ");
    throw new SluiceError(
      "Validation",
      "usage",
      `say with ${naming} before which execution ${runId} is forked: ${there}`,
    );
  }
  const { boundary } = forkPointBefore(journals, from);
  // Nothing of the old run is shown again, and nothing of it is open in the new one.
  const soFar = { data: await readRunStarted(host, runId), past: [], open: [] };
  return { soFar, execution: boundary.executionId, records: boundary.before, since: changedSince(journals, boundary) };
}

/** Files are listed up to here; the report of the old run has all. */
const MOST_FILES = 20;

/** What a fork takes along, and what it does not take back, as lines. */
export function forkText(
  runId: string,
  { execution, records, since: { files, unwatched } }: ForkPast,
): readonly string[] {
  const more = files.length > MOST_FILES ? `, and ${files.length - MOST_FILES} more` : "";
  const named = files.slice(0, MOST_FILES).join(", ");
  return [
    `forks ${runId} before ${execution}: ${count(records, "record")} of its past`,
    files.length === 0
      ? "files are as they are now"
      : `files are as they are now: what ${runId} changed after that is not taken back: ${named}${more}`,
    ...(unwatched === 0
      ? []
      : [`${count(unwatched, "call")} of ${runId} after that may have changed other things, and nobody watched`]),
  ];
}
