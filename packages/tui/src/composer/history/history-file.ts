import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { parseJson } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { type Environment, secretMask, stateFolder } from "../../user/environment.ts";
import { MAX_ENTRIES } from "./history.ts";

/** Longest entry that is saved, in UTF-16 units. */
const MAX_ENTRY = 32_000;
/** Bytes that are read from the end of the file. */
const MAX_BYTES = 8_000_000;

/** Earlier inputs of this user, oldest first; `fault` says why they cannot be read. */
interface ReadHistory {
  readonly entries: readonly string[];
  readonly fault?: string;
}

/** Reads the user's history without damaged lines, and shortens a long file. */
export function readHistory(env: Environment): ReadHistory {
  try {
    const file = historyFile(env);
    const { lines, size } = readLines(file);
    const entries = lines.flatMap((line) => {
      const value = parseJson(line);
      return value.ok && typeof value.value === "string" && value.value !== "" ? [value.value] : [];
    });
    const newest = entries.slice(-MAX_ENTRIES);
    if (lines.length > 2 * MAX_ENTRIES || size > MAX_BYTES) rewrite(file, newest, size);
    return { entries: newest };
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { entries: [] };
    return { entries: [], fault: `earlier inputs cannot be read: ${messageOf(thrown)}` };
  }
}

/** Saves an entry, unless it is very long or seems to contain a secret. Returns why that failed, if it did. */
export function appendHistory(env: Environment, text: string): string | undefined {
  if (text.trim() === "" || text.length > MAX_ENTRY || secretMask(env).text(text) !== text) return undefined;
  try {
    const file = historyFile(env);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const { O_APPEND, O_CREAT, O_RDWR, O_NOFOLLOW } = constants;
    const fd = openSync(file, O_APPEND | O_CREAT | O_RDWR | (O_NOFOLLOW ?? 0), 0o600);
    try {
      fchmodSync(fd, 0o600);
      // After a line that a crash cut off, starts a new one.
      writeSync(fd, `${endsInLine(fd) ? "" : "\n"}${JSON.stringify(text)}\n`);
    } finally {
      closeSync(fd);
    }
    return undefined;
  } catch (thrown) {
    return `this input is not saved for later sessions: ${messageOf(thrown)}`;
  }
}

function historyFile(env: Environment): string {
  return join(stateFolder(env), "history.jsonl");
}

function readLines(file: string): { readonly lines: readonly string[]; readonly size: number } {
  const fd = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error(`${file} is not a regular file`);
    const { size } = stats;
    if (size <= MAX_BYTES) return { lines: linesOf(readFileSync(fd, "utf8")), size };
    const bytes = Buffer.alloc(MAX_BYTES);
    const read = readSync(fd, bytes, 0, MAX_BYTES, size - MAX_BYTES);
    // The first line is incomplete.
    return { lines: linesOf(bytes.toString("utf8", 0, read)).slice(1), size };
  } finally {
    closeSync(fd);
  }
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** Replaces the file atomically, unless another session added to it meanwhile. */
function rewrite(file: string, entries: readonly string[], size: number): void {
  const draft = `${file}.${process.pid}`;
  try {
    writeFileSync(draft, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""), { mode: 0o600 });
    if (statSync(file).size === size) renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

function endsInLine(fd: number): boolean {
  const { size } = fstatSync(fd);
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  readSync(fd, last, 0, 1, size - 1);
  return last[0] === 0x0a;
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
}
