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
import type { Key } from "./keys.ts";

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
  if (key.name === "text") return editByLetter(editor, key);
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

type Edit = (editor: Editor) => Editor;

const CTRL: Readonly<Record<string, Edit>> = {
  a: (editor) => move(editor, "lineStart"),
  e: (editor) => move(editor, "lineEnd"),
  b: (editor) => move(editor, "left"),
  f: (editor) => move(editor, "right"),
  h: (editor) => erase(editor, "left"),
  d: (editor) => erase(editor, "right"),
  w: (editor) => kill(editor, "wordLeft", "blank"),
  u: (editor) => kill(editor, "lineStart"),
  k: (editor) => kill(editor, "lineEnd"),
  // Terminals send the same for all of these.
  _: undo,
  "-": undo,
  "/": undo,
  "7": undo,
  "\u001f": undo,
};

const ALT: Readonly<Record<string, Edit>> = {
  b: (editor) => move(editor, "wordLeft"),
  f: (editor) => move(editor, "wordRight"),
  d: (editor) => kill(editor, "wordRight"),
  z: undo,
  Z: redo,
  _: redo,
};

function editByLetter(editor: Editor, { text, ctrl, alt }: Key): Editor | undefined {
  if (ctrl === alt) return undefined;
  const [edits, letter] = ctrl ? [CTRL, text.toLowerCase()] : [ALT, text];
  return Object.hasOwn(edits, letter) ? edits[letter]?.(editor) : undefined;
}
