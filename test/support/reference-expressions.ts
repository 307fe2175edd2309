import type { Json, JsonObject } from "@sluice/core";
import fc from "fast-check";
import { isRecord } from "./reference-machine.ts";

// A second opinion on the conditions of workflow files: expressions as trees, which are written as CEL and computed here.

export type Node =
  | { readonly op: "value"; readonly value: null | boolean | number | string }
  | { readonly op: "list"; readonly of: readonly Node[] }
  | { readonly op: "read"; readonly path: readonly string[] }
  | { readonly op: "has"; readonly path: readonly string[] }
  | { readonly op: "size" | "!"; readonly of: Node }
  | { readonly op: Binary; readonly left: Node; readonly right: Node }
  | { readonly op: "startsWith" | "endsWith" | "contains"; readonly of: Node; readonly text: Node }
  | { readonly op: "?"; readonly when: Node; readonly yes: Node; readonly no: Node };
type Binary = (typeof BINARY)[number];
const BINARY = ["==", "!=", "<", "<=", ">", ">=", "+", "-", "&&", "||", "in"] as const;

export function written(node: Node): string {
  switch (node.op) {
    case "value":
      return JSON.stringify(node.value);
    case "list":
      return `[${node.of.map(written).join(", ")}]`;
    case "read":
      return node.path.join(".");
    case "has":
      return `has(${node.path.join(".")})`;
    case "size":
      return `size(${written(node.of)})`;
    case "!":
      return `!(${written(node.of)})`;
    case "startsWith":
    case "endsWith":
    case "contains":
      return `(${written(node.of)}).${node.op}(${written(node.text)})`;
    case "?":
      return `(${written(node.when)} ? ${written(node.yes)} : ${written(node.no)})`;
    default:
      return `(${written(node.left)} ${node.op} ${written(node.right)})`;
  }
}

/** What an expression cannot be computed to. */
const FAULT = Symbol("fault");
type Computed = Json | typeof FAULT;

/** Whether an expression is true of its variables. A fault is not. */
export function isTrue(node: Node, variables: JsonObject): boolean {
  return compute(node, variables) === true;
}

function compute(node: Node, variables: JsonObject): Computed {
  switch (node.op) {
    case "value":
      return node.value;
    case "list": {
      const of: Json[] = [];
      for (const one of node.of) {
        const value = compute(one, variables);
        if (value === FAULT) return FAULT;
        of.push(value);
      }
      return of;
    }
    case "read":
      return readAt(node.path, variables);
    case "has": {
      const parent = readAt(node.path.slice(0, -1), variables);
      if (parent === FAULT || !isRecord(parent)) return FAULT;
      return Object.hasOwn(parent, node.path.at(-1) ?? "");
    }
    case "size": {
      const of = compute(node.of, variables);
      if (of === FAULT) return FAULT;
      if (typeof of === "string" || Array.isArray(of)) return of.length;
      return isRecord(of) ? Object.keys(of).length : FAULT;
    }
    case "!": {
      const of = compute(node.of, variables);
      return typeof of === "boolean" ? !of : FAULT;
    }
    case "?": {
      const when = compute(node.when, variables);
      return typeof when === "boolean" ? compute(when ? node.yes : node.no, variables) : FAULT;
    }
    case "startsWith":
    case "endsWith":
    case "contains": {
      const of = compute(node.of, variables);
      const text = compute(node.text, variables);
      if (typeof of !== "string" || typeof text !== "string") return FAULT;
      if (node.op === "contains") return of.includes(text);
      return node.op === "startsWith" ? of.startsWith(text) : of.endsWith(text);
    }
    default:
      return both(node.op, compute(node.left, variables), compute(node.right, variables));
  }
}

function both(op: Binary, left: Computed, right: Computed): Computed {
  if (op === "&&" || op === "||") {
    // One side may decide, whatever becomes of the other.
    const decides = op === "||";
    if (left === decides || right === decides) return decides;
    return typeof left === "boolean" && typeof right === "boolean" ? !decides : FAULT;
  }
  if (left === FAULT || right === FAULT) return FAULT;
  switch (op) {
    case "==":
      return JSON.stringify(left) === JSON.stringify(right);
    case "!=":
      return JSON.stringify(left) !== JSON.stringify(right);
    case "in":
      if (Array.isArray(right)) return right.some((one: Json) => JSON.stringify(one) === JSON.stringify(left));
      return isRecord(right) ? typeof left === "string" && Object.hasOwn(right, left) : FAULT;
    case "+":
      if (typeof left === "string" && typeof right === "string") return left + right;
      if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
      return typeof left === "number" && typeof right === "number" ? left + right : FAULT;
    case "-":
      return typeof left === "number" && typeof right === "number" ? left - right : FAULT;
    default: {
      const isOrdered =
        (typeof left === "number" && typeof right === "number") ||
        (typeof left === "string" && typeof right === "string") ||
        // False is less than true.
        (typeof left === "boolean" && typeof right === "boolean");
      if (!isOrdered) return FAULT;
      if (left === right) return op === "<=" || op === ">=";
      return left < right === (op === "<" || op === "<=");
    }
  }
}

function readAt(path: readonly string[], variables: JsonObject): Computed {
  let from: Json = variables;
  for (const key of path) {
    if (!isRecord(from) || !Object.hasOwn(from, key)) return FAULT;
    from = from[key] ?? null;
  }
  return from;
}

const NUMBERS = ["n", "m"];
const TEXTS = ["word", "other"];
const FLAGS = ["on", "off"];
const LISTS = ["tags", "sizes"];
const at = (keys: readonly string[]): fc.Arbitrary<Node> =>
  fc
    .oneof(
      { weight: 5, arbitrary: fc.constantFrom(...keys).map((key) => ["context", key]) },
      { weight: 1, arbitrary: fc.constantFrom(...keys).map((key) => ["context", "deep", key]) },
    )
    .map((path): Node => ({ op: "read", path }));

interface Kinds {
  readonly number: Node;
  readonly text: Node;
  readonly list: Node;
  readonly truth: Node;
}
/** Conditions whose parts are of the kinds that their operators take, if the context is of the kinds that they read. */
export const randomCondition: fc.Arbitrary<Node> = fc.letrec((tie: fc.LetrecTypedTie<Kinds>) => ({
  number: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    { weight: 3, arbitrary: at(NUMBERS) },
    { weight: 2, arbitrary: fc.nat(3).map((value): Node => ({ op: "value", value })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom("+" as const, "-" as const), tie("number"), tie("number"))
        .map(([op, left, right]): Node => ({ op, left, right })),
    },
    { weight: 1, arbitrary: fc.oneof(tie("list"), tie("text")).map((of): Node => ({ op: "size", of })) },
  ),
  text: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    { weight: 3, arbitrary: at(TEXTS) },
    { weight: 2, arbitrary: fc.constantFrom("", "a", "ab", 'say "x"').map((value): Node => ({ op: "value", value })) },
    {
      weight: 1,
      arbitrary: fc.tuple(tie("text"), tie("text")).map(([left, right]): Node => ({ op: "+", left, right })),
    },
  ),
  list: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    { weight: 3, arbitrary: at(LISTS) },
    {
      weight: 1,
      arbitrary: fc.array(tie("text"), { minLength: 1, maxLength: 3 }).map((of): Node => ({ op: "list", of })),
    },
  ),
  truth: fc.oneof(
    { maxDepth: 5, depthSize: "small" },
    {
      weight: 3,
      arbitrary: fc
        .tuple(
          fc.constantFrom("==" as const, "!=" as const, "<" as const, "<=" as const, ">" as const, ">=" as const),
          tie("number"),
          tie("number"),
        )
        .map(([op, left, right]): Node => ({ op, left, right })),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom("==" as const, "!=" as const, "<" as const), tie("text"), tie("text"))
        .map(([op, left, right]): Node => ({ op, left, right })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(tie("text"), tie("list")).map(([left, right]): Node => ({ op: "in", left, right })),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          fc.constantFrom("startsWith" as const, "endsWith" as const, "contains" as const),
          tie("text"),
          tie("text"),
        )
        .map(([op, of, text]): Node => ({ op, of, text })),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(...NUMBERS, ...TEXTS, ...FLAGS, ...LISTS)
        .map((key): Node => ({ op: "has", path: ["context", key] })),
    },
    {
      weight: 1,
      arbitrary: at(FLAGS).map((left): Node => ({ op: "==", left, right: { op: "value", value: true } })),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom("&&" as const, "||" as const), tie("truth"), tie("truth"))
        .map(([op, left, right]): Node => ({ op, left, right })),
    },
    { weight: 1, arbitrary: tie("truth").map((of): Node => ({ op: "!", of })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(tie("truth"), tie("truth"), tie("truth"))
        .map(([when, yes, no]): Node => ({ op: "?", when, yes, no })),
    },
  ),
})).truth;

const fields = {
  n: fc.oneof(fc.integer({ min: -2, max: 4 }), fc.constantFrom(0.5, 2.5)),
  m: fc.integer({ min: -2, max: 4 }),
  word: fc.constantFrom("", "a", "ab", 'say "x"', "b"),
  other: fc.constantFrom("a", "b"),
  on: fc.boolean(),
  off: fc.boolean(),
  tags: fc.array(fc.constantFrom("a", "ab", "c"), { maxLength: 3 }),
  sizes: fc.array(fc.nat(3), { maxLength: 2 }),
};
/** Contexts of which any field may be missing, null or of another kind. */
export const randomFields: fc.Arbitrary<JsonObject> = fc
  .tuple(someOf(), fc.option(someOf(), { nil: undefined }))
  .map(([context, deep]): JsonObject => ({ ...context, ...(deep === undefined ? {} : { deep }) }));

function someOf(): fc.Arbitrary<JsonObject> {
  const each = Object.entries(fields).map(([key, usual]) =>
    fc
      .oneof(
        { weight: 12, arbitrary: fc.oneof<fc.Arbitrary<Json>[]>(usual) },
        { weight: 1, arbitrary: fc.constantFrom<Json>(null, "a", 1, true, [], {}) },
        { weight: 2, arbitrary: fc.constant(undefined) },
      )
      .map((value): readonly (readonly [string, Json])[] => (value === undefined ? [] : [[key, value]])),
  );
  return fc.tuple(...each).map((all): JsonObject => Object.fromEntries(all.flat()));
}
