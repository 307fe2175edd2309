import { type RunHost, SluiceError } from "@sluice/core";
import { INTERRUPTION_SIGNAL } from "@sluice/core/runtime";

/** In characters. */
const LONGEST_REASON = 1_000;

/**
 * Asks the process that executes a run to interrupt what it does now. A run that sleeps or waits is interrupted when it resumes. `runId` is a
 * root. Throws Session `run_unknown`, `run_is_child` and `run_finished`, and `run_suspended` for one that a person would have to
 * resume: it has nothing to interrupt.
 */
export async function interruptRun(
  host: Pick<RunHost, "signal" | "get">,
  runId: string,
  reason: string,
  by: string,
): Promise<void> {
  const run = await host.get(runId);
  if (run === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
  if (run.parentId !== undefined) {
    const message = `${runId} is a child of run ${run.parentId}; interrupt the whole run`;
    throw new SluiceError("Session", "run_is_child", message);
  }
  if (run.end !== undefined)
    throw new SluiceError("Session", "run_finished", `run ${runId} is ${run.status}; there is nothing to interrupt`);
  if (run.status === "suspended" && run.suspended === "interrupted") {
    const message = `run ${runId} is suspended; there is nothing to interrupt`;
    throw new SluiceError("Session", "run_suspended", message);
  }
  const cut = reason.length > LONGEST_REASON ? `${reason.slice(0, LONGEST_REASON).toWellFormed()} …` : reason;
  await host.signal(runId, { name: INTERRUPTION_SIGNAL, payload: { reason: cut.trim() }, by });
}
