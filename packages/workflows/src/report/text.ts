import { excerptOf, visibleLine } from "@sluice/core/runtime";
import type { Diagnostic } from "../diagnostic.ts";

/**
 * The diagnostics as people read them: `file:line:column`, the message with its rule, the line with a caret, and the suggestion.
 * `textOf` gives the text of a file; without it, the line is left out. Ends with a line break unless there are none.
 */
export function renderText(diagnostics: readonly Diagnostic[], textOf: (file: string) => string | undefined): string {
  return diagnostics.map((diagnostic) => renderOne(diagnostic, textOf(diagnostic.file))).join("");
}

function renderOne(diagnostic: Diagnostic, text: string | undefined): string {
  const { severity, rule, message, suggestion, file, line, column } = diagnostic;
  const lines = [`${visibleLine(file)}:${line}:${column}: ${severity}: ${visibleLine(message)} [${rule}]`];
  const source = text?.replace(/^\uFEFF/u, "").split("\n")[line - 1];
  const gutter = `${line}`.length;
  if (source !== undefined && source.trim() !== "") {
    const excerpt = excerptOf(source.replace(/\r$/u, ""), column - 1, diagnostic.length);
    lines.push(`  ${line} | ${excerpt.shown}`, `  ${" ".repeat(gutter)} | ${excerpt.caret}`);
  }
  if (suggestion !== undefined) lines.push(`  ${" ".repeat(gutter)} = ${visibleLine(suggestion)}`);
  return `${lines.join("\n")}\n`;
}
