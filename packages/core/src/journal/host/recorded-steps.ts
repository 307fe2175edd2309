import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { checkAlone, checkChain } from "../audit/verify.ts";
import type { JournalRecord, RunJournal, SiblingEnd, StepCall } from "../seam.ts";
import { childKeys, isEnd, isLifecycle, LIFECYCLE_STEP } from "../step-id.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import { journalOf } from "../store/read-runs.ts";

/** What the journal knows of one step. */
export interface RecordedStep {
  readonly stepId: string;
  readonly open?: JournalRecord;
  readonly done?: JournalRecord;
  /** Present for what was another run's: signals that it took were never sent to this one. */
  readonly copied?: true;
}

/** The steps that earlier processes recorded. Emptied as they are replayed, so that a long run does not stay in memory twice. */
export interface RecordedSteps {
  /** Whether recorded steps are left. */
  readonly left: boolean;
  /** What is recorded of the next step; undefined past the last one. Throws `journal_mismatch` for any other step. */
  take(ordinal: number, stepId: string): RecordedStep | undefined;
  /** Throws `journal_mismatch` when the program ends before it asked for everything that is recorded. */
  finish(): void;
}

/** The past of a run that begins here. */
export const NO_RECORDED_STEPS: RecordedSteps = { left: false, take: () => undefined, finish: () => undefined };

function createPast(runId: string, records: readonly JournalRecord[]): RecordedSteps {
  const steps = new Map<number, RecordedStep>();
  const own = records.findLastIndex((record) => isLifecycle(record) && record.stepId === LIFECYCLE_STEP.forked);
  for (const [index, record] of records.entries()) {
    if (isLifecycle(record)) continue;
    const { ordinal, stepId, phase } = record;
    const step: RecordedStep = { stepId, ...steps.get(ordinal), [phase]: record };
    steps.set(ordinal, index < own ? { ...step, copied: true } : step);
  }

  const mismatch = (ordinal: number, recorded: string | undefined, asked: string | undefined): SluiceError => {
    const found = recorded === undefined ? "is not recorded, though later ones are" : `is recorded as ${recorded}`;
    const did = asked === undefined ? "ended" : `asked for ${asked}`;
    const why = "the pipeline or Sluice changed since the run started";
    return new SluiceError(
      "Host",
      "journal_mismatch",
      `run ${runId}: step ${ordinal} ${found}, but the program ${did}; ${why}`,
      {
        detail: { ordinal, recorded: recorded ?? null, asked: asked ?? null },
      },
    );
  };

  return {
    get left() {
      return steps.size > 0;
    },
    take(ordinal, stepId) {
      const known = steps.get(ordinal);
      if (known === undefined) {
        if (steps.size > 0) throw mismatch(ordinal, undefined, stepId);
        return undefined;
      }
      if (known.stepId !== stepId) throw mismatch(ordinal, known.stepId, stepId);
      steps.delete(ordinal);
      // A step that is not done is the last one there is.
      if (known.done === undefined && steps.size > 0) throw mismatch(ordinal + 1, undefined, stepId);
      return known;
    },
    finish() {
      for (const [ordinal, { stepId }] of steps) throw mismatch(ordinal, stepId, undefined);
    },
  };
}

/** What resuming a run starts from. */
export interface ResumeState {
  readonly past: RecordedSteps;
  /** As it was recorded, whatever the run's row says now. */
  readonly input: Json;
  readonly seq: number;
  readonly head: string;
  /** Whether it has forked: only then can there be anything below it. */
  readonly forked: boolean;
}

/**
 * Reads a run's journal and checks that it is the one that was written. One that was read before is taken where its last record
 * still is the run's: all before that are in its hash. Throws `journal_damaged`, and `run_continued_elsewhere` where it is not, since what
 * was made of it does not hold any more.
 */
export async function loadForResume(store: JournalStore, row: RunRow, read?: RunJournal): Promise<ResumeState> {
  const { runId } = row;
  if (read !== undefined && (read.runId !== runId || read.records.at(-1)?.hash !== row.head)) throw wentOn(runId);
  const records = read?.records ?? (await store.records(runId, 0));
  const { head, fault } = checkChain(runId, records);
  const [start] = records;
  if (fault !== undefined) throw damaged(runId, fault);
  if (start === undefined) throw damaged(runId, "its journal is empty");
  if (records.length !== row.records) {
    throw damaged(runId, `its journal has ${records.length} records, its row counts ${row.records}`);
  }
  if (head !== row.head) throw damaged(runId, "its row names another last record");
  if (records.some(isEnd)) throw damaged(runId, "its journal has an end, and its row has none");
  const forked = records.some((record) => childKeys(record) !== undefined);
  return { past: createPast(runId, records), input: JSON.parse(start.value), seq: records.length, head, forked };
}

/** How a child ended before this process was there: what its row says, where its journal does. Throws `journal_damaged`. */
export async function loadChildEnd(store: JournalStore, row: RunRow): Promise<SiblingEnd | undefined> {
  const { runId, end, records, head } = row;
  if (end === undefined) return undefined;
  const [fault] = checkAlone(await journalOf(store, row)).faults;
  if (fault !== undefined) throw damaged(runId, fault);
  return { ...end, records, head };
}

function wentOn(runId: string): SluiceError {
  const message = `run ${runId} went on in another process since it was read here; read it again`;
  return new SluiceError("Host", "run_continued_elsewhere", message, { detail: { runId } });
}

function damaged(runId: string, why: string): SluiceError {
  const mend = "put a backup of the store in its place, or start a new run";
  return new SluiceError("Host", "journal_damaged", `run ${runId} is not resumed: ${why}; ${mend}`, {
    detail: { runId },
  });
}

/** An open record as a step sees it. */
export function readOpenRecord(record: JournalRecord): NonNullable<StepCall["opened"]> {
  const { incarnation, value } = record;
  return value === "" ? { incarnation } : { incarnation, intent: JSON.parse(value) };
}
