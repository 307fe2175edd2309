import type { JsonObject } from "../base/json.ts";

/** A Standard Schema (Zod 3, Zod 4, Valibot, ArkType, …), seen from the type it produces. */
export interface StandardSchema<T> {
  readonly "~standard": { readonly types?: { readonly output: T } | undefined };
}
/** Plain JSON Schema (draft-07), whose values are Json to the compiler. */
export interface JsonSchema {
  readonly type: "object";
  readonly [keyword: string]: unknown;
  readonly "~standard"?: never;
}
declare const PLAIN: unique symbol;
/** Anything that can check a value and describe itself to a model. */
export type Schema<T> = StandardSchema<T> | (JsonSchema & { readonly [PLAIN]?: T });

/** A schema after conversion: done once per definition, used at every check and every model call. */
export interface CompiledSchema<T> {
  /** Draft-07, input side; what a model is shown. */
  readonly jsonSchema: JsonObject;
  /** SHA-256 of the canonical JSON of `jsonSchema`. */
  readonly digest: string;
  /** Accepted values are plain JSON of their own; at most 20 issues, none of them long. Never throws. */
  check(value: unknown): SchemaVerdict<T> | Promise<SchemaVerdict<T>>;
  /** The JSON Schema of accepted values; undefined where that is not known (a schema may transform what it takes). */
  accepted?(): JsonObject | undefined;
}
export type SchemaVerdict<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] };
export type Issue = {
  /** `$.steps[0].title`. */
  readonly path: string;
  readonly message: string;
};
