import { lstatSync } from "node:fs";
import { type Clock, isSluiceError, systemClock, type ToolCall, type ToolResult, type ToolSpec } from "@sluice/core";
import { z } from "zod";
import { displayPath, fileSubjects, judgedPath } from "../files/paths.ts";
import { asFault, asResult, withRemarks } from "../files/results.ts";
import { searchBuiltIn } from "./grep-builtin.ts";
import { carriedRipgrep, searchWithRipgrep } from "./grep-ripgrep.ts";
import {
  type GrepEnd,
  type GrepHit,
  type GrepQuery,
  type GrepSearch,
  LINE_CHARACTERS,
  SEARCH_TIMEOUT_MS,
} from "./grep-search.ts";

const DEFAULT_LINES = 250;
const MAX_LINES = 2_000;
/** About 12,000 tokens. */
const ALL_CHARACTERS = 50_000;
const MAX_CONTEXT = 50;

const context = z.int().min(0).max(MAX_CONTEXT).optional();
const input = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(4_000)
    .describe("Regular expression in ripgrep's syntax: escape literal braces as \\{."),
  path: z
    .string()
    .min(1)
    .optional()
    .describe("The file or folder to search, absolute or relative to the workspace. Default: the workspace."),
  glob: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe("Search only matching files, for example *.ts or src/**/*.{js,ts}. Relative to path."),
  output_mode: z.enum(["content", "files_with_matches", "count"]).optional().describe("Default: files_with_matches."),
  "-i": z.boolean().optional().describe("Ignore case."),
  "-n": z.boolean().optional().describe("Show line numbers in content mode. Default: true."),
  "-A": context.describe("Lines to show after each match in content mode."),
  "-B": context.describe("Lines to show before each match in content mode."),
  "-C": context.describe("Lines to show before and after each match in content mode."),
  head_limit: z.int().min(1).max(MAX_LINES).optional().describe(`Result lines to show. Default: ${DEFAULT_LINES}.`),
  multiline: z.boolean().optional().describe("Let the pattern span lines, and . match line breaks."),
});
type GrepInput = z.infer<typeof input>;

export interface GrepOptions {
  /** Absolute path of the ripgrep to run; `null` for the built-in search. The included ripgrep when omitted. */
  readonly ripgrep?: string | null;
  readonly clock?: Clock;
}

export function grepTool(options: GrepOptions = {}): ToolSpec<GrepInput> {
  return {
    name: "Grep",
    description: `Searches the content of text files with a regular expression. Results are relative to the workspace and sorted by path.
- Hidden files are included. Paths ignored by .gitignore, .git, binary files and files over 100 MB are excluded. Links are not followed.
- output_mode: files_with_matches lists paths, content shows matching lines, count shows the number of matches per file.
- Shows at most head_limit result lines, ${LINE_CHARACTERS} characters per line and ${ALL_CHARACTERS} in total, and says if results were cut. A search ends after ${SEARCH_TIMEOUT_MS / 1000} s.
- No match is not an error. An invalid pattern or glob fails with invalid_pattern.`,
    input,
    effect: "read",
    subjects: (grep, workspace) => fileSubjects(grep.path ?? ".", "read", workspace),
    execute: (grep, call) => asResult(() => search(grep, call, options)),
  };
}

async function search(grep: GrepInput, call: ToolCall, options: GrepOptions): Promise<ToolResult> {
  const real = judgedPath(grep.path ?? ".", "read", call);
  const shown = displayPath(real, call.workspace);
  const query = queryOf(grep);
  const page = collector(grep, query, (path) => (path === "" ? shown : shown === "." ? path : `${shown}/${path}`));
  const work: GrepSearch = {
    real,
    isFolder: isFolderAt(real, shown),
    query,
    call,
    clock: options.clock ?? systemClock,
    onHit: page.take,
  };
  const ripgrep = options.ripgrep === undefined ? await carriedRipgrep() : (options.ripgrep ?? undefined);
  if (ripgrep === undefined) return page.result(await searchBuiltIn(work));
  try {
    return page.result(await searchWithRipgrep(ripgrep, work));
  } catch (thrown) {
    // Built for another system, or on a disk that does not allow programs.
    if (!isSluiceError(thrown, "spawn_failed")) throw thrown;
    return page.result(await searchBuiltIn(work));
  }
}

function isFolderAt(real: string, shown: string): boolean {
  try {
    return lstatSync(real).isDirectory();
  } catch (thrown) {
    throw asFault(thrown, shown);
  }
}

function queryOf(grep: GrepInput): GrepQuery {
  return {
    pattern: grep.pattern,
    ...(grep.glob === undefined ? {} : { glob: grep.glob }),
    ignoreCase: grep["-i"] === true,
    multiline: grep.multiline === true,
    mode: grep.output_mode ?? "files_with_matches",
    before: grep["-B"] ?? grep["-C"] ?? 0,
    after: grep["-A"] ?? grep["-C"] ?? 0,
  };
}

interface Collector {
  /** Returns false when no more hits are wanted. */
  take(hit: GrepHit): boolean;
  result(end: GrepEnd): ToolResult;
}

function collector(grep: GrepInput, query: GrepQuery, nameOf: (path: string) => string): Collector {
  const limit = grep.head_limit ?? DEFAULT_LINES;
  const lines: string[] = [];
  const isGrouped = query.mode === "content" && query.before + query.after > 0;
  const numbers = grep["-n"] !== false;
  let last: GrepHit | undefined;
  let characters = 0;
  let cut = false;
  const add = (line: string): boolean => {
    cut ||= lines.length >= limit || characters + line.length > ALL_CHARACTERS;
    if (cut) return false;
    lines.push(line);
    characters += line.length + 1;
    return true;
  };
  return {
    take(hit) {
      const { path, mark, line, text } = hit;
      const isApart = last !== undefined && (path !== last.path || (line ?? 0) > (last.line ?? 0) + 1);
      last = hit;
      if (isGrouped && isApart && !add("--")) return false;
      return add(`${nameOf(path)}${mark}${numbers && line !== undefined ? `${line}${mark}` : ""}${text}`);
    },
    result(end) {
      while (lines.at(-1) === "--") lines.pop();
      const remarks = [
        ...(cut
          ? [`Only the first ${lines.length} result lines are shown. Narrow pattern, path or glob to see others.`]
          : []),
        ...(end.stopped === "timeout"
          ? [`The search was stopped after ${SEARCH_TIMEOUT_MS / 1000} s. Only the results found until then are shown.`]
          : []),
        ...(end.incomplete && end.stopped !== "timeout" ? ["Some files could not be searched."] : []),
      ];
      const output = withRemarks(lines.length === 0 ? "No match." : lines.join("\n"), remarks);
      return { ok: true, output, facts: { lines: lines.length, cut: cut || end.stopped === "timeout" } };
    },
  };
}
