import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { type GrepHit, type GrepQuery, LONGEST_LINE } from "./grep-search.ts";

// A worker thread. Imports only Node and constants, so that it starts from sources and from dist.

export interface GrepWork {
  /** `path` is absolute; `name` is what hits show. */
  readonly files: readonly { readonly path: string; readonly name: string }[];
  readonly query: GrepQuery;
}
export type GrepReport =
  | { readonly kind: "hits"; readonly hits: readonly GrepHit[] }
  | { readonly kind: "done"; readonly incomplete: boolean }
  | { readonly kind: "bad_pattern"; readonly message: string };

const MAX_FILE_BYTES = 10 * 1024 * 1024;

function main(work: GrepWork): void {
  const send = (report: GrepReport): void => parentPort?.postMessage(report);
  let pattern: RegExp;
  try {
    const { query } = work;
    pattern = new RegExp(query.pattern, `g${query.ignoreCase ? "i" : ""}${query.multiline ? "ms" : ""}`);
  } catch (thrown) {
    send({ kind: "bad_pattern", message: thrown instanceof Error ? thrown.message : String(thrown) });
    return;
  }
  let incomplete = false;
  for (const { path, name } of work.files) {
    const text = readText(path);
    if (text === undefined) incomplete = true;
    const hits = text === undefined || text.includes("\0") ? [] : hitsIn(text, name, pattern, work.query);
    if (hits.length > 0) send({ kind: "hits", hits });
  }
  send({ kind: "done", incomplete });
}

/** Undefined if it cannot be read, is too large, or is reached through a new link. */
function readText(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > MAX_FILE_BYTES) return undefined;
    if (process.platform === "linux" && readlinkSync(`/proc/self/fd/${fd}`) !== path) return undefined;
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

function hitsIn(text: string, path: string, pattern: RegExp, query: GrepQuery): readonly GrepHit[] {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  if (lines.at(-1) === "") lines.pop();
  const { matched, count } = query.multiline ? linesAcross(text, pattern) : linesAlone(lines, pattern);
  if (count === 0) return [];
  if (query.mode === "files_with_matches") return [{ path, mark: "", text: "" }];
  if (query.mode === "count") return [{ path, mark: ":", text: String(count) }];
  const hits: GrepHit[] = [];
  let shown = 0;
  for (const match of [...matched].sort((a, b) => a - b)) {
    const to = Math.min(match + query.after + 1, lines.length);
    for (let at = Math.max(match - query.before, shown); at < to; at += 1) {
      const line = lines[at] ?? "";
      hits.push({
        path,
        mark: matched.has(at) ? ":" : "-",
        line: at + 1,
        text: line.slice(0, LONGEST_LINE),
        ...(line.length <= LONGEST_LINE ? {} : { cut: true }),
      });
    }
    shown = Math.max(shown, to);
  }
  return hits;
}

function linesAlone(lines: readonly string[], pattern: RegExp): { matched: ReadonlySet<number>; count: number } {
  const matched = new Set<number>();
  for (const [index, line] of lines.entries()) {
    pattern.lastIndex = 0;
    if (pattern.test(line)) matched.add(index);
  }
  return { matched, count: matched.size };
}

function linesAcross(text: string, pattern: RegExp): { matched: ReadonlySet<number>; count: number } {
  const matched = new Set<number>();
  const breaks = (from: number, to: number): number => text.slice(from, to).split("\n").length - 1;
  let count = 0;
  let line = 0;
  let from = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) {
    count += 1;
    const last = index + Math.max(found.length - 1, 0);
    line += breaks(from, index);
    const first = line;
    line += breaks(index, last);
    from = last;
    for (let at = first; at <= line; at += 1) matched.add(at);
  }
  return { matched, count };
}

main(workerData);
