import { type BigIntStats, constants } from "node:fs";
import { access, type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type RecoverAnswer,
  type SluiceError,
  type ToolCall,
} from "@sluice/core";
import { type OpenFolder, readUpTo, withFile, withFolder, withMadeFolder } from "./open.ts";
import { asFault, checkAborted, fault, systemCode } from "./results.ts";
import { MAX_FILE_BYTES, sha256 } from "./text.ts";

/** What is in a file now. */
export interface Present {
  readonly bytes: Buffer;
  readonly hash: string;
  readonly stats: BigIntStats;
}

/** What an Edit or a Write is about to do, recorded before it does it. `null` stands for no file. */
export interface WriteIntent {
  readonly real: string;
  readonly before: string | null;
  readonly after: string;
}

/** The content of a judged path; undefined when nothing is there. */
export async function readPresent(real: string): Promise<Present | undefined> {
  try {
    return await withFile(real, async (file) => {
      if (file.stats.size > MAX_FILE_BYTES) {
        throw fault(
          "file_too_large",
          `${basename(real)} has ${file.stats.size} bytes; files over ${MAX_FILE_BYTES} bytes are not edited.`,
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
 * Puts new content in place of a file, whole or not at all: a temporary file beside it, synced, renamed over it. The
 * mode stays, and for root the owner. A file with several names (hard links) keeps its old content under the others.
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
        await checkUnchanged(folder.at(basename(real)), real, present?.stats);
        checkAborted(call.signal);
        await rename(temporary, folder.at(basename(real)));
      } finally {
        // After the rename there is nothing under this name.
        await rm(temporary, { force: true });
      }
      await folder.sync();
    });
  } catch (thrown) {
    throw asFault(thrown, basename(real));
  }
}

/** The same for every try of one call, so that recovery finds what a killed process left. */
function temporaryName(call: ToolCall): string {
  return `.sluice-${sha256(Buffer.from(call.idempotencyKey)).slice(0, 16)}.tmp`;
}

async function writeTemporary(path: string, bytes: Uint8Array, old: BigIntStats | undefined): Promise<void> {
  await rm(path, { force: true });
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  // What replaces a private file must not be readable by others even for a moment; a new file gets what umask leaves.
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

/** The last look before the rename: whoever wrote the file since it was read must not lose that. */
async function checkUnchanged(path: string, real: string, old: BigIntStats | undefined): Promise<void> {
  let now: BigIntStats | undefined;
  try {
    now = await lstat(path, { bigint: true });
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
  }
  const same =
    now === undefined || old === undefined
      ? now === old
      : now.ino === old.ino &&
        now.dev === old.dev &&
        now.size === old.size &&
        now.mtimeNs === old.mtimeNs &&
        now.ctimeNs === old.ctimeNs;
  if (!same) throw staleFile(basename(real), "it changed while this call ran");
}

export function staleFile(shown: string, why: string): Error {
  return fault("stale_file", `${shown}: ${why}. Nothing was written. Read it, then make the change again.`);
}

/** Whether an interrupted Edit or Write took place, told by the file's hash; also removes what it left half done. */
export async function recoverWrite(intent: Json, call: ToolCall): Promise<RecoverAnswer> {
  const write = readIntent(intent);
  // An intent without hashes is a call that could only have failed.
  if (write === undefined) return "not_started";
  try {
    await removeTemporary(write.real, call);
    const present = await readPresent(write.real);
    const now = present?.hash ?? null;
    // As after a call that was not interrupted, the file is known at this hash: the next Edit of it is not stale.
    if (now === write.after) return { done: { notes: { [write.real]: write.after } } };
    return now === write.before ? "not_started" : "unknown";
  } catch (thrown) {
    // A path that cannot be read, or leads elsewhere by now, tells nothing about what happened.
    if (asFault(thrown).class === "ToolTerminal") return "unknown";
    throw thrown;
  }
}

async function removeTemporary(real: string, call: ToolCall): Promise<void> {
  try {
    await withFolder(dirname(real), async (folder: OpenFolder) => rm(folder.at(temporaryName(call)), { force: true }));
  } catch (thrown) {
    if (asFault(thrown).code !== "not_found") throw thrown;
  }
}

/** The intent of a call that cannot be done: executing it says why, and writes nothing. */
export function faultIntent(known: SluiceError): JsonObject {
  return { fault: { code: known.code, message: known.message, detail: known.detail ?? {} } };
}

/** Holds a planned change against its recorded intent. Throws the recorded fault, or `stale_file` when they differ. */
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

function readIntent(intent: Json | undefined): WriteIntent | undefined {
  if (!isJsonObject(intent)) return undefined;
  const { real, before, after } = intent;
  if (typeof real !== "string" || typeof after !== "string") return undefined;
  return before === null || typeof before === "string" ? { real, before, after } : undefined;
}
