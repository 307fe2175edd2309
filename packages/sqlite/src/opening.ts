import { chmodSync, existsSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Clock } from "@sluice/core";
import { damaged, isBusy, isUnopenable, notWritable, storeError, storeFault } from "./faults.ts";
import { checkFolder, findFolder, isWritable, makeFolder, makePrivate, type StoreFolder } from "./folder.ts";
import { machineDigest } from "./machine.ts";
import { APPLICATION_ID, integer, SCHEMA, STORE_VERSION, text } from "./schema.ts";

export interface OpeningOptions {
  /** Makes a store from another machine this machine's. */
  readonly adopt?: boolean;
  /** What stands for this machine; read from the system when omitted. */
  readonly machineId?: string;
}

/** An open journal and where it lies. */
export interface OpenJournal {
  readonly db: DatabaseSync;
  readonly folder: StoreFolder;
}

/** Opens a store to write to it, and makes what is missing. A store that is refused is left as it was. */
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
    // SQLite gives the log and its index the mode of the database, so this comes before the first write.
    if (fresh) chmodSync(folder.journal, 0o600);
    db.exec("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL");
    const machine = machineDigest(options.machineId);
    if (isEmpty(db)) create(db, folder, machine);
    checkFormat(db, folder);
    checkMachine(db, folder, machine, options.adopt === true);
    useLog(db, folder);
    makePrivate(folder.journal, 0o600);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** Opens a store to look at it: also one that may not be written, or that came from another machine. */
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
  // A connection that may write leaves no files behind when it closes; one that may not does.
  if (isWritable(folder.root) && isWritable(folder.journal)) {
    const db = new DatabaseSync(folder.journal, { timeout: BUSY_TIMEOUT_MS });
    db.exec("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON");
    return db;
  }
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(folder.journal, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    db.prepare("PRAGMA user_version").get();
    return db;
  } catch (thrown) {
    db?.close();
    if (!isUnopenable(thrown)) throw thrown;
  }
  const log = `${folder.journal}-wal`;
  if (existsSync(log) && statSync(log).size > 0) {
    throw notWritable(
      folder.root,
      "its last commits are still in the log, and reading them needs a writable place; copy the folder to one",
    );
  }
  // Nobody has it open and this process cannot write to it: read the file as it stands.
  const url = pathToFileURL(folder.journal);
  url.search = "immutable=1";
  return new DatabaseSync(url, { readOnly: true });
}

function pragma(db: DatabaseSync, name: string): number {
  return integer(db.prepare(`PRAGMA ${name}`).get() ?? {}, name);
}

function isEmpty(db: DatabaseSync): boolean {
  const tables = integer(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get() ?? {}, "n");
  return tables === 0 && pragma(db, "application_id") === 0 && pragma(db, "user_version") === 0;
}

/** A write-ahead log, so that readers and the one writer do not wait for each other. A backup comes without it. */
function useLog(db: DatabaseSync, folder: StoreFolder): void {
  if (text(db.prepare("PRAGMA journal_mode = WAL").get() ?? {}, "journal_mode") === "wal") return;
  const why = `${folder.root} lies on a disk that cannot hold a run store`;
  throw storeError("store_io", `${why}; name another folder with --store`, { path: folder.root });
}

function create(db: DatabaseSync, folder: StoreFolder, machine: string): void {
  useLog(db, folder);
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have been faster between the look and the lock.
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
  if (application !== APPLICATION_ID) throw damaged(folder.journal, "it is another program's database");
  const version = pragma(db, "user_version");
  if (version !== STORE_VERSION)
    throw storeError(
      "store_newer_version",
      `${folder.journal} was written by another Sluice (store version ${version}, this one knows ${STORE_VERSION}); update Sluice, or name another folder with --store`,
      { path: folder.journal, version, known: STORE_VERSION },
    );
  refuseStrangers(db, folder);
}

/** What would run by itself when rows are read or written: a store that somebody handed over may hold anything. */
const STRANGERS = `
SELECT s.type || ' ' || s.name AS stranger FROM sqlite_schema s
WHERE s.type NOT IN ('table', 'index') OR s.sql LIKE 'CREATE VIRTUAL%'
  OR EXISTS (SELECT 1 FROM pragma_table_xinfo(s.name) x WHERE x.hidden <> 0)
LIMIT 1`;

function refuseStrangers(db: DatabaseSync, folder: StoreFolder): void {
  const row = db.prepare(STRANGERS).get();
  if (row !== undefined) throw damaged(folder.journal, `it holds what no Sluice makes: ${text(row, "stranger")}`);
}

function checkMachine(db: DatabaseSync, folder: StoreFolder, digest: string, adopt: boolean): void {
  const row = db.prepare("SELECT machine FROM store").get();
  if (row === undefined) throw damaged(folder.journal, "it does not say which machine it belongs to");
  if (text(row, "machine") === digest) return;
  if (adopt) {
    db.prepare("UPDATE store SET machine = ?").run(digest);
    return;
  }
  throw storeError(
    "store_foreign_machine",
    `${folder.root} belongs to another machine, where its runs may still be at work; if it was moved here for good, open it once with --adopt-store`,
    { path: folder.root },
  );
}

/** How long one call may block this thread for a lock: node:sqlite waits synchronously. */
export const BUSY_TIMEOUT_MS = 10;
const PAUSE_MS = 40;
/** With the pauses in between this is about five seconds. */
const TRIES = 100;

/** Does `attempt` at once; while another process holds the lock, again after a pause that leaves the thread free. */
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

/** The same for opening, which is synchronous: nothing of this process can be under way in a store it has not opened. */
export function whenFreeBlocking<T>(path: string, attempt: () => T): T {
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
