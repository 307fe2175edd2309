// What can be said about the conditions of a guard without running it.

import type { Guard, Json } from "@sluice/core";
import { canonicalJson, shortened } from "@sluice/core/runtime";
import { conditionsOf, fieldAt, holds, type OperatorCondition } from "../expressions/guard.ts";

/** What is known of a run's context at some point: its keys with their values, and whether there may be others. */
export interface KnownContext {
  /** A key that may have any value has none here. */
  readonly values: ReadonlyMap<string, Known>;
  /** Whether keys that are not listed may have any value. Otherwise they are missing. */
  readonly open: boolean;
}
type Known = { readonly value: Json } | "any";

/** The context of a run before its first state. */
export function initialContext(context: Readonly<Record<string, Json>>): KnownContext {
  return { values: new Map(Object.entries(context).map(([key, value]) => [key, { value }])), open: false };
}

/** Any value under any key that data may have. */
export const ANY_CONTEXT: KnownContext = { values: new Map(), open: true };

/** The context after a patch. */
export function patched(context: KnownContext, patch: Readonly<Record<string, Json>> | undefined): KnownContext {
  if (patch === undefined) return context;
  const values = new Map(context.values);
  for (const [key, value] of Object.entries(patch)) values.set(key, { value });
  return { ...context, values };
}

/** What is known if one of two contexts is there. */
export function either(one: KnownContext, other: KnownContext): KnownContext {
  const values = new Map<string, Known>();
  const open = one.open || other.open;
  for (const key of new Set([...one.values.keys(), ...other.values.keys()])) {
    const [a, b] = [knownAt(one, key), knownAt(other, key)];
    if (!sameKnown(a, b)) values.set(key, "any");
    else if (a !== undefined && (a !== "any" || !open)) values.set(key, a);
  }
  return { values, open };
}

export function sameContext(one: KnownContext, other: KnownContext): boolean {
  if (one.open !== other.open) return false;
  const keys = new Set([...one.values.keys(), ...other.values.keys()]);
  return [...keys].every((key) => sameKnown(knownAt(one, key), knownAt(other, key)));
}

/** What is known of a key; undefined: it is missing. */
function knownAt({ values, open }: KnownContext, key: string): Known | undefined {
  return values.get(key) ?? (open && mayHold(key) ? "any" : undefined);
}

/** Data cannot be merged under these keys. */
function mayHold(key: string): boolean {
  return !key.startsWith("_") && key !== "constructor";
}

function sameKnown(one: Known | undefined, other: Known | undefined): boolean {
  if (one === undefined || other === undefined || one === "any" || other === "any") return one === other;
  return canonicalJson(one.value) === canonicalJson(other.value);
}

/** The first condition of a guard that cannot hold in a context; undefined if they all may. */
export function impossibleIn(guard: Guard | undefined, context: KnownContext): OperatorCondition | undefined {
  const { conditions = [] } = (guard && conditionsOf(guard)) ?? {};
  return conditions.find(({ field, op, value, reads }) => {
    // What a state gives is not known before it has run.
    if (reads === "result") return false;
    const [key = "", ...inside] = field.split(".");
    const known = knownAt(context, key);
    if (known === "any") return false;
    const actual = known === undefined || inside.length === 0 ? known?.value : fieldAt(known.value, inside.join("."));
    return !holds(actual, op, value ?? null);
  });
}

/** The value of a condition's field in a context, in words; undefined if it may be any. */
export function valueWords({ field }: OperatorCondition, context: KnownContext): string | undefined {
  const [key = "", ...inside] = field.split(".");
  const known = knownAt(context, key);
  if (known === "any") return undefined;
  const actual = known === undefined || inside.length === 0 ? known?.value : fieldAt(known.value, inside.join("."));
  return actual === undefined ? "missing" : shortened(JSON.stringify(actual), 80);
}

/** Two conditions of one guard that exclude each other, or one that nothing satisfies; undefined if there are none. */
export function contradictionIn(guard: Guard): readonly OperatorCondition[] | undefined {
  const { conditions = [] } = conditionsOf(guard) ?? {};
  for (const [index, condition] of conditions.entries()) {
    if (!isSatisfiable(condition)) return [condition];
    for (const other of conditions.slice(0, index))
      if (other.field === condition.field && excludeEachOther(other, condition)) return [other, condition];
  }
  return undefined;
}

function isSatisfiable({ op, value = null }: OperatorCondition): boolean {
  switch (op) {
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return typeof value === "number";
    case "in":
      return Array.isArray(value) && value.some((entry: Json) => entry !== null);
    default:
      return true;
  }
}

/** Whether no value satisfies both conditions, which are on one field. */
function excludeEachOther(one: OperatorCondition, other: OperatorCondition): boolean {
  const candidates = candidatesOf(one) ?? candidatesOf(other);
  if (candidates !== undefined) return !candidates.some((value) => satisfies(value, one) && satisfies(value, other));
  const kinds = kindsOf(one).filter((kind) => kindsOf(other).includes(kind));
  if (kinds.length === 0) return true;
  return kinds.every((kind) => kind === "number") && !overlap(rangeOf(one), rangeOf(other));
}

function satisfies(value: Json | undefined, { op, value: operand = null }: OperatorCondition): boolean {
  return holds(value, op, operand);
}

/** The only values that satisfy a condition; undefined if more values do. */
function candidatesOf({ op, value = null }: OperatorCondition): readonly (Json | undefined)[] | undefined {
  if (op === "not_exists" || (op === "eq" && value === null)) return [undefined];
  if (op === "eq") return [value];
  return op === "in" && Array.isArray(value) ? value : undefined;
}

type Kind = "number" | "text" | "list" | "other";

/** The kinds of values that satisfy a condition. */
function kindsOf({ op, value = null }: OperatorCondition): readonly Kind[] {
  switch (op) {
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return ["number"];
    case "contains":
      return typeof value === "string" ? ["text", "list"] : ["list"];
    default:
      return ["number", "text", "list", "other"];
  }
}

/** Numbers between two bounds; whether a bound is one of them. */
interface Range {
  readonly from: number;
  readonly fromIn: boolean;
  readonly to: number;
  readonly toIn: boolean;
}

function rangeOf({ op, value }: OperatorCondition): Range {
  const all = {
    from: Number.NEGATIVE_INFINITY,
    fromIn: true,
    to: Number.POSITIVE_INFINITY,
    toIn: true,
  };
  if (typeof value !== "number") return all;
  if (op === "gt" || op === "gte") return { ...all, from: value, fromIn: op === "gte" };
  return op === "lt" || op === "lte" ? { ...all, to: value, toIn: op === "lte" } : all;
}

function overlap(one: Range, other: Range): boolean {
  const from = Math.max(one.from, other.from);
  const to = Math.min(one.to, other.to);
  if (from !== to) return from < to;
  return [one, other].every((range) => (range.from < from || range.fromIn) && (range.to > to || range.toIn));
}

/** Whether a guard holds wherever another one does, as far as both say what they ask. */
export function isImpliedBy(guard: Guard, other: Guard): boolean {
  const [own, others] = [conditionsOf(guard), conditionsOf(other)];
  if (own === undefined || others === undefined)
    return guard.opaque !== true && other.opaque !== true && sourceOf(guard) === sourceOf(other);
  if (own.asksMore === true) return guard.opaque !== true && sourceOf(guard) === sourceOf(other);
  return own.conditions.every((condition) => others.conditions.some((one) => sameCondition(one, condition)));
}

/** All that a guard decides by: its text may be cut. */
function sourceOf({ source, text }: Guard): string {
  return source ?? text;
}

function sameCondition(one: OperatorCondition, other: OperatorCondition): boolean {
  const same = (value: Json | undefined): string => canonicalJson(value ?? null);
  return one.field === other.field && one.op === other.op && same(one.value) === same(other.value);
}
