import { isPlainObject, type Json } from "./json.ts";

const MAX_DEPTH = 256;

export type OwnJson<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

/**
 * A copy that shares nothing with `value`, or why it is not JSON. Members that are undefined count as absent, since that is
 * what an optional member often is in TypeScript; `undefined` itself becomes null. Nothing else is converted.
 */
export function ownJson(value: unknown): OwnJson<Json> {
  const copy = value === undefined ? null : copyOf(value, 0);
  if (copy !== undefined) return { ok: true, value: copy };
  // Nearly every value is JSON: where it is not is looked for only then.
  return { ok: false, fault: faultOf(value, "$", 0) ?? "$: it changed while it was read" };
}

/** The same for a value whose type somebody vouches for: a schema that just accepted it. */
export function ownCopy<T>(value: T): OwnJson<T> {
  const own = ownJson(value);
  if (!own.ok) return own;
  const { value: copy } = own;
  return isLike(copy, value) ? { ok: true, value: copy } : { ok: false, fault: "$: it is not what it was" };
}

/** A copy is of the type of what it was copied from. */
function isLike<T>(copy: Json, of: T): copy is Json & T {
  return typeof copy === typeof (of ?? null);
}

/** Undefined for what is not JSON. */
function copyOf(value: unknown, depth: number): Json | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      // JSON knows no minus zero.
      return Number.isFinite(value) ? value + 0 : undefined;
    case "object":
      if (value === null) return null;
      if (depth >= MAX_DEPTH) return undefined;
      return Array.isArray(value) ? copyOfArray(value, depth + 1) : copyOfObject(value, depth + 1);
    default:
      return undefined;
  }
}

function copyOfArray(items: readonly unknown[], depth: number): Json | undefined {
  const copy: Json[] = [];
  // By index: a hole is undefined, and no iteration may pass over it.
  for (let index = 0; index < items.length; index += 1) {
    const item = copyOf(items[index], depth);
    if (item === undefined) return undefined;
    copy.push(item);
  }
  return copy;
}

function copyOfObject(value: object, depth: number): Json | undefined {
  if (!isPlainObject(value)) return undefined;
  const copy: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === undefined) continue;
    const own = copyOf(member, depth);
    if (own === undefined) return undefined;
    // Assigned, this one name would set the prototype.
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value: own, enumerable: true, writable: true, configurable: true });
    else copy[key] = own;
  }
  return copy;
}

function faultOf(value: unknown, path: string, depth: number): string | undefined {
  switch (typeof value) {
    case "undefined":
      return depth === 0 ? undefined : `${path}: undefined is not JSON`;
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : `${path}: ${value} is not a JSON number`;
    case "object":
      return value === null ? undefined : faultInside(value, path, depth);
    default:
      return `${path}: ${typeof value} is not JSON`;
  }
}

function faultInside(value: object, path: string, depth: number): string | undefined {
  if (depth >= MAX_DEPTH) return `${path.slice(0, 200)}: nested deeper than ${MAX_DEPTH} levels, or a cycle`;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const fault = faultOf(value[index], `${path}[${index}]`, depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }
  if (!isPlainObject(value)) return `${path}: only plain objects are JSON`;
  for (const [key, member] of Object.entries(value)) {
    const fault = member === undefined ? undefined : faultOf(member, `${path}.${key}`, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
