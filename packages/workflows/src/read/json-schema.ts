// The JSON Schema of a document, from the schema that checks it.

import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { z } from "zod";
import { camelCase } from "./field-names.ts";

/**
 * The JSON Schema (draft-07) of a document, with every spelling of its fields. Its definitions are called after `name`, so that
 * those of several documents can stand beside each other.
 */
export function jsonSchemaOf(schema: z.ZodObject, name: string): JsonObject {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: "draft-07" });
  // Through text, since the library's type is wider than what it makes.
  const plain: Json = JSON.parse(JSON.stringify(rest).replaceAll(/__schema(\d+)/gu, `${name}$1`));
  const spelled = withSpellings(plain);
  return isJsonObject(spelled) ? spelled : {};
}

/** Adds the other spellings of each field to the objects of a schema. */
function withSpellings(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withSpellings);
  if (!isJsonObject(schema)) return schema;
  const { aliases: _forFields, ...members } = schema;
  const entries = Object.entries(members).map(([key, member]) => [key, withSpellings(member)] as const);
  const { properties } = schema;
  return isJsonObject(properties) ? objectSchema(Object.fromEntries(entries), properties) : Object.fromEntries(entries);
}

function objectSchema(schema: JsonObject, declared: JsonObject): JsonObject {
  const properties: Record<string, Json> = {};
  const others = new Map<string, readonly string[]>();
  for (const [name, described] of Object.entries(declared)) {
    const written = withSpellings(described);
    properties[name] = written;
    const aliases = textsAt(described, "aliases");
    const spellings = [...new Set([camelCase(name), ...aliases, ...aliases.map(camelCase)])].filter(
      (word) => word !== name,
    );
    others.set(name, spellings);
    for (const word of spellings)
      properties[word] = { ...(isJsonObject(written) ? written : {}), description: `The same as \`${name}\`.` };
  }
  const required = textsAt(schema, "required");
  const fixed = required.filter((name) => others.get(name)?.length === 0);
  const either = required.flatMap((name): readonly Json[] => {
    const spellings = others.get(name) ?? [];
    return spellings.length === 0 ? [] : [{ anyOf: [name, ...spellings].map((word) => ({ required: [word] })) }];
  });
  const { required: _all, ...rest } = schema;
  return {
    ...rest,
    properties,
    ...(fixed.length === 0 ? {} : { required: fixed }),
    ...(either.length === 0 ? {} : { allOf: either }),
  };
}

function textsAt(schema: Json, key: string): readonly string[] {
  const texts = field(schema, key);
  return Array.isArray(texts) ? texts.map(String) : [];
}

const CONDITIONAL = ["if", "then", "else"] as const;

/** A schema that depends on what a value is. */
export function either(test: JsonObject, yes: JsonObject, no: JsonObject): JsonObject {
  // From entries, since an object with a member `then` is taken for a promise.
  return Object.fromEntries([test, yes, no].map((schema, index) => [CONDITIONAL[index], schema]));
}
