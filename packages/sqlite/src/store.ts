import { type Clock, type RunHost, systemClock } from "@sluice/core";
import { createHost, type JournalStore, type StoreChange } from "@sluice/core/host";
import { backUp } from "./backup.ts";
import { createBlobs } from "./blobs.ts";
import { isStoreFault, storeError, storeFault } from "./faults.ts";
import { type OpeningOptions, type OpenJournal, openForReading, openForWriting, whenFree } from "./opening.ts";
import { createOwners } from "./owners.ts";
import { createReader } from "./reader.ts";
import { createRemover } from "./removal.ts";
import { createWatch } from "./watch.ts";
import { createWriter } from "./writer.ts";

export interface SqliteHostOptions extends OpeningOptions {
  /** The clock for retries and polls. */
  readonly clock?: Clock;
  /** Opens for reading only, which also works on a read-only disk and for another machine's store. */
  readonly readOnly?: boolean;
}

/** A journal store in a folder of this machine. */
export interface SqliteStore extends JournalStore {
  /** Absolute path with links resolved, which tools must not access. */
  readonly folder: string;
  /** Copies the store to a new folder. */
  backupTo(folder: string): void;
}

/**
 * Opens the store in `folder`, creating it if missing. Throws SluiceErrors of class Host: `store_not_writable`,
 * `store_folder_in_use`, `store_network_filesystem`, `store_foreign_machine`, `store_newer_version`, `store_damaged`,
 * `store_busy`, `store_missing` (reading only).
 */
export function openJournalStore(folder: string, options: SqliteHostOptions = {}): SqliteStore {
  const clock = options.clock ?? systemClock;
  const readOnly = options.readOnly === true;
  const opened = readOnly ? openForReading(folder) : openForWriting(folder, options);
  try {
    return assemble(opened, clock, readOnly);
  } catch (thrown) {
    opened.db.close();
    throw storeFault(thrown, opened.folder.journal);
  }
}

/** Bounds how long a removal blocks other processes. */
const REMOVED_AT_ONCE = 50;

function chunked<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  const chunks: T[][] = [];
  for (let at = 0; at < all.length; at += size) chunks.push(all.slice(at, at + size));
  return chunks;
}

function assemble({ db, folder }: OpenJournal, clock: Clock, readOnly: boolean): SqliteStore {
  const owners = createOwners(folder.owners);
  const blobs = createBlobs(folder.blobs, owners.id);
  const reader = createReader(db, blobs, owners.isLive);
  const writer = createWriter(db, blobs, owners);
  const watch = createWatch(db, clock);
  let closed = false;

  if (!readOnly) {
    owners.sweep();
    blobs.sweep(owners.isLive);
  }

  const guard = (): void => {
    if (closed) throw storeError("store_closed", "the run store is closed; open it again", { path: folder.root });
  };
  /** Checks on every try, since the store may be closed while a call waits for a lock. */
  const attempt = <T>(work: () => T): T | Promise<T> =>
    whenFree(clock, folder.journal, () => {
      guard();
      return work();
    });
  const writing = <T>(prepare: () => () => T, what: StoreChange = "any"): T | Promise<T> => {
    guard();
    if (readOnly)
      throw storeError("store_read_only", `the run store ${folder.root} was opened for reading only`, {
        path: folder.root,
      });
    const done = attempt(prepare());
    if (done instanceof Promise) return done.finally(() => watch.changed(what));
    watch.changed(what);
    return done;
  };

  return {
    ownerId: owners.id,
    folder: folder.root,
    create: (run, commit) => writing(() => writer.create(run, commit)),
    createWhole: (runs) => writing(() => writer.createWhole(runs)),
    claim: (rootId) => writing(() => () => writer.claim(rootId)),
    // A closed store owns nothing.
    release: (rootId) => (closed ? undefined : writing(() => () => writer.release(rootId))),
    append: (commit) => writing(() => writer.append(commit), "records"),
    run: (runId) => attempt(() => reader.run(runId)),
    runs: (rootId, limit) => attempt(() => reader.runs(rootId, limit)),
    records: (runId, from, limit) => attempt(() => reader.records(runId, from, limit)),
    due: (now, limit) => attempt(() => reader.due(now, limit)),
    nextWake: (now) => attempt(() => reader.nextWake(now)),
    putSignal: (runId, message, at) => writing(() => () => writer.putSignal(runId, message, at)),
    signals: (runId, name) => attempt(() => reader.signals(runId, name)),
    requestCancel: (runId, reason, by, at) => writing(() => () => writer.requestCancel(runId, reason, by, at)),
    requests: (rootId) => attempt(() => reader.requests(rootId)),
    async remove(rootIds) {
      guard();
      const remover = createRemover(db, blobs, owners);
      const removed: string[] = [];
      for (const some of chunked(rootIds, REMOVED_AT_ONCE))
        removed.push(...(await writing(() => () => remover.remove(some))));
      for (const some of chunked(blobs.names(), REMOVED_AT_ONCE))
        await writing(() => () => remover.removeUnnamed(some));
      if (removed.length > 0) await writing(() => () => remover.shrink());
      return removed;
    },
    onChange(listener) {
      guard();
      return watch.listen(listener);
    },
    backupTo(target) {
      guard();
      backUp(db, blobs, target, readOnly);
    },
    async close() {
      if (closed) return;
      closed = true;
      watch.close();
      try {
        if (owners.isLive(owners.id)) await whenFree(clock, folder.journal, () => writer.releaseAll());
        if (!readOnly) db.exec("PRAGMA wal_checkpoint(PASSIVE)");
      } catch (thrown) {
        // Harmless: ownership ends with the lock, and the log can be read without a checkpoint.
        if (!isStoreFault(thrown)) throw thrown;
      } finally {
        db.close();
        owners.close();
      }
    },
  };
}

/** A host with its store in `folder`. Its runs survive the process and can be watched, answered and resumed from others. */
export function sqliteHost(folder: string, options: SqliteHostOptions = {}): RunHost {
  const store = openJournalStore(folder, options);
  return createHost(store, options.clock === undefined ? {} : { clock: options.clock });
}
