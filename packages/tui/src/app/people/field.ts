import {
  type Editor,
  erase,
  type Inserted,
  insertPasted,
  insertTyped,
  kill,
  move,
  undo,
  yank,
} from "../composer/editor.ts";
import type { Key } from "../keys.ts";

/** UTF-16 units of a reason or an answer. */
const MOST_WRITTEN = 20_000;

/** What a key does to the text in a card's line; undefined when the key is for somebody else. */
export function writeKey(editor: Editor, key: Key): { readonly editor: Editor; readonly hint?: string } | undefined {
  if ((key.ctrl || key.alt) && key.name === "text") return chordKey(editor, key);
  switch (key.name) {
    case "text":
      return inserted(editor, insertTyped(editor, key.text));
    case "paste":
      return inserted(editor, insertPasted(editor, key.text));
    case "enter":
      return inserted(editor, insertTyped(editor, "\n"));
    case "backspace":
      return { editor: erase(editor, "left") };
    case "delete":
      return { editor: erase(editor, "right") };
    case "left":
      return { editor: move(editor, key.ctrl || key.alt ? "wordLeft" : "left") };
    case "right":
      return { editor: move(editor, key.ctrl || key.alt ? "wordRight" : "right") };
    case "home":
      return { editor: move(editor, "lineStart") };
    case "end":
      return { editor: move(editor, "lineEnd") };
    default:
      return { editor };
  }
}

function chordKey(editor: Editor, { ctrl, alt, text }: Key): { readonly editor: Editor } | undefined {
  switch (`${ctrl ? "ctrl " : ""}${alt ? "alt " : ""}${text}`) {
    case "ctrl a":
      return { editor: move(editor, "lineStart") };
    case "ctrl e":
      return { editor: move(editor, "lineEnd") };
    case "ctrl b":
      return { editor: move(editor, "left") };
    case "ctrl f":
      return { editor: move(editor, "right") };
    case "ctrl u":
      return { editor: kill(editor, "lineStart") };
    case "ctrl k":
      return { editor: kill(editor, "lineEnd") };
    case "ctrl w":
      return { editor: kill(editor, "wordLeft", "blank") };
    case "ctrl y":
      return inserted(editor, yank(editor));
    case "ctrl z":
      return { editor: undo(editor) };
    case "alt b":
      return { editor: move(editor, "wordLeft") };
    case "alt f":
      return { editor: move(editor, "wordRight") };
    default:
      return undefined;
  }
}

function inserted(before: Editor, after: Inserted): { readonly editor: Editor; readonly hint?: string } {
  if (!after.ok) return { editor: before, hint: after.why };
  if (after.editor.text.length > MOST_WRITTEN) {
    return { editor: before, hint: `not inserted: ${MOST_WRITTEN.toLocaleString("en")} characters are the most` };
  }
  return { editor: after.editor };
}
