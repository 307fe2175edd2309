import { createRequire } from "node:module";
import type { ZodSchema as Zod3Schema } from "zod/v3";

// Zod takes 80 ms to load: who uses Zod 4 has loaded a copy whose schemas describe themselves, and others never need it.
const require = createRequire(import.meta.url);

type Side = "input" | "output";

export function isZod(schema: object): boolean {
  return "_zod" in schema || isZod3(schema);
}

/** The JSON Schema (draft-07) of what a Zod 3 or Zod 4 schema takes or gives. Throws Error for what JSON Schema cannot say. */
export function describeZod(schema: object, io: Side): unknown {
  if (isZod3(schema)) return describeZod3(schema, io);
  const options = { target: "draft-7", io } as const;
  if ("toJSONSchema" in schema && typeof schema.toJSONSchema === "function") return schema.toJSONSchema(options);
  const zod: typeof import("zod") = require("zod");
  if (schema instanceof zod.core.$ZodType) return zod.toJSONSchema(schema, options);
  throw new Error("neither a Zod 3 nor a Zod 4 schema");
}

function isZod3(schema: object): schema is Zod3Schema {
  return !("_zod" in schema) && typeNameOf(schema) !== undefined;
}

function describeZod3(schema: Zod3Schema, io: Side): unknown {
  const { zodToJsonSchema }: typeof import("zod-to-json-schema") = require("zod-to-json-schema");
  const { $schema: _dialect, ...described } = zodToJsonSchema(schema, {
    target: "jsonSchema7",
    pipeStrategy: io,
    effectStrategy: io === "input" ? "input" : "any",
  });
  const anything = ["ZodAny", "ZodUnknown"].includes(typeNameOf(schema) ?? "");
  // The converter answers with an empty schema for what it does not know, which would let a model send anything.
  if (Object.keys(described).length === 0 && !anything)
    throw new Error("it has no JSON Schema: the converter returned an empty one");
  return described;
}

/** Zod 3 names the class of a schema here; Zod 4 does not. */
function typeNameOf(schema: object): string | undefined {
  if (!("_def" in schema) || typeof schema._def !== "object" || schema._def === null) return undefined;
  const typeName: unknown = "typeName" in schema._def ? schema._def.typeName : undefined;
  return typeof typeName === "string" ? typeName : undefined;
}
