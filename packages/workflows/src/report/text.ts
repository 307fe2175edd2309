import { visible } from "@sluice/core/runtime";
import type { Diagnostic } from "../diagnostic.ts";

/** Characters of a source line that are shown. */
const WIDTH = 160;

/**
 * The diagnostics as people read them: `file:line:column`, the message with its rule, the line with a caret, and the suggestion.
 * `textOf` gives the text of a file; without it, the line is left out. Ends with a line break unless there are none.
 */
export function renderText(diagnostics: readonly Diagnostic[], textOf: (file: string) => string | undefined): string {
  return diagnostics.map((diagnostic) => renderOne(diagnostic, textOf(diagnostic.file))).join("");
}

function renderOne(diagnostic: Diagnostic, text: string | undefined): string {
  const { severity, rule, message, suggestion, file, line, column } = diagnostic;
  const lines = [`${onOneLine(file)}:${line}:${column}: ${severity}: ${onOneLine(message)} [${rule}]`];
  const source = text?.replace(/^\uFEFF/u, "").split("\n")[line - 1];
  const gutter = `${line}`.length;
  if (source !== undefined && source.trim() !== "") {
    const excerpt = excerptOf(source.replace(/\r$/u, ""), column - 1, diagnostic.length);
    lines.push(`  ${line} | ${excerpt.shown}`, `  ${" ".repeat(gutter)} | ${excerpt.caret}`);
  }
  if (suggestion !== undefined) lines.push(`  ${" ".repeat(gutter)} = ${onOneLine(suggestion)}`);
  return `${lines.join("\n")}\n`;
}

/** Text from a file, which must not start a line of its own. */
function onOneLine(text: string): string {
  return visible(text).replaceAll("\n", "\\n");
}

/** The part of a line around a column, and the carets under what is meant. */
function excerptOf(source: string, at: number, length: number): { readonly shown: string; readonly caret: string } {
  const from = at < WIDTH - 20 ? 0 : at - 40;
  const before = source.slice(from, at);
  const meant = source.slice(at, Math.min(at + length, from + WIDTH));
  const after = source.slice(at + meant.length, from + WIDTH);
  const cutBefore = from === 0 ? "" : "…";
  const cutAfter = source.length > from + WIDTH ? "…" : "";
  const clean = (text: string): string => visible(text.replaceAll("\t", " "));
  return {
    shown: `${cutBefore}${clean(before)}${clean(meant)}${clean(after)}${cutAfter}`,
    caret: `${" ".repeat(cutBefore.length + clean(before).length)}${"^".repeat(Math.max(1, clean(meant).length))}`,
  };
}
