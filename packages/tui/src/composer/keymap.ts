import type { Key } from "../app/keys.ts";
import {
  type Editor,
  erase,
  type Inserted,
  insertPasted,
  insertTyped,
  kill,
  move,
  redo,
  undo,
  yank,
} from "./editing/editor.ts";

/** What a key does to the text; undefined if it does not edit or move. */
export function editByKey(editor: Editor, key: Key): Inserted | undefined {
  if (key.name === "paste") return insertPasted(editor, key.text);
  if (isNewline(key)) return insertTyped(editor, "\n");
  if (key.name === "text" && !key.ctrl && !key.alt) return typed(editor, key.text);
  if (key.name === "text" && key.ctrl && !key.alt && key.text.toLowerCase() === "y") return yank(editor);
  const edited = editOf(editor, key);
  return edited === undefined ? undefined : { ok: true, editor: edited };
}

function isNewline(key: Key): boolean {
  if (key.name === "enter") return key.alt || key.shift || key.ctrl;
  return key.name === "text" && key.ctrl && !key.alt && key.text.toLowerCase() === "j";
}

/** Several lines or a long text are a paste without bracketed paste. Drops control characters. */
function typed(editor: Editor, text: string): Inserted | undefined {
  if (/[\r\n]/.test(text) || text.length > 1_000) return insertPasted(editor, text);
  const plain = text.replaceAll(/(?!\t)\p{Cc}/gu, "");
  return plain === "" ? undefined : insertTyped(editor, plain);
}

function editOf(editor: Editor, key: Key): Editor | undefined {
  if (key.name === "text")
    return key.ctrl === key.alt ? undefined : key.ctrl ? byCtrl(editor, key) : byAlt(editor, key);
  const words = key.ctrl || key.alt;
  switch (key.name) {
    case "left":
      return move(editor, words ? "wordLeft" : "left");
    case "right":
      return move(editor, words ? "wordRight" : "right");
    case "home":
      return move(editor, key.ctrl ? "start" : "lineStart");
    case "end":
      return move(editor, key.ctrl ? "end" : "lineEnd");
    case "backspace":
      return words ? kill(editor, "wordLeft") : erase(editor, "left");
    case "delete":
      return words ? kill(editor, "wordRight") : erase(editor, "right");
    default:
      return undefined;
  }
}

function byCtrl(editor: Editor, key: Key): Editor | undefined {
  switch (key.text.toLowerCase()) {
    case "a":
      return move(editor, "lineStart");
    case "e":
      return move(editor, "lineEnd");
    case "b":
      return move(editor, "left");
    case "f":
      return move(editor, "right");
    case "h":
      return erase(editor, "left");
    case "d":
      return erase(editor, "right");
    case "w":
      return kill(editor, "wordLeft", "blank");
    case "u":
      return kill(editor, "lineStart");
    case "k":
      return kill(editor, "lineEnd");
    // Terminals send the same for all of these.
    case "_":
    case "-":
    case "/":
    case "7":
    case "\u001f":
      return undo(editor);
    default:
      return undefined;
  }
}

function byAlt(editor: Editor, key: Key): Editor | undefined {
  switch (key.text) {
    case "b":
      return move(editor, "wordLeft");
    case "f":
      return move(editor, "wordRight");
    case "d":
      return kill(editor, "wordRight");
    case "z":
      return undo(editor);
    case "Z":
    case "_":
      return redo(editor);
    default:
      return undefined;
  }
}
