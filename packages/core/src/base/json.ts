/** What a journal can hold and a model can send. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value of any origin has members to look at: an object or a list. What they are is not known yet. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A member of a JSON object; undefined when it is not an object or has no such key of its own. */
export function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Where and why a value is not JSON, or undefined when it is. Deep values are refused at depth 256 instead of overflowing. */
export function jsonFault(value: unknown, path = "$", depth = 0): string | undefined {
  // Nearly every value is JSON: where it is not is looked for only then.
  return isPlain(value, depth) ? undefined : faultOf(value, path, depth);
}

export function isJson(value: unknown): value is Json {
  return isPlain(value, 0);
}

const MAX_DEPTH = 256;

function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      return value === null || (depth < MAX_DEPTH && isPlainInside(value, depth + 1));
    default:
      return false;
  }
}

function isPlainInside(value: object, depth: number): boolean {
  if (Array.isArray(value)) {
    // By index: a hole is undefined, and every() would pass over it.
    for (let index = 0; index < value.length; index += 1) if (!isPlain(value[index], depth)) return false;
    return true;
  }
  if (!isPlainObject(value)) return false;
  for (const key in value) if (!isPlain(value[key], depth)) return false;
  return true;
}

/** An object literal, or one without a prototype; arrays are to be told apart before. */
export function isPlainObject(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function faultOf(value: unknown, path: string, depth: number): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path}: ${value} is not a JSON number`;
  if (typeof value !== "object") return `${path}: ${typeof value} is not JSON`;
  if (depth >= MAX_DEPTH) return `${path}: nested deeper than ${MAX_DEPTH} levels`;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const fault = faultOf(value[index], `${path}[${index}]`, depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  if (!isPlainObject(value)) return `${path}: only plain objects are JSON`;
  for (const [key, member] of Object.entries(value)) {
    const fault = faultOf(member, `${path}.${key}`, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Freezes a JSON value all the way down and returns it, so that contexts handed to user code cannot be changed. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const key in value) deepFreeze(value[key]);
  }
  return value;
}

/** A JSON text as a value, or why it is none. */
export type ParsedJson = { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly fault: string };

/** `JSON.parse` that returns the fault instead of throwing it. */
export function parseJson(text: string): ParsedJson {
  try {
    const value: Json = JSON.parse(text);
    return { ok: true, value };
  } catch (thrown) {
    return { ok: false, fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

/** Twice as deep as what is written may be: whoever walks through more of it runs out of stack. */
const DEEPEST_KEPT = 2 * MAX_DEPTH;

/** The same for what a store keeps, which may come from anybody. Deep values are refused at depth 512. */
export function parseKept(text: string): ParsedJson {
  const read = parseJson(text);
  // A short text has no room for that many brackets.
  if (!read.ok || text.length <= 2 * DEEPEST_KEPT || !isDeeper(read.value, DEEPEST_KEPT)) return read;
  return { ok: false, fault: `nested deeper than ${DEEPEST_KEPT} levels` };
}

function isDeeper(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  const members: readonly Json[] = isJsonObject(value) ? Object.values(value) : value;
  return members.some((member) => isDeeper(member, levels - 1));
}
