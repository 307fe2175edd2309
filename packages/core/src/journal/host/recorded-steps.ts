import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { checkAlone, checkChain } from "../audit/verify.ts";
import { interruptionIn, readCost } from "../record.ts";
import type { JournalRecord, RunJournal, SiblingEnd, StepCall } from "../seam.ts";
import { childKeys, isEnd, isLifecycle, LIFECYCLE_STEP } from "../step-id.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import { journalOf, readJournal } from "../store/read-runs.ts";
import { INTERRUPTION_SIGNAL } from "./interruptions.ts";

/** The records of one step. */
export interface RecordedStep {
  readonly stepId: string;
  readonly open?: JournalRecord;
  readonly done?: JournalRecord;
  /** Set for a step that was copied from another run, whose signals were never sent to this one. */
  readonly copied?: true;
}

/** The steps that earlier processes recorded. Each is removed as it is read, so that a long run is not in memory twice. */
export interface RecordedSteps {
  /** Whether recorded steps are left. */
  readonly left: boolean;
  /** The records of the next step; undefined after the last one. Throws Host `journal_mismatch` for any other step. */
  take(ordinal: number, stepId: string): RecordedStep | undefined;
  /** Throws Host `journal_mismatch` if the program ended before it took all recorded steps. */
  finish(): void;
}

/** For a new run. */
export const NO_RECORDED_STEPS: RecordedSteps = { left: false, take: () => undefined, finish: () => undefined };

/** A program, as the recovery of its tree sees it. */
interface RecoveringProgram {
  /** Whether it follows what earlier processes recorded. Set by `Recovery` alone. */
  recovering: boolean;
}

/**
 * The programs of a resumed tree that follow what earlier processes recorded. Until none does, no other one does anything: records
 * that a program does not match stop the tree first.
 */
export class Recovery {
  #programs = 0;
  #over: PromiseWithResolvers<void> | undefined;
  /** A field, since every step reads it. */
  isOver = false;

  join(program: RecoveringProgram): void {
    program.recovering = true;
    this.#programs += 1;
  }

  /** The program has followed its records; the children that it runs, if any, have joined before. */
  leave(program: RecoveringProgram): void {
    if (!program.recovering) return;
    program.recovering = false;
    this.#programs -= 1;
    if (this.#programs === 0) this.release();
  }

  /** Resolves when it is over, or the tree stops. */
  async wait(): Promise<void> {
    this.#over ??= Promise.withResolvers();
    if (!this.isOver) await this.#over.promise;
  }

  /** Lets all continue that wait. */
  release(): void {
    this.isOver = true;
    this.#over?.resolve();
  }
}

function recordedSteps(runId: string, records: readonly JournalRecord[]): RecordedSteps {
  const steps = new Map<number, RecordedStep>();
  const own = forkedAt(records);
  for (const [index, record] of records.entries()) {
    if (isLifecycle(record)) continue;
    const { ordinal, stepId, phase } = record;
    const step: RecordedStep = { stepId, ...steps.get(ordinal), [phase]: record };
    steps.set(ordinal, index < own ? { ...step, copied: true } : step);
  }

  const mismatch = (ordinal: number, recorded: string | undefined, taken: string | undefined): SluiceError => {
    const found = recorded === undefined ? "is not recorded, though later ones are" : `is recorded as ${recorded}`;
    const did = taken === undefined ? "ended" : `took ${taken}`;
    const why = "the pipeline or Sluice changed since the run started";
    return new SluiceError(
      "Host",
      "journal_mismatch",
      `run ${runId}: step ${ordinal} ${found}, but the program ${did}; ${why}`,
      {
        detail: { ordinal, recorded: recorded ?? null, taken: taken ?? null },
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
      // Only the last recorded step may be open.
      if (known.done === undefined && steps.size > 0) throw mismatch(ordinal + 1, undefined, stepId);
      return known;
    },
    finish() {
      for (const [ordinal, { stepId }] of steps) throw mismatch(ordinal, stepId, undefined);
    },
  };
}

/** What a resume starts from. */
export interface ResumeState {
  readonly recorded: RecordedSteps;
  /** The recorded input, not the row's. */
  readonly input: Json;
  readonly seq: number;
  readonly head: string;
  /** Whether it may have children. */
  readonly forked: boolean;
  /** How many of the interruptions that it has received were carried out. */
  readonly interruptions: number;
}

/**
 * Reads and verifies a run's journal. What was read before, of the run and its children, is used if it is still what they have
 * recorded. Throws Host `journal_damaged`, and `run_continued_elsewhere` if the run or a child has changed since `read`.
 */
export async function loadForResume(
  store: JournalStore,
  row: RunRow,
  read?: readonly RunJournal[],
): Promise<ResumeState> {
  const { runId } = row;
  const [own] = read ?? [];
  if (read !== undefined && (own?.runId !== runId || own.records.at(-1)?.hash !== row.head))
    throw continuedElsewhere(runId);
  const records = own?.records ?? (await store.records(runId, 0));
  const { head, fault } = checkChain(runId, records);
  const [start] = records;
  if (fault !== undefined) throw damaged(runId, fault);
  if (start === undefined) throw damaged(runId, "its journal is empty");
  if (records.length !== row.records) {
    throw damaged(runId, `its journal has ${records.length} records, its row counts ${row.records}`);
  }
  if (head !== row.head) throw damaged(runId, "its row has another head than its last record");
  if (records.some(isEnd)) throw damaged(runId, "its journal has an end, and its row has none");
  const forked = records.some((record) => childKeys(record) !== undefined);
  if (read !== undefined && forked && !(await areCurrent(store, runId, read))) throw continuedElsewhere(runId);
  const input: Json = JSON.parse(start.value);
  const interruptions = await carriedOut(store, runId, records, read);
  return { recorded: recordedSteps(runId, records), input, seq: records.length, head, forked, interruptions };
}

/** How many interruptions of a run were carried out, as its own records and those of its children say. */
async function carriedOut(
  store: JournalStore,
  runId: string,
  records: readonly JournalRecord[],
  read: readonly RunJournal[] | undefined,
): Promise<number> {
  const received = await store.signals(runId, INTERRUPTION_SIGNAL);
  if (received.length === 0) return 0;
  const last = records.at(-1);
  // Earlier versions did not record the number.
  if (last?.stepId === LIFECYCLE_STEP.suspend && last.value === "" && last.events.includes('"reason":"interrupted"'))
    return received.length;
  let most = 0;
  const own = ownIncarnations(records);
  for (const journal of read ?? (await readJournal(store, runId)))
    for (const record of journal.records) {
      if (!own.has(record.incarnation)) continue;
      const counted = isLifecycle(record) && COUNTING.has(record.stepId) ? Number(record.value) : 0;
      most = Math.max(most, counted, interruptionIn(journal.runId, record)?.count ?? 0);
    }
  return most;
}

/** The lifecycle records whose value is the number of interruptions that were carried out. */
const COUNTING: ReadonlySet<string> = new Set([LIFECYCLE_STEP.resume, LIFECYCLE_STEP.suspend]);

/** The processes that worked on a root, and none of those that wrote what it copied from another run. */
export function ownIncarnations(records: readonly JournalRecord[]): ReadonlySet<string> {
  return new Set(records.slice(Math.max(0, forkedAt(records))).map(({ incarnation }) => incarnation));
}

/** Where the last record stands that ends copied ones; -1 if nothing was copied. */
export function forkedAt(records: readonly JournalRecord[]): number {
  return records.findLastIndex((record) => isLifecycle(record) && record.stepId === LIFECYCLE_STEP.forked);
}

/** Whether a run's children have recorded nothing since the journals were read: they can without a record of their root. */
async function areCurrent(store: JournalStore, rootId: string, read: readonly RunJournal[]): Promise<boolean> {
  const heads = new Map(read.map(({ runId, claimed }) => [runId, claimed.head]));
  const rows = await store.runs(rootId);
  return rows.length === read.length && rows.every(({ runId, head }) => heads.get(runId) === head);
}

/** How a child ended in an earlier process, if it did. Throws Host `journal_damaged` if its journal does not verify. */
export async function loadChildEnd(store: JournalStore, row: RunRow): Promise<SiblingEnd | undefined> {
  const { runId, end, records, head } = row;
  if (end === undefined) return undefined;
  const [fault] = checkAlone(await journalOf(store, row)).faults;
  if (fault !== undefined) throw damaged(runId, fault);
  return { ...end, records, head };
}

function continuedElsewhere(runId: string): SluiceError {
  const message = `run ${runId} continued in another process after it was read here; read it again`;
  return new SluiceError("Host", "run_continued_elsewhere", message, { detail: { runId } });
}

function damaged(runId: string, why: string): SluiceError {
  const fix = "restore a backup of the store, or start a new run";
  return new SluiceError("Host", "journal_damaged", `run ${runId} cannot be resumed: ${why}; ${fix}`, {
    detail: { runId },
  });
}

/** An open record, as its step sees it. */
export function readOpenRecord(record: JournalRecord): NonNullable<StepCall["opened"]> {
  const { incarnation, value } = record;
  const cost = readCost(record);
  return {
    incarnation,
    ...(value === "" ? {} : { intent: JSON.parse(value) }),
    ...(cost === undefined ? {} : { cost }),
  };
}
