import type { DatabaseSync } from "node:sqlite";
import type { JournalRecord, RunEnd, SignalMessage, SignalOutcome, SluiceError } from "@sluice/core";
import type { Commit, NewRunRow, WholeRun } from "@sluice/core/host";
import { unknownRun } from "@sluice/core/runtime";
import type { Blobs, StoredBlob } from "./blobs.ts";
import { storeError } from "./faults.ts";
import type { Owners } from "./owners.ts";
import { integer, SEQ_SPACE, text, textOrNone, transactions } from "./schema.ts";

type FirstCommit = Omit<Commit, "epoch" | "runId"> & { readonly epoch?: number };

/** A record whose long texts are on disk. */
interface StoredRecord {
  readonly record: JournalRecord;
  readonly value: StoredBlob;
  readonly events: StoredBlob;
}
interface StoredCommit extends StoredRecord {
  readonly commit: FirstCommit;
  readonly end: StoredBlob | undefined;
}

/** All changes of the journal, each in one transaction. The returned functions commit what was staged. */
export interface Writer {
  create(run: NewRunRow, commit: FirstCommit): () => number;
  createWhole(runs: readonly WholeRun[]): () => void;
  append(commit: Commit): () => void;
  claim(rootId: string): number;
  release(rootId: string): void;
  releaseAll(): void;
  putSignal(runId: string, message: SignalMessage, at: number): SignalOutcome;
  requestCancel(runId: string, reason: string, by: string, at: number): boolean;
}

export function createWriter(db: DatabaseSync, blobs: Blobs, owners: Owners): Writer {
  const transact = transactions(db);
  const find = db.prepare(
    "SELECT r.no, r.root_no, r.end_status, t.epoch, t.owner, t.label, c.records FROM runs r JOIN trees t ON t.root_no = r.root_no JOIN chains c ON c.run_no = r.no WHERE r.run_id = ?",
  );
  const nextNo = db.prepare("SELECT coalesce(max(no), 0) + 1 AS no FROM runs");
  const addRun = db.prepare(
    "INSERT INTO runs (no, run_id, root_no, parent_id, created_at, input_blob, input) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const addTree = db.prepare("INSERT INTO trees (root_no, epoch, owner, label) VALUES (?, 1, ?, ?)");
  const addChain = db.prepare("INSERT INTO chains (run_no, records, head) VALUES (?, ?, ?)");
  const numberOf = db.prepare("SELECT no FROM runs WHERE run_id = ?");
  // The fence: a commit advances the chain only if its owner holds the tree at its epoch and the record is the next one. It
  // compares the run's id too, since `numbers` may be outdated. No RETURNING, which would add a tenth to the cost of a commit.
  const advance = db.prepare(
    "UPDATE chains SET records = records + 1, head = ? WHERE run_no = ? AND records = ? AND EXISTS (SELECT 1 FROM runs r JOIN trees t ON t.root_no = r.root_no WHERE r.no = run_no AND r.run_id = ? AND r.end_status IS NULL AND t.epoch = ? AND t.owner = ?)",
  );
  const addRecord = db.prepare(
    "INSERT INTO records (place, ordinal, step_id, phase, incarnation, hash, value_blob, events_blob, value, events) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const openRequest = db.prepare(
    "INSERT INTO requests (run_no, request_id, kind, digest, opened_at, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET kind = excluded.kind, digest = excluded.digest, opened_at = excluded.opened_at, body = excluded.body",
  );
  const reopen = db.prepare("UPDATE signals SET answers = NULL WHERE run_no = ? AND answers = ?");
  const closeRequest = db.prepare("DELETE FROM requests WHERE run_no = ? AND request_id = ?");
  const closeRequests = db.prepare("DELETE FROM requests WHERE run_no = ?");
  const endRun = db.prepare("UPDATE runs SET end_status = ?, end_blob = ?, end_value = ? WHERE no = ?");
  const takeTree = db.prepare(
    "UPDATE trees SET owner = ?, label = ?, epoch = epoch + 1 WHERE root_no = ? AND epoch = ? RETURNING epoch",
  );
  const dropTree = db.prepare(
    "UPDATE trees SET owner = NULL, label = NULL WHERE owner = ? AND root_no = (SELECT no FROM runs WHERE run_id = ?)",
  );
  const dropTrees = db.prepare("UPDATE trees SET owner = NULL, label = NULL WHERE owner = ?");
  const answerOf = db.prepare("SELECT 1 AS found FROM signals WHERE run_no = ? AND answers = ?");
  const requestOf = db.prepare(
    "SELECT digest, json_extract(body, '$.until') AS until FROM requests WHERE run_no = ? AND request_id = ?",
  );
  const addSignal = db.prepare("INSERT INTO signals (run_no, name, answers, received) VALUES (?, ?, ?, ?)");
  const setCancel = db.prepare("UPDATE runs SET cancel = ? WHERE run_id = ?");

  const setWake = db.prepare(
    "INSERT INTO wakes (root_no, wake_at) SELECT root_no, ? FROM runs WHERE no = ? ON CONFLICT DO UPDATE SET wake_at = excluded.wake_at",
  );
  const setSignalled = db.prepare(
    "INSERT INTO wakes (root_no, signalled) VALUES (?, 1) ON CONFLICT DO UPDATE SET signalled = 1",
  );
  const clearSignalled = db.prepare("UPDATE wakes SET signalled = 0 WHERE root_no = ? AND signalled = 1");
  const dropWake = db.prepare("DELETE FROM wakes WHERE root_no = ?");

  /** The numbers of runs that this owner writes. */
  const numbers = new Map<string, number>();
  const numberFor = (runId: string): number => {
    const known = numbers.get(runId);
    if (known !== undefined) return known;
    const row = numberOf.get(runId);
    if (row === undefined) throw unknownRun(runId);
    const no = integer(row, "no");
    numbers.set(runId, no);
    return no;
  };

  const storeRecord = (record: JournalRecord): StoredRecord => {
    if (record.seq >= SEQ_SPACE) {
      throw storeError("run_too_long", `a run holds at most ${SEQ_SPACE} records; continue in a new run`, {
        records: record.seq,
      });
    }
    return { record, value: blobs.keep(record.value), events: blobs.keep(record.events) };
  };
  const storeEnd = (end: RunEnd | undefined): StoredBlob | undefined =>
    end === undefined ? undefined : blobs.keep(JSON.stringify(end.value));
  const stage = (commit: FirstCommit): StoredCommit => {
    return { commit, ...storeRecord(commit.record), end: storeEnd(commit.end) };
  };

  /** Adds a run without records, to the tree of `rootNo` or as a root. Returns its number. */
  const addRunRow = (
    { runId, parentId, createdAt }: NewRunRow,
    input: StoredBlob,
    chain: { readonly records: number; readonly head: string },
    rootNo?: number,
  ): number => {
    if (find.get(runId) !== undefined) throw storeError("run_exists", `a run ${runId} already exists`, { runId });
    const no = integer(nextNo.get() ?? {}, "no");
    input.confirm?.();
    addRun.run(no, runId, rootNo ?? no, parentId ?? null, createdAt, input.blob, input.text);
    addChain.run(no, chain.records, chain.head);
    return no;
  };
  const addStored = (runNo: number, { record, value, events }: StoredRecord): void => {
    for (const kept of [value, events]) kept.confirm?.();
    addRecord.run(
      runNo * SEQ_SPACE + record.seq,
      record.ordinal,
      record.stepId,
      record.phase,
      record.incarnation,
      record.hash,
      value.blob,
      events.blob,
      value.text,
      events.text,
    );
  };
  /** Adds a record with its requests and end, after the chain advanced. */
  const add = (runNo: number, staged: StoredCommit): void => {
    const { commit, end } = staged;
    end?.confirm?.();
    addStored(runNo, staged);
    for (const { requestId, kind, digest, openedAt, body } of commit.opened) {
      openRequest.run(runNo, requestId, kind, digest, openedAt, JSON.stringify(body));
      reopen.run(runNo, requestId);
    }
    for (const requestId of commit.closed) closeRequest.run(runNo, requestId);
    if (commit.wakeAt !== undefined) setWake.run(commit.wakeAt, runNo);
    if (commit.end === undefined || end === undefined) return;
    dropWake.run(runNo);
    endRun.run(commit.end.status, end.blob, end.text, runNo);
    closeRequests.run(runNo);
  };

  const refusal = ({ runId, record }: Commit): SluiceError => {
    const row = find.get(runId);
    if (row === undefined) return unknownRun(runId);
    const status = textOrNone(row, "end_status");
    if (status !== undefined)
      return storeError("run_finished", `run ${runId} is ${status}; nothing can be added to it`, { runId });
    const why =
      textOrNone(row, "owner") === owners.id ? `its record ${record.seq} is not the next one` : "it was taken over";
    return storeError("ownership_lost", `run ${runId} no longer belongs to this process: ${why}`, { runId });
  };

  /** A child's tree. Throws `ownership_lost` unless this owner holds it at this epoch. */
  const ownTree = (rootId: string, epoch: number | undefined): { rootNo: number; epoch: number } => {
    const row = find.get(rootId);
    if (row === undefined) throw unknownRun(rootId);
    const current = integer(row, "epoch");
    if (textOrNone(row, "owner") !== owners.id || (epoch !== undefined && epoch !== current)) {
      throw storeError("ownership_lost", `run ${rootId} no longer belongs to this process: it was taken over`, {
        runId: rootId,
      });
    }
    return { rootNo: integer(row, "root_no"), epoch: current };
  };

  return {
    create(run, commit) {
      const staged = stage(commit);
      const input = blobs.keep(JSON.stringify(run.input));
      return () => {
        owners.hold();
        return transact(() => {
          const tree = run.runId === run.rootId ? undefined : ownTree(run.rootId, commit.epoch);
          const no = addRunRow(run, input, { records: 1, head: commit.record.hash }, tree?.rootNo);
          if (tree === undefined) addTree.run(no, owners.id, owners.label);
          add(no, staged);
          return tree?.epoch ?? 1;
        });
      };
    },

    createWhole(runs) {
      const staged = runs.map(({ row, records, head, end }) => ({
        row,
        chain: { records: records.length, head },
        input: blobs.keep(JSON.stringify(row.input)),
        records: records.map(storeRecord),
        status: end?.status,
        end: storeEnd(end),
      }));
      return () =>
        transact(() => {
          const numbers = new Map<string, number>();
          for (const { row, chain, input, records, status, end } of staged) {
            const { runId, rootId } = row;
            const no = addRunRow(row, input, chain, numbers.get(rootId));
            numbers.set(runId, no);
            if (runId === rootId) addTree.run(no, null, null);
            for (const one of records) addStored(no, one);
            if (status === undefined || end === undefined) continue;
            end.confirm?.();
            endRun.run(status, end.blob, end.text, no);
          }
        });
    },

    append(commit) {
      const staged = stage(commit);
      const { runId, record, epoch } = commit;
      return () =>
        transact(() => {
          const no = numberFor(runId);
          const { changes } = advance.run(record.hash, no, record.seq, runId, epoch, owners.id);
          if (changes !== 1 || commit.end !== undefined) numbers.delete(runId);
          if (changes !== 1) throw refusal(commit);
          add(no, staged);
        });
    },

    claim(rootId) {
      owners.hold();
      let dead: string | undefined;
      const epoch = transact(() => {
        const row = find.get(rootId);
        if (row === undefined || integer(row, "no") !== integer(row, "root_no")) throw unknownRun(rootId);
        const owner = textOrNone(row, "owner");
        if (owner !== undefined && owner !== owners.id) {
          if (owners.isLive(owner)) {
            const where = textOrNone(row, "label") ?? "another process";
            const message = `run ${rootId} is active in ${where}; wait for it, or stop that process first`;
            throw storeError("run_owned", message, { runId: rootId, owner });
          }
          dead = owner;
        }
        const taken = takeTree.get(owners.id, owners.label, integer(row, "no"), integer(row, "epoch"));
        clearSignalled.run(integer(row, "no"));
        return integer(taken ?? {}, "epoch");
      });
      if (dead !== undefined) owners.bury(dead);
      return epoch;
    },

    release(rootId) {
      // Still known only if the run was suspended; its children may be known too.
      if (numbers.has(rootId)) numbers.clear();
      transact(() => dropTree.run(owners.id, rootId));
    },

    releaseAll() {
      numbers.clear();
      transact(() => dropTrees.run(owners.id));
    },

    putSignal(runId, message, at) {
      const received = JSON.stringify({ payload: message.payload, by: message.by, at });
      return transact((): SignalOutcome => {
        const run = find.get(runId);
        if (run === undefined || run.end_status !== null) return "unknown";
        const runNo = integer(run, "no");
        const answers = answeredRequest(message.name);
        if (answers !== null) {
          if (answerOf.get(runNo, answers) !== undefined) return "already_answered";
          const request = requestOf.get(runNo, answers);
          if (request === undefined) return "unknown";
          if (message.digest !== undefined && message.digest !== text(request, "digest")) return "digest_mismatch";
          if (typeof request.until === "number" && at > request.until) return "expired";
        }
        addSignal.run(runNo, message.name, answers, received);
        setSignalled.run(integer(run, "root_no"));
        return "accepted";
      });
    },

    requestCancel(runId, reason, by, at) {
      return transact(() => setCancel.run(JSON.stringify({ reason, by, at }), runId).changes === 1);
    },
  };
}

const ANSWER_PREFIX = "request/";

function answeredRequest(name: string): string | null {
  return name.startsWith(ANSWER_PREFIX) ? name.slice(ANSWER_PREFIX.length) : null;
}
