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
  return isPlain(value, depth) ? undefined : faultOf(value, path, depth, false);
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

/** `optional`: an undefined member counts as absent, and so does an undefined value. */
function faultOf(value: unknown, path: string, depth: number, optional: boolean): string | undefined {
  switch (typeof value) {
    case "undefined":
      return optional && depth === 0 ? undefined : `${path}: undefined is not JSON`;
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : `${path}: ${value} is not a JSON number`;
    case "object":
      return value === null ? undefined : faultInside(value, path, depth, optional);
    default:
      return `${path}: ${typeof value} is not JSON`;
  }
}

function faultInside(value: object, path: string, depth: number, optional: boolean): string | undefined {
  if (depth >= MAX_DEPTH) return `${path.slice(0, 200)}: nested deeper than ${MAX_DEPTH} levels, or a cycle`;
  if (!Array.isArray(value) && !isPlainObject(value)) return `${path}: only plain objects are JSON`;
  // Of a list by its values: a hole is undefined, and no iteration may pass over it.
  const members = Array.isArray(value)
    ? Array.from(value, (item, index) => [`[${index}]`, item] as const)
    : Object.entries(value).map(([key, member]) => [`.${key}`, member] as const);
  for (const [step, member] of members) {
    if (optional && member === undefined && step.startsWith(".")) continue;
    const fault = faultOf(member, path + step, depth + 1, optional);
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
export function parseStoredJson(text: string): ParsedJson {
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

export type ClonedJson<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

/**
 * A copy that shares nothing with `value`, or why it is not JSON. Members that are undefined count as absent, since that is
 * what an optional member often is in TypeScript; `undefined` itself becomes null. Nothing else is converted.
 */
export function toJsonValue(value: unknown): ClonedJson<Json> {
  const copy = value === undefined ? null : copyOf(value, 0);
  if (copy !== undefined) return { ok: true, value: copy };
  // Nearly every value is JSON: where it is not is looked for only then.
  return { ok: false, fault: faultOf(value, "$", 0, true) ?? "$: it changed while it was read" };
}

/** The same for a value whose type somebody vouches for: a schema that just accepted it. */
export function cloneJson<T>(value: T): ClonedJson<T> {
  const own = toJsonValue(value);
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
