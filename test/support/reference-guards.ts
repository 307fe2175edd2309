import type { Json, JsonObject } from "@sluice/core";
import fc from "fast-check";
import { isRecord } from "./reference-machine.ts";

// A second opinion on the ten operators of guards in workflow files, written from their documentation alone.

const OPERATORS = [
  ...(["eq", "neq", "gt", "gte", "lt", "lte", "in", "contains", "exists", "not_exists"] as const),
] as const;
export type Operator = (typeof OPERATORS)[number];
export interface OperatorNode {
  readonly field: string;
  readonly op: Operator;
  readonly value?: Json;
}

/** Whether a guard holds for a context. A field that is missing is null. */
export function holds({ field, op, value = null }: OperatorNode, context: JsonObject): boolean {
  const found = field
    .split(".")
    .reduce<Json>((from, key) => (isRecord(from) && Object.hasOwn(from, key) ? (from[key] ?? null) : null), context);
  if (op === "not_exists") return found === null;
  if (op === "exists") return found !== null;
  if (op === "eq" && value === null) return found === null;
  if (found === null) return false;
  switch (op) {
    case "eq":
      return alike(found, value);
    case "neq":
      return !alike(found, value);
    case "in":
      return Array.isArray(value) && value.some((one: Json) => alike(one, found));
    case "contains":
      if (typeof found === "string") return typeof value === "string" && found.includes(value);
      return Array.isArray(found) && found.some((one: Json) => alike(one, value));
    case "gt":
    case "gte":
    case "lt":
    case "lte": {
      if (typeof found !== "number" || typeof value !== "number") return false;
      if (found === value) return op === "gte" || op === "lte";
      return found > value === (op === "gt" || op === "gte");
    }
  }
}

/** Whether two values say the same, whatever the order of their keys. */
function alike(left: Json, right: Json): boolean {
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((one: Json, index) => alike(one, right[index] ?? null));
  if (!isRecord(left) || !isRecord(right)) return left === right;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && alike(left[key] ?? null, right[key] ?? null))
  );
}

const KEYS = ["a", "b", "tags", "toString", "constructor", "__proto__", "length"] as const;
const scalar = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, 1, 2, -1, 0.5, 1e3, "", "1", "a", "ab", "pass", "é", "true", "null"),
  fc.integer({ min: -2, max: 3 }),
);
const values: fc.Arbitrary<Json> = fc.letrec<{ value: Json; list: Json; record: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: tie("list") },
    { weight: 1, arbitrary: tie("record") },
  ),
  list: fc.array(tie("value"), { maxLength: 3 }),
  record: fc
    .array(fc.tuple(fc.constantFrom(...KEYS), tie("value")), { maxLength: 3 })
    .map((entries): Json => Object.fromEntries(entries)),
})).value;

/** Contexts, with keys that every object has by birth. */
export const randomContext: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(fc.constantFrom(...KEYS), values), { maxLength: 4 })
  .map((entries): JsonObject => Object.fromEntries(entries));

/** Guards whose operand is of the kind that their operator takes. */
export const randomOperator: fc.Arbitrary<OperatorNode> = fc
  .record({
    field: fc.array(fc.constantFrom(...KEYS), { minLength: 1, maxLength: 3 }).map((path) => path.join(".")),
    op: fc.constantFrom(...OPERATORS),
  })
  .chain(({ field, op }) => operand(op).map((value) => ({ field, op, ...(value === undefined ? {} : { value }) })));

function operand(op: Operator): fc.Arbitrary<Json | undefined> {
  switch (op) {
    case "exists":
    case "not_exists":
      return fc.constant(undefined);
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return fc.oneof(fc.integer({ min: -2, max: 3 }), fc.constantFrom(0.5, 1e3));
    case "in":
      return fc.array(values, { maxLength: 4 });
    case "contains":
      return values;
    case "eq":
    case "neq":
      return values;
  }
}
