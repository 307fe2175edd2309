import { SluiceError } from "../../base/errors.ts";
import { field, parseJson, parseStoredJson } from "../../base/json.ts";
import type { RecordedStep } from "../host/recorded-steps.ts";
import { readEvents } from "../record/hash-chain.ts";
import type { JournalRecord, RunEnd, RunJournal } from "../seam.ts";
import { isLifecycle, LIFECYCLE_STEP } from "../step-id.ts";

/** One recorded run as a replay reads it: its steps in order, and how it began and ended. */
export interface RecordedRun {
  readonly runId: string;
  readonly start: JournalRecord;
  readonly steps: readonly RecordedStep[];
  /** The seq of the first record that is the run's own; those before are another run's, whose past it began with. */
  readonly own: number;
  /** The end that its own program came to; undefined where it has none, or was closed from outside. */
  readonly end: JournalRecord | undefined;
  /** The last record: where what is missing would stand. */
  readonly last: JournalRecord;
  readonly status: RunEnd["status"] | "unfinished";
  /** Why somebody ended the run, where that is recorded. */
  readonly cancelled: string | undefined;
}

/** The tapes of a run and everything below it, by run id. Throws Host `journal_damaged` for records that no run leaves. */
export function readRecordedRuns(journals: readonly RunJournal[]): ReadonlyMap<string, RecordedRun> {
  const root = journals.find(({ parentId }) => parentId === undefined);
  const forkedAt = root?.records.findLastIndex(isForked) ?? -1;
  const here = new Set(root?.records.slice(Math.max(0, forkedAt)).map(({ incarnation }) => incarnation));
  const ownOf = ({ parentId, records: [start, ...rest] }: RunJournal): number => {
    if (parentId === undefined) return forkedAt + 1;
    // A sibling that came along did so whole: no process that worked on this run began it.
    return start === undefined || here.has(start.incarnation) ? 0 : rest.length + 1;
  };
  return new Map(journals.map((journal) => [journal.runId, readRecordedRun(journal, ownOf(journal))]));
}

function isForked(record: JournalRecord): boolean {
  return isLifecycle(record) && record.stepId === LIFECYCLE_STEP.forked;
}

/** Throws Host `journal_damaged` for records that no run leaves. */
export function readRecordedRun({ runId, records, end }: RunJournal, own = 0): RecordedRun {
  const steps: RecordedStep[] = [];
  for (const record of records) {
    const { phase, ordinal, stepId, value, events } = record;
    if ((value !== "" && !parseStoredJson(value).ok) || !parseStoredJson(events).ok) throw damaged(runId);
    if (isLifecycle(record)) continue;
    const last = steps.at(-1);
    // Steps follow each other, each opened and done once at most: of two records one would not be looked at.
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
    status: end?.status ?? "unfinished",
    cancelled: cancel === undefined ? undefined : reasonIn(cancel),
  };
}

function reasonIn({ value }: JournalRecord): string {
  const read = parseJson(value);
  const reason = read.ok ? field(read.value, "reason") : undefined;
  return typeof reason === "string" ? reason : "cancelled";
}

/** When a record was written, by its first event; undefined for one without. */
export function timeOf(runId: string, record: JournalRecord): number | undefined {
  return readEvents(runId, record)[0]?.at;
}

function damaged(runId: string): SluiceError {
  return new SluiceError("Host", "journal_damaged", `the journal of run ${runId} is none that a run leaves; verify it`);
}
