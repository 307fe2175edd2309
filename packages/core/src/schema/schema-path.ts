import { field, isJsonObject, type Json, type JsonObject } from "../base/json.ts";

/** Keys and indexes from the root of a value. */
export type TemplatePath = readonly (string | number)[];

/** The first piece of a path that a schema does not have, and what it has instead. */
export interface MissingPiece {
  readonly index: number;
  readonly found: string;
}

const MAX_REFERENCES = 16;
/** Keywords that allow members besides those in `properties`. */
const OPEN_KEYWORDS = [
  "anyOf",
  "oneOf",
  "allOf",
  "if",
  "not",
  "patternProperties",
  "dependentSchemas",
  "unevaluatedProperties",
];

/** The piece of a path that no value of a schema can have; undefined if the path may exist. */
export function missingPiece(schema: JsonObject, path: TemplatePath): MissingPiece | undefined {
  let here: Json | undefined = schema;
  for (const [index, key] of path.entries()) {
    here = resolveReference(here, schema);
    if (!isJsonObject(here) || OPEN_KEYWORDS.some((keyword) => field(here, keyword) !== undefined)) return undefined;
    const type = here.type;
    if (type === "object") {
      const properties = field(here, "properties");
      const member = field(properties, String(key));
      if (member === undefined && !isClosedSchema(here, properties)) return undefined;
      if (member === undefined) return { index, found: `has ${Object.keys(properties ?? {}).join(", ")}` };
      here = member;
    } else if (type === "array") {
      if (typeof key !== "number") return { index, found: "is a list" };
      here = field(here, "items");
    } else if (typeof type === "string") {
      return { index, found: `is a ${type}` };
    } else {
      return undefined;
    }
  }
  return undefined;
}

/** The required properties of `wanted` that `given` cannot have. */
export function unknownRequired(wanted: JsonObject, given: JsonObject): readonly string[] {
  const required = wanted.required;
  if (!Array.isArray(required)) return [];
  return required.filter((key) => typeof key === "string" && missingPiece(given, [key]) !== undefined);
}

/** Whether a schema lists all its properties; one that does not mention others counts as closed. */
export function isClosedSchema(schema: JsonObject, properties: Json | undefined): properties is JsonObject {
  const rest = field(schema, "additionalProperties");
  return isJsonObject(properties) && Object.keys(properties).length > 0 && (rest === undefined || rest === false);
}

/** A schema in place of its `$ref`; undefined if that leads nowhere, outside of `root`, or in a circle. */
export function resolveReference(schema: Json | undefined, root: JsonObject): Json | undefined {
  let here = schema;
  for (let count = 0; count < MAX_REFERENCES; count += 1) {
    const reference = field(here, "$ref");
    if (typeof reference !== "string") return here;
    if (!reference.startsWith("#")) return undefined;
    here = reference
      .split("/")
      .slice(1)
      .reduce<Json | undefined>((at, piece) => field(at, piece.replaceAll("~1", "/").replaceAll("~0", "~")), root);
  }
  return undefined;
}

/** Keywords whose value is data, which holds no references. */
const DATA_KEYWORDS = new Set(["const", "enum", "default", "examples"]);
/** Keywords whose value is an object of schemas by names of the author's. */
const NAMED_KEYWORDS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/** A schema as a part of another one, at a path such as `/properties/input`: its references still lead to its own parts. */
export function nestedSchema(schema: JsonObject, at: string): JsonObject {
  const { $schema: _dialect, ...own } = schema;
  return movedMembers(own, at);
}

function movedMembers(schema: JsonObject, at: string): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]): readonly [string, Json] => {
      if (key === "$ref" && typeof value === "string" && value.startsWith("#")) return [key, `#${at}${value.slice(1)}`];
      if (DATA_KEYWORDS.has(key)) return [key, value];
      if (!NAMED_KEYWORDS.has(key) || !isJsonObject(value)) return [key, moved(value, at)];
      return [key, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, moved(one, at)]))];
    }),
  );
}

function moved(value: Json, at: string): Json {
  if (Array.isArray(value)) return value.map((one: Json) => moved(one, at));
  return isJsonObject(value) ? movedMembers(value, at) : value;
}
