import { createRequire } from "node:module";
import type { Ajv as AjvInstance, ErrorObject, Options } from "ajv";
import type { core } from "zod";
import type { ZodSchema as Zod3Schema } from "zod/v3";
import { field, type Json, type JsonObject } from "../base/json.ts";
import { issuePath, MAX_ISSUES, readableMessage } from "./issues.ts";
import type { Issue, SchemaVerdict } from "./schema.ts";

// Loaded on demand: ajv takes 40 ms, and only plain JSON Schema needs it.
const require = createRequire(import.meta.url);

const OPTIONS: Options = {
  allErrors: true,
  // Accepts unknown keywords and formats, since schemas come from many sources.
  strict: false,
  validateFormats: false,
  logger: false,
  ownProperties: true,
};

interface Dialect {
  /** Makes a compiler per schema, so that ids cannot clash and nothing is retained. */
  compiler(): AjvInstance;
  /** Validates schemas themselves. Shared, since compiling the meta-schema takes 20 ms. */
  readonly metaValidator: () => AjvInstance;
}

const DRAFT_07 = dialect(() => {
  const { Ajv }: typeof import("ajv") = require("ajv");
  return Ajv;
});
const DRAFT_2019 = dialect(() => {
  const { Ajv2019 }: typeof import("ajv/dist/2019.js") = require("ajv/dist/2019.js");
  return Ajv2019;
});
const DRAFT_2020 = dialect(() => {
  const { Ajv2020 }: typeof import("ajv/dist/2020.js") = require("ajv/dist/2020.js");
  return Ajv2020;
});

/**
 * Compiles a JSON Schema: draft-07, or the 2019-09 or 2020-12 that `$schema` names. Fetches nothing: refuses external references.
 * Throws Error with a message for the schema's author.
 */
export function compileJsonSchema<T>(schema: JsonObject): (value: Json) => SchemaVerdict<T> {
  // An extension of ajv that makes the check asynchronous.
  if (Object.hasOwn(schema, "$async")) throw new Error("$async is not JSON Schema");
  const { compiler, metaValidator } = dialectOf(schema);
  const meta = metaValidator();
  if (meta.validateSchema(schema) !== true) throw new Error(`not a valid JSON Schema: ${schemaFaults(meta.errors)}`);
  const validate = compiler().compile<T>(schema);
  return (value) => {
    if (validate(value)) return { ok: true, value };
    return { ok: false, issues: issuesOf(validate.errors ?? [], value) };
  };
}

function dialect(load: () => new (options: Options) => AjvInstance): Dialect {
  let validator: AjvInstance | undefined;
  return {
    compiler: () => new (load())({ ...OPTIONS, validateSchema: false }),
    metaValidator: () => {
      validator ??= new (load())(OPTIONS);
      return validator;
    },
  };
}

function dialectOf({ $schema }: JsonObject): Dialect {
  if (typeof $schema !== "string") return DRAFT_07;
  if ($schema.includes("2020-12")) return DRAFT_2020;
  if ($schema.includes("2019-09")) return DRAFT_2019;
  throw new Error(`the dialect ${readableMessage($schema)} is not known; write draft-07, or leave $schema out`);
}

function schemaFaults(errors: readonly ErrorObject[] | null | undefined): string {
  const all = (errors ?? []).map(
    (error) => `${error.instancePath.slice(0, 100) || "/"} ${error.message ?? error.keyword}`,
  );
  return readableMessage([...new Set(all)].slice(0, 3).join("; "));
}

function issuesOf(errors: readonly ErrorObject[], value: Json): readonly Issue[] {
  // The branches of an `if` have their own errors.
  const specific = errors.filter((error) => error.keyword !== "if");
  return specific.slice(0, MAX_ISSUES).map((error) => issueOf(error, value));
}

function issueOf(error: ErrorObject, value: Json): Issue {
  const pieces = piecesOf(error.instancePath, value);
  const params: Readonly<Record<string, unknown>> = error.params;
  switch (error.keyword) {
    case "required":
      return { path: issuePath([...pieces, String(params.missingProperty)]), message: "is required" };
    case "additionalProperties":
      return { path: issuePath([...pieces, String(params.additionalProperty)]), message: "is not a known property" };
    case "enum":
      return {
        path: issuePath(pieces),
        message: readableMessage(`must be one of ${JSON.stringify(params.allowedValues)}`),
      };
    case "const":
      return { path: issuePath(pieces), message: readableMessage(`must be ${JSON.stringify(params.allowedValue)}`) };
    default:
      return { path: issuePath(pieces), message: readableMessage(error.message ?? `fails ${error.keyword}`) };
  }
}

/** A JSON pointer writes an index and a member name alike; the value shows which it is. */
function piecesOf(pointer: string, value: Json): readonly (string | number)[] {
  let here: Json | undefined = value;
  return pointer
    .split("/")
    .slice(1)
    .map((escaped) => {
      const key = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(here)) {
        here = here[Number(key)];
        return Number(key);
      }
      here = field(here, key);
      return key;
    });
}

// Loaded on demand: Zod takes 80 ms, and current Zod 4 schemas describe themselves.

type Side = "input" | "output";
type ZodType = core.$ZodTypes;
type ZodOptions = core.ToJSONSchemaParams;

export function isZod(schema: object): boolean {
  return "_zod" in schema || isZod3(schema);
}

/**
 * The draft-07 JSON Schema of a Zod 3 or Zod 4 schema's input or output. Throws Error if there is none. `visit` gets each schema in a
 * Zod 4 schema.
 */
export function describeZod(schema: object, io: Side, visit?: (schema: ZodType) => void): unknown {
  if (isZod3(schema)) return describeZod3(schema, io);
  const options: ZodOptions = {
    target: "draft-7",
    io,
    ...(visit && { override: ({ zodSchema }) => visit(zodSchema) }),
  };
  if ("toJSONSchema" in schema && typeof schema.toJSONSchema === "function") return schema.toJSONSchema(options);
  const zod: typeof import("zod") = require("zod");
  if (schema instanceof zod.core.$ZodType) return zod.toJSONSchema(schema, options);
  throw new Error("neither a Zod 3 nor a Zod 4 schema");
}

/** Whether a Zod 4 schema calls functions of its author by itself, which may answer later. */
export function callsFunctions({ _zod: { def } }: ZodType): boolean {
  return CALLING.has(def.type) || (def.checks ?? []).some((check) => CALLING_CHECKS.has(check._zod.def.check));
}

/** A pipe may have a transform; what is in a `success` or a checked property is not visited. */
const CALLING: ReadonlySet<string> = new Set(["custom", "pipe", "transform", "success"]);
const CALLING_CHECKS: ReadonlySet<string> = new Set(["custom", "property"]);

export function isZod3(schema: object): schema is Zod3Schema {
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
  // The converter returns an empty schema for unknown types, which would accept anything.
  if (Object.keys(described).length === 0 && !anything)
    throw new Error("it has no JSON Schema: the converter returned an empty one");
  return described;
}

/** The class name of a Zod 3 schema; undefined for Zod 4. */
function typeNameOf(schema: object): string | undefined {
  if (!("_def" in schema) || typeof schema._def !== "object" || schema._def === null) return undefined;
  const typeName: unknown = "typeName" in schema._def ? schema._def.typeName : undefined;
  return typeof typeName === "string" ? typeName : undefined;
}
