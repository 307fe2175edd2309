import type { Key } from "../../app/keys.ts";
import { type Editor, moveTo } from "../editing/editor.ts";
import { type History, matchIn, recalled, type Search, searched, searchedOn } from "./history.ts";

export type Searching = Search;

/** What a search needs to know of where it was begun. */
interface Place {
  readonly editor: Editor;
  readonly history: History;
}

/** How a search goes on after a key. */
export type Searched =
  | { readonly kind: "on"; readonly searching: Searching }
  /** As if it had not been. */
  | { readonly kind: "given-up" }
  /** What was found is the text now; with `key-left` the key is still to be used on it. */
  | { readonly kind: "taken" | "key-left"; readonly editor: Editor; readonly history: History };

export function beginSearch(place: Place): Searching {
  return searched(place.history, "", place.history.entries.length - 1);
}

/** Ctrl+R and up go to older matches, Ctrl+S and down to newer ones; Enter and Tab take it, Escape gives up. */
export function searchByKey(place: Place, searching: Searching, key: Key): Searched {
  const { history } = place;
  const on = (next: Searching): Searched => ({ kind: "on", searching: next });
  const letter = key.name === "text" && key.ctrl && !key.alt ? key.text.toLowerCase() : undefined;
  if (key.name === "escape" || letter === "g" || letter === "c") return { kind: "given-up" };
  if (letter === "r" || letter === "p" || key.name === "up") return on(searchedOn(history, searching, -1));
  if (letter === "s" || letter === "n" || key.name === "down") return on(searchedOn(history, searching, 1));
  if (key.name === "enter" || key.name === "tab") return taken(place, searching, "taken");
  const newest = history.entries.length - 1;
  if (key.name === "backspace" || letter === "h") {
    const query = Array.from(searching.query).slice(0, -1).join("");
    return on(searched(history, query, newest));
  }
  if (letter === "u") return on(searched(history, "", newest));
  const typed = typedText(key);
  if (typed !== undefined) {
    const from = searching.found ?? newest;
    return on(
      searching.query.length + typed.length > MOST_QUERY ? searching : searched(history, searching.query + typed, from),
    );
  }
  return taken(place, searching, "key-left");
}

const MOST_QUERY = 200;

function typedText(key: Key): string | undefined {
  if ((key.name !== "text" && key.name !== "paste") || key.ctrl || key.alt) return undefined;
  const text = key.text.replaceAll(/\p{Cc}/gu, " ").toWellFormed();
  return text === "" ? undefined : text;
}

/** The found entry in the editor, the cursor at what was searched; what was there before is one step down, as it was. */
function taken(place: Place, searching: Searching, kind: "taken" | "key-left"): Searched {
  const { editor, history } = place;
  if (searching.found === undefined) return { kind, editor, history };
  const text = history.entries[searching.found] ?? "";
  const at = matchIn(text, searching.query)?.start ?? text.length;
  const found = moveTo(recalled(text, editor), at);
  const left = new Map(history.left).set(history.at, editor);
  return { kind, editor: found, history: { ...history, at: searching.found, left } };
}
