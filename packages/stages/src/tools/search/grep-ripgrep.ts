import { isAbsolute, relative } from "node:path";
import type { ToolCall } from "@sluice/core";
import { LiveText, NO_MASK } from "../../secrets/cut-text.ts";
import { type ProcessOptions, runProcess } from "../bash/process.ts";
import { withFile, withFolder } from "../files/open.ts";
import { contains } from "../files/paths.ts";
import { fault } from "../files/results.ts";
import { headTail } from "../files/text.ts";
import {
  type GrepEnd,
  type GrepHit,
  type GrepQuery,
  type GrepSearch,
  LONGEST_LINE,
  SEARCH_TIMEOUT_MS,
} from "./grep-search.ts";

const MAX_FILE_BYTES = 100 * 1024 * 1024;
/** After the beginning of a line that is too long. */
const CUT = / \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$/;
const REMARK = /: (?:WARNING: stopped searching binary file|binary file matches)[^\n]*$/;

const OPTIONS = (
  "--no-config --no-follow --hidden --no-ignore-global --no-ignore-dot --no-require-git " +
  "--no-messages --sort=path --color=never --no-heading --with-filename --null --crlf " +
  "--no-context-separator"
).split(" ");

/** The ripgrep that the package includes for this platform, never one from PATH; undefined if there is none. */
export async function carriedRipgrep(): Promise<string | undefined> {
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    return rgPath;
  } catch (thrown) {
    // Not installed for this platform: the built-in search is used.
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
}

/** Searches a judged folder or file through an open descriptor, so that replacing its path has no effect. */
export function searchWithRipgrep(ripgrep: string, search: GrepSearch): Promise<GrepEnd> {
  const { real, isFolder, query, call } = search;
  const options = optionsOf(query);
  if (!isFolder) {
    return withFile(real, (file) => {
      // Ripgrep's limit does not apply to standard input.
      if (file.stats.size > MAX_FILE_BYTES) return Promise.resolve({ stopped: "finished", incomplete: true });
      return run(search, { file: ripgrep, args: [...options, "-"], cwd: call.workspace.root, stdin: file.handle.fd });
    });
  }
  const globs = [...(query.glob === undefined ? [] : [`--glob=${query.glob}`]), ...exclusions(real, call)];
  return withFolder(real, (folder) =>
    run(search, { file: ripgrep, args: [...options, ...globs, "./"], cwd: folder.path }),
  );
}

function optionsOf(query: GrepQuery): readonly string[] {
  return [
    ...OPTIONS,
    `--max-filesize=${MAX_FILE_BYTES}`,
    `--max-columns=${LONGEST_LINE}`,
    "--max-columns-preview",
    ...(query.ignoreCase ? ["--ignore-case"] : []),
    ...(query.multiline ? ["--multiline", "--multiline-dotall"] : []),
    ...(query.mode === "files_with_matches" ? ["--files-with-matches"] : []),
    ...(query.mode === "count" ? ["--count"] : []),
    ...(query.mode === "content"
      ? ["--line-number", `--before-context=${query.before}`, `--after-context=${query.after}`]
      : []),
    // One word, so that a pattern may begin with a dash.
    `--regexp=${query.pattern}`,
  ];
}

/** Added last, since in ripgrep the last matching glob counts. */
function exclusions(real: string, call: ToolCall): readonly string[] {
  const store = call.workspace.store;
  const below = store !== undefined && contains(real, store) ? relative(real, store) : "";
  const quoted = below.replaceAll("\\", "/").replace(/[\\*?[\]{}!]/g, "\\$&");
  return ["--glob=!.git", ...(below === "" || isAbsolute(below) ? [] : [`--glob=!/${quoted}`])];
}

async function run(
  { query, call, clock, onHit }: GrepSearch,
  program: Pick<ProcessOptions, "file" | "args" | "cwd" | "stdin">,
): Promise<GrepEnd> {
  const errors = headTail(2_000);
  // Masked before they are cut.
  const masked = new LiveText(call.secrets ?? NO_MASK, (text) => errors.push(text));
  const end = await runProcess({
    ...program,
    env: {},
    signal: call.signal,
    timeoutMs: SEARCH_TIMEOUT_MS,
    stdout: parser(query.mode, onHit),
    stderr: (text) => {
      masked.push(text);
      return true;
    },
    clock,
  });
  if (end.by === "abort") throw fault("cancelled", "The search was cancelled before it finished.");
  if (end.by === "timeout") return { stopped: "timeout", incomplete: true };
  if (end.by === "reader") return { stopped: "enough", incomplete: false };
  masked.end();
  const message = errors.text().trim();
  if (end.exitCode === 2 && /regex|glob|pattern|literal/i.test(message)) {
    throw fault(
      "invalid_pattern",
      `${message.replaceAll(/^rg: /gm, "")}\nUse the syntax of Rust's regex crate: escape literal braces and brackets with a backslash.`,
    );
  }
  // 0: matches, 1: none, 2 without a message about the pattern: some files could not be read.
  if (end.exitCode !== 0 && end.exitCode !== 1 && end.exitCode !== 2) {
    throw fault(
      "search_failed",
      `The search ended with ${end.killed ?? `exit code ${end.exitCode}`}. ${message}`.trim(),
    );
  }
  return { stopped: "finished", incomplete: end.exitCode === 2 };
}

/** Reads ripgrep's output: `path NUL line:text`, `path NUL line-text`, `path NUL count`, `path NUL` alone. */
function parser(mode: GrepQuery["mode"], onHit: GrepSearch["onHit"]): (text: string) => boolean {
  let rest = "";
  const end = mode === "files_with_matches" ? "\0" : "\n";
  return (text) => {
    rest += text;
    let from = 0;
    for (;;) {
      // A name may contain a line break, so the NUL after it is searched first.
      const nul = mode === "files_with_matches" ? from : rest.indexOf("\0", from);
      const close = nul === -1 ? -1 : rest.indexOf(end, nul);
      if (close === -1) break;
      const record = rest.slice(from, close);
      from = close + 1;
      const hit = readRecord(withoutRemarks(record), mode);
      if (hit !== undefined && !onHit(hit)) return false;
    }
    rest = rest.slice(from);
    return true;
  };
}

/** Removes remarks about binary files, which come without a NUL before the next record. */
function withoutRemarks(record: string): string {
  const lines = record.split("\n");
  let first = 0;
  while (first < lines.length - 1 && REMARK.test(lines[first] ?? "")) first += 1;
  return lines.slice(first).join("\n");
}

function readRecord(record: string, mode: GrepQuery["mode"]): GrepHit | undefined {
  const [, name = "", value = ""] = /^([^\0]*)\0?([\s\S]*?)\r?$/.exec(record) ?? [];
  const path = name === "<stdin>" ? "" : name.replace(/^\.\//, "");
  if (mode === "files_with_matches") return { path, mark: "", text: "" };
  if (mode === "count") return { path, mark: ":", text: value };
  const [, line, mark, text = ""] = /^(\d+)([:-])([\s\S]*)$/.exec(value) ?? [];
  if (line === undefined) return undefined;
  const shown = text.replace(CUT, "");
  // A short line may end with the same words.
  const isCut = shown !== text && Buffer.byteLength(shown) >= LONGEST_LINE;
  const hit = { path, mark: mark === ":" ? ":" : "-", line: Number(line) } as const;
  return isCut ? { ...hit, text: shown, cut: true } : { ...hit, text };
}
