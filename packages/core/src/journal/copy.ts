import type { Clock } from "../base/clock.ts";
import { SluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject, parseJson } from "../base/json.ts";
import { hashRecord, readEvents, type UnhashedRecord, writeEvents } from "./chain.ts";
import { childRunId, forkKeys } from "./children.ts";
import { isEnd, LIFE, NO_ORDINAL } from "./life.ts";
import { readJournal, unknownRun } from "./reading.ts";
import type { JournalRecord, RunCopy, RunEnd, RunJournal } from "./seam.ts";
import type { JournalStore, WholeRun } from "./store.ts";
import { verifyJournal } from "./verify.ts";
import { CLOSING, OPENING, startOf } from "./writer.ts";

/** Where a copy is made. */
export interface Copying {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly incarnation: () => string;
}

/**
 * Makes a new run that nobody owns of the beginning of another, whatever became of that: in one go, so that no half of it can be
 * taken up. Throws Host `journal_damaged` where the other is not as it was written, Validation `copy_place` where a step or a
 * request is open.
 */
export async function copyRun({ store, clock, incarnation }: Copying, copy: RunCopy): Promise<void> {
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
    (forkKeys(record) ?? []).flatMap((key) => {
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
    const children = childrenBefore(of, past, siblings, again).flatMap((child) => this.#whole(child));
    const begun = atOf(of, first) ?? now;
    const drafts: UnhashedRecord[] = past.map((record) => this.#linked(record));
    drafts[0] = { ...first, incarnation, events: writeEvents(started, begun) };
    drafts.push(lifeRecord(before, LIFE.forked, incarnation, writeEvents(forked, now)));
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
      (record) => record.phase === "open" && !done.has(record.ordinal) && forkKeys(record) === undefined,
    );
    if (open !== undefined) throw this.#misplaced(`step ${open.stepId} is open there`);
    const asked = new Set<Json>();
    for (const record of past)
      for (const { type, data } of readEvents(runId, record)) {
        const requestId = data.requestId ?? null;
        if (OPENING.has(type)) asked.add(requestId);
        else if (CLOSING.has(type)) asked.delete(requestId);
      }
    for (const requestId of asked) throw this.#misplaced(`request ${JSON.stringify(requestId)} is open there`);
    return past;
  }

  /** A run that comes along to its end, with everything below it. */
  #whole(journal: RunJournal): readonly WholeRun[] {
    const { runId, parentId, records, input, end, claimed } = journal;
    const own = this.#copy.runId + runId.slice(this.#copy.of.length);
    this.#names.set(runId, own);
    const below = (this.#below.get(runId) ?? []).flatMap((child) => this.#whole(child));
    const chain = chained(
      own,
      records.map((record) => this.#linked(record)),
    );
    this.#names.set(claimed.head, chain.head);
    const [first] = records;
    const createdAt = (first === undefined ? undefined : atOf(runId, first)) ?? this.#moment.now;
    const parent = parentId === undefined ? {} : { parentId: this.#names.get(parentId) ?? parentId };
    const row = { runId: own, rootId: this.#copy.runId, ...parent, createdAt, input };
    return [{ row, ...chain, ...(end === undefined ? {} : { end: endIn(chain.records) ?? end }) }, ...below];
  }

  /** A record with the ids and heads that name other runs of the tree; most records name none. */
  #linked(record: JournalRecord): UnhashedRecord {
    const { hash: _hash, ...unhashed } = record;
    if (this.#names.size < 2) return unhashed;
    if (record.phase === "done" && record.value.includes('"head":"')) {
      const value = this.#joined(record);
      return value === record.value ? unhashed : { ...unhashed, value, events: this.#renamed(record.events) };
    }
    if (record.phase !== "life" || !NAMING.has(record.stepId)) return unhashed;
    const value = record.stepId === LIFE.closed ? this.#renamed(record.value) : record.value;
    return { ...unhashed, value, events: this.#renamed(record.events) };
  }

  /** The value of a fork that joined: the head of each child. Nothing else in it is ours to change. */
  #joined({ ordinal, value }: JournalRecord): string {
    const read = parseJson(value);
    if (!read.ok || !isJsonObject(read.value) || ordinal < 0) return value;
    let found = false;
    const renamed = Object.entries(read.value).map(([key, end]): readonly [string, Json] => {
      const head = field(end, "head");
      const own = typeof head === "string" ? this.#names.get(head) : undefined;
      if (own === undefined || !isJsonObject(end)) return [key, end];
      found = true;
      return [key, { ...end, head: own }];
    });
    return found ? JSON.stringify(Object.fromEntries(renamed)) : value;
  }

  #renamed(text: string): string {
    const read = parseJson(text);
    return read.ok ? JSON.stringify(this.#rename(read.value)) : text;
  }

  #rename(value: Json): Json {
    if (typeof value === "string") return this.#names.get(value) ?? value;
    if (typeof value !== "object" || value === null) return value;
    if (!isJsonObject(value)) return value.map((member) => this.#rename(member));
    const entries = Object.entries(value).map(([key, member]) => [this.#names.get(key) ?? key, this.#rename(member)]);
    const renamed: JsonObject = Object.fromEntries(entries);
    return renamed;
  }

  #misplaced(why: string): SluiceError {
    const { of, before } = this.#copy;
    return new SluiceError("Validation", "copy_place", `run ${of} cannot be copied up to record ${before}: ${why}`, {
      detail: { runId: of, before },
    });
  }
}

/** Life records that name other runs: a child's parent, and the heads of what was closed below. */
const NAMING: ReadonlySet<string> = new Set([LIFE.start, LIFE.closed]);

function lifeRecord(seq: number, stepId: string, incarnation: string, events: string): UnhashedRecord {
  return { seq, ordinal: NO_ORDINAL, stepId, phase: "life", incarnation, value: "", events };
}

function chained(
  runId: string,
  drafts: readonly UnhashedRecord[],
): { readonly records: readonly JournalRecord[]; readonly head: string } {
  let { head } = startOf(runId, "");
  const records = drafts.map((draft): JournalRecord => {
    head = hashRecord(head, runId, draft);
    return { ...draft, hash: head };
  });
  return { records, head };
}

/** When a record was made; undefined where nothing says so. */
function atOf(runId: string, record: JournalRecord): number | undefined {
  return readEvents(runId, record)[0]?.at;
}

function endIn(records: readonly JournalRecord[]): RunEnd | undefined {
  const last = records.findLast(isEnd);
  return last === undefined ? undefined : JSON.parse(last.value);
}
