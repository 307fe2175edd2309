import type { TextMask, ToolSpec } from "@sluice/core";
import { EDIT_FACTS, type EditInput } from "../builtin-facts.ts";
import { executeChange, measureChange, prepareChange, type Rewrite } from "./change.ts";
import { fileSubjects } from "./paths.ts";
import { recoverWrite } from "./replace-file.ts";
import { fault } from "./results.ts";
import { clippedLine, count, isCrlf, numbered, splitLines, toCrlf, toLf } from "./text.ts";

/** Lines shown before and after a change. */
const SNIPPET_CONTEXT = 3;
const SNIPPET_LINES = 40;
const SNIPPET_WIDTH = 500;
const LINE_NUMBERS = 10;

export const editTool: ToolSpec<EditInput> = {
  ...EDIT_FACTS,
  subjects: (edit, workspace) => fileSubjects(edit.file_path, "write", workspace),
  measure: (edit, scene) => measureChange(edit.file_path, rewriting(edit), scene),
  prepare: (edit, call) => prepareChange(edit.file_path, rewriting(edit), call),
  execute: (edit, call) => executeChange(edit.file_path, rewriting(edit, call.secrets), call),
  recover: recoverWrite,
};

function rewriting(edit: EditInput, secrets?: TextMask): Rewrite {
  return (before, shown) => {
    if (edit.old_string === edit.new_string) {
      throw fault("no_change", "old_string and new_string are identical. Nothing was written.");
    }
    if (before === undefined) {
      throw fault("not_found", `There is no file at ${shown}. Use Glob to find the right path, or Write to create it.`);
    }
    // The model reads and writes LF, so a CR LF file is matched and changed as LF.
    const crlf = isCrlf(before.text);
    const asRead = (text: string): string => (crlf ? toLf(text) : text);
    const [old, now] = [asRead(edit.old_string), asRead(edit.new_string)];
    const text = asRead(before.text);
    const found = occurrences(text, old, edit.replace_all === true, shown);
    const edited = text.split(old).join(now);
    const where = found.length === 1 ? "1 replacement" : `${found.length} replacements; the first is shown`;
    return {
      after: { text: crlf ? toCrlf(edited) : edited, bom: before.bom },
      report: ({ added, removed }) =>
        `Edited ${shown}: ${where}, ${count(added, "line")} added, ${count(removed, "line")} removed.\n${snippet(edited, found[0] ?? 0, now, secrets)}`,
      facts: { replacements: found.length },
    };
  };
}

/** Where a text occurs without overlaps. Throws the model's mistakes: nowhere, or not once although only one is meant. */
function occurrences(text: string, old: string, all: boolean, shown: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(old); at !== -1; at = text.indexOf(old, at + old.length)) found.push(at);
  const [first] = found;
  if (first === undefined) throw notFound(text, old, shown);
  // An occurrence that overlaps the first is just as ambiguous.
  const next = text.indexOf(old, first + 1);
  if (all || next === -1) return found;
  const places = found.length === 1 ? [first, next] : found;
  const lines = lineNumbers(text, places.slice(0, LINE_NUMBERS));
  throw fault(
    "old_string_not_unique",
    `old_string occurs ${places.length} times in ${shown} (lines ${lines.join(", ")}${places.length > LINE_NUMBERS ? ", …" : ""}). Add surrounding lines until it is unique, or set replace_all.`,
    { occurrences: places.length, lines },
  );
}

function notFound(text: string, old: string, shown: string): Error {
  const squeezed = (value: string): string => value.replace(/\s+/g, " ").trim();
  const needle = squeezed(old);
  const hint = old.includes("[redacted:")
    ? "It contains a redaction marker, which replaces a secret in the file. Choose text without it."
    : needle !== "" && squeezed(text).includes(needle)
      ? "The file has the same words with different white space. Copy indentation and line breaks exactly as Read shows them."
      : "Read the file and copy the text exactly, without line numbers.";
  return fault("old_string_not_found", `old_string does not occur in ${shown}. ${hint}`);
}

function lineNumbers(text: string, places: readonly number[]): number[] {
  let line = 1;
  let from = 0;
  return places.map((place) => {
    for (let at = text.indexOf("\n", from); at !== -1 && at < place; at = text.indexOf("\n", from)) {
      line += 1;
      from = at + 1;
    }
    return line;
  });
}

function snippet(text: string, place: number, inserted: string, secrets: TextMask | undefined): string {
  const [line = 1] = lineNumbers(text, [place]);
  const first = Math.max(1, line - SNIPPET_CONTEXT);
  const length = splitLines(inserted).length + SNIPPET_CONTEXT * 2;
  const lines = splitLines(text).slice(first - 1, first - 1 + Math.min(length, SNIPPET_LINES));
  const cut = (shown: string): string => clippedLine(shown.replace(/\r$/, ""), SNIPPET_WIDTH, secrets);
  return lines.map((shown, index) => numbered(cut(shown), first + index)).join("\n");
}
