import type { Json } from "@sluice/core";
import { isAlias, isMap, isScalar, type ParsedNode, type Scalar, type YAMLMap, type YAMLSeq } from "yaml";
import { ConversionFault, type ReadFault } from "./fault.ts";
import { depthFault, MAX_DEPTH } from "./limits.ts";
import type { ScalarStyle } from "./scalar-offsets.ts";

/** A part of a document: its value and where it is, in offsets of the text. */
export interface Part {
  readonly value: Json;
  readonly start: number;
  readonly end: number;
  /** Of a text, a number, a boolean or null. */
  readonly style?: ScalarStyle;
  /** Its key, in an object. */
  readonly key?: { readonly start: number; readonly end: number };
  /** The members of an object by key, or the entries of a list by index. */
  readonly parts?: ReadonlyMap<string | number, Part>;
  /** Values in it, itself included, with what its aliases repeat. */
  readonly size: number;
  /** Levels of lists and objects in it. */
  readonly depth: number;
}

/** Values that the aliases of a document may repeat, all together. */
const MAX_REPEATED = 10_000;
/** Names that reach an object's prototype in careless code. */
const PROTOTYPE_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);
const TAGS: ReadonlySet<string> = new Set(
  ["map", "seq", "str", "int", "float", "bool", "null"].map((name) => `tag:yaml.org,2002:${name}`),
);

/** What the aliases seen so far may repeat, and how many values they have repeated. */
interface Aliases {
  readonly anchors: Map<string, Part | "open">;
  repeated: number;
}

/** The document as plain data. Throws ConversionFault at the first part that is not. */
export function convert(node: ParsedNode): Part {
  return convertNode(node, { anchors: new Map(), repeated: 0 });
}

function convertNode(node: ParsedNode, aliases: Aliases): Part {
  const [start, end] = node.range;
  if (isAlias(node)) return { ...aliased(node.source, aliases, start, end), start, end };
  if (node.tag !== undefined && !TAGS.has(node.tag)) {
    throw fault({ rule: "yaml-tag", message: "This tag is not known.", suggestion: "remove the tag", start, end });
  }
  if (node.anchor !== undefined) aliases.anchors.set(node.anchor, "open");
  const part = isScalar(node) ? scalarPart(node) : isMap(node) ? mapPart(node, aliases) : listPart(node, aliases);
  if (node.anchor !== undefined) aliases.anchors.set(node.anchor, part);
  return part;
}

/** What an alias stands for. It is shared, not copied, and what it would grow to is counted. */
function aliased(name: string, aliases: Aliases, start: number, end: number): Part {
  const part = aliases.anchors.get(name);
  if (part === "open")
    throw fault({ rule: "yaml-alias", message: `The alias *${name} is inside what it repeats.`, start, end });
  if (part === undefined)
    throw fault({ rule: "yaml-alias", message: `There is no anchor &${name} before this alias.`, start, end });
  aliases.repeated += part.size;
  if (aliases.repeated > MAX_REPEATED) {
    const message = `The aliases of the document repeat more than ${MAX_REPEATED} values.`;
    throw fault({ rule: "yaml-alias", message, suggestion: "write the values out", start, end });
  }
  return part;
}

function scalarPart(node: Scalar.Parsed): Part {
  const [start, end] = node.range;
  const { value } = node;
  const style =
    node.type === "PLAIN"
      ? "plain"
      : node.type === "QUOTE_SINGLE"
        ? "single"
        : node.type === "QUOTE_DOUBLE"
          ? "double"
          : "block";
  const at = { start, end, size: 1, depth: 0 };
  if (value === null || typeof value === "boolean") return { value, style, ...at };
  if (typeof value === "number" && Number.isFinite(value)) return { value, style, ...at };
  if (typeof value === "string") {
    if (value.isWellFormed()) return { value, style, ...at };
    throw fault({
      rule: "syntax",
      message: "This text holds a lone surrogate, which is not valid Unicode.",
      start,
      end,
    });
  }
  throw fault({ rule: "syntax", message: "This is not a number that JSON has.", start, end });
}

function mapPart(node: YAMLMap.Parsed, aliases: Aliases): Part {
  const [start, end] = node.range;
  const parts = new Map<string, Part>();
  for (const { key, value } of node.items) {
    const [keyStart, keyEnd] = key.range;
    const at = { start: keyStart, end: keyEnd };
    if (!isScalar(key) || typeof key.value !== "string")
      throw fault({ rule: "syntax", message: "A key must be a text.", ...at });
    const name = key.value;
    const shown = JSON.stringify(name.slice(0, 80));
    if (PROTOTYPE_KEYS.has(name)) {
      throw fault({
        rule: "prototype-key",
        message: `The key ${shown} is not allowed anywhere.`,
        suggestion: "rename it",
        ...at,
      });
    }
    if (parts.has(name)) {
      throw fault({
        rule: "duplicate-key",
        message: `The key ${shown} is there twice.`,
        suggestion: "remove one of them",
        ...at,
      });
    }
    const part = value === null ? emptyPart(keyEnd) : convertNode(value, aliases);
    parts.set(name, { ...part, key: at });
  }
  return {
    value: Object.fromEntries([...parts].map(([name, { value }]) => [name, value])),
    start,
    end,
    parts,
    ...extent([...parts.values()], start, end),
  };
}

function emptyPart(at: number): Part {
  return { value: null, start: at, end: at, style: "plain", size: 1, depth: 0 };
}

function listPart(node: YAMLSeq.Parsed, aliases: Aliases): Part {
  const [start, end] = node.range;
  const entries = node.items.map((entry) => convertNode(entry, aliases));
  const parts = new Map(entries.map((part, index) => [index, part]));
  return { value: entries.map(({ value }) => value), start, end, parts, ...extent(entries, start, end) };
}

/** How much a collection holds. Aliases can make it deeper than its text. */
function extent(members: readonly Part[], start: number, end: number): Pick<Part, "size" | "depth"> {
  let size = 1;
  let depth = 0;
  for (const member of members) {
    size += member.size;
    depth = Math.max(depth, member.depth);
  }
  if (depth >= MAX_DEPTH) throw fault(depthFault(start, end));
  return { size, depth: depth + 1 };
}

function fault(what: ReadFault): ConversionFault {
  return new ConversionFault(what);
}
