// Guards that files name: the operators of a condition, and several guards as one.

import { type Guard, type GuardScope, type GuardVerdict, isJson, type Json, field as memberOf } from "@sluice/core";
import { isObject, isSameJson, shortened } from "@sluice/core/runtime";

/** The operators of a named guard, with the words that people and models read. */
const OPERATORS = {
  eq: "equals",
  neq: "does not equal",
  gt: "is greater than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
  in: "is one of",
  contains: "contains",
  exists: "exists",
  not_exists: "does not exist",
} as const;
export type GuardOperator = keyof typeof OPERATORS;

export const GUARD_OPERATORS = [
  "eq",
  "neq",
  "gt",
  "gte",
  "lt",
  "lte",
  "in",
  "contains",
  "exists",
  "not_exists",
] as const;

/** A condition on one field of the run's context. */
export interface OperatorCondition {
  /** The path of the field, with dots between keys: `review.score`. */
  readonly field: string;
  readonly op: GuardOperator;
  /** What the field is compared with. `exists` and `not_exists` have none. */
  readonly value?: Json;
}

/** A condition with the name that it has in its document. */
export interface NamedCondition extends OperatorCondition {
  readonly name?: string;
  /** Its field is a part of what the state gave, not of the context. */
  readonly reads?: "result";
}

/** A guard with what it asks of the context, for checks and for writing it as a document. */
export interface ConditionGuard extends Guard {
  /** They all have to hold. */
  readonly conditions: readonly NamedCondition[];
  /** It asks for more than its conditions say. */
  readonly asksMore?: true;
}

/** The first name of a field that is a part of what the state gave. */
const OUTPUT = "output";

/**
 * A guard on a field of the context. Missing and null are the same: every operator is false for them, except `not_exists` and a
 * comparison with null itself. `gt`, `gte`, `lt` and `lte` compare numbers only. `contains` looks for a part of a text or for an
 * element of a list. With `reads: "result"`, a field under `output` is one of the output of the state that ended; after a failure,
 * `output` is `{ code, message, detail }`.
 */
export function operatorGuard(
  name: string,
  { field, op, value }: OperatorCondition,
  reads: "context" | "result" = "context",
): ConditionGuard {
  const asked: OperatorCondition = { field, op, ...(value === undefined ? {} : { value }) };
  const ofResult = reads === "result" && (field === OUTPUT || field.startsWith(`${OUTPUT}.`));
  const condition = conditionWords(asked);
  const isCut = JSON.stringify(value ?? null).length > SHOWN;
  return {
    text: `${/^[\p{L}\p{N}_.$ -]+$/u.test(name) ? name : JSON.stringify(name)} (${condition})`,
    ...(isCut ? { source: JSON.stringify([name, asked]) } : {}),
    conditions: [{ ...asked, name, ...(ofResult ? { reads: "result" as const } : {}) }],
    evaluate: ({ result, ctx }) => {
      const actual = fieldAt(ofResult ? { [OUTPUT]: givenBy(result) } : ctx.context, field);
      const fires = holds(actual, op, value ?? null);
      const found = actual === undefined ? "is missing" : `is ${shown(actual)}`;
      const why = fires
        ? `${name} holds: ${condition}`
        : `${name} does not hold: ${field} ${found}, needed: ${condition}`;
      return { fires, why };
    },
  };
}

/** What a state gave: its output, or what its failure says. */
function givenBy(result: GuardScope["result"]): Json {
  if (result.status === "completed") return isJson(result.output) ? result.output : null;
  if (result.status !== "failed") return null;
  const { code, message, detail = null } = result;
  return { code, message, detail };
}

/** A condition as people read it. Names that could be taken for a part of another condition are quoted. */
export function conditionWords({ field, op, value }: OperatorCondition): string {
  const name = /^[\p{L}\p{N}_.$-]+$/u.test(field) ? field : JSON.stringify(field);
  return `${name} ${comparisonWords(op, shown(value ?? null))}`;
}

/** What an operator asks of a field. `operand` is the value that it compares with, as people read it. */
export function comparisonWords(op: GuardOperator, operand: string): string {
  return op === "exists" || op === "not_exists" ? OPERATORS[op] : `${OPERATORS[op]} ${operand}`;
}

/** The guards as one that fires if all do. The first that does not gives the reason. */
export function allOf(guards: readonly Guard[]): Guard {
  const [only] = guards;
  if (only !== undefined && guards.length === 1) return only;
  const known = guards.map(conditionsOf);
  return {
    text: guards.map(({ text }) => text).join(" and "),
    ...(guards.some(({ opaque }) => opaque === true) ? { opaque: true as const } : {}),
    ...(guards.every(({ source }) => source === undefined)
      ? {}
      : { source: JSON.stringify(guards.map(({ text, source }) => source ?? text)) }),
    evaluate: (scope) => evaluateFrom(guards, 0, scope),
    ...combined(known),
  };
}

/** What a guard asks of the context, as far as it says so. */
export function conditionsOf(guard: Guard): Pick<ConditionGuard, "conditions" | "asksMore"> | undefined {
  return isConditionGuard(guard) ? guard : undefined;
}

function isConditionGuard(guard: Guard): guard is ConditionGuard {
  return "conditions" in guard && Array.isArray(guard.conditions) && guard.conditions.every(isCondition);
}

function isCondition(value: unknown): value is OperatorCondition {
  if (!isObject(value) || typeof value.field !== "string" || typeof value.op !== "string") return false;
  return Object.hasOwn(OPERATORS, value.op) && (value.value === undefined || isJson(value.value));
}

function combined(
  known: readonly ReturnType<typeof conditionsOf>[],
): Partial<Pick<ConditionGuard, "conditions" | "asksMore">> {
  const conditions = known.flatMap((one) => one?.conditions ?? []);
  if (conditions.length === 0) return {};
  return {
    conditions,
    ...(known.every((one) => one !== undefined && one.asksMore !== true) ? {} : { asksMore: true }),
  };
}

function evaluateFrom(
  guards: readonly Guard[],
  start: number,
  scope: GuardScope,
): GuardVerdict | Promise<GuardVerdict> {
  for (const [index, guard] of guards.entries()) {
    if (index < start) continue;
    const verdict = guard.evaluate(scope);
    if (verdict instanceof Promise)
      return verdict.then((found) => (found.fires === true ? evaluateFrom(guards, index + 1, scope) : found));
    if (verdict.fires !== true) return verdict;
  }
  return { fires: true, why: "all its guards hold" };
}

/** The value at a dotted path of own members; undefined if there is none. */
export function fieldAt(context: Json, field: string): Json | undefined {
  let value: Json | undefined = context;
  for (const key of field.split(".")) {
    value = isList(value) ? (/^\d{1,9}$/.test(key) ? value[Number(key)] : undefined) : memberOf(value, key);
  }
  return value;
}

/** Whether a value satisfies an operator. */
export function holds(actual: Json | undefined, op: GuardOperator, value: Json): boolean {
  if (op === "not_exists") return actual === undefined || actual === null;
  if (value === null && op === "eq") return actual === undefined || actual === null;
  if (actual === undefined || actual === null) return false;
  switch (op) {
    case "exists":
      return true;
    case "eq":
      return isSameJson(actual, value);
    case "neq":
      return !isSameJson(actual, value);
    case "gt":
      return numbers(actual, value, (a, b) => a > b);
    case "gte":
      return numbers(actual, value, (a, b) => a >= b);
    case "lt":
      return numbers(actual, value, (a, b) => a < b);
    case "lte":
      return numbers(actual, value, (a, b) => a <= b);
    case "in":
      return isList(value) && value.some((entry) => isSameJson(actual, entry));
    case "contains":
      if (typeof actual === "string") return typeof value === "string" && actual.includes(value);
      return isList(actual) && actual.some((entry) => isSameJson(entry, value));
  }
}

function numbers(actual: Json, value: Json, compare: (a: number, b: number) => boolean): boolean {
  return typeof actual === "number" && typeof value === "number" && compare(actual, value);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

const SHOWN = 80;

function shown(value: Json): string {
  return shortened(JSON.stringify(value), SHOWN);
}
