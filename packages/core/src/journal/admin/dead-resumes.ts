import type { RunHost, RunSummary } from "../seam.ts";
import { isLifecycle, LIFECYCLE_STEP } from "../step-id.ts";

/** More than anyone asks for; bounds what is read of a long journal. */
const MOST_READ = 32;

/**
 * How often a run without an owner was resumed in a row, by processes that recorded nothing of it and did not suspend it: they died, or
 * the run's code failed. A waker leaves such a run alone after some of these. At most 32.
 */
export async function deadResumes(
  host: Pick<RunHost, "records" | "tree">,
  { runId, records }: Pick<RunSummary, "runId" | "records">,
): Promise<number> {
  const incarnations: string[] = [];
  for (const record of (await host.records(runId, Math.max(0, records - MOST_READ))).toReversed()) {
    if (!isLifecycle(record) || record.stepId !== LIFECYCLE_STEP.resume) break;
    incarnations.push(record.incarnation);
  }
  if (incarnations.length === 0) return 0;
  let count = incarnations.length;
  for (const child of await host.tree(runId)) {
    if (child.runId === runId) continue;
    // Children are written by the same processes, while their parent waits for them.
    const [last] = await host.records(child.runId, Math.max(0, child.records - 1));
    const worked = last === undefined ? -1 : incarnations.indexOf(last.incarnation);
    if (worked !== -1) count = Math.min(count, worked);
  }
  return count;
}
