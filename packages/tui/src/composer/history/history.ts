import { type Editor, EMPTY_EDITOR, editorOf, moveTo } from "../editing/editor.ts";
import type { Key } from "../keys.ts";

/** Earlier inputs and the position in them; the one after the last is the draft. */
export interface History {
  /** Oldest first. */
  readonly entries: readonly string[];
  readonly at: number;
  /** Edited entries since the last submit. */
  readonly edited: ReadonlyMap<number, Editor>;
}

export const MAX_ENTRIES = 1_000;

export function historyOf(entries: readonly string[]): History {
  const newest = entries.slice(-MAX_ENTRIES);
  return { entries: newest, at: newest.length, edited: new Map() };
}

/** Adds a submitted text, unless it repeats the last one, and returns to the draft. */
export function submitted(history: History, text: string): History {
  const { entries } = history;
  return historyOf(entries.at(-1) === text ? entries : [...entries, text]);
}

/**
 * One entry up or down; undefined if there is none. `editor` is kept for the way back. Upwards, the cursor is at the start of a
 * text of several lines, so that the same key continues.
 */
export function step(
  history: History,
  editor: Editor,
  direction: -1 | 1,
): { readonly history: History; readonly editor: Editor } | undefined {
  const to = history.at + direction;
  if (to < 0 || to > history.entries.length) return undefined;
  const found = history.edited.get(to) ?? recalled(history.entries[to] ?? "", editor);
  const edited = new Map(history.edited).set(history.at, editor);
  const placed = direction === -1 && found.text.includes("\n") ? moveTo(found, 0) : found;
  return { history: { ...history, at: to, edited }, editor: placed };
}

/** An entry as an editor that keeps the last cut. */
function recalled(text: string, before: Editor): Editor {
  const made = editorOf(text);
  return { ...(made.ok ? made.editor : EMPTY_EDITOR), killed: before.killed };
}

export interface Search {
  readonly query: string;
  /** Index of the matching entry; undefined if none matches. */
  readonly found: number | undefined;
}

/** A search at the newest match that is not newer than `from`. */
function searchFrom(history: History, query: string, from: number): Search {
  return { query, found: query === "" ? undefined : find(history.entries, query, from, -1) };
}

/** The next match with another text; the same search if there is none. */
function searchNext(history: History, search: Search, direction: -1 | 1): Search {
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

/** The position of a query in a text. Case counts only if the query has a capital letter. */
export function matchIn(text: string, query: string): { readonly start: number; readonly end: number } | undefined {
  const exact = query !== query.toLowerCase();
  const lower = exact ? text : text.toLowerCase();
  // Some letters change their length with their case; then only the exact text gives the position.
  const start = lower.length === text.length ? lower.indexOf(query) : text.indexOf(query);
  return start === -1 ? undefined : { start, end: start + query.length };
}

/** The effect of a key on a search. */
type SearchUpdate =
  | { readonly kind: "searching"; readonly search: Search }
  | { readonly kind: "cancelled" }
  /** The match is the text now; after `key-unused` the key still applies to it. */
  | { readonly kind: "accepted" | "key-unused"; readonly editor: Editor; readonly history: History };

type Draft = Pick<SearchUpdate & { kind: "accepted" }, "editor" | "history">;

export function beginSearch({ history }: Draft): Search {
  return searchFrom(history, "", history.entries.length - 1);
}

/** Ctrl+R and Up go to older matches, Ctrl+S and Down to newer ones; Enter and Tab accept, Esc cancels. */
export function searchByKey(draft: Draft, search: Search, key: Key): SearchUpdate {
  const { history } = draft;
  const on = (next: Search): SearchUpdate => ({ kind: "searching", search: next });
  const letter = key.name === "text" && key.ctrl && !key.alt ? key.text.toLowerCase() : undefined;
  if (key.name === "escape" || letter === "g" || letter === "c") return { kind: "cancelled" };
  if (letter === "r" || letter === "p" || key.name === "up") return on(searchNext(history, search, -1));
  if (letter === "s" || letter === "n" || key.name === "down") return on(searchNext(history, search, 1));
  if (key.name === "enter" || key.name === "tab") return accept(draft, search, "accepted");
  const newest = history.entries.length - 1;
  if (key.name === "backspace" || letter === "h") {
    const query = Array.from(search.query).slice(0, -1).join("");
    return on(searchFrom(history, query, newest));
  }
  if (letter === "u") return on(searchFrom(history, "", newest));
  const typed = typedText(key);
  if (typed !== undefined) {
    const from = search.found ?? newest;
    return on(
      search.query.length + typed.length > MAX_QUERY ? search : searchFrom(history, search.query + typed, from),
    );
  }
  return accept(draft, search, "key-unused");
}

const MAX_QUERY = 200;

function typedText(key: Key): string | undefined {
  if ((key.name !== "text" && key.name !== "paste") || key.ctrl || key.alt) return undefined;
  const text = key.text.replaceAll(/\p{Cc}/gu, " ").toWellFormed();
  return text === "" ? undefined : text;
}

/** Puts the match into the editor, with the cursor at the query. */
function accept({ editor, history }: Draft, search: Search, kind: "accepted" | "key-unused"): SearchUpdate {
  if (search.found === undefined) return { kind, editor, history };
  const text = history.entries[search.found] ?? "";
  const at = matchIn(text, search.query)?.start ?? text.length;
  const found = moveTo(recalled(text, editor), at);
  const edited = new Map(history.edited).set(history.at, editor);
  return { kind, editor: found, history: { ...history, at: search.found, edited } };
}
