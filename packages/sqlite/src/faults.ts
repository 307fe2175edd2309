import { type JsonObject, SluiceError } from "@sluice/core";

/** SQLite's primary result codes that mean something to a caller of the store. */
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

/** The primary SQLite code of anything that was thrown, without the extended bits. */
function sqliteCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
}

export function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return thrown.code;
}

/** Somebody else holds the lock; the same call may work a moment later. */
export function isBusy(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code === BUSY || code === LOCKED;
}

/** The database could not be opened the way it was asked for: no right to write beside it, or no such file. */
export function isUnopenable(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code === READONLY || code === CANTOPEN;
}

/** Whether SQLite or the file system failed, as they say it or as the store does. */
export function isStoreFault(thrown: unknown): boolean {
  const told = storeFault(thrown, "");
  return told instanceof SluiceError && told.class === "Host";
}

/** An error of SQLite or the file system as a Host error that says what to do; anything else as it is. */
export function storeFault(thrown: unknown, path: string): unknown {
  if (thrown instanceof SluiceError || !(thrown instanceof Error)) return thrown;
  const said = thrown.message;
  const detail = { path };
  switch (sqliteCode(thrown) ?? systemCode(thrown)) {
    case BUSY:
    case LOCKED:
      return storeError("store_busy", `another process kept the run store ${path} locked; try again`, detail, thrown);
    case FULL:
    case "ENOSPC":
    case "EDQUOT":
      return storeError(
        "store_full",
        `there is no room left for the run store ${path} (${said}); free some space, then resume the run, or start it again where none was recorded`,
        detail,
        thrown,
      );
    case READONLY:
    case CANTOPEN:
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return notWritable(path, said, thrown);
    // Our statements are fixed: one that SQLite does not understand means that the tables are not ours.
    case ERROR:
    case CORRUPT:
    case NOTADB:
      return damaged(path, said, thrown);
    case IOERR:
    case "EIO":
      return storeError(
        "store_io",
        `the disk failed under the run store ${path} (${said}); check the disk`,
        detail,
        thrown,
      );
    default:
      return sqliteCode(thrown) === undefined && systemCode(thrown)?.startsWith("E") !== true
        ? thrown
        : storeError("store_io", `the run store ${path} failed: ${said}`, detail, thrown);
  }
}

export function notWritable(path: string, why: string, cause?: unknown): SluiceError {
  const mend = "give this user the right to read and write there, or name another folder with --store";
  return storeError("store_not_writable", `the run store cannot use ${path} (${why}); ${mend}`, { path }, cause);
}

export function damaged(path: string, why: string, cause?: unknown): SluiceError {
  const mend = "move it aside, or put a backup in its place";
  return storeError("store_damaged", `${path} is damaged or no Sluice store (${why}); ${mend}`, { path }, cause);
}
