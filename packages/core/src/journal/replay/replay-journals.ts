import { SluiceError } from "../../base/errors.ts";
import type { RunEnd, RunJournal, RunProgram } from "../seam.ts";
import type { RecordDifference } from "./record-diff.ts";
import { readRecordedRuns } from "./recorded-run.ts";
import { type NextRecord, ReplayRunner } from "./replay-runner.ts";

export interface ReplayRequest {
  /** Of a run and everything below it, as `RunHost.journal` gives them. */
  readonly journals: readonly RunJournal[];
  readonly program: RunProgram;
  /** Whether what follows on a run's tape shows that the run had been told to end: then it is told now. */
  readonly showsCancel: (next: NextRecord) => boolean;
}

/** What a replay came to. */
export interface ReplayResult {
  readonly runId: string;
  /** How the recorded run ended; one without an end is replayed as far as its record goes. */
  readonly status: RunEnd["status"] | "unfinished";
  readonly difference?: RecordDifference;
  /** Steps that were decided anew. */
  readonly decided: number;
  /** Steps that were handed back as they are recorded. */
  readonly taken: number;
}

/**
 * Runs a program again over what a run recorded: its decisions are made anew and compared, record by record, until the first that
 * is other; what read the world or acted on it is handed back. Nothing is written. Throws Host `journal_damaged`.
 */
export async function replayJournals({ journals, program, showsCancel }: ReplayRequest): Promise<ReplayResult> {
  const tapes = readRecordedRuns(journals);
  const [top] = journals.filter(({ parentId }) => parentId === undefined);
  const tape = top === undefined ? undefined : tapes.get(top.runId);
  if (tape === undefined) throw new SluiceError("Host", "journal_damaged", "these journals hold no whole run");
  const counted = { decided: 0, taken: 0 };
  const runner = new ReplayRunner(tape, {
    program,
    tapeOf: (runId) => tapes.get(runId),
    showsCancel,
    count: (how) => {
      counted[how] += 1;
    },
  });
  const difference = await runner.play();
  const { runId, status } = tape;
  return { runId, status, ...(difference === undefined ? {} : { difference }), ...counted };
}
