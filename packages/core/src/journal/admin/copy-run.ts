import type { Clock } from "../../base/clock.ts";
import { SluiceError } from "../../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import { verifyJournal } from "../audit/verify.ts";
import { CLOSE_KINDS, OPEN_KINDS } from "../record/append.ts";
import { GENESIS, hashRecord, readEvents, type UnhashedRecord, writeEvents } from "../record/hash-chain.ts";
import type { JournalRecord, RunCopy, RunEnd, RunJournal } from "../seam.ts";
import { childKeys, childRunId, isEnd, isLifecycle, LIFECYCLE_STEP, NO_ORDINAL } from "../step-id.ts";
import type { JournalStore, WholeRun } from "../store/journal-store.ts";
import { readJournal, unknownRun } from "../store/read-runs.ts";

/** Where a copy is made. */
export interface CopyRequest {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly incarnation: () => string;
}

/**
 * Makes a new run that nobody owns of the beginning of another, whatever became of that: in one go, so that no half of it can be
 * taken up. Throws Host `journal_damaged` where the other is not as it was written, Validation `copy_point` where a step or a
 * request is open.
 */
export async function copyRun({ store, clock, incarnation }: CopyRequest, copy: RunCopy): Promise<void> {
  const journals = await readJournal(store, copy.of);
  const [root] = journals;
  if (root === undefined) throw unknownRun(copy.of);
  const [fault] = verifyJournal(journals).faults;
  if (fault !== undefined) {
    const message = `run ${fault.runId} is not as it was written (${fault.fault}); nothing is made of it`;
    throw new SluiceError("Host", "journal_damaged", message, { detail: { runId: fault.runId } });
  }
  const now = clock.now();
  await store.createWhole(new Copier(journals, root, copy, { now, incarnation: incarnation() }).runs());
}

/**
 * The children of a run that belong to its first records: those of forks that joined as they ended; of a fork that is open there
 * those that completed and are not to begin anew.
 */
export function childrenBefore(
  runId: string,
  past: readonly JournalRecord[],
  journals: readonly RunJournal[],
  again: readonly string[],
): readonly RunJournal[] {
  const joined = new Set(past.filter(({ phase }) => phase === "done").map(({ ordinal }) => ordinal));
  const all = new Map(journals.map((journal) => [journal.runId, journal]));
  return past.flatMap((record) =>
    (childKeys(record) ?? []).flatMap((key) => {
      const child = all.get(childRunId(runId, record.stepId, key));
      const comes = joined.has(record.ordinal) || (child?.end?.status === "completed" && !again.includes(key));
      return child !== undefined && comes ? [child] : [];
    }),
  );
}

interface Moment {
  readonly now: number;
  readonly incarnation: string;
}

/** Writes the records of a tree anew under another root's id: hashes are bound to the id, so all of them are other ones. */
class Copier {
  readonly #root: RunJournal;
  readonly #copy: RunCopy;
  readonly #moment: Moment;
  readonly #below: ReadonlyMap<string | undefined, readonly RunJournal[]>;
  /** Ids and heads of the runs that come along, and what they are in the copy. */
  readonly #names = new Map<string, string>();
  /** By the head that each run has now, how it ended in the copy. */
  readonly #ends = new Map<string, JsonObject>();

  constructor(journals: readonly RunJournal[], root: RunJournal, copy: RunCopy, moment: Moment) {
    this.#root = root;
    this.#copy = copy;
    this.#moment = moment;
    this.#below = Map.groupBy(journals, ({ parentId }) => parentId);
  }

  /** Parents before their children. */
  runs(): readonly WholeRun[] {
    const { of, runId, before, started, forked } = this.#copy;
    const { incarnation, now } = this.#moment;
    const past = this.#past();
    const [first] = past;
    if (first === undefined) throw this.#misplaced("there is nothing before it");
    this.#names.set(of, runId);
    const { again = [] } = this.#copy;
    const siblings = this.#below.get(of) ?? [];
    const children = childrenBefore(of, past, siblings, again).flatMap((child) => this.#whole(child, runId));
    const begun = atOf(of, first) ?? now;
    const drafts = this.#linked(past);
    drafts[0] = { ...first, incarnation, events: writeEvents(started, begun) };
    drafts.push(lifecycleRecord(before, LIFECYCLE_STEP.forked, incarnation, writeEvents(forked, now)));
    const { input } = this.#root;
    const row = { runId, rootId: runId, createdAt: now, input };
    return [{ row, ...chained(runId, drafts) }, ...children];
  }

  /** What comes along of the root. Its records are those of steps that are over, but for a fork at its end. */
  #past(): readonly JournalRecord[] {
    const { before } = this.#copy;
    const { runId, records } = this.#root;
    const past = records.slice(0, before);
    if (past.length !== before || past.some(isEnd)) throw this.#misplaced("the run has no such record");
    const done = new Set(past.filter(({ phase }) => phase === "done").map(({ ordinal }) => ordinal));
    const open = past.find(
      (record) => record.phase === "open" && !done.has(record.ordinal) && childKeys(record) === undefined,
    );
    if (open !== undefined) throw this.#misplaced(`step ${open.stepId} is open there`);
    const asked = new Set<Json>();
    for (const record of past)
      for (const { type, data } of readEvents(runId, record)) {
        const requestId = data.requestId ?? null;
        if (OPEN_KINDS.has(type)) asked.add(requestId);
        else if (CLOSE_KINDS.has(type)) asked.delete(requestId);
      }
    for (const requestId of asked) throw this.#misplaced(`request ${JSON.stringify(requestId)} is open there`);
    return past;
  }

  /** A run that comes along to its end, with everything below it. */
  #whole({ runId, records, input, claimed }: RunJournal, parentId: string): readonly WholeRun[] {
    const own = this.#copy.runId + runId.slice(this.#copy.of.length);
    this.#names.set(runId, own);
    const below = (this.#below.get(runId) ?? []).flatMap((child) => this.#whole(child, own));
    const chain = chained(own, this.#linked(records));
    const last = chain.records.find(isEnd);
    const end: RunEnd | undefined = last === undefined ? undefined : JSON.parse(last.value);
    this.#names.set(claimed.head, chain.head);
    this.#ends.set(claimed.head, { ...end, head: chain.head });
    const createdAt = atOf(runId, records[0]) ?? this.#moment.now;
    const row = { runId: own, rootId: this.#copy.runId, parentId, createdAt, input };
    return [{ row, ...chain, ...(end === undefined ? {} : { end }) }, ...below];
  }

  /** The records of a run with the ids and heads that name other runs of the tree; most records name none. */
  #linked(records: readonly JournalRecord[]): UnhashedRecord[] {
    const forks = new Set<number>();
    return records.map((record) => {
      const { hash: _hash, ...unhashed } = record;
      const { phase, ordinal, stepId, value, events } = record;
      if (childKeys(record) !== undefined) forks.add(ordinal);
      if (phase === "done" && forks.has(ordinal))
        return { ...unhashed, value: this.#joined(value), events: this.#renamed(events) };
      if (!isLifecycle(record) || !NAMING.has(stepId)) return unhashed;
      return {
        ...unhashed,
        value: stepId === LIFECYCLE_STEP.closed ? this.#renamed(value) : value,
        events: this.#renamed(events),
      };
    });
  }

  /** The value of a fork that joined: how each child ended, and its head. Nothing else in it is ours to change. */
  #joined(text: string): string {
    const linked = (end: Json): Json => {
      const head = field(end, "head");
      const own = typeof head === "string" ? this.#ends.get(head) : undefined;
      return own === undefined || !isJsonObject(end) ? end : { ...end, ...own };
    };
    return rewritten(text, (ends) => withMembers(ends, linked));
  }

  #renamed(text: string): string {
    return rewritten(text, (value) => this.#rename(value));
  }

  /** Only what stands where runs are named: elsewhere the same text means something else. */
  #rename(value: Json, member?: string): Json {
    if (typeof value === "string") return isName(member) ? (this.#names.get(value) ?? value) : value;
    if (Array.isArray(value)) return value.map((each: Json) => this.#rename(each));
    if (member !== "children") return withMembers(value, (of, key) => this.#rename(of, key));
    return withMembers(
      value,
      (head) => this.#rename(head, "head"),
      (id) => this.#names.get(id) ?? id,
    );
  }

  #misplaced(why: string): SluiceError {
    const { of, before } = this.#copy;
    return new SluiceError("Validation", "copy_point", `run ${of} cannot be copied up to record ${before}: ${why}`, {
      detail: { runId: of, before },
    });
  }
}

/** Lifecycle records that name other runs: a child's parent, and the heads of what was closed below. */
const NAMING: ReadonlySet<string> = new Set([LIFECYCLE_STEP.start, LIFECYCLE_STEP.closed]);

function isName(member: string | undefined): boolean {
  return member === "parent" || member === "run" || member === "head";
}

/** What cannot be read names nothing. */
function rewritten(text: string, change: (value: Json) => Json): string {
  const read = parseJson(text);
  return read.ok ? JSON.stringify(change(read.value)) : text;
}

/** An object with other members; any other value as it is. */
function withMembers(
  value: Json,
  change: (of: Json, key: string) => Json,
  rename = (key: string): string => key,
): Json {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [rename(key), change(of, key)]));
}

function lifecycleRecord(seq: number, stepId: string, incarnation: string, events: string): UnhashedRecord {
  return { seq, ordinal: NO_ORDINAL, stepId, phase: "lifecycle", incarnation, value: "", events };
}

function chained(
  runId: string,
  drafts: readonly UnhashedRecord[],
): { readonly records: readonly JournalRecord[]; readonly head: string } {
  let head: string = GENESIS;
  const records = drafts.map((draft): JournalRecord => {
    head = hashRecord(head, runId, draft);
    return { ...draft, hash: head };
  });
  return { records, head };
}

/** When a record was made; undefined where nothing says so. */
function atOf(runId: string, record: JournalRecord | undefined): number | undefined {
  return record === undefined ? undefined : readEvents(runId, record)[0]?.at;
}
