// The findings of a document as diagnostics, with their places in the text.

import { type Diagnostic, pathWords } from "../diagnostic.ts";
import type { Finding } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";

/** Diagnostics that are reported of one file. */
const MAX_DIAGNOSTICS = 200;

/** The findings of a document with their positions, in the order of the text. */
export function diagnosticsOf(source: SourceFile, found: readonly Finding[]): readonly Diagnostic[] {
  const all = found
    .map((finding) => diagnosticOf(finding.source ?? source, finding))
    .toSorted((a, b) => compareFiles(a.file, b.file, source.file) || a.line - b.line || a.column - b.column);
  if (all.length <= MAX_DIAGNOSTICS) return all;
  const more = `There are ${all.length - MAX_DIAGNOSTICS} more mistakes in this workflow.`;
  return [...all.slice(0, MAX_DIAGNOSTICS), aboutFile(source.file, "more", more)];
}

function compareFiles(one: string, other: string, first: string): number {
  if (one === other) return 0;
  if (one === first || other === first) return one === first ? -1 : 1;
  return one < other ? -1 : 1;
}

function diagnosticOf(source: SourceFile, finding: Finding): Diagnostic {
  const { severity, rule, message, suggestion, path, what, offset, length } = finding;
  const hint = suggestion === undefined ? {} : { suggestion };
  const position = source.at(path, what, offset, length);
  return { severity, rule, message, ...hint, path: pathWords(path), file: source.file, ...position };
}

/** A mistake of a file as a whole. */
export function aboutFile(file: string, rule: string, message: string, suggestion?: string): Diagnostic {
  const hint = suggestion === undefined ? {} : { suggestion };
  return { severity: "error", rule, message, ...hint, path: "", file, line: 1, column: 1, length: 1 };
}
