import { type Editor, EMPTY_EDITOR, editorOf, moveTo } from "../editing/editor.ts";

/** Earlier inputs, and where in them somebody is. The place behind the last is the draft. */
export interface History {
  /** Oldest first. */
  readonly entries: readonly string[];
  readonly at: number;
  /** What was left behind at places that were visited since the last submit, changes and all. */
  readonly left: ReadonlyMap<number, Editor>;
}

/** Entries that are kept. */
export const MOST_ENTRIES = 1_000;

export function historyOf(entries: readonly string[]): History {
  const kept = entries.slice(-MOST_ENTRIES);
  return { entries: kept, at: kept.length, left: new Map() };
}

/** The history with what was submitted, back at the draft. The same twice in a row is one entry. */
export function submitted(history: History, text: string): History {
  const { entries } = history;
  return historyOf(entries.at(-1) === text ? entries : [...entries, text]);
}

/**
 * One entry up or down, leaving `editor` behind as it is; undefined where there is none. Upwards the cursor comes to stand
 * at the beginning of a text of several lines, so that the same key goes on.
 */
export function step(
  history: History,
  editor: Editor,
  direction: -1 | 1,
): { readonly history: History; readonly editor: Editor } | undefined {
  const to = history.at + direction;
  if (to < 0 || to > history.entries.length) return undefined;
  const found = history.left.get(to) ?? recalled(history.entries[to] ?? "", editor);
  const left = new Map(history.left).set(history.at, editor);
  const placed = direction === -1 && found.text.includes("\n") ? moveTo(found, 0) : found;
  return { history: { ...history, at: to, left }, editor: placed };
}

/** An entry as an editor that keeps what was cut last. */
export function recalled(text: string, before: Editor): Editor {
  const made = editorOf(text);
  return { ...(made.ok ? made.editor : EMPTY_EDITOR), killed: before.killed };
}

/** A search through earlier inputs while it is typed. */
export interface Search {
  readonly query: string;
  /** The entry that is shown; undefined while none matches. */
  readonly found: number | undefined;
}

/** Where a search with a query stands: at the newest match that is no newer than `from`. */
export function searched(history: History, query: string, from: number): Search {
  return { query, found: query === "" ? undefined : find(history.entries, query, from, -1) };
}

/** The next older or newer match that shows another text; the same search where there is none. */
export function searchedOn(history: History, search: Search, direction: -1 | 1): Search {
  if (search.found === undefined) return search;
  const shown = history.entries[search.found];
  let at: number | undefined = search.found;
  do at = find(history.entries, search.query, at + direction, direction);
  while (at !== undefined && history.entries[at] === shown);
  return at === undefined ? search : { ...search, found: at };
}

function find(entries: readonly string[], query: string, from: number, direction: -1 | 1): number | undefined {
  const first = direction === -1 ? Math.min(from, entries.length - 1) : from;
  for (let at = first; at >= 0 && at < entries.length; at += direction)
    if (matchIn(entries[at] ?? "", query) !== undefined) return at;
  return undefined;
}

/** Where a query stands in a text. Case counts only where the query has a capital letter. */
export function matchIn(text: string, query: string): { readonly start: number; readonly end: number } | undefined {
  const exact = query !== query.toLowerCase();
  const lower = exact ? text : text.toLowerCase();
  // Some letters change their length with their case; then only the exact text tells where.
  const start = lower.length === text.length ? lower.indexOf(query) : text.indexOf(query);
  return start === -1 ? undefined : { start, end: start + query.length };
}
