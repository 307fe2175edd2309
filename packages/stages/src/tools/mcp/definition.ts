import { isJson, isJsonObject, type Json, type JsonObject, type JsonSchema } from "@sluice/core";
import { compileSchema, digestOf, jsonFault } from "@sluice/core/runtime";
import { firstCharacters } from "../files/results.ts";

const LONGEST_DESCRIPTION = 4_000;
/** Characters of a description inside a schema. */
const LONGEST_REMARK = 1_000;
const DEEPEST = 64;
/** Invisible to a person, but not to a model: control and format characters, lone surrogates, and the like. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Also refused in names and values: bidirectional marks and tag characters. */
const DECEPTIVE = /[\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: object;
}

/** A listed tool as models and calls use it. */
export interface ToolDefinition {
  readonly description: string;
  /** The schema that models see. */
  readonly shown: JsonObject;
  /** The schema that calls are checked with, reduced to checks in linear time. The server checks the rest. */
  readonly checked: JsonSchema;
  /** Digest of the name, the description and the schema as the server sent them. */
  readonly digest: string;
}

/** Reads a server's definition of a tool. Throws Error or SluiceError with the reason why it cannot be offered. */
export function readDefinition(listed: ListedTool): ToolDefinition {
  const sent: unknown = listed.inputSchema;
  if (!isJson(sent) || !isJsonObject(sent))
    throw new Error(`its schema is not JSON: ${jsonFault(sent) ?? "not an object"}`);
  const { type = "object" } = sent;
  if (type !== "object") throw new Error("its schema does not describe an object");
  const schema: JsonObject = { ...sent, type };
  const shown = cleanSchema(schema, 0);
  const checked: JsonSchema = { ...checkable(schema, 0), type };
  if (DECEPTIVE.test(JSON.stringify(shown)))
    throw new Error("its schema contains characters that hide or reverse text");
  // A provider may refuse a whole request for one invalid schema.
  compileSchema({ ...shown, type }, "its schema");
  const description = cleanText(listed.description ?? "", LONGEST_DESCRIPTION).trim();
  const title = cleanText(listed.title ?? "", 200).trim();
  return {
    description: description || title || `The tool ${listed.name} of an MCP server, which provides no description.`,
    shown,
    checked,
    digest: definitionDigest(listed),
  };
}

/** Changes whenever a model or a person would see a different definition. Throws SluiceError `not_json`. */
export function definitionDigest({ name, description = "", inputSchema }: ListedTool): string {
  const schema: unknown = inputSchema;
  return digestOf([name, description, isJson(schema) && isJsonObject(schema) ? schema : null]);
}

export function cleanText(text: string, longest: number): string {
  const clean = text.replaceAll(UNSEEN, "");
  return clean.length <= longest ? clean : `${firstCharacters(clean, longest)} … [cut]`;
}

/** Members of a schema that contain schemas: directly, in a list, or by name. */
const SCHEMAS = keys(
  "additionalItems additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems " +
    "unevaluatedProperties",
);
const LISTS = keys("allOf anyOf items oneOf prefixItems");
const NAMED = keys("$defs definitions dependentSchemas dependencies patternProperties properties");

function keys(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}

/** Removes invisible characters from every text in a schema, and shortens it. */
function cleanSchema(schema: JsonObject, depth: number): JsonObject {
  return mapSchema(schema, depth, cleanSchema, (key, value) =>
    (key === "description" || key === "title" || key === "$comment") && typeof value === "string"
      ? cleanText(value, LONGEST_REMARK)
      : value,
  );
}

/** Members that are dropped: without their parts they could refuse a valid value. */
const UNCHECKED = keys(
  "$anchor $defs $dynamicAnchor $id contains definitions else id if maxContains minContains not oneOf pattern " +
    "patternProperties propertyNames then unevaluatedItems unevaluatedProperties uniqueItems",
);
const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"];

/**
 * Removes what a hostile schema could use to block the process: regular expressions, and references, whose branches multiply.
 * The result accepts at least the same values; the server checks the rest.
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
