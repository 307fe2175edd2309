// Checks a document against its schema, field by field, so that every mistake is reported where it is.

import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { shortened } from "@sluice/core/runtime";
import { z } from "zod";
import type { DocumentPath } from "../diagnostic.ts";
import { fieldNames, suggestClosest, suggestField } from "./field-names.ts";
import type { SourceFile } from "./source.ts";

/** A mistake of a document, by its path in the document. */
export interface Finding {
  readonly severity: "error" | "warning";
  readonly rule: string;
  readonly message: string;
  readonly suggestion?: string | undefined;
  readonly path: DocumentPath;
  /** The file, if it is not that of the document but one that belongs to it; `path` is then one of that file. */
  readonly source?: SourceFile;
  /** Whether the key is meant, not the value. */
  readonly what?: "key" | "value";
  /** The characters of a text that are meant. */
  readonly offset?: number;
  readonly length?: number;
}

export interface ShapeReading<T> {
  /** The document with the schema's spelling of its keys. What does not fit is left out, so that other checks can go ahead. */
  readonly value?: T;
  readonly findings: readonly Finding[];
  /** The path in the document of a path in `value`. */
  locate(path: DocumentPath): DocumentPath;
}

/**
 * Reads a document by the schema of its root. `partial` is the same schema with optional fields, since a required one that is
 * missing or wrong is a finding and the rest is read all the same. Objects of a schema refuse unknown keys unless it is loose; keys may be written in snake_case
 * or camelCase, or by an alias of their field.
 */
export function readShape<T>(schema: z.ZodObject, partial: z.ZodType<T>, document: Json): ShapeReading<T> {
  const walk: Walk = { findings: [], original: new Map() };
  const fields = isJsonObject(document) ? checkFields(walk, schema, document, [], true) : undefined;
  if (fields === undefined) wrongType(walk, schema, document, []);
  const parsed = partial.safeParse(fields ?? {});
  for (const { path, message } of parsed.error?.issues ?? [])
    walk.findings.push({
      severity: "error",
      rule: "wrong-type",
      message: `${message}.`,
      path: locate(walk, path.map(stepOf)),
    });
  return {
    ...(parsed.success ? { value: parsed.data } : {}),
    findings: walk.findings,
    locate: (path) => locate(walk, path),
  };
}

interface Walk {
  readonly findings: Finding[];
  /** The step that the document has, by the path that the result has, where they differ. */
  readonly original: Map<string, string | number>;
}

function stepOf(step: PropertyKey): string | number {
  return typeof step === "symbol" ? String(step) : step;
}

function locate({ original }: Walk, path: DocumentPath): DocumentPath {
  return path.map((step, index) => original.get(JSON.stringify(path.slice(0, index + 1))) ?? step);
}

/** The value as the schema spells it, or undefined if it does not fit. `path` is that of the result. */
function check(walk: Walk, given: z.core.$ZodType, value: Json, path: DocumentPath): Json | undefined {
  const schema = unwrap(given);
  if (schema instanceof z.ZodUnion) {
    const option = optionFor(schema, value);
    return option === undefined ? wrongType(walk, schema, value, path) : check(walk, option, value, path);
  }
  if (schema instanceof z.ZodObject)
    return isJsonObject(value) ? checkFields(walk, schema, value, path, false) : wrongType(walk, schema, value, path);
  if (schema instanceof z.ZodRecord)
    return isJsonObject(value) ? checkEntries(walk, schema, value, path) : wrongType(walk, schema, value, path);
  if (schema instanceof z.ZodArray)
    return Array.isArray(value) ? checkList(walk, schema, value, path) : wrongType(walk, schema, value, path);
  return z.safeParse(schema, value).success ? value : wrongType(walk, schema, value, path);
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodOptional ? unwrap(schema.unwrap()) : schema;
}

/** The option that a value of this form can only mean. */
function optionFor(schema: z.ZodUnion, value: Json): z.core.$ZodType | undefined {
  const fitting = schema.options.map(unwrap).filter((option) => fitsForm(option, value));
  if (!isJsonObject(value)) return fitting[0];
  const known = (option: z.core.$ZodType): number =>
    option instanceof z.ZodObject ? fieldNames(option).known(Object.keys(value)) : 0;
  return fitting.toSorted((a, b) => known(b) - known(a))[0];
}

function fitsForm(option: z.core.$ZodType, value: Json): boolean {
  if (option instanceof z.ZodObject || option instanceof z.ZodRecord) return isJsonObject(value);
  if (option instanceof z.ZodArray) return Array.isArray(value);
  if (option instanceof z.ZodString) return typeof value === "string";
  return z.safeParse(option, value).success;
}

function checkFields(
  walk: Walk,
  schema: z.ZodObject,
  value: JsonObject,
  path: DocumentPath,
  isRoot: boolean,
): Json | undefined {
  const names = fieldNames(schema);
  const fields: Record<string, Json> = {};
  const written = new Map<string, string>();
  let complete = true;
  for (const [key, member] of Object.entries(value)) {
    const name = names.fieldOf(key);
    if (name === undefined) {
      if (names.isLoose) fields[key] = member;
      else unknownKey(walk, names.all, key, path);
      continue;
    }
    const before = written.get(name);
    if (before !== undefined) {
      const message = `${quoted(key)} and ${quoted(before)} are the same field.`;
      const suggestion = "remove one of them";
      const here = [...locate(walk, path), key];
      walk.findings.push({ severity: "error", rule: "alias-twice", message, suggestion, path: here, what: "key" });
      continue;
    }
    written.set(name, key);
    const here = [...path, name];
    if (key !== name) walk.original.set(JSON.stringify(here), key);
    const field: z.core.$ZodType | undefined = schema.shape[name];
    const read = field === undefined ? member : check(walk, field, member, here);
    if (read !== undefined) fields[name] = read;
    else if (!names.isOptional(name)) complete = false;
  }
  for (const name of names.all) {
    if (written.has(name) || names.isOptional(name)) continue;
    complete = false;
    const at = path.length === 0 ? "The document" : subject(locate(walk, path));
    const message = `${at} has no ${quoted(name)}.`;
    const meaning = descriptionOf(schema.shape[name]);
    const suggestion = meaning === undefined ? undefined : `add it: ${meaning}`;
    const here = locate(walk, path);
    walk.findings.push({ severity: "error", rule: "missing-field", message, suggestion, path: here, what: "key" });
  }
  return complete || isRoot ? fields : undefined;
}

/** What a field means, as the end of a sentence. */
function descriptionOf(field: z.core.$ZodType | undefined): string | undefined {
  const text = field === undefined ? undefined : z.globalRegistry.get(field)?.description;
  const [first = ""] = text?.split(/\.(?: |$)/u) ?? [];
  return first === "" ? undefined : `${first.slice(0, 1).toLowerCase()}${first.slice(1)}`;
}

function unknownKey(walk: Walk, known: readonly string[], key: string, path: DocumentPath): void {
  const message =
    path.length === 0 ? `The document has no field ${quoted(key)}.` : `${subject(path)} has no field ${quoted(key)}.`;
  const suggestion = key === "<<" ? "merge keys are not supported; write the fields out" : suggestField(key, known);
  const here = [...locate(walk, path), key];
  walk.findings.push({ severity: "error", rule: "unknown-key", message, suggestion, path: here, what: "key" });
}

function checkEntries(walk: Walk, schema: z.ZodRecord, value: JsonObject, path: DocumentPath): Json | undefined {
  const entries: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    const here = [...path, key];
    if (!z.safeParse(schema.keyType, key).success) {
      const message = `${quoted(key)} cannot be a name here: it must be ${expectation(schema.keyType)}.`;
      walk.findings.push({ severity: "error", rule: "wrong-name", message, path: locate(walk, here), what: "key" });
      continue;
    }
    const read = check(walk, schema.valueType, member, here);
    if (read !== undefined) entries[key] = read;
  }
  return kept(walk, schema, value, path, entries);
}

/** What fits of a list or of named entries, unless there has to be one and none does. */
function kept(
  walk: Walk,
  schema: z.ZodArray | z.ZodRecord,
  value: JsonObject | readonly Json[],
  path: DocumentPath,
  entries: JsonObject | readonly Json[],
): Json | undefined {
  if (Object.keys(entries).length > 0 || takesNone(schema)) return entries;
  // What was left out was reported.
  return Object.keys(value).length > 0 ? undefined : wrongType(walk, schema, value, path);
}

function takesNone(schema: z.ZodArray | z.ZodRecord): boolean {
  return z.safeParse(schema, schema instanceof z.ZodArray ? [] : {}).success;
}

function checkList(walk: Walk, schema: z.ZodArray, value: readonly Json[], path: DocumentPath): Json | undefined {
  const entries: Json[] = [];
  for (const [index, member] of value.entries()) {
    // Entries that do not fit are left out, which moves those behind them.
    const here = [...path, entries.length];
    walk.original.set(JSON.stringify(here), index);
    const read = check(walk, schema.element, member, here);
    if (read !== undefined) entries.push(read);
  }
  return kept(walk, schema, value, path, entries);
}

function wrongType(walk: Walk, schema: z.core.$ZodType, value: Json, path: DocumentPath): undefined {
  const at = path.length === 0 ? "The document" : subject(locate(walk, path));
  const message = `${at} is ${shown(value)}, but must be ${expectation(schema)}.`;
  const choices = schema instanceof z.ZodEnum ? schema.options.map(String) : [];
  const suggestion = typeof value === "string" ? suggestClosest(value, choices) : undefined;
  walk.findings.push({ severity: "error", rule: "wrong-type", message, suggestion, path: locate(walk, path) });
  return undefined;
}

/** What a value of the schema is, in words. */
function expectation(given: z.core.$ZodType): string {
  const schema = unwrap(given);
  if (schema instanceof z.ZodUnion) {
    const words = [...new Set(schema.options.map(expectation))];
    return words.length === 1 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
  }
  if (schema instanceof z.ZodEnum) return `one of ${schema.options.map((option) => quoted(String(option))).join(", ")}`;
  if (schema instanceof z.ZodLiteral) return [...schema.values].map((value) => JSON.stringify(value)).join(" or ");
  if (schema instanceof z.ZodObject) return "an object";
  if (schema instanceof z.ZodRecord) return takesNone(schema) ? "an object" : "an object with at least one entry";
  if (schema instanceof z.ZodArray) return takesNone(schema) ? "a list" : "a list with at least one entry";
  if (schema instanceof z.ZodBoolean) return "true or false";
  if (schema instanceof z.ZodString) {
    if (schema.description !== undefined && schema.format !== null) return schema.description;
    return z.safeParse(schema, "").success ? "a text" : "a text that is not empty";
  }
  if (schema instanceof z.ZodNumber) {
    const kind = schema.isInt ? "a whole number" : "a number";
    const least = schema.minValue ?? Number.MIN_SAFE_INTEGER;
    return least > Number.MIN_SAFE_INTEGER ? `${kind} from ${least}` : kind;
  }
  return "another value";
}

/** The field that a path leads to, as the subject of a sentence. */
function subject(path: DocumentPath): string {
  const last = path.at(-1);
  if (typeof last !== "number") return quoted(String(last));
  return `Entry ${last + 1} of ${quoted(String(path.findLast((step) => typeof step === "string")))}`;
}

function shown(value: Json): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isJsonObject(value)) return Object.keys(value).length === 0 ? "an empty object" : "an object";
  return shortened(JSON.stringify(value), 60);
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}
