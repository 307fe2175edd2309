// Edits of JSON files that people write: everything that an edit is not about stays as it is, comments included.
import { type Json, parseJson, SluiceError } from "@sluice/core";

/** A value with its place in the text. */
export type JsonNode = { readonly start: number; readonly end: number } & (
  | { readonly kind: "object"; readonly members: readonly JsonMember[]; readonly hasTrailingComma: boolean }
  | { readonly kind: "array"; readonly items: readonly JsonNode[]; readonly hasTrailingComma: boolean }
  | { readonly kind: "scalar"; readonly value: Json }
);

export interface JsonMember {
  readonly key: string;
  readonly start: number;
  readonly value: JsonNode;
}

const MAX_DEPTH = 100;

/** Reads JSON with comments and trailing commas. Throws Validation `host_config_invalid`, with the line. */
export function parseJsonText(text: string): JsonNode {
  let at = text.startsWith("\uFEFF") ? 1 : 0;

  const fail = (what: string): SluiceError => {
    const line = text.slice(0, at).split("\n").length;
    return new SluiceError("Validation", "host_config_invalid", `line ${line}: ${what}`);
  };
  const skip = (): void => {
    const space = /(?:[\s]|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
    space.lastIndex = at;
    at += space.exec(text)?.[0].length ?? 0;
  };
  const readString = (): string => {
    const pattern = /"(?:[^"\\\n]|\\.)*"/y;
    pattern.lastIndex = at;
    const [found] = pattern.exec(text) ?? [];
    if (found === undefined) throw fail("a string was expected");
    at += found.length;
    const parsed = parseJson(found);
    if (!parsed.ok || typeof parsed.value !== "string") throw fail("a string was expected");
    return parsed.value;
  };
  /** Reads what is between brackets. Returns whether a comma follows the last part. */
  const readParts = (close: string, readPart: () => void): boolean => {
    at += 1;
    let hasComma = false;
    for (let count = 0; ; count += 1) {
      skip();
      if (text[at] === close) {
        at += 1;
        return hasComma;
      }
      if (count > 0 && !hasComma) throw fail(`a comma or ${close} was expected`);
      readPart();
      skip();
      hasComma = text[at] === ",";
      if (hasComma) at += 1;
    }
  };
  const readNode = (depth: number): JsonNode => {
    if (depth > MAX_DEPTH) throw fail("it is nested too deeply");
    skip();
    const start = at;
    if (text[at] === "{") {
      const members: JsonMember[] = [];
      const hasTrailingComma = readParts("}", () => {
        const memberStart = at;
        const key = readString();
        skip();
        if (text[at] !== ":") throw fail("a colon was expected");
        at += 1;
        members.push({ key, start: memberStart, value: readNode(depth + 1) });
      });
      return { kind: "object", start, end: at, members, hasTrailingComma };
    }
    if (text[at] === "[") {
      const items: JsonNode[] = [];
      const hasTrailingComma = readParts("]", () => items.push(readNode(depth + 1)));
      return { kind: "array", start, end: at, items, hasTrailingComma };
    }
    if (text[at] === '"') {
      const value = readString();
      return { kind: "scalar", start, end: at, value };
    }
    const word = /(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/y;
    word.lastIndex = at;
    const [found] = word.exec(text) ?? [];
    if (found === undefined) throw fail("a value was expected");
    at += found.length;
    const value: Json = JSON.parse(found);
    return { kind: "scalar", start, end: at, value };
  };

  const root = readNode(0);
  skip();
  if (at < text.length) throw fail("nothing was expected after the value");
  return root;
}

/** The value of a node. Of members with the same key, the last one counts. */
export function jsonValue(node: JsonNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "array") return node.items.map(jsonValue);
  return Object.fromEntries(node.members.map(({ key, value }) => [key, jsonValue(value)]));
}

function memberOf(node: JsonNode | undefined, key: string): JsonNode | undefined {
  return node?.kind === "object" ? node.members.findLast((member) => member.key === key)?.value : undefined;
}

/** What an edit adds: the value of a member, or one item at the end of a list that is made if it is missing. */
export interface JsonEdit {
  readonly path: readonly string[];
  readonly value: Json;
  readonly append?: boolean;
}

/**
 * Adds a value at a path, with the objects on the way. A member that exists keeps its place and gets the value. Throws Validation
 * `host_config_invalid` if something else is in the way.
 */
export function editJsonText(text: string, edit: JsonEdit): string {
  const root = parseJsonText(text);
  let node = root;
  for (const [depth, key] of edit.path.entries()) {
    if (node.kind !== "object") throw inTheWay(edit.path.slice(0, depth), "an object");
    const next = memberOf(node, key);
    if (next === undefined) {
      const value = edit.append === true ? [edit.value] : edit.value;
      const rest = edit.path.slice(depth + 1).reduceRight<Json>((inner, name) => ({ [name]: inner }), value);
      return insertPart(text, node, `${JSON.stringify(key)}: `, rest, depth + 1);
    }
    node = next;
  }
  if (edit.append !== true)
    return text.slice(0, node.start) + written(text, edit.value, edit.path.length) + text.slice(node.end);
  if (node.kind !== "array") throw inTheWay(edit.path, "a list");
  return insertPart(text, node, "", edit.value, edit.path.length + 1);
}

/** Removes the members and list items that `isOurs` names, and the objects and lists that are empty afterwards. */
export function removeFromJsonText(text: string, isOurs: (path: readonly string[], value: Json) => boolean): string {
  let current = text;
  for (;;) {
    const found = partToRemove(parseJsonText(current), [], isOurs);
    if (found === undefined) return current;
    current = cut(current, found);
  }
}

interface Part {
  readonly start: number;
  readonly end: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly isOnly: boolean;
}

function partToRemove(
  node: JsonNode,
  path: readonly string[],
  isOurs: (path: readonly string[], value: Json) => boolean,
): Part | undefined {
  if (node.kind === "scalar") return undefined;
  const parts =
    node.kind === "object"
      ? node.members.map(({ key, start, value }) => ({ start, value, path: [...path, key] }))
      : node.items.map((value) => ({ start: value.start, value, path: [...path, "*"] }));
  for (const [index, part] of parts.entries()) {
    const place = {
      start: part.start,
      end: part.value.end,
      isFirst: index === 0,
      isLast: index === parts.length - 1,
      isOnly: parts.length === 1,
    };
    if (isOurs(part.path, jsonValue(part.value))) return place;
    const inner = partToRemove(part.value, part.path, isOurs);
    if (inner !== undefined) return inner.isOnly ? place : inner;
  }
  return undefined;
}

/** Cuts one part with its comma and its line. */
function cut(text: string, { start, end, isFirst, isLast }: Part): string {
  if (isFirst || !isLast) {
    const after = /^\s*,?(?:[ \t]*\r?\n[ \t]*)?/.exec(text.slice(end))?.[0].length ?? 0;
    return text.slice(0, start) + text.slice(end + after);
  }
  const before = /,\s*$/.exec(text.slice(0, start))?.[0].length ?? 0;
  return text.slice(0, start - before) + text.slice(end);
}

function insertPart(
  text: string,
  node: Extract<JsonNode, { readonly kind: "object" | "array" }>,
  head: string,
  value: Json,
  depth: number,
): string {
  const { newline, unit } = styleOf(text);
  const line = `${newline}${unit.repeat(depth)}${head}${written(text, value, depth)}`;
  const last = node.kind === "object" ? node.members.at(-1)?.value : node.items.at(-1);
  if (last === undefined) {
    const close = `${newline}${unit.repeat(depth - 1)}`;
    return `${text.slice(0, node.start + 1)}${line}${close}${text.slice(node.end - 1)}`;
  }
  if (!node.hasTrailingComma) return `${text.slice(0, last.end)},${line}${text.slice(last.end)}`;
  const comma = text.indexOf(",", last.end) + 1;
  return `${text.slice(0, comma)}${line},${text.slice(comma)}`;
}

function written(text: string, value: Json, depth: number): string {
  const { newline, unit } = styleOf(text);
  return JSON.stringify(value, null, unit).replaceAll("\n", `${newline}${unit.repeat(depth)}`);
}

/** The line ends and the indentation of a file: those of its first indented line. */
function styleOf(text: string): { readonly newline: string; readonly unit: string } {
  return { newline: text.includes("\r\n") ? "\r\n" : "\n", unit: /\n([ \t]+)\S/.exec(text)?.[1] ?? "  " };
}

function inTheWay(path: readonly string[], what: string): SluiceError {
  const where = path.length === 0 ? "the file" : path.join(".");
  return new SluiceError("Validation", "host_config_invalid", `${where} is not ${what}`);
}
