import type { Key } from "../app/keys.ts";
import { type Editor, type Inserted, insertTyped } from "../composer/editing/editor.ts";
import { editByKey } from "../composer/keymap.ts";

/** UTF-16 units of a reason or an answer. */
const MOST_WRITTEN = 20_000;

/** What a key does to the text in a card's line, as in the composer; undefined when the key is for somebody else. */
export function writeKey(editor: Editor, key: Key): { readonly editor: Editor; readonly hint?: string } | undefined {
  // An Enter that sends nothing is one of a paste.
  const edited = key.name === "enter" ? insertTyped(editor, "\n") : editByKey(editor, key);
  if (edited !== undefined) return inserted(editor, edited);
  return (key.ctrl || key.alt) && key.name === "text" ? undefined : { editor };
}

function inserted(before: Editor, after: Inserted): { readonly editor: Editor; readonly hint?: string } {
  if (!after.ok) return { editor: before, hint: after.why };
  if (after.editor.text.length > MOST_WRITTEN) {
    return { editor: before, hint: `not inserted: ${MOST_WRITTEN.toLocaleString("en")} characters are the most` };
  }
  return { editor: after.editor };
}
