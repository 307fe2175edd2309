// Reads a workflow file: limits first, then the text with the positions of its parts.

import type { Json } from "@sluice/core";
import { Composer, type CST, type ParsedNode, type YAMLError } from "yaml";
import type { Diagnostic, DocumentPath, Position } from "../diagnostic.ts";
import { convert, type Part } from "./convert.ts";
import { ConversionFault, type ReadFault } from "./fault.ts";
import { textFault } from "./limits.ts";
import { createPositions, type Positions } from "./positions.ts";
import { scalarOffsets } from "./scalar-offsets.ts";
import { tokenize } from "./tokenize.ts";

/** One file, parsed, with the positions of its parts. */
export interface SourceFile {
  /** The name that diagnostics show. */
  readonly file: string;
  readonly text: string;
  /** The document as plain data. */
  readonly value: Json;
  /**
   * Where a part of the document is; for a path that does not exist, where the closest part around it is. `key` is the key or
   * the list entry that holds it. `offset` counts characters into a text, behind escapes, folds and indentation; `length`
   * counts the characters that are meant there.
   */
  at(path: DocumentPath, what?: "key" | "value", offset?: number, length?: number): Position;
}

export interface SourceReading {
  /** Absent if the text cannot be read. */
  readonly source?: SourceFile;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Reads YAML or JSON of at most 256 KB and 64 levels. A text that cannot be read gives one diagnostic, the first fault. The text
 * may come from anywhere: names of prototypes, unknown tags, several documents and aliases that grow are refused.
 */
export function readSource(file: string, given: string): SourceReading {
  const text = given.startsWith("\uFEFF") ? given.slice(1) : given;
  const positions = createPositions(text);
  const fault = textFault(text);
  if (fault !== undefined) return { diagnostics: [diagnose(file, positions, fault)] };
  const tokens = tokenize(text);
  const composed = "rule" in tokens ? tokens : compose(tokens, text);
  if ("rule" in composed) return { diagnostics: [diagnose(file, positions, composed)] };
  try {
    const root = convert(composed);
    return { source: sourceFile(file, text, positions, root), diagnostics: [] };
  } catch (thrown) {
    if (thrown instanceof ConversionFault) return { diagnostics: [diagnose(file, positions, thrown.fault)] };
    throw thrown;
  }
}

function diagnose(file: string, positions: Positions, fault: ReadFault): Diagnostic {
  const { rule, message, suggestion, start, end } = fault;
  const hint = suggestion === undefined ? {} : { suggestion };
  return { severity: "error", rule, message, ...hint, path: "", file, ...positions.between(start, end) };
}

/** The root of the one document of the text, or its first fault. */
function compose(tokens: readonly CST.Token[], text: string): ParsedNode | ReadFault {
  // Duplicate keys are looked for when converting, since the library compares each pair of keys.
  const options = { version: "1.2", stringKeys: true, uniqueKeys: false, resolveKnownTags: false } as const;
  let root: ParsedNode | undefined;
  for (const document of new Composer({ ...options, logLevel: "silent" }).compose(tokens, true, text.length)) {
    const [first] = [...document.errors, ...document.warnings].toSorted((a, b) => a.pos[0] - b.pos[0]);
    if (first !== undefined) return syntaxFault(first, text);
    // An empty document is read as null, in no characters.
    if (document.contents !== null && document.contents.range[0] < document.contents.range[1]) root = document.contents;
  }
  return root ?? { rule: "syntax", message: "The file is empty.", start: 0, end: 0 };
}

const SYNTAX_HINTS: Readonly<Partial<Record<YAMLError["code"], string>>> = {
  BAD_INDENT: "indent it as the lines beside it, and close every bracket before it",
  TAB_AS_INDENT: "indent with spaces",
  MISSING_CHAR: "close every quote and bracket, and put a text with : or # in quotes",
};

function syntaxFault({ code, message, pos }: YAMLError, text: string): ReadFault {
  const [start, end] = withoutBlanks(text, pos);
  if (code === "TAG_RESOLVE_FAILED")
    return { rule: "yaml-tag", message: "This tag is not known.", suggestion: "remove the tag", start, end };
  if (code === "NON_STRING_KEY")
    return { rule: "syntax", message: "A key must be a text.", suggestion: "put it in quotes", start, end };
  const suggestion = SYNTAX_HINTS[code];
  return { rule: "syntax", message: `The file is neither YAML nor JSON here: ${message}.`, suggestion, start, end };
}

/** The library may name the blank that ends a part: then the line before it is meant. */
function withoutBlanks(text: string, [start, end]: readonly [number, number]): readonly [number, number] {
  const before = text.slice(0, start).trimEnd();
  if (text.slice(start, end).trim() !== "" || before === "" || !/^[\t ]*(?:\r?\n|$)/u.test(text.slice(start)))
    return [start, end];
  const line = before.lastIndexOf("\n") + 1;
  return [line + before.slice(line).search(/\S/u), before.length];
}

function sourceFile(file: string, text: string, positions: Positions, root: Part): SourceFile {
  // Made once for each text, since one text may hold thousands of mistakes.
  const known = new Map<Part, ReturnType<typeof scalarOffsets>>();
  const offsetsOf = (part: Part): ReturnType<typeof scalarOffsets> => {
    if (known.has(part) || part.style === undefined || typeof part.value !== "string") return known.get(part);
    const offsets = scalarOffsets(text.slice(part.start, part.end), part.value, part.style);
    known.set(part, offsets);
    return offsets;
  };
  return {
    file,
    text,
    value: root.value,
    at: (path, what = "value", offset, length = 1) => {
      const part = closest(root, path);
      const [start, end] = what === "key" || part.start === part.end ? keyRange(part) : [part.start, part.end];
      if (offset === undefined || part.style === undefined || what === "key") return positions.between(start, end);
      const offsets = offsetsOf(part);
      if (offsets === undefined) return positions.between(start, end);
      const from = offsets[Math.min(offset, offsets.length - 1)] ?? 0;
      const to = offsets[Math.min(offset + length, offsets.length - 1)] ?? from + length;
      return positions.between(part.start + from, part.start + Math.max(to, from + 1));
    },
  };
}

function keyRange(part: Part): readonly [number, number] {
  return part.key === undefined ? [part.start, part.end] : [part.key.start, part.key.end];
}

/** The part at a path, or the last one on the way to it. */
function closest(root: Part, path: DocumentPath): Part {
  let part = root;
  for (const step of path) {
    const next = part.parts?.get(step);
    if (next === undefined) return part;
    part = next;
  }
  return part;
}
