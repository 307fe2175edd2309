import type { ZodSafeParseResult } from "zod";
import { digestOf } from "../base/canonical.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import {
  cloneJson,
  deepFreeze,
  isJsonObject,
  isObject,
  isPromiseLike,
  type JsonObject,
  toJsonValue,
} from "../base/json.ts";
import { failed, notJson, readableMessage, refused, type StandardIssue } from "./issues.ts";
import { callsFunctions, compileJsonSchema, describeZod, isZod, isZod3 } from "./json-schema.ts";
import type { CompiledSchema, Schema, SchemaVerdict, StandardSchema } from "./schema.ts";
import { checkOf } from "./shape.ts";

/** Limits the cost of compiling and showing a schema from a hostile server. */
const MAX_SCHEMA_CHARS = 262_144;
const DRAFT = { target: "draft-07" };

/** The used part of Standard Schema version 1, with its JSON Schema extension. */
interface Standard<T> extends StandardSchema<T> {
  readonly "~standard": {
    readonly types?: { readonly output: T } | undefined;
    readonly vendor?: string;
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>;
    readonly jsonSchema?: { readonly input: Describe; readonly output?: Describe };
  };
}
type Describe = (options: { readonly target: string }) => unknown;
type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export type ParsedSchema<T> =
  | { readonly ok: true; readonly value: CompiledSchema<T> }
  | { readonly ok: false; readonly message: string };

/**
 * Compiles a schema to JSON Schema and a check. `where` names it in errors (`stages.plan.inputSchema`). Throws Validation
 * `schema_invalid` for a value that is not a schema or that has no JSON Schema.
 */
export function compileSchema<T>(schema: Schema<T>, where: string): CompiledSchema<T> {
  const reading = readSchema(schema);
  if (reading.ok) return reading.value;
  throw new SluiceError("Validation", "schema_invalid", `${where}: ${reading.message}`);
}

/** Like `compileSchema`, but returns the fault as a value. JSON Schema may describe any value here. */
export function readSchema<T>(schema: Schema<T> | JsonObject): ParsedSchema<T> {
  try {
    if (isStandard(schema)) return { ok: true, value: compileStandard(schema) };
    const mistaken = mistakenFor(schema);
    if (mistaken !== undefined) return { ok: false, message: mistaken };
    if (typeof schema === "object" && schema !== null && !("~standard" in schema))
      return { ok: true, value: compilePlain(schema) };
    return { ok: false, message: "neither a schema nor JSON Schema" };
  } catch (thrown) {
    return { ok: false, message: readableMessage(messageOf(thrown)) };
  }
}

/** A JSON Schema that Sluice wrote itself. It is compiled when a value is checked: some are only read. */
export function ownSchema(jsonSchema: JsonObject): CompiledSchema<unknown> {
  let compiled: CompiledSchema<unknown> | undefined;
  return {
    ...describe(jsonSchema),
    accepted: () => jsonSchema,
    check: (value: unknown) => {
      compiled ??= compilePlain(jsonSchema);
      return compiled.check(value);
    },
  };
}

/**
 * Gives a JSON Schema to a Standard Schema whose library cannot describe it. Models see the JSON Schema; values are still checked
 * by the schema itself.
 */
export function withJsonSchema<T>(schema: StandardSchema<T>, jsonSchema: JsonObject): StandardSchema<T> {
  const described = { ...schema["~standard"], jsonSchema: { input: () => jsonSchema } };
  return { "~standard": described };
}

/** What people give in place of a schema. */
function mistakenFor(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined;
  if ("_def" in schema && typeof schema.parse === "function")
    return "a schema of a Zod before 3.25, which cannot be described; install zod 4";
  const isSchemaLike = (one: unknown): boolean => isObject(one) && ("~standard" in one || "_def" in one);
  return Object.values(schema).some(isSchemaLike)
    ? "an object of schemas is not a schema; write z.object({ … }) around it"
    : undefined;
}

function isStandard<T>(schema: Schema<T> | JsonObject): schema is Standard<T> {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return false;
  const standard: unknown = schema["~standard"];
  return (
    typeof standard === "object" &&
    standard !== null &&
    "validate" in standard &&
    typeof standard.validate === "function"
  );
}

function compilePlain<T>(schema: object): CompiledSchema<T> {
  const described = describe(schema);
  const validate = compileJsonSchema<T>(described.jsonSchema);
  return Object.freeze({
    ...described,
    accepted: () => described.jsonSchema,
    check: (value: unknown) => {
      const own = toJsonValue(value);
      if (!own.ok) return notJson(own.fault);
      try {
        return validate(own.value);
      } catch (thrown) {
        return failed(thrown);
      }
    },
  });
}

function compileStandard<T>(schema: Standard<T>): CompiledSchema<T> {
  const standard = schema["~standard"];
  let isLater = isZod3(schema);
  const own = isZod(schema)
    ? describeZod(schema, "input", (part) => {
        isLater ||= callsFunctions(part);
      })
    : standard.jsonSchema?.input(DRAFT);
  if (own === undefined) {
    const vendor = standard.vendor ?? "this library";
    throw new Error(
      `a ${vendor} schema that cannot describe itself as JSON Schema; update ${vendor}, wrap it in withJsonSchema(schema, {…}), or use Zod`,
    );
  }
  const described = describe(own);
  const checkedBy =
    (validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>) =>
    (value: unknown): SchemaVerdict<T> | Promise<SchemaVerdict<T>> => {
      const input = toJsonValue(value);
      if (!input.ok) return notJson(input.fault);
      try {
        const result = validate(value === undefined ? undefined : input.value);
        return isPromiseLike(result) ? Promise.resolve(result).then(verdictOf, failed) : verdictOf(result);
      } catch (thrown) {
        return failed(thrown);
      }
    };
  const accepted = (): JsonObject | undefined => acceptedBy(schema);
  const checkNow = checkOf(schema) ?? checkedBy((value) => standard.validate(value));
  if (!isLater || !parsesLater(schema)) return Object.freeze({ ...described, accepted, check: checkNow });
  return Object.freeze({ ...described, accepted, check: checkedBy((value) => validateLater(schema, value)), checkNow });
}

/** The verdict on a value of the author's own, such as an input in a route; undefined if the schema answers later. */
export function verdictNow<T>(schema: CompiledSchema<T>, value: unknown): SchemaVerdict<T> | undefined {
  const verdict = schema.checkNow === undefined ? schema.check(value) : schema.checkNow(value);
  return verdict instanceof Promise ? undefined : verdict;
}

/** A Zod schema that calls functions of its author. Its check by the standard calls them a first time and drops what they return. */
interface LaterZod<T> extends Standard<T> {
  safeParseAsync(value: unknown): Promise<ZodSafeParseResult<T>>;
}

function parsesLater<T>(schema: Standard<T>): schema is LaterZod<T> {
  return "safeParseAsync" in schema && typeof schema.safeParseAsync === "function";
}

async function validateLater<T>(schema: LaterZod<T>, value: unknown): Promise<StandardResult<T>> {
  const { success, data, error } = await schema.safeParseAsync(value);
  return success ? { value: data } : { issues: error.issues };
}

function acceptedBy(schema: Standard<unknown>): JsonObject | undefined {
  try {
    const own = isZod(schema) ? describeZod(schema, "output") : schema["~standard"].jsonSchema?.output?.(DRAFT);
    return own === undefined ? undefined : describe(own).jsonSchema;
  } catch {
    // Not every schema can describe its output.
    return undefined;
  }
}

function verdictOf<T>(result: StandardResult<T>): SchemaVerdict<T> {
  if (result.issues !== undefined) return refused(result.issues);
  const own = cloneJson(result.value);
  return own.ok ? { ok: true, value: own.value } : notJson(own.fault);
}

/** A copy of the JSON Schema for models, and its digest. Omits `$schema` for draft-07, the default. */
function describe(schema: unknown): { readonly jsonSchema: JsonObject; readonly digest: string } {
  const own = toJsonValue(schema);
  if (!own.ok) throw new Error(`the JSON Schema is not JSON: ${own.fault}`);
  if (!isJsonObject(own.value)) throw new Error("the JSON Schema is not an object");
  const { $schema: dialect, ...rest } = own.value;
  const draft07 = dialect === undefined || (typeof dialect === "string" && dialect.includes("draft-07"));
  // Frozen, since kinds, tools and providers get it.
  const jsonSchema = deepFreeze<JsonObject>(draft07 ? rest : own.value);
  if (JSON.stringify(jsonSchema).length > MAX_SCHEMA_CHARS)
    throw new Error(`the JSON Schema is longer than ${MAX_SCHEMA_CHARS} characters`);
  return { jsonSchema, digest: digestOf(jsonSchema) };
}
