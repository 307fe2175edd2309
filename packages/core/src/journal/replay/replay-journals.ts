import { SluiceError } from "../../base/errors.ts";
import type { RunEnd, RunJournal, RunProgram } from "../seam.ts";
import type { RecordDifference } from "./record-diff.ts";
import { readRecordedRuns } from "./recorded-run.ts";
import { type NextRecord, ReplayRunner } from "./replay-runner.ts";

export interface ReplayRequest {
  /** The journals of a run and its descendants, as `RunHost.journal` returns them. */
  readonly journals: readonly RunJournal[];
  readonly program: RunProgram;
  /** Whether the next record shows that the run had been cancelled before it; the replay then cancels it too. */
  readonly showsCancel: (next: NextRecord) => boolean;
}

/** The outcome of a replay. */
export interface ReplayResult {
  readonly runId: string;
  /** How the recorded run ended. An unfinished run is replayed to its last record. */
  readonly status: RunEnd["status"] | "unfinished";
  readonly difference?: RecordDifference;
  /** How many steps were decided again. */
  readonly decided: number;
  /** How many steps returned their recorded values. */
  readonly taken: number;
}

/**
 * Runs a program over a recorded run and compares its decisions, record by record, up to the first difference. Steps that read or
 * changed the outside world return their recorded values. Writes nothing. Throws Host `journal_damaged`.
 */
export async function replayJournals({ journals, program, showsCancel }: ReplayRequest): Promise<ReplayResult> {
  const runs = readRecordedRuns(journals);
  const [top] = journals.filter(({ parentId }) => parentId === undefined);
  const recorded = top === undefined ? undefined : runs.get(top.runId);
  if (recorded === undefined) throw new SluiceError("Host", "journal_damaged", "these journals hold no root run");
  const counted = { decided: 0, taken: 0 };
  const runner = new ReplayRunner(recorded, {
    program,
    recordedRun: (runId) => runs.get(runId),
    showsCancel,
    count: (how) => {
      counted[how] += 1;
    },
  });
  const difference = await runner.play();
  const { runId, status } = recorded;
  return { runId, status, ...(difference === undefined ? {} : { difference }), ...counted };
}
