import { type BigIntStats, constants, lstatSync } from "node:fs";
import { access, type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type RecoverAnswer,
  type SluiceError,
  type ToolCall,
} from "@sluice/core";
import { shape } from "@sluice/core/runtime";
import { readUpTo, withFile, withFolder, withMadeFolder } from "./open.ts";
import { asFault, checkAborted, fault } from "./results.ts";
import { MAX_FILE_BYTES, sha256 } from "./text.ts";

/** The current content of a file. */
export interface Present {
  readonly bytes: Buffer;
  readonly hash: string;
  readonly stats: BigIntStats;
}

/** The effect of an Edit or a Write, recorded before it happens. `null` stands for no file. */
const writeIntent = shape.openObject({ real: shape.text(), before: shape.orNull(shape.text()), after: shape.text() });
export type WriteIntent = shape.ShapeOf<typeof writeIntent>;

/** The content of a judged path; undefined if there is no file. */
export async function readPresent(real: string): Promise<Present | undefined> {
  try {
    return await withFile(real, async (file) => {
      if (file.stats.size > MAX_FILE_BYTES) {
        throw fault(
          "file_too_large",
          `${basename(real)} has ${file.stats.size} bytes. Files over ${MAX_FILE_BYTES} bytes cannot be edited.`,
        );
      }
      const bytes = await readUpTo(file, MAX_FILE_BYTES + 1);
      return { bytes, hash: sha256(bytes), stats: file.stats };
    });
  } catch (thrown) {
    const known = asFault(thrown, basename(real));
    if (known.code === "not_found") return undefined;
    throw known;
  }
}

/**
 * Replaces a file's content atomically, by renaming a synced temporary file over it. Keeps the mode, and the owner if run by
 * root. Other hard links keep the old content.
 */
export async function replaceFile(
  real: string,
  bytes: Uint8Array,
  present: Present | undefined,
  call: ToolCall,
): Promise<void> {
  try {
    if (present !== undefined) await access(real, constants.W_OK);
    const within = present === undefined ? withMadeFolder : withFolder;
    await within(dirname(real), async (folder) => {
      const temporary = folder.at(temporaryName(call));
      try {
        await writeTemporary(temporary, bytes, present?.stats);
        checkUnchanged(folder.at(basename(real)), real, present?.stats);
        checkAborted(call.signal);
        await rename(temporary, folder.at(basename(real)));
      } finally {
        // After the rename this name is free.
        await rm(temporary, { force: true });
      }
      await folder.sync();
    });
  } catch (thrown) {
    throw asFault(thrown, basename(real));
  }
}

/** The same for every attempt of a call, so that recovery finds the file of a killed process. */
function temporaryName(call: ToolCall): string {
  return `.sluice-${sha256(Buffer.from(call.idempotencyKey)).slice(0, 16)}.tmp`;
}

async function writeTemporary(path: string, bytes: Uint8Array, old: BigIntStats | undefined): Promise<void> {
  await rm(path, { force: true });
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  // A replacement of a private file must never be readable by others; a new file follows the umask.
  const handle = await open(path, flags, old === undefined ? 0o666 : 0o600);
  try {
    await handle.writeFile(bytes);
    if (old !== undefined) await keepModeAndOwner(handle, old);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function keepModeAndOwner(handle: FileHandle, old: BigIntStats): Promise<void> {
  if (process.getuid?.() === 0) await handle.chown(Number(old.uid), Number(old.gid));
  await handle.chmod(Number(old.mode & 0o777n));
}

/** The last check before the rename, so that no other change is lost. */
function checkUnchanged(path: string, real: string, old: BigIntStats | undefined): void {
  const now = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  const same = (["ino", "dev", "size", "mtimeNs", "ctimeNs"] as const).every((key) => now?.[key] === old?.[key]);
  if (!same) throw staleFile(basename(real), "it changed while this call ran");
}

export function staleFile(shown: string, why: string): Error {
  return fault("stale_file", `${shown}: ${why}. Nothing was written. Read it and make the change again.`);
}

/** Finds out from the file's hash whether an interrupted Edit or Write took effect, and removes its temporary file. */
export async function recoverWrite(intent: Json, call: ToolCall): Promise<RecoverAnswer> {
  const write = writeIntent.fits(intent, []) ? intent : undefined;
  // Without hashes the call could only have failed.
  if (write === undefined) return "not_started";
  try {
    await removeTemporary(write.real, call);
    const present = await readPresent(write.real);
    const now = present?.hash ?? null;
    // As after a completed call, the next Edit of the file is not stale.
    if (now === write.after) return { done: { notes: { [write.real]: write.after } } };
    return now === write.before ? "not_started" : "unknown";
  } catch (thrown) {
    // A path that cannot be read, or now leads elsewhere, does not show what happened.
    if (asFault(thrown).class === "ToolTerminal") return "unknown";
    throw thrown;
  }
}

async function removeTemporary(real: string, call: ToolCall): Promise<void> {
  try {
    await withFolder(dirname(real), async (folder) => rm(folder.at(temporaryName(call)), { force: true }));
  } catch (thrown) {
    if (asFault(thrown).code !== "not_found") throw thrown;
  }
}

/** The intent of an impossible call: executing it reports why, and writes nothing. */
export function faultIntent(known: SluiceError): JsonObject {
  return { fault: { code: known.code, message: known.message, detail: known.detail ?? {} } };
}

/** Compares a planned change with its recorded intent. Throws the recorded fault, or `stale_file` if they differ. */
export function checkIntent(planned: WriteIntent, intent: Json | undefined, shown: string): void {
  if (!isJsonObject(intent)) return;
  const recorded = intent.fault;
  if (isJsonObject(recorded) && typeof recorded.code === "string" && typeof recorded.message === "string") {
    throw fault(recorded.code, recorded.message, isJsonObject(recorded.detail) ? recorded.detail : {});
  }
  const { real, before, after } = planned;
  if (intent.real !== real || intent.before !== before || intent.after !== after) {
    throw staleFile(shown, "it changed after the call was recorded");
  }
}
