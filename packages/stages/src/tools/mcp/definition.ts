import { isJson, isJsonObject, type Json, type JsonObject, type JsonSchema, type TextMask } from "@sluice/core";
import { compileSchema, digestOf, jsonFault } from "@sluice/core/runtime";
import { maskedHead } from "../../secrets/cut-text.ts";

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
  /** Digest of the name, the description, the schema and a title in place of the description, as the server sent them. */
  readonly digest: string;
}

/** Reads a server's definition of a tool, and cuts long texts. Throws Error or SluiceError with the reason why it cannot be offered. */
export function readDefinition(listed: ListedTool, secrets: Pick<TextMask, "text">): ToolDefinition {
  const sent: unknown = listed.inputSchema;
  if (!isJson(sent) || !isJsonObject(sent))
    throw new Error(`its schema is not JSON: ${jsonFault(sent) ?? "not an object"}`);
  const { type = "object" } = sent;
  if (type !== "object") throw new Error("its schema does not describe an object");
  const schema: JsonObject = { ...sent, type };
  const shown = mapSchema(schema, (key, value) => cleanMember(key, value, secrets));
  const checked: JsonSchema = { ...mapSchema(schema, checkable), type };
  if (DECEPTIVE.test(JSON.stringify(shown)))
    throw new Error("its schema contains characters that hide or reverse text");
  // A provider may refuse a whole request for one invalid schema.
  compileSchema({ ...shown, type }, "its schema");
  const description = definitionText(listed.description ?? "", LONGEST_DESCRIPTION, secrets).trim();
  const title = definitionText(listed.title ?? "", 200, secrets).trim();
  return {
    description: description || title || `The tool ${listed.name} of an MCP server, which provides no description.`,
    shown,
    checked,
    digest: definitionDigest(listed),
  };
}

/** Changes whenever a model or a person would see a different definition. Throws SluiceError `not_json`. */
export function definitionDigest({ name, title = "", description = "", inputSchema }: ListedTool): string {
  const schema: unknown = inputSchema;
  // Without a title that is not shown, so that no run stops because such a title changed.
  const shownTitle = isBlank(description) && !isBlank(title) ? [title] : [];
  return digestOf([name, description, isJson(schema) && isJsonObject(schema) ? schema : null, ...shownTitle]);
}

/** Whether all characters of a text are spaces or invisible. */
function isBlank(text: string): boolean {
  return text.replaceAll(UNSEEN, "").trim() === "";
}

/** Without invisible characters; a text that is too long is masked and cut. */
export function cleanText(text: string, longest: number, secrets: Pick<TextMask, "text">): string {
  const clean = text.replaceAll(UNSEEN, "");
  return clean.length <= longest ? clean : `${maskedHead(clean, longest, secrets)} … [cut]`;
}

/** `cleanText` for a definition, where no key may be: half of one that is cut would not be found. Throws Error. */
function definitionText(text: string, longest: number, secrets: Pick<TextMask, "text">): string {
  const clean = text.replaceAll(UNSEEN, "");
  if (clean.length > longest && secrets.text(clean) !== clean) throw new Error("its definition contains a key");
  return cleanText(clean, longest, secrets);
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

/** Removes invisible characters from the texts in a schema, and shortens them. */
function cleanMember(key: string, value: Json, secrets: Pick<TextMask, "text">): Json {
  const isText = key === "description" || key === "title" || key === "$comment";
  return isText && typeof value === "string" ? definitionText(value, LONGEST_REMARK, secrets) : value;
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
function checkable(key: string, value: Json, schema: JsonObject): Json | undefined {
  const refers = REFERENCES.some((reference) => Object.hasOwn(schema, reference));
  const isOpen = key === "additionalProperties" && Object.hasOwn(schema, "patternProperties");
  return refers || isOpen || UNCHECKED.has(key) ? undefined : value;
}

/** Replaces the members of a schema and of all schemas in it; drops those that become undefined. */
function mapSchema(
  schema: JsonObject,
  map: (key: string, value: Json, schema: JsonObject) => Json | undefined,
  depth = 0,
): JsonObject {
  if (depth >= DEEPEST) throw new Error(`its schema is nested deeper than ${DEEPEST} levels`);
  const each = (value: Json): Json => (isJsonObject(value) ? mapSchema(value, map, depth + 1) : value);
  const entries = Object.entries(schema).flatMap(([key, value]): [string, Json][] => {
    const kept = map(key, value, schema);
    if (kept === undefined) return [];
    if (LISTS.has(key) && Array.isArray(kept)) return [[key, kept.map(each)]];
    if (NAMED.has(key) && isJsonObject(kept))
      return [[key, Object.fromEntries(Object.entries(kept).map(([name, value]) => [name, each(value)]))]];
    return [[key, SCHEMAS.has(key) ? each(kept) : kept]];
  });
  return Object.fromEntries(entries);
}
