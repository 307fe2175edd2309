import type { Clock } from "../../base/clock.ts";
import { SluiceError } from "../../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import { verifyJournal } from "../audit/verify.ts";
import {
  CLOSE_KINDS,
  GENESIS,
  hashRecord,
  OPEN_KINDS,
  readEvents,
  type UnhashedRecord,
  writeEvents,
} from "../record.ts";
import type { CopiedPart, JournalRecord, RunCopy, RunJournal } from "../seam.ts";
import { childKeys, childRunId, isEnd, isLifecycle, LIFECYCLE_STEP, NO_ORDINAL, readEnd } from "../step-id.ts";
import type { JournalStore, WholeRun } from "../store/journal-store.ts";
import { readJournal, unknownRun } from "../store/read-runs.ts";

export interface CopyRequest {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly incarnation: () => string;
}

/**
 * Atomically creates a run without an owner from the first records of another. Throws Host `journal_damaged` if the other does
 * not verify, and Validation `copy_point` if a step or a request is open there.
 */
export async function copyRun({ store, clock, incarnation }: CopyRequest, copy: RunCopy): Promise<void> {
  const journals = await readJournal(store, copy.of);
  const [root] = journals;
  if (root === undefined) throw unknownRun(copy.of);
  const [fault] = verifyJournal(journals).faults;
  if (fault !== undefined) {
    const message = `run ${fault.runId} was changed after it was written (${fault.fault}) and cannot be copied`;
    throw new SluiceError("Host", "journal_damaged", message, { detail: { runId: fault.runId } });
  }
  const now = clock.now();
  await store.createWhole(new Copier(journals, root, copy, { now, incarnation: incarnation() }).runs());
}

/**
 * The part of a run that is copied, parents before their children: its first records, all children of a fan-out that joined there,
 * and the completed children of an open one.
 */
export function copiedPart(journals: readonly RunJournal[], part: CopiedPart): readonly RunJournal[] {
  const [root] = journals;
  if (root === undefined) return [];
  const below = Map.groupBy(journals, ({ parentId }) => parentId);
  const whole = (run: RunJournal): readonly RunJournal[] => [run, ...(below.get(run.runId) ?? []).flatMap(whole)];
  const inPart = (run: RunJournal, { before, again = [], inside }: CopiedPart): readonly RunJournal[] => {
    const records = run.records.slice(0, before);
    const joined = new Set(records.filter(({ phase }) => phase === "done").map(({ ordinal }) => ordinal));
    const children = new Map((below.get(run.runId) ?? []).map((child) => [child.runId, child]));
    const kept = records.flatMap((record) =>
      (childKeys(record) ?? []).flatMap((key) => {
        const child = children.get(childRunId(run.runId, record.stepId, key));
        if (child === undefined) return [];
        const isOpen = !joined.has(record.ordinal);
        if (isOpen && inside?.key === key) return inPart(child, inside);
        return !isOpen || (child.end?.status === "completed" && !again.includes(key)) ? whole(child) : [];
      }),
    );
    const { end: _end, ...begun } = run;
    return [{ ...begun, records }, ...kept];
  };
  return inPart(root, part);
}

interface Moment {
  readonly now: number;
  readonly incarnation: string;
}

/** Rewrites the records of a tree under another root id. Record hashes include the run id, so every hash changes. */
class Copier {
  readonly #root: RunJournal;
  readonly #copy: RunCopy;
  readonly #moment: Moment;
  /** The runs that are copied, with the records that are. */
  readonly #below: ReadonlyMap<string | undefined, readonly RunJournal[]>;
  /** Ids and heads of the copied runs, mapped to those in the copy. */
  readonly #names = new Map<string, string>();
  /** How each child ended in the copy, by its original head. */
  readonly #ends = new Map<string, JsonObject>();

  constructor(journals: readonly RunJournal[], root: RunJournal, copy: RunCopy, moment: Moment) {
    this.#root = root;
    this.#copy = copy;
    this.#moment = moment;
    this.#below = Map.groupBy(copiedPart(journals, copy), ({ parentId }) => parentId);
  }

  /** Parents before their children. */
  runs(): readonly WholeRun[] {
    const { of, runId, before, started, forked } = this.#copy;
    const { incarnation, now } = this.#moment;
    const past = this.#past();
    const [first] = past;
    if (first === undefined) throw this.#misplaced("no record precedes it");
    this.#names.set(of, runId);
    const children = (this.#below.get(of) ?? []).flatMap((child) => this.#child(child, runId));
    const begun = atOf(of, first) ?? now;
    const drafts = this.#linked(past);
    drafts[0] = { ...first, incarnation, events: writeEvents(started, begun) };
    drafts.push(lifecycleRecord(before, LIFECYCLE_STEP.forked, incarnation, writeEvents(forked, now)));
    const { input } = this.#root;
    const row = { runId, rootId: runId, createdAt: now, input };
    return [{ row, ...chained(runId, drafts) }, ...children];
  }

  /** The copied records of the root. */
  #past(): readonly JournalRecord[] {
    const { before } = this.#copy;
    const past = this.#root.records.slice(0, before);
    if (past.length !== before) throw this.#misplaced("the run has no such record");
    this.#refuseOpen(this.#root.runId, past);
    return past;
  }

  /** Every step in the first records of a run is done, except a fan-out at the end. */
  #refuseOpen(runId: string, past: readonly JournalRecord[]): void {
    if (past.some(isEnd)) throw this.#misplaced("the run has no such record");
    const done = new Set(past.filter(({ phase }) => phase === "done").map(({ ordinal }) => ordinal));
    const open = past.find(
      (record) => record.phase === "open" && !done.has(record.ordinal) && childKeys(record) === undefined,
    );
    if (open !== undefined) throw this.#misplaced(`step ${open.stepId} is open there`);
    const openRequests = new Set<Json>();
    for (const record of past)
      for (const { type, data } of readEvents(runId, record)) {
        const requestId = data.requestId ?? null;
        if (OPEN_KINDS.has(type)) openRequests.add(requestId);
        else if (CLOSE_KINDS.has(type)) openRequests.delete(requestId);
      }
    for (const requestId of openRequests) throw this.#misplaced(`request ${JSON.stringify(requestId)} is open there`);
  }

  /** A child that is copied, whole or in part, with its descendants. */
  #child({ runId, records, input, claimed }: RunJournal, parentId: string): readonly WholeRun[] {
    if (records.length < claimed.records) this.#refuseOpen(runId, records);
    const own = this.#copy.runId + runId.slice(this.#copy.of.length);
    this.#names.set(runId, own);
    const below = (this.#below.get(runId) ?? []).flatMap((child) => this.#child(child, own));
    const drafts = this.#linked(records);
    const last = drafts.find(isEnd);
    const end = last === undefined ? undefined : readEnd(last);
    const { incarnation, now } = this.#moment;
    // It continues: signals that its copied steps took were sent to the other run.
    if (end === undefined)
      drafts.push(lifecycleRecord(records.length, LIFECYCLE_STEP.forked, incarnation, writeEvents([], now)));
    const chain = chained(own, drafts);
    this.#names.set(claimed.head, chain.head);
    this.#ends.set(claimed.head, { ...end, head: chain.head });
    const createdAt = atOf(runId, records[0]) ?? now;
    const row = { runId: own, rootId: this.#copy.runId, parentId, createdAt, input };
    return [{ row, ...chain, ...(end === undefined ? {} : { end }) }, ...below];
  }

  /** The records of a run, with ids and heads of other runs of the tree replaced. */
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

  /** The value of a join: each child's end and head. Anything else in it stays. */
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

  /** Replaces ids and heads only in members that name runs. */
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

/** Lifecycle records that name other runs: a child's parent, and the heads of closed descendants. */
const NAMING: ReadonlySet<string> = new Set([LIFECYCLE_STEP.start, LIFECYCLE_STEP.closed]);

function isName(member: string | undefined): boolean {
  return member === "parent" || member === "run" || member === "head";
}

function rewritten(text: string, change: (value: Json) => Json): string {
  const read = parseJson(text);
  return read.ok ? JSON.stringify(change(read.value)) : text;
}

/** Maps the members of an object; returns any other value unchanged. */
function withMembers(
  value: Json,
  change: (member: Json, key: string) => Json,
  rename = (key: string): string => key,
): Json {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [rename(key), change(member, key)]));
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

/** When a record was written, by its first event; undefined for one without events. */
function atOf(runId: string, record: JournalRecord | undefined): number | undefined {
  return record === undefined ? undefined : readEvents(runId, record)[0]?.at;
}
