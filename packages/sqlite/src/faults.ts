import { type JsonObject, SluiceError } from "@sluice/core";

/** SQLite's primary result codes that the store handles. */
const ERROR = 1;
const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

export function storeError(code: string, message: string, detail: JsonObject = {}, cause?: unknown): SluiceError {
  return new SluiceError("Host", code, message, cause === undefined ? { detail } : { detail, cause });
}

/** The primary SQLite code of a thrown value. */
function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
}

export function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return thrown.code;
}

/** Whether another process holds the lock; a retry may work. */
export function isBusy(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code === BUSY || code === LOCKED;
}

/** Whether the database could not be opened: no write permission beside it, or no such file. */
export function isUnopenable(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code === READONLY || code === CANTOPEN;
}

/** Whether a thrown value is a failure of SQLite, the file system or the store. */
export function isStoreFault(thrown: unknown): boolean {
  const fault = storeFault(thrown, "");
  return fault instanceof SluiceError && fault.class === "Host";
}

/** Converts an error of SQLite or the file system to a Host error; returns anything else unchanged. */
export function storeFault(thrown: unknown, path: string): unknown {
  if (thrown instanceof SluiceError || !(thrown instanceof Error)) return thrown;
  const reason = thrown.message;
  const detail = { path };
  switch (sqliteCode(thrown) ?? systemCode(thrown)) {
    case BUSY:
    case LOCKED:
      return storeError("store_busy", `another process keeps the run store ${path} locked; try again`, detail, thrown);
    case FULL:
    case "ENOSPC":
    case "EDQUOT":
      return storeError(
        "store_full",
        `no disk space is left for the run store ${path} (${reason}); free some space, then resume the run, or start it again if it was not recorded`,
        detail,
        thrown,
      );
    case READONLY:
    case CANTOPEN:
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return notWritable(path, reason, thrown);
    // The statements are fixed, so one that SQLite does not understand means foreign tables.
    case ERROR:
    case CORRUPT:
    case NOTADB:
      return damaged(path, reason, thrown);
    case IOERR:
    case "EIO":
      return storeError(
        "store_io",
        `the disk failed under the run store ${path} (${reason}); check the disk`,
        detail,
        thrown,
      );
    default:
      return sqliteCode(thrown) === undefined && systemCode(thrown)?.startsWith("E") !== true
        ? thrown
        : storeError("store_io", `the run store ${path} failed: ${reason}`, detail, thrown);
  }
}

export function notWritable(path: string, why: string, cause?: unknown): SluiceError {
  const fix = "give this user read and write permission, or name another folder with --store";
  return storeError("store_not_writable", `the run store cannot use ${path} (${why}); ${fix}`, { path }, cause);
}

export function damaged(path: string, why: string, cause?: unknown): SluiceError {
  const fix = "move it away, or restore a backup";
  return storeError("store_damaged", `${path} is damaged or not a Sluice store (${why}); ${fix}`, { path }, cause);
}
