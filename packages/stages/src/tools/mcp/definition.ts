import {
  compileSchema,
  digestOf,
  isJson,
  isJsonObject,
  type Json,
  type JsonObject,
  type JsonSchema,
  jsonFault,
} from "@sluice/core";
import { firstCharacters } from "../files/output.ts";

const LONGEST_DESCRIPTION = 4_000;
/** The same inside a schema, where there are many. */
const LONGEST_REMARK = 1_000;
const DEEPEST = 64;
/** Control and format characters, other invisible ones, lone surrogates: they say nothing to a reader and may say something else to a model. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Of these, what has no place in a name or a value either: bidirectional marks and tag characters. */
const DECEPTIVE = /[\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: object;
}

/** A listed tool as it is offered, and what it is recognised by later. */
export interface ToolDefinition {
  readonly description: string;
  /** What a model is shown. */
  readonly shown: JsonObject;
  /** What calls are checked with: only what takes no longer than the call is long. The server checks the rest. */
  readonly checked: JsonSchema;
  /** Over the name, the description and the schema, as the server said them. */
  readonly digest: string;
}

/** Reads what a server says of a tool. Throws Error or SluiceError with why it cannot be offered. */
export function readDefinition(listed: ListedTool): ToolDefinition {
  const said: unknown = listed.inputSchema;
  if (!isJson(said) || !isJsonObject(said))
    throw new Error(`its schema is not JSON: ${jsonFault(said) ?? "no object"}`);
  const { type = "object" } = said;
  if (type !== "object") throw new Error("its schema is not that of an object");
  const schema: JsonObject = { ...said, type };
  const shown = cleanSchema(schema, 0);
  const checked: JsonSchema = { ...checkable(schema, 0), type };
  if (DECEPTIVE.test(JSON.stringify(shown))) throw new Error("its schema holds characters that hide or turn text");
  // A provider may refuse a whole request for one schema that is none.
  compileSchema({ ...shown, type }, "its schema");
  const description = cleanText(listed.description ?? "", LONGEST_DESCRIPTION).trim();
  const title = cleanText(listed.title ?? "", 200).trim();
  return {
    description: description || title || `The tool ${listed.name} of an MCP server, which does not say what it is for.`,
    shown,
    checked,
    digest: definitionDigest(listed),
  };
}

/** Differs whenever a model or a person would be told something else about the tool. Throws SluiceError `not_json`. */
export function definitionDigest({ name, description = "", inputSchema }: ListedTool): string {
  const schema: unknown = inputSchema;
  return digestOf([name, description, isJson(schema) && isJsonObject(schema) ? schema : null]);
}

export function cleanText(text: string, longest: number): string {
  const clean = text.replaceAll(UNSEEN, "");
  return clean.length <= longest ? clean : `${firstCharacters(clean, longest)} … [cut]`;
}

/** Members of a schema that are schemas, lists of them, or hold one under each name. */
const SCHEMAS = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
const LISTS = new Set(["allOf", "anyOf", "items", "oneOf", "prefixItems"]);
const NAMED = new Set(["$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties", "properties"]);

/** The same schema with every text in it that a model reads made safe to read. */
function cleanSchema(schema: JsonObject, depth: number): JsonObject {
  return mapSchema(schema, depth, cleanSchema, (key, value) =>
    (key === "description" || key === "title" || key === "$comment") && typeof value === "string"
      ? cleanText(value, LONGEST_REMARK)
      : value,
  );
}

/** What a part that was taken out of a schema would make refuse a value that the whole accepts. */
const UNCHECKED = new Set([
  "$anchor",
  "$defs",
  "$dynamicAnchor",
  "$id",
  "contains",
  "definitions",
  "else",
  "id",
  "if",
  "maxContains",
  "minContains",
  "not",
  "oneOf",
  "pattern",
  "patternProperties",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
  "uniqueItems",
]);
const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"];

/**
 * The schema without what a hostile one could keep us busy with for years: regular expressions, and references, whose
 * branches multiply. What they would have refused is let through to the server, and nothing else is refused for it.
 */
function checkable(schema: JsonObject, depth: number): JsonObject {
  if (REFERENCES.some((key) => Object.hasOwn(schema, key))) return {};
  const open = Object.hasOwn(schema, "patternProperties");
  return mapSchema(schema, depth, checkable, (key, value) =>
    UNCHECKED.has(key) || (open && key === "additionalProperties") ? undefined : value,
  );
}

function mapSchema(
  schema: JsonObject,
  depth: number,
  inner: (schema: JsonObject, depth: number) => JsonObject,
  own: (key: string, value: Json) => Json | undefined,
): JsonObject {
  if (depth >= DEEPEST) throw new Error(`its schema is nested deeper than ${DEEPEST} levels`);
  const each = (value: Json): Json => (isJsonObject(value) ? inner(value, depth + 1) : value);
  const entries = Object.entries(schema).flatMap(([key, value]): [string, Json][] => {
    const kept = own(key, value);
    if (kept === undefined) return [];
    if (LISTS.has(key) && Array.isArray(kept)) return [[key, kept.map(each)]];
    if (NAMED.has(key) && isJsonObject(kept))
      return [[key, Object.fromEntries(Object.entries(kept).map(([name, value]) => [name, each(value)]))]];
    return [[key, SCHEMAS.has(key) ? each(kept) : kept]];
  });
  return Object.fromEntries(entries);
}
