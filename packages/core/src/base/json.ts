/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether an unknown value is an object or an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Whether a value must be awaited. Promises of other libraries and of other realms are not a `Promise` of this one. */
export function isPromiseLike<T>(value: Promise<T> | T): value is Promise<T> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Whether a value is a list of texts. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

/** The same for texts of which none is empty. */
export function isFilledTexts(value: unknown): value is readonly string[] {
  return isTexts(value) && !value.includes("");
}

/** An own member of a JSON object; undefined if the value is not an object or has no such member. */
export function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** The same for a text. */
export function textField(value: Json | undefined, key: string): string | undefined {
  const member = field(value, key);
  return typeof member === "string" ? member : undefined;
}

/** The same for a number. */
export function numberField(value: Json | undefined, key: string): number | undefined {
  const member = field(value, key);
  return typeof member === "number" ? member : undefined;
}

/** Whether two JSON values are equal. The order of members and the sign of zero do not count. */
export function isSameJson(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (isJsonArray(one) || isJsonArray(other)) {
    if (!isJsonArray(one) || !isJsonArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isSameJson(item, other[index]));
  }
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSameJson(one[key], other[key]));
}

function isJsonArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/** Where and why a value is not JSON, or undefined if it is. Refuses values deeper than 256 levels. */
export function jsonFault(value: unknown, path = "$", depth = 0): string | undefined {
  const fault = faultOf(value, depth, STRICT);
  return fault && faultText(fault, path);
}

/** The same, which also refuses lone surrogates. */
export function unicodeFault(value: unknown): string | undefined {
  const fault = faultOf(value, 0, UNICODE);
  return fault && faultText(fault);
}

/** The value with its lone surrogates replaced, since text with one has no digest. Returns the value itself if it has none. */
export function wellFormed(value: Json): Json {
  return unicodeFault(value) === undefined ? value : withoutSurrogates(value);
}

function withoutSurrogates(value: Json): Json {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (isJsonArray(value)) return value.map(withoutSurrogates);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key.toWellFormed(), withoutSurrogates(member)]),
  );
}

/** Whether a value is JSON, without an undefined member and not deeper than 256 levels. */
export function isJson(value: unknown): value is Json {
  return faultOf(value, 0, STRICT) === undefined;
}

const MAX_DEPTH = 256;
const TOO_DEEP = `nested deeper than ${MAX_DEPTH} levels, or a cycle`;

interface JsonRules {
  /** Undefined members of objects count as absent. */
  readonly optional: boolean;
  /** Texts and keys must be valid Unicode. */
  readonly unicode: boolean;
}
const STRICT: JsonRules = { optional: false, unicode: false };
const OPTIONAL: JsonRules = { optional: true, unicode: false };
const UNICODE: JsonRules = { optional: false, unicode: true };

/** Why a value is not JSON; `steps` lead to it from the innermost outwards. */
interface Fault {
  readonly reason: string;
  readonly steps: string[];
}

function faultText({ reason, steps }: Fault, path = "$"): string {
  const where = path + steps.toReversed().join("");
  return `${reason === TOO_DEEP ? where.slice(0, 200) : where}: ${reason}`;
}

/** The first fault in a value. Members that cannot be faulty are not visited: every record is checked, and most of its members are such. */
function faultOf(value: unknown, depth: number, rules: JsonRules): Fault | undefined {
  if (typeof value !== "object" || value === null) return scalarFault(value, rules);
  if (depth >= MAX_DEPTH) return { reason: TOO_DEEP, steps: [] };
  if (Array.isArray(value)) {
    // By index, since other iterations skip holes, which are not JSON.
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      if (typeof item === "string" && (!rules.unicode || item.isWellFormed())) continue;
      const fault = faultOf(item, depth + 1, rules);
      if (fault !== undefined) return inside(fault, `[${index}]`);
    }
    return undefined;
  }
  if (!isPlainObject(value)) return { reason: "only plain objects are JSON", steps: [] };
  for (const key in value) {
    const member = value[key];
    if (rules.unicode && !key.isWellFormed()) return { reason: NO_UNICODE, steps: [`.${key}`] };
    if (typeof member === "string" && (!rules.unicode || member.isWellFormed())) continue;
    if (member === null || typeof member === "boolean" || Number.isFinite(member)) continue;
    if (member === undefined && rules.optional) continue;
    const fault = faultOf(member, depth + 1, rules);
    if (fault !== undefined) return inside(fault, `.${key}`);
  }
  return undefined;
}

function scalarFault(value: unknown, { unicode }: JsonRules): Fault | undefined {
  switch (typeof value) {
    case "string":
      return unicode && !value.isWellFormed() ? { reason: NO_UNICODE, steps: [] } : undefined;
    case "number":
      return Number.isFinite(value) ? undefined : { reason: `${value} is not a JSON number`, steps: [] };
    case "boolean":
    case "object":
      return undefined;
    default:
      return { reason: `${typeof value} is not JSON`, steps: [] };
  }
}

function inside(fault: Fault, step: string): Fault {
  fault.steps.push(step);
  return fault;
}

const NO_UNICODE = "a lone surrogate is not valid Unicode";

/** An object literal or an object without a prototype. Callers handle arrays first. */
function isPlainObject(value: object): value is Readonly<Record<string, unknown>> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Freezes a JSON value deeply and returns it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const key in value) if (typeof value[key] === "object") deepFreeze(value[key]);
  }
  return value;
}

/** A parsed JSON text, or why it is not JSON. */
export type ParsedJson = { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly fault: string };

/** `JSON.parse` that returns the fault instead of throwing. The fault quotes nothing of the text. */
export function parseJson(text: string): ParsedJson {
  try {
    const value: Json = JSON.parse(text);
    return { ok: true, value };
  } catch (thrown) {
    return { ok: false, fault: withoutExcerpt(thrown instanceof Error ? thrown.message : String(thrown)) };
  }
}

/** What the engine quotes of a text that is not JSON: some characters before and after the fault. */
const JSON_EXCERPT = /(Unexpected token '[\s\S]{1,2}'), (?:\.{3})?"[\s\S]{0,40}"(?:\.{3})? is not valid JSON/gu;

/** A message without what it quotes of a text that is not JSON: masking would not find half of a secret in it. */
export function withoutExcerpt(message: string): string {
  return message.replaceAll(JSON_EXCERPT, "$1 in JSON");
}

/** Twice the depth that is ever written; deeper values could overflow the stack. */
const MAX_STORED_DEPTH = 2 * MAX_DEPTH;

/** The same for stored text, which may be hostile. Refuses values deeper than 512 levels. */
export function parseStoredJson(text: string): ParsedJson {
  const read = parseJson(text);
  // A shorter text cannot be that deep.
  if (!read.ok || text.length <= 2 * MAX_STORED_DEPTH || !isDeeper(read.value, MAX_STORED_DEPTH)) return read;
  return { ok: false, fault: `nested deeper than ${MAX_STORED_DEPTH} levels` };
}

function isDeeper(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  const members: readonly Json[] = isJsonObject(value) ? Object.values(value) : value;
  return members.some((member) => isDeeper(member, levels - 1));
}

export type ClonedJson<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

/**
 * A deep copy of `value`, or why it is not JSON. Undefined members count as absent, and `undefined` itself becomes null.
 * Converts nothing else.
 */
export function toJsonValue(value: unknown): ClonedJson<Json> {
  const copy = value === undefined ? null : copyOf(value, 0, OPTIONAL);
  return copy === undefined ? notCopied(value, OPTIONAL) : { ok: true, value: copy };
}

/** The same for a value of a known type, such as one that a schema accepted. */
export function cloneJson<T>(value: T): ClonedJson<T & Json> {
  const own = toJsonValue(value);
  if (!own.ok) return own;
  const { value: copy } = own;
  return isLike(copy, value) ? { ok: true, value: copy } : { ok: false, fault: "$: it is not what it was" };
}

/** The same for what user code returns, where an undefined member is a fault. What it does to its own object later has no effect. */
export function strictClone<T>(value: T): ClonedJson<T & Json> {
  const copy = copyOf(value, 0, STRICT);
  return copy !== undefined && isLike(copy, value) ? { ok: true, value: copy } : notCopied(value, STRICT);
}

function notCopied(value: unknown, rules: JsonRules): ClonedJson<never> {
  const fault = faultOf(value, 0, rules);
  return { ok: false, fault: fault === undefined ? "$: it changed while it was read" : faultText(fault) };
}

/** A copy has the type of its original. */
function isLike<T>(copy: Json, of: T): copy is Json & T {
  return typeof copy === typeof (of ?? null);
}

/** Undefined if the value is not JSON. Members that are not objects are not visited: every call is copied, and most of its members are such. */
function copyOf(value: unknown, depth: number, rules: JsonRules): Json | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  // Turns -0, which JSON does not have, into 0.
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== "object" || depth >= MAX_DEPTH) return undefined;
  if (Array.isArray(value)) {
    const copy: Json[] = [];
    // By index: a hole is undefined, and no iteration may pass over it.
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      const own = typeof item === "string" ? item : copyOf(item, depth + 1, rules);
      if (own === undefined) return undefined;
      copy.push(own);
    }
    return copy;
  }
  if (!isPlainObject(value)) return undefined;
  const copy: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === undefined && rules.optional) continue;
    let own: Json | undefined;
    if (typeof member === "string" || typeof member === "boolean" || member === null) own = member;
    else if (typeof member === "number" && Number.isFinite(member)) own = member + 0;
    else own = copyOf(member, depth + 1, rules);
    if (own === undefined) return undefined;
    // An assignment would set the prototype.
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value: own, enumerable: true, writable: true, configurable: true });
    else copy[key] = own;
  }
  return copy;
}
