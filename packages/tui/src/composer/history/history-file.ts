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
import { messageOf, parseJson } from "@sluice/core";
import { type Environment, stateFolder } from "../../user/environment.ts";
import { secretMask } from "../../user/secrets.ts";
import { MOST_ENTRIES } from "./history.ts";

/** Characters of an entry that is worth a line of the file; longer ones are for this session only. */
const LONGEST_ENTRY = 32_000;
/** Bytes of the file that are read, from its end. */
const MOST_BYTES = 8_000_000;

/** What was entered earlier, in any session of this user, oldest first. What cannot be read is told in `fault`. */
export interface ReadHistory {
  readonly entries: readonly string[];
  readonly fault?: string;
}

/** Reads the user's history; damaged lines are passed over. A file that has grown long is cut to what is kept. */
export function readHistory(env: Environment): ReadHistory {
  try {
    const file = historyFile(env);
    const { lines, size } = readLines(file);
    const entries = lines.flatMap((line) => {
      const value = parseJson(line);
      return value.ok && typeof value.value === "string" && value.value !== "" ? [value.value] : [];
    });
    const kept = entries.slice(-MOST_ENTRIES);
    if (lines.length > 2 * MOST_ENTRIES || size > MOST_BYTES) rewrite(file, kept, size);
    return { entries: kept };
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { entries: [] };
    return { entries: [], fault: `earlier inputs cannot be read: ${messageOf(thrown)}` };
  }
}

/**
 * Adds an entry, unless it is very long or holds a secret, known or by its looks: such a one is not written. Sessions at the
 * same time add to the same file. Returns why it could not be kept, if so.
 */
export function appendHistory(env: Environment, text: string): string | undefined {
  if (text.trim() === "" || text.length > LONGEST_ENTRY || secretMask(env).text(text) !== text) return undefined;
  try {
    const file = historyFile(env);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const { O_APPEND, O_CREAT, O_RDWR, O_NOFOLLOW } = constants;
    const fd = openSync(file, O_APPEND | O_CREAT | O_RDWR | (O_NOFOLLOW ?? 0), 0o600);
    try {
      fchmodSync(fd, 0o600);
      // A line that was cut off by a crash must not swallow this one.
      writeSync(fd, `${endsInLine(fd) ? "" : "\n"}${JSON.stringify(text)}\n`);
    } finally {
      closeSync(fd);
    }
    return undefined;
  } catch (thrown) {
    return `this input is not kept for later sessions: ${messageOf(thrown)}`;
  }
}

function historyFile(env: Environment): string {
  return join(stateFolder(env), "history.jsonl");
}

function readLines(file: string): { readonly lines: readonly string[]; readonly size: number } {
  const fd = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error(`${file} is no file`);
    const { size } = stats;
    if (size <= MOST_BYTES) return { lines: linesOf(readFileSync(fd, "utf8")), size };
    const bytes = Buffer.alloc(MOST_BYTES);
    const read = readSync(fd, bytes, 0, MOST_BYTES, size - MOST_BYTES);
    // The first line begins somewhere before.
    return { lines: linesOf(bytes.toString("utf8", 0, read)).slice(1), size };
  } finally {
    closeSync(fd);
  }
}

function linesOf(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** Put in its place at once; left as it is where another session has added to it meanwhile. */
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
