import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { damaged } from "./faults.ts";

/** "SLUI" in the database's header, which identifies a store. */
export const APPLICATION_ID = 0x534c5549;
export const STORE_VERSION = 1;

/**
 * A record's key is its run's number and its seq in one integer, so that a run's records are adjacent in the table and a commit
 * updates no index.
 */
export const SEQ_SPACE = 2 ** 24;

/** Big columns come last, since SQLite reads a row only as far as needed. `*_blob` names the file of a long text. */
export const SCHEMA = `
CREATE TABLE store (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  machine TEXT NOT NULL
) STRICT;

CREATE TABLE runs (
  no INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  root_no INTEGER NOT NULL REFERENCES runs (no),
  parent_id TEXT,
  created_at INTEGER NOT NULL,
  end_status TEXT,
  cancel TEXT,
  end_blob TEXT,
  input_blob TEXT,
  end_value TEXT,
  input TEXT
) STRICT;
CREATE INDEX runs_of_root ON runs (root_no);

CREATE TABLE trees (
  root_no INTEGER PRIMARY KEY REFERENCES runs (no),
  epoch INTEGER NOT NULL,
  owner TEXT,
  label TEXT
) STRICT;

CREATE TABLE chains (
  run_no INTEGER PRIMARY KEY REFERENCES runs (no),
  records INTEGER NOT NULL,
  head TEXT NOT NULL
) STRICT;

CREATE TABLE records (
  place INTEGER PRIMARY KEY,
  ordinal INTEGER NOT NULL,
  step_id TEXT NOT NULL,
  phase TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  hash TEXT NOT NULL,
  value_blob TEXT,
  events_blob TEXT,
  value TEXT,
  events TEXT
) STRICT;

CREATE TABLE requests (
  no INTEGER PRIMARY KEY,
  run_no INTEGER NOT NULL REFERENCES runs (no),
  request_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  digest TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (run_no, request_id)
) STRICT;

CREATE TABLE signals (
  no INTEGER PRIMARY KEY,
  run_no INTEGER NOT NULL REFERENCES runs (no),
  name TEXT NOT NULL,
  answers TEXT,
  received TEXT NOT NULL,
  UNIQUE (run_no, answers)
) STRICT;
CREATE INDEX signals_by_name ON signals (run_no, name);

PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${STORE_VERSION};
`;

/** Added to stores of earlier versions: the roots that continue at a time, or because of a signal. */
export const ADDITIONS = `
CREATE TABLE IF NOT EXISTS wakes (
  root_no INTEGER PRIMARY KEY REFERENCES runs (no),
  wake_at INTEGER,
  signalled INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS wakes_by_time ON wakes (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS wakes_by_signal ON wakes (root_no) WHERE signalled = 1;
`;

/** Stands for the additions in a store of an earlier version that is opened for reading. */
export const MISSING_ADDITIONS =
  "CREATE TEMP TABLE wakes (root_no INTEGER PRIMARY KEY, wake_at INTEGER, signalled INTEGER) STRICT";

/** Runs work in a write transaction, which is rolled back if it throws. */
export type Transact = <T>(work: () => T) => T;

export function transactions(db: DatabaseSync): Transact {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  return (work) => {
    begin.run();
    try {
      const result = work();
      commit.run();
      return result;
    } catch (thrown) {
      // SQLite rolls back by itself when the disk is full.
      if (db.isTransaction) rollback.run();
      throw thrown;
    }
  };
}

/** A row as node:sqlite returns it. */
export type Row = Record<string, SQLOutputValue>;

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw wrongCell(column);
}

export function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value === "number") return value;
  throw wrongCell(column);
}

/** Undefined for NULL. */
export function textOrNone(row: Row, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column);
}

/** One of the words that a column may hold. */
export function word<W extends string>(row: Row, column: string, words: readonly W[]): W {
  const found = words.find((each) => each === row[column]);
  if (found !== undefined) return found;
  throw wrongCell(column);
}

function wrongCell(column: string): Error {
  return damaged("journal.db", `column ${column} has a value that Sluice never writes`);
}
