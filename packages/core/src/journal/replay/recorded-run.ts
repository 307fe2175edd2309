import { SluiceError } from "../../base/errors.ts";
import { field, parseJson, parseStoredJson } from "../../base/json.ts";
import { forkedAt, ownIncarnations, type RecordedStep } from "../host/recorded-steps.ts";
import { readEvents } from "../record.ts";
import type { JournalRecord, RunEnd, RunJournal } from "../seam.ts";
import { isLifecycle, LIFECYCLE_STEP } from "../step-id.ts";

/** One recorded run: its steps in order, its start and its end. */
export interface RecordedRun {
  readonly runId: string;
  readonly start: JournalRecord;
  readonly steps: readonly RecordedStep[];
  /** The seq of the run's first own record; those before it were copied from another run. */
  readonly own: number;
  /** The end that the program returned; undefined if the run has none or was closed from outside. */
  readonly end: JournalRecord | undefined;
  /** The last record. */
  readonly last: JournalRecord;
  /** How it ended, also from outside. */
  readonly result: RunEnd | undefined;
  /** The recorded reason for cancelling the run. */
  readonly cancelled: string | undefined;
}

/** A run and its descendants by run id. Throws Host `journal_damaged` for records that no run writes. */
export function readRecordedRuns(journals: readonly RunJournal[]): ReadonlyMap<string, RecordedRun> {
  const root = journals.find(({ parentId }) => parentId === undefined);
  const { records: rootRecords = [] } = root ?? {};
  const own = ownIncarnations(rootRecords);
  const ownOf = ({ parentId, records }: RunJournal): number => {
    if (parentId === undefined) return forkedAt(rootRecords) + 1;
    // What was copied was written by no process of this run.
    const first = records.findIndex(({ incarnation }) => own.has(incarnation));
    return first === -1 ? records.length : first;
  };
  return new Map(journals.map((journal) => [journal.runId, readRecordedRun(journal, ownOf(journal))]));
}

/** Throws Host `journal_damaged` for records that no run writes. */
export function readRecordedRun({ runId, records, end }: RunJournal, own = 0): RecordedRun {
  const steps: RecordedStep[] = [];
  for (const record of records) {
    const { phase, ordinal, stepId, value, events } = record;
    if ((value !== "" && !parseStoredJson(value).ok) || !parseStoredJson(events).ok) throw damaged(runId);
    if (isLifecycle(record)) continue;
    const last = steps.at(-1);
    // Steps follow each other, each with at most one open and one done record; a second record would be ignored.
    const known = last?.done === undefined ? last : undefined;
    const at = known === undefined ? steps.length : steps.length - 1;
    if (ordinal !== at || (known !== undefined && (known.stepId !== stepId || phase === "open"))) throw damaged(runId);
    steps[ordinal] = { stepId, ...known, [phase]: record };
  }
  const [start] = records;
  const last = records.at(-1);
  if (start?.stepId !== LIFECYCLE_STEP.start || last === undefined) throw damaged(runId);
  const cancel = records.find((record) => isLifecycle(record) && record.stepId === LIFECYCLE_STEP.cancel);
  return {
    runId,
    start,
    steps,
    own,
    last,
    end: isLifecycle(last) && last.stepId === LIFECYCLE_STEP.end ? last : undefined,
    result: end,
    cancelled: cancel === undefined ? undefined : reasonIn(cancel),
  };
}

function reasonIn({ value }: JournalRecord): string {
  const read = parseJson(value);
  const reason = read.ok ? field(read.value, "reason") : undefined;
  return typeof reason === "string" ? reason : "cancelled";
}

/** When a record was written, by its first event; undefined for one without events. */
export function timeOf(runId: string, record: JournalRecord): number | undefined {
  return readEvents(runId, record)[0]?.at;
}

function damaged(runId: string): SluiceError {
  return new SluiceError(
    "Host",
    "journal_damaged",
    `the journal of run ${runId} is not one that a run leaves; verify it`,
  );
}
