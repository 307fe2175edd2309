import { isObject, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { failed, notJson, refused } from "./issues.ts";
import type { SchemaVerdict, StandardSchema } from "./schema.ts";

// The schemas of Sluice's own tools and files. Every session loads them, and a schema library costs more CPU time than all else
// that a session loads. Messages are those of Zod 4, since journals hold them.

const CHECK: unique symbol = Symbol("the check of a shape");

/** A schema that checks a value and describes it as draft-07 JSON Schema. */
export interface Shape<T> extends StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "sluice";
    readonly types?: { readonly output: T } | undefined;
    readonly validate: (value: unknown) => Verdict<T>;
    readonly jsonSchema: { readonly input: () => JsonObject; readonly output: () => JsonObject };
  };
  readonly jsonSchema: JsonObject;
  /** The JSON Schema of what a checked value becomes. */
  readonly accepted: JsonObject;
  /** What a value becomes: an object has the members that its shape names, in its order. Adds what is wrong with the value. */
  readonly read: Read;
  /** Whether a value has this shape; adds what is wrong with it. */
  fits(value: unknown, found: ShapeIssue[], path?: Path): value is T;
  /** The check of the compiled schema. */
  readonly [CHECK]: (value: unknown) => SchemaVerdict<T>;
}
/** The type of the values of a shape. */
export type ShapeOf<S> = S extends Shape<infer T> ? T : never;

export interface ShapeIssue {
  readonly path: Path;
  readonly message: string;
  /** Keys that an object must not have. */
  readonly unknownKeys?: readonly string[];
}
type Path = readonly (string | number)[];
type Verdict<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path: Path }[] };

/** A member that an object may leave out, or have as undefined. */
interface Optional<T> {
  readonly optional: Shape<T>;
}
type Fields = Readonly<Record<string, Shape<unknown> | Optional<unknown>>>;
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectOf<F extends Fields> = Flat<
  { [K in keyof F as F[K] extends Shape<unknown> ? K : never]: ShapeOf<F[K]> } & {
    [K in keyof F as F[K] extends Shape<unknown> ? never : K]?: F[K] extends Optional<infer T> ? T : never;
  }
>;

interface Described {
  /** For models. */
  readonly description?: string;
}
interface TextRules extends Described {
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: { readonly regex: RegExp; readonly message: string };
}
interface NumberRules extends Described {
  readonly min?: number;
  readonly max?: number;
  /** Takes the place of every message. */
  readonly message?: string;
}
interface ListRules extends Described {
  readonly min?: number;
  readonly max?: number;
}

/** Reads each member once, so that what was checked is what it returns. */
type Read = (value: unknown, found: ShapeIssue[], path: Path) => unknown;

/** Makes a shape from a reader that adds an issue for every value that is not a T, and returns a T for any other. */
function shapeOf<T>(jsonSchema: JsonObject, read: Read, accepted = jsonSchema): Shape<T> {
  const fits = (value: unknown, found: ShapeIssue[], path: Path = []): value is T => {
    const before = found.length;
    read(value, found, path);
    return found.length === before;
  };
  const validate = (value: unknown): Verdict<T> => {
    const issues: ShapeIssue[] = [];
    const own = read(value, issues, []);
    return isRead<T>(own, issues) ? { value: own } : { issues };
  };
  const check = (value: unknown): SchemaVerdict<T> => {
    const copy = toJsonValue(value);
    if (!copy.ok) return notJson(copy.fault);
    try {
      const issues: ShapeIssue[] = [];
      const own = read(value === undefined ? undefined : copy.value, issues, []) ?? null;
      return isRead<T & Json>(own, issues) ? { ok: true, value: own } : refused(issues);
    } catch (thrown) {
      return failed(thrown);
    }
  };
  const schemas = { input: () => jsonSchema, output: () => accepted };
  const standard = { version: 1, vendor: "sluice", validate, jsonSchema: schemas } as const;
  return { "~standard": standard, jsonSchema, accepted, read, fits, [CHECK]: check };
}

/** The check of a schema that is a shape; undefined for any other. What a shape reads of plain JSON is plain JSON. */
export function checkOf<T>(schema: StandardSchema<T>): ((value: unknown) => SchemaVerdict<T>) | undefined {
  return isShape(schema) ? schema[CHECK] : undefined;
}

function isShape<T>(schema: StandardSchema<T>): schema is Shape<T> {
  return CHECK in schema;
}

/** What the reader of a shape returns is a T if it found nothing wrong. */
function isRead<T>(_own: unknown, found: readonly ShapeIssue[]): _own is T {
  return found.length === 0;
}

export function text({ min, max, pattern, ...described }: TextRules = {}): Shape<string> {
  const schema = {
    ...described,
    type: "string",
    ...(min === undefined ? {} : { minLength: min }),
    ...(max === undefined ? {} : { maxLength: max }),
    ...(pattern === undefined ? {} : { pattern: pattern.regex.source }),
  };
  return shapeOf(schema, (value, found, path) => {
    if (typeof value !== "string") return wrongType("string", value, found, path);
    sizeIssues(value.length, { min, max }, "string to have", " characters", found, path);
    if (pattern?.regex.test(value) === false) found.push({ path, message: pattern.message });
    return value;
  });
}

/** A number that is not infinite. */
export function decimal({ min, max, message, ...described }: NumberRules = {}): Shape<number> {
  const schema = {
    ...described,
    type: "number",
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
  };
  return shapeOf(schema, (value, found, path) => {
    if (typeof value !== "number" || !Number.isFinite(value)) return wrongType("number", value, found, path, message);
    sizeIssues(value, { min, max }, "number to be", "", found, path, message);
    return value;
  });
}

/** A whole number that is exact. */
export function integer({ min, max, message, ...described }: NumberRules = {}): Shape<number> {
  const limits = { minimum: min ?? -Number.MAX_SAFE_INTEGER, maximum: max ?? Number.MAX_SAFE_INTEGER };
  return shapeOf({ ...described, type: "integer", ...limits }, (value, found, path) => {
    if (typeof value !== "number" || !Number.isFinite(value)) return wrongType("number", value, found, path, message);
    if (!Number.isInteger(value)) return wrongType("int", value, found, path, message);
    const exact = { min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };
    if (!Number.isSafeInteger(value)) return sizeIssues(value, exact, "int to be", "", found, path, message);
    sizeIssues(value, { min, max }, "number to be", "", found, path, message);
    return value;
  });
}

export function flag(described: Described = {}): Shape<boolean> {
  return shapeOf({ ...described, type: "boolean" }, (value, found, path) => {
    if (typeof value !== "boolean") wrongType("boolean", value, found, path);
    return value;
  });
}

/** One of several texts. */
export function oneOf<const T extends string>(texts: readonly T[], described: Described = {}): Shape<T> {
  const message = `Invalid option: expected one of ${texts.map((one) => JSON.stringify(one)).join("|")}`;
  return shapeOf({ ...described, type: "string", enum: texts }, (value, found, path) => {
    if (!texts.some((one) => one === value)) found.push({ path, message });
    return value;
  });
}

/** Exactly this value. */
export function exactly<const T extends string | number | boolean>(only: T): Shape<T> {
  return shapeOf({ const: only }, (value, found, path) => {
    if (value !== only) found.push({ path, message: `Invalid input: expected ${JSON.stringify(only)}` });
    return value;
  });
}

export function list<T>(item: Shape<T>, { min, max, ...described }: ListRules = {}): Shape<T[]> {
  const schemaWith = (items: JsonObject): JsonObject => ({
    ...described,
    type: "array",
    items,
    ...(min === undefined ? {} : { minItems: min }),
    ...(max === undefined ? {} : { maxItems: max }),
  });
  const read: Read = (value, found, path) => {
    if (!Array.isArray(value)) return wrongType("array", value, found, path);
    const own = Array.from(value, (one, index) => item.read(one, found, [...path, index]));
    sizeIssues(own.length, { min, max }, "array to have", " items", found, path);
    return own;
  };
  return shapeOf(schemaWith(item.jsonSchema), read, schemaWith(item.accepted));
}

/** Two values in an array. */
export function pair<A, B>(first: Shape<A>, second: Shape<B>): Shape<readonly [A, B]> {
  const schema = { type: "array", items: [first.jsonSchema, second.jsonSchema], minItems: 2, maxItems: 2 };
  return shapeOf(schema, (value, found, path) => {
    if (!Array.isArray(value)) return wrongType("tuple", value, found, path);
    if (value.length !== 2) return sizeIssues(value.length, { min: 2, max: 2 }, "array to have", " items", found, path);
    first.read(value[0], found, [...path, 0]);
    second.read(value[1], found, [...path, 1]);
    return value;
  });
}

/** An object with any keys, or with those that match a pattern. */
export function mapOf<T>(
  member: Shape<T>,
  key?: { readonly regex: RegExp; readonly message: string },
): Shape<Readonly<Record<string, T>>> {
  const schema = { type: "object", propertyNames: { type: "string" }, additionalProperties: member.jsonSchema };
  return shapeOf(schema, (value, found, path) => {
    if (!isObject(value) || Array.isArray(value)) return wrongType("record", value, found, path);
    for (const [name, one] of Object.entries(value)) {
      if (key?.regex.test(name) === false) found.push({ path: [...path, name], message: key.message });
      member.read(one, found, [...path, name]);
    }
    return value;
  });
}

export function optional<T>(member: Shape<T>): Optional<T> {
  return { optional: member };
}

export function orNull<T>(other: Shape<T>): Shape<T | null> {
  const schema = { anyOf: [other.jsonSchema, { type: "null" }] };
  return shapeOf(schema, (value, found, path) => {
    if (value !== null) other.read(value, found, path);
    return value;
  });
}

export function either<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  const schema = { anyOf: [first.jsonSchema, second.jsonSchema] };
  return shapeOf(schema, (value, found, path) => {
    if (!first.fits(value, []) && !second.fits(value, [])) found.push({ path, message: "Invalid input" });
    return value;
  });
}

interface ObjectRules extends Described {
  /** Takes the place of the message for a value that is not an object. */
  readonly message?: string;
  /** Drops members that are not listed. */
  readonly isOpen?: boolean;
}

/** An object with these members, and no others. */
export function object<F extends Fields>(
  fields: F,
  { message, isOpen = false, ...described }: ObjectRules = {},
): Shape<ObjectOf<F>> {
  const members = Object.entries(fields).map(([key, one]) =>
    "optional" in one ? { key, shape: one.optional, isRequired: false } : { key, shape: one, isRequired: true },
  );
  const required = members.filter(({ isRequired }) => isRequired).map(({ key }) => key);
  const schemaWith = (of: "jsonSchema" | "accepted", isClosed: boolean): JsonObject => ({
    ...described,
    type: "object",
    properties: Object.fromEntries(members.map(({ key, shape }) => [key, shape[of]])),
    ...(required.length === 0 ? {} : { required }),
    ...(isClosed ? { additionalProperties: false } : {}),
  });
  const read: Read = (value, found, path) => {
    if (!isObject(value) || Array.isArray(value)) return wrongType("object", value, found, path, message);
    const own: [string, unknown][] = [];
    for (const { key, shape, isRequired } of members) {
      const isPresent = Object.hasOwn(value, key);
      const member = isPresent ? value[key] : undefined;
      const read = isRequired || member !== undefined ? shape.read(member, found, [...path, key]) : undefined;
      if (isPresent) own.push([key, read]);
    }
    const keys = Object.keys(value);
    if (!isOpen && keys.length > own.length) {
      const unknownKeys = keys.filter((key) => !Object.hasOwn(fields, key));
      const named = unknownKeys.map((key) => JSON.stringify(key)).join(", ");
      found.push({ path, message: `Unrecognized key${unknownKeys.length > 1 ? "s" : ""}: ${named}`, unknownKeys });
    }
    return Object.fromEntries(own);
  };
  return shapeOf(schemaWith("jsonSchema", !isOpen), read, schemaWith("accepted", true));
}

/** An object with these members; others are dropped. */
export function openObject<F extends Fields>(fields: F): Shape<ObjectOf<F>> {
  return object(fields, { isOpen: true });
}

/** Whatever `isOne` accepts. The JSON Schema accepts everything. */
export function custom<T>(isOne: (value: unknown) => value is T, message: string): Shape<T> {
  return shapeOf({}, (value, found, path) => {
    if (!isOne(value)) found.push({ path, message });
    return value;
  });
}

/** A shape whose fitting values must also hold `rule`, which its JSON Schema does not show. */
export function holding<T>(base: Shape<T>, rule: (value: T) => boolean, message: string): Shape<T> {
  const read: Read = (value, found, path) => {
    const issues: ShapeIssue[] = [];
    const own = base.read(value, issues, path);
    if (isRead<T>(own, issues) && !rule(own)) issues.push({ path, message });
    found.push(...issues);
    return own;
  };
  return shapeOf(base.jsonSchema, read, base.accepted);
}

function wrongType(expected: string, value: unknown, found: ShapeIssue[], path: Path, message?: string): void {
  found.push({ path, message: message ?? `Invalid input: expected ${expected}, received ${typeNameOf(value)}` });
}

function typeNameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number" && !Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : "Infinity";
  return typeof value;
}

interface Limits {
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

function sizeIssues(
  size: number,
  { min, max }: Limits,
  subject: string,
  unit: string,
  found: ShapeIssue[],
  path: Path,
  message?: string,
): void {
  if (min !== undefined && size < min)
    found.push({ path, message: message ?? `Too small: expected ${subject} >=${min}${unit}` });
  if (max !== undefined && size > max)
    found.push({ path, message: message ?? `Too big: expected ${subject} <=${max}${unit}` });
}
