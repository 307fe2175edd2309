import type { Clock, ToolCall } from "@sluice/core";

/** What to search for, and how much of it to show. */
export interface GrepQuery {
  readonly pattern: string;
  /** Relative to the searched folder. */
  readonly glob?: string;
  readonly ignoreCase: boolean;
  readonly multiline: boolean;
  readonly mode: "content" | "files_with_matches" | "count";
  /** Context lines; 0 for none. */
  readonly before: number;
  readonly after: number;
}

/** One line of a result. */
export interface GrepHit {
  readonly path: string;
  /** What separates the parts of a line: `:` in a match and a count, `-` in a line of context, "" after a path alone. */
  readonly mark: ":" | "-" | "";
  readonly line?: number;
  readonly text: string;
  /** The line continues after `text`. */
  readonly cut?: true;
}

/** A search of a judged path. */
export interface GrepSearch {
  readonly real: string;
  readonly isFolder: boolean;
  readonly query: GrepQuery;
  readonly call: ToolCall;
  readonly clock: Clock;
  /** Returns false when no more hits are wanted. */
  readonly onHit: (hit: GrepHit) => boolean;
}

/** How a search ended. Paths in hits are relative to the searched folder; "" is a searched file itself. */
export interface GrepEnd {
  readonly stopped: "finished" | "enough" | "timeout";
  /** Some files could not be read or were too large. */
  readonly incomplete: boolean;
}

/** Characters shown of one line. */
export const LINE_CHARACTERS = 500;
/** Characters of one line that a search returns: known secrets are masked in it before it is cut to what is shown. */
export const LONGEST_LINE = 16 * LINE_CHARACTERS;
export const SEARCH_TIMEOUT_MS = 20_000;
