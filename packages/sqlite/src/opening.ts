import { chmodSync, existsSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Clock } from "@sluice/core";
import { damaged, isBusy, isUnopenable, notWritable, storeError, storeFault } from "./faults.ts";
import { checkFolder, findFolder, isWritable, makeFolder, makePrivate, type StoreFolder } from "./folder.ts";
import { machineDigest } from "./machine.ts";
import { ADDITIONS, APPLICATION_ID, integer, MISSING_ADDITIONS, SCHEMA, STORE_VERSION, text } from "./schema.ts";

export interface OpeningOptions {
  /** Adopts a store from another machine. */
  readonly adopt?: boolean;
  /** This machine's id. Default: the system's. */
  readonly machineId?: string;
}

/** An open journal and its paths. */
export interface OpenJournal {
  readonly db: DatabaseSync;
  readonly folder: StoreFolder;
}

/** Opens a store for writing and creates missing parts. Does not change a store that it refuses. */
export function openForWriting(wanted: string, options: OpeningOptions): OpenJournal {
  const found = checkFolder(wanted);
  const folder = found ?? makeFolder(wanted);
  const db = whenFreeBlocking(folder.journal, () => connectForWriting(folder, options));
  if (found !== undefined) makeFolder(wanted);
  return { db, folder };
}

function connectForWriting(folder: StoreFolder, options: OpeningOptions): DatabaseSync {
  const fresh = !existsSync(folder.journal);
  const db = new DatabaseSync(folder.journal, { timeout: BUSY_TIMEOUT_MS });
  try {
    // Before the first write, since SQLite gives the log and its index the database's mode.
    if (fresh) chmodSync(folder.journal, 0o600);
    db.exec("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL");
    const machine = machineDigest(options.machineId);
    if (isEmpty(db)) create(db, folder, machine);
    checkFormat(db, folder);
    checkMachine(db, folder, machine, options.adopt === true);
    useLog(db, folder);
    db.exec(ADDITIONS);
    makePrivate(folder.journal, 0o600);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** Opens a store for reading, also a read-only one or another machine's. */
export function openForReading(wanted: string): OpenJournal {
  const folder = findFolder(wanted);
  return whenFreeBlocking(folder.journal, () => {
    const db = connectForReading(folder);
    try {
      checkFormat(db, folder);
      return { db, folder };
    } catch (thrown) {
      db.close();
      throw thrown;
    }
  });
}

function connectForReading(folder: StoreFolder): DatabaseSync {
  // A read-only connection would leave files behind when it closes.
  if (isWritable(folder.root) && isWritable(folder.journal)) {
    const db = new DatabaseSync(folder.journal, { timeout: BUSY_TIMEOUT_MS });
    addMissing(db);
    db.exec("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON");
    return db;
  }
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(folder.journal, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    db.prepare("PRAGMA user_version").get();
    addMissing(db);
    return db;
  } catch (thrown) {
    db?.close();
    if (!isUnopenable(thrown)) throw thrown;
  }
  const log = `${folder.journal}-wal`;
  if (existsSync(log) && statSync(log).size > 0) {
    throw notWritable(
      folder.root,
      "its last commits are still in the log, which can be read only in a writable folder; copy it to one",
    );
  }
  // No process has it open and this one cannot write to it, so the file is immutable.
  const url = pathToFileURL(folder.journal);
  url.search = "immutable=1";
  const copy = new DatabaseSync(url, { readOnly: true });
  addMissing(copy);
  return copy;
}

function addMissing(db: DatabaseSync): void {
  const known = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'wakes'").get() ?? {};
  if (integer(known, "n") === 0) db.exec(MISSING_ADDITIONS);
}

function pragma(db: DatabaseSync, name: string): number {
  return integer(db.prepare(`PRAGMA ${name}`).get() ?? {}, name);
}

function isEmpty(db: DatabaseSync): boolean {
  const tables = integer(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get() ?? {}, "n");
  return tables === 0 && pragma(db, "application_id") === 0 && pragma(db, "user_version") === 0;
}

/** Uses a write-ahead log, so that readers and the writer do not wait for each other. A backup comes without one. */
function useLog(db: DatabaseSync, folder: StoreFolder): void {
  if (text(db.prepare("PRAGMA journal_mode = WAL").get() ?? {}, "journal_mode") === "wal") return;
  const why = `${folder.root} is on a disk that cannot hold a run store`;
  throw storeError("store_io", `${why}; name another folder with --store`, { path: folder.root });
}

function create(db: DatabaseSync, folder: StoreFolder, machine: string): void {
  useLog(db, folder);
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created it before the lock.
    if (isEmpty(db)) {
      db.exec(SCHEMA);
      db.prepare("INSERT INTO store (id, machine) VALUES (1, ?)").run(machine);
    }
    db.exec("COMMIT");
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw thrown;
  }
}

function checkFormat(db: DatabaseSync, folder: StoreFolder): void {
  const application = pragma(db, "application_id");
  if (application !== APPLICATION_ID) throw damaged(folder.journal, "the database belongs to another program");
  const version = pragma(db, "user_version");
  if (version !== STORE_VERSION)
    throw storeError(
      "store_newer_version",
      `${folder.journal} was written by another version of Sluice (store version ${version}; this one reads ${STORE_VERSION}); update Sluice, or name another folder with --store`,
      { path: folder.journal, version, known: STORE_VERSION },
    );
  refuseForeignObjects(db, folder);
}

/** Triggers, views, virtual tables and computed columns, which run code when a hostile store is used. */
const FOREIGN_OBJECTS = `
SELECT s.type || ' ' || s.name AS stranger FROM sqlite_schema s
WHERE s.type NOT IN ('table', 'index') OR s.sql LIKE 'CREATE VIRTUAL%'
  OR EXISTS (SELECT 1 FROM pragma_table_xinfo(s.name) x WHERE x.hidden <> 0)
LIMIT 1`;

function refuseForeignObjects(db: DatabaseSync, folder: StoreFolder): void {
  const row = db.prepare(FOREIGN_OBJECTS).get();
  if (row !== undefined)
    throw damaged(folder.journal, `it contains a ${text(row, "stranger")}, which Sluice never creates`);
}

function checkMachine(db: DatabaseSync, folder: StoreFolder, digest: string, adopt: boolean): void {
  const row = db.prepare("SELECT machine FROM store").get();
  if (row === undefined) throw damaged(folder.journal, "it does not name its machine");
  if (text(row, "machine") === digest) return;
  if (adopt) {
    db.prepare("UPDATE store SET machine = ?").run(digest);
    return;
  }
  throw storeError(
    "store_foreign_machine",
    `${folder.root} belongs to another machine, where its runs may still be running; if it was moved here permanently, open it once with --adopt-store`,
    { path: folder.root },
  );
}

/** How long one call may block this thread for a lock, in milliseconds; node:sqlite waits synchronously. */
const BUSY_TIMEOUT_MS = 10;
const PAUSE_MS = 40;
/** About five seconds with the pauses. */
const TRIES = 100;

/** Calls `attempt` now, and again after asynchronous pauses while another process holds the lock. */
export function whenFree<T>(clock: Clock, path: string, attempt: () => T): T | Promise<T> {
  try {
    return attempt();
  } catch (thrown) {
    if (isBusy(thrown)) return retry(clock, path, attempt);
    throw storeFault(thrown, path);
  }
}

async function retry<T>(clock: Clock, path: string, attempt: () => T): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    await new Promise<void>((resolve) => {
      clock.after(PAUSE_MS, resolve);
    });
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown) || tries >= TRIES) throw storeFault(thrown, path);
    }
  }
}

/** The same with blocking pauses, for opening, which is synchronous. */
function whenFreeBlocking<T>(path: string, attempt: () => T): T {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 1; ; tries += 1) {
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown) || tries >= TRIES) throw storeFault(thrown, path);
      Atomics.wait(sleeper, 0, 0, PAUSE_MS);
    }
  }
}
