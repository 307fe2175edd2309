/** What a journal can hold and a model can send. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member of a JSON object; undefined when it is not an object or has no such key of its own. */
export function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Where and why a value is not JSON, or undefined when it is. Deep values are refused at depth 256 instead of overflowing. */
export function jsonFault(value: unknown, path = "$", depth = 0): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path}: ${value} is not a JSON number`;
  if (typeof value !== "object") return `${path}: ${typeof value} is not JSON`;
  if (depth >= 256) return `${path}: nested deeper than 256 levels`;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const fault = jsonFault(value[index], `${path}[${index}]`, depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `${path}: only plain objects are JSON`;
  for (const [key, member] of Object.entries(value)) {
    const fault = jsonFault(member, `${path}.${key}`, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

export function isJson(value: unknown): value is Json {
  return jsonFault(value) === undefined;
}

/** Freezes a JSON value all the way down and returns it, so that contexts handed to user code cannot be changed. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

/** `JSON.parse` that returns the fault instead of throwing it. */
export function parseJson(
  text: string,
): { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly fault: string } {
  try {
    const value: Json = JSON.parse(text);
    return { ok: true, value };
  } catch (thrown) {
    return { ok: false, fault: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}
