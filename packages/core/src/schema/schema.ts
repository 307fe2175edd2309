import type { Json, JsonObject } from "../base/json.ts";

/** A Standard Schema (Zod 3, Zod 4, Valibot, ArkType, …) by its output type. */
export interface StandardSchema<T> {
  readonly "~standard": { readonly types?: { readonly output: T } | undefined };
}
/** Plain JSON Schema (draft-07). Its values have type Json. */
export interface JsonSchema {
  readonly type: "object";
  readonly [keyword: string]: unknown;
  readonly "~standard"?: never;
}
declare const PLAIN: unique symbol;
/** A schema that checks values and has a JSON Schema. */
export type Schema<T> = StandardSchema<T> | (JsonSchema & { readonly [PLAIN]?: T });

/** A compiled schema. */
export interface CompiledSchema<T> {
  /** The draft-07 schema of its input, which models see. */
  readonly jsonSchema: JsonObject;
  /** SHA-256 of the canonical JSON of `jsonSchema`. */
  readonly digest: string;
  /** Checks a value. An accepted value is a copy as plain JSON; issues are short and at most 20. Never throws. */
  check(value: unknown): SchemaVerdict<T> | Promise<SchemaVerdict<T>>;
  /** The check of a value of the author's own, if `check` answers later in any case: the schema calls functions, which may do so. */
  checkNow?(value: unknown): SchemaVerdict<T> | Promise<SchemaVerdict<T>>;
  /** The JSON Schema of accepted values; undefined if unknown, since a schema may transform its input. */
  accepted?(): JsonObject | undefined;
}
export type SchemaVerdict<T> =
  | { readonly ok: true; readonly value: T & Json }
  | { readonly ok: false; readonly issues: readonly Issue[] };
export type Issue = {
  /** `$.steps[0].title`. */
  readonly path: string;
  readonly message: string;
  /** Where the schema's own code threw, with an absolute path. For people: models do not see it. */
  readonly at?: string;
};
