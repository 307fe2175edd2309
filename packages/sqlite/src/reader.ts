import type { DatabaseSync } from "node:sqlite";
import {
  isJsonObject,
  type JournalRecord,
  type Json,
  type JsonObject,
  type ReceivedSignal,
  type RunEnd,
  SluiceError,
} from "@sluice/core";
import type { RunRow, StoredRequest } from "@sluice/core/host";
import { END_STATUSES, parseStoredJson, RECORD_PHASES, unknownRun } from "@sluice/core/runtime";
import type { Blobs } from "./blobs.ts";
import { integer, type Row, SEQ_SPACE, text, textOrNone, word } from "./schema.ts";

/** All reads from the journal. */
export interface Reader {
  run(runId: string): RunRow | undefined;
  /** At most `limit` roots, newest first; or one tree in order of creation. */
  runs(rootId: string | undefined, limit: number | undefined): readonly RunRow[];
  records(runId: string, from: number, limit: number | undefined): readonly JournalRecord[];
  signals(runId: string, name: string): readonly ReceivedSignal[];
  requests(rootId: string | undefined): readonly StoredRequest[];
  due(now: number, limit: number): readonly string[];
  nextWake(now: number): number | undefined;
}

const COLUMNS = `r.run_id, root.run_id AS root_id, r.parent_id, r.created_at, r.end_status, r.cancel, r.end_blob, r.input_blob,
  r.end_value, r.input, t.owner, t.label, c.records, c.head, w.wake_at`;
const RUN = `
SELECT ${COLUMNS}
FROM runs r JOIN runs root ON root.no = r.root_no JOIN trees t ON t.root_no = r.root_no JOIN chains c ON c.run_no = r.no
  LEFT JOIN wakes w ON w.root_no = r.no`;

const NO_LIMIT = -1;

const REQUEST = `
SELECT q.request_id, r.run_id, q.kind, q.digest, q.opened_at, q.body,
  EXISTS (SELECT 1 FROM signals s WHERE s.run_no = q.run_no AND s.answers = q.request_id) AS answered
FROM requests q JOIN runs r ON r.no = q.run_no`;

export function createReader(db: DatabaseSync, blobs: Blobs, isLive: (ownerId: string) => boolean): Reader {
  const oneRun = db.prepare(`${RUN} WHERE r.run_id = ?`);
  // Trees first: there is one per root, so the newest few are found without reading others.
  const roots = db.prepare(
    `SELECT ${COLUMNS} FROM trees t CROSS JOIN runs r ON r.no = t.root_no JOIN runs root ON root.no = t.root_no JOIN chains c ON c.run_no = r.no LEFT JOIN wakes w ON w.root_no = r.no ORDER BY t.root_no DESC LIMIT ?`,
  );
  const tree = db.prepare(
    `${RUN} WHERE r.root_no = (SELECT no FROM runs WHERE run_id = ? AND root_no = no) ORDER BY r.no`,
  );
  const runNo = db.prepare("SELECT no FROM runs WHERE run_id = ?");
  const records = db.prepare(
    "SELECT place - :base AS seq, ordinal, step_id, phase, incarnation, hash, value_blob, events_blob, value, events FROM records WHERE place >= :base + :from AND place < :base + :space ORDER BY place LIMIT :limit",
  );
  // One statement, since every model call reads signals; a run without any yields one row of NULL.
  const signals = db.prepare(
    "SELECT s.received FROM runs r LEFT JOIN signals s ON s.run_no = r.no AND s.name = ? WHERE r.run_id = ? ORDER BY s.no",
  );
  const allRequests = db.prepare(`${REQUEST} ORDER BY q.opened_at, q.no`);
  const treeRequests = db.prepare(
    `${REQUEST} WHERE r.root_no = (SELECT no FROM runs WHERE run_id = ? AND root_no = no) ORDER BY q.opened_at, q.no`,
  );

  // Read one by one, since those with a live owner do not count.
  const WAKING =
    "SELECT r.run_id, t.owner FROM wakes w JOIN runs r ON r.no = w.root_no JOIN trees t ON t.root_no = w.root_no";
  const dueByTime = db.prepare(`${WAKING} WHERE w.wake_at <= ? ORDER BY w.wake_at`);
  const dueBySignal = db.prepare(`${WAKING} WHERE w.signalled = 1 AND (w.wake_at IS NULL OR w.wake_at > ?)`);
  const nextWake = db.prepare("SELECT min(wake_at) AS wake_at FROM wakes WHERE wake_at > ?");

  const numberOf = (runId: string): number => {
    const row = runNo.get(runId);
    if (row === undefined) throw unknownRun(runId);
    return integer(row, "no");
  };
  /** A text of a row, from the row or its blob; `of` names it in errors. */
  const whole = (row: Row, column: string, blobColumn: string, of: string): string => {
    const digest = textOrNone(row, blobColumn);
    return digest === undefined ? text(row, column) : blobs.read(digest, of);
  };
  const toRun = (row: Row, live: (ownerId: string) => boolean): RunRow => {
    const runId = text(row, "run_id");
    const parentId = textOrNone(row, "parent_id");
    const cancel = textOrNone(row, "cancel");
    const owner = textOrNone(row, "owner");
    const run: RunRow = {
      runId,
      rootId: text(row, "root_id"),
      createdAt: integer(row, "created_at"),
      records: integer(row, "records"),
      head: text(row, "head"),
      // Read on access, since rows are read at every change and these may be long.
      get input() {
        const of = `the input of run ${runId}`;
        return jsonIn(of, whole(row, "input", "input_blob", of));
      },
      ...(parentId === undefined ? {} : { parentId }),
      ...(owner === undefined ? {} : { owner: { id: owner, label: text(row, "label"), live: live(owner) } }),
      ...(row.wake_at === null ? {} : { wakeAt: integer(row, "wake_at") }),
      ...(cancel === undefined ? {} : { cancel: toCancel(`the cancellation of run ${runId}`, cancel) }),
    };
    if (row.end_status === null) return run;
    const status = word(row, "end_status", END_STATUSES);
    const of = `the end of run ${runId}`;
    const end = (): RunEnd => ({ status, value: jsonIn(of, whole(row, "end_value", "end_blob", of)) });
    return Object.defineProperty(run, "end", { get: end, enumerable: true });
  };

  return {
    run(runId) {
      const row = oneRun.get(runId);
      return row === undefined ? undefined : toRun(row, isLive);
    },
    runs(rootId, limit) {
      const known = new Map<string, boolean>();
      const live = (ownerId: string): boolean => {
        const answer = known.get(ownerId) ?? isLive(ownerId);
        known.set(ownerId, answer);
        return answer;
      };
      const rows = rootId === undefined ? roots.all(limit ?? NO_LIMIT) : tree.all(rootId);
      return rows.map((row) => toRun(row, live));
    },
    records(runId, from, limit = NO_LIMIT) {
      const rows = records.all({ base: numberOf(runId) * SEQ_SPACE, from, space: SEQ_SPACE, limit });
      return rows.map((row) => {
        const seq = integer(row, "seq");
        const stepId = text(row, "step_id");
        const of = `record ${seq} (${stepId}) of run ${runId}`;
        return {
          seq,
          ordinal: integer(row, "ordinal"),
          stepId,
          phase: word(row, "phase", RECORD_PHASES),
          incarnation: text(row, "incarnation"),
          value: whole(row, "value", "value_blob", of),
          events: whole(row, "events", "events_blob", of),
          hash: text(row, "hash"),
        };
      });
    },
    signals(runId, name) {
      const rows = signals.all(name, runId);
      if (rows.length === 0) throw unknownRun(runId);
      return rows.flatMap((row) => {
        const received = textOrNone(row, "received");
        return received === undefined ? [] : [toSignal(`an answer to run ${runId}`, received)];
      });
    },
    due(now, limit) {
      const due: string[] = [];
      // To look at a lock takes milliseconds, and one process may own thousands of these runs.
      const live = new Map<string, boolean>();
      const lives = (owner: string): boolean => {
        const known = live.get(owner) ?? isLive(owner);
        live.set(owner, known);
        return known;
      };
      for (const waking of [dueByTime, dueBySignal]) {
        for (const row of waking.iterate(now)) {
          if (due.length >= limit) return due;
          const owner = textOrNone(row, "owner");
          if (owner === undefined || !lives(owner)) due.push(text(row, "run_id"));
        }
      }
      return due;
    },
    nextWake(now) {
      const row = nextWake.get(now);
      return row === undefined || row.wake_at === null ? undefined : integer(row, "wake_at");
    },
    requests: (rootId) => (rootId === undefined ? allRequests.all() : treeRequests.all(rootId)).map(toRequest),
  };
}

function jsonIn(what: string, written: string): Json {
  const read = parseStoredJson(written);
  if (read.ok) return read.value;
  throw notWritten(what, read.fault);
}

function notWritten(what: string, fault: string): SluiceError {
  const message = `${what} was changed after it was written (${fault}); restore a backup of the store`;
  return new SluiceError("Host", "journal_damaged", message);
}

function toCancel(what: string, written: string): NonNullable<RunRow["cancel"]> {
  const { reason, by, at } = membersOf(what, written);
  if (typeof reason === "string" && typeof by === "string" && typeof at === "number") return { reason, by, at };
  throw notWritten(what, "it does not name a reason, a sender and a time");
}

function toSignal(what: string, written: string): ReceivedSignal {
  const { payload, by, at } = membersOf(what, written);
  if (payload !== undefined && typeof by === "string" && typeof at === "number") return { payload, by, at };
  throw notWritten(what, "it does not name a payload, a sender and a time");
}

function membersOf(what: string, written: string): JsonObject {
  const value = jsonIn(what, written);
  if (isJsonObject(value)) return value;
  throw notWritten(what, "it is not an object");
}

function toRequest(row: Row): StoredRequest {
  const runId = text(row, "run_id");
  return {
    requestId: text(row, "request_id"),
    runId,
    kind: word(row, "kind", ["grantStageTool", "approveTransition", "askUser", "humanState"]),
    digest: text(row, "digest"),
    body: membersOf(`a request of run ${runId}`, text(row, "body")),
    openedAt: integer(row, "opened_at"),
    answered: integer(row, "answered") === 1,
  };
}
