import type { Json } from "./json.ts";

const MAX_DEPTH = 256;

export type OwnJson<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

/**
 * A copy that shares nothing with `value`, or why it is not JSON. Members that are undefined count as absent, since that is
 * what an optional member often is in TypeScript; `undefined` itself becomes null. Nothing else is converted.
 */
export function ownJson(value: unknown): OwnJson<Json> {
  return copyOf<Json>(value);
}

/** The same for a value whose type somebody vouches for: a schema that just accepted it. */
export function ownCopy<T>(value: T): OwnJson<T> {
  return copyOf<T>(value);
}

function copyOf<T>(value: unknown): OwnJson<T> {
  const fault = faultOf(value, "$", 0);
  if (fault !== undefined) return { ok: false, fault };
  const copy: T = JSON.parse(JSON.stringify(value ?? null));
  return { ok: true, value: copy };
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
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `${path}: only plain objects are JSON`;
  for (const [key, member] of Object.entries(value)) {
    const fault = member === undefined ? undefined : faultOf(member, `${path}.${key}`, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
