import type { RunHost } from "@sluice/core";
import { forkPointsOf } from "@sluice/core/host";
import { type ChangedSince, changedSince } from "@sluice/stages";
import { forkPointBefore } from "@sluice/stages/runtime";
import { count, readRunStarted } from "@sluice/view/words";
import { listed, usageError } from "../output/output.ts";
import type { ProjectPaths } from "../project/project-paths.ts";
import { requireRun } from "./lookup.ts";
import type { RunSnapshot } from "./resume-plan.ts";

/** The part of a run that its fork begins with. */
export interface ForkedPart {
  readonly runId: string;
  readonly snapshot: RunSnapshot;
  /** The execution before which the fork begins. */
  readonly execution: string;
  readonly records: number;
  readonly since: ChangedSince;
}

/** Reads a run in any status without changing it. `naming` is how the user names the execution, for the error message. */
export async function readForkedPart(
  host: RunHost,
  place: ProjectPaths,
  {
    runId: named,
    from,
    naming,
  }: { readonly runId: string; readonly from: string | undefined; readonly naming: string },
): Promise<ForkedPart> {
  const { runId } = await requireRun(host, place, named);
  const journals = await host.journal(runId);
  if (from === undefined) {
    const ids = [...new Set(forkPointsOf(journals).map(({ executionId }) => executionId))];
    const choices = ids.length === 0 ? "the run has entered none yet" : ids.join(", ");
    throw usageError(`name the execution of ${runId} to fork before, with ${naming}: ${choices}`);
  }
  const { boundary } = forkPointBefore(journals, from);
  // Events of the original are not shown again, and its requests are not open in the fork.
  const snapshot = { data: await readRunStarted(host, runId), past: [], open: [] };
  return {
    runId,
    snapshot,
    execution: boundary.executionId,
    records: boundary.before,
    since: changedSince(journals, boundary),
  };
}

/** Maximum number of files to list; the report of the original lists all. */
const MOST_FILES = 20;

/** What a fork inherits, and which changes it does not roll back, as lines. */
export function forkText(
  runId: string,
  { execution, records, since: { files, unwatched } }: ForkedPart,
): readonly string[] {
  return [
    `forks ${runId} before ${execution}, with ${count(records, "record")}`,
    files.length === 0
      ? "files stay as they are now"
      : `files stay as they are now; later changes of ${runId} are not rolled back: ${listed(files, MOST_FILES)}`,
    ...(unwatched === 0
      ? []
      : [`${count(unwatched, "later call")} of ${runId} may have made other changes that were not tracked`]),
  ];
}
