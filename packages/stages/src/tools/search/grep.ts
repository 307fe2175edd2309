import { lstatSync } from "node:fs";
import {
  type Clock,
  isSluiceError,
  systemClock,
  type TextMask,
  type ToolCall,
  type ToolResult,
  type ToolSpec,
} from "@sluice/core";
import { maskedCut, NO_MASK } from "../../secrets/cut-text.ts";
import { GREP_CHARACTERS, GREP_FACTS, GREP_LINES, type GrepInput } from "../builtin-facts.ts";
import { displayPath, judgedPath, treeSubjects } from "../files/paths.ts";
import { asFault, asResult } from "../files/results.ts";
import { clippedLine, withRemarks } from "../files/text.ts";
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

export interface GrepOptions {
  /** Absolute path of the ripgrep to run; `null` for the built-in search. The included ripgrep when omitted. */
  readonly ripgrep?: string | null;
  readonly clock?: Clock;
}

export function grepTool(options: GrepOptions = {}): ToolSpec<GrepInput> {
  return {
    ...GREP_FACTS,
    subjects: (grep, workspace) => treeSubjects(grep.path ?? ".", "read", workspace),
    execute: (grep, call) => asResult(() => search(grep, call, options)),
  };
}

async function search(grep: GrepInput, call: ToolCall, options: GrepOptions): Promise<ToolResult> {
  const real = judgedPath(grep.path ?? ".", "read", call, treeSubjects);
  const shown = displayPath(real, call.workspace);
  const query = queryOf(grep);
  const nameOf = (path: string): string => (path === "" ? shown : shown === "." ? path : `${shown}/${path}`);
  const page = collector(grep, query, nameOf, call.secrets);
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

function shownLine({ text, cut }: GrepHit, secrets: TextMask | undefined): string {
  const line = cut === true ? maskedCut(text, secrets ?? NO_MASK) : text;
  const head = clippedLine(line, LINE_CHARACTERS, secrets);
  return cut === true || line.length > LINE_CHARACTERS ? `${head} [... line cut]` : head;
}

interface Collector {
  /** Returns false when no more hits are wanted. */
  take(hit: GrepHit): boolean;
  result(end: GrepEnd): ToolResult;
}

function collector(
  grep: GrepInput,
  query: GrepQuery,
  nameOf: (path: string) => string,
  secrets: TextMask | undefined,
): Collector {
  const limit = grep.head_limit ?? GREP_LINES;
  const lines: string[] = [];
  const isGrouped = query.mode === "content" && query.before + query.after > 0;
  const numbers = grep["-n"] !== false;
  let last: GrepHit | undefined;
  let characters = 0;
  let cut = false;
  const add = (line: string): boolean => {
    cut ||= lines.length >= limit || characters + line.length > GREP_CHARACTERS;
    if (cut) return false;
    lines.push(line);
    characters += line.length + 1;
    return true;
  };
  return {
    take(hit) {
      const { path, mark, line } = hit;
      const isApart = last !== undefined && (path !== last.path || (line ?? 0) > (last.line ?? 0) + 1);
      last = hit;
      if (isGrouped && isApart && !add("--")) return false;
      return add(
        `${nameOf(path)}${mark}${numbers && line !== undefined ? `${line}${mark}` : ""}${shownLine(hit, secrets)}`,
      );
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
