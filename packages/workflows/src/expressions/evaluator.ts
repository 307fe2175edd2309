import { type ASTNode, Environment, Optional } from "@marcbachmann/cel-js";
import { isObject } from "@sluice/core/runtime";
import { COUNTED, DIVISOR, FINITE, LOOPED, MEASURED, PRESENT, printToEvaluate, SEARCHED } from "./print.ts";
import { LAST_STEP, VARIABLES } from "./variables.ts";

/** Elements that one comprehension may visit. */
const MOST_ELEMENTS = 1_000;
/** Units of work that one evaluation of a guard may take: about a look at a value, or 50 ns. */
const MOST_WORK = 100_000;
/** Texts that are compared or copied cost one unit for each piece of this length. */
const TEXT_PIECE = 256;
/** Texts that a function reads character by character cost one unit for each piece of this length. */
const READ_PIECE = 16;
/** Searching compares as many characters as the product of both lengths at worst; one unit pays for this many. */
const SEARCH_PIECE = 128;

/** Evaluates a condition for variables; throws what went wrong. */
export type Evaluate = (variables: Readonly<Record<string, unknown>>) => unknown;
export interface Compiler {
  compile(condition: ASTNode): Evaluate;
  /** Begins the evaluation of a guard, whose conditions share one limit on their work. */
  begin(): void;
  /** Whether the evaluation has used up its limit. */
  isSpent(): boolean;
}

/** Compiles the conditions of guards. */
export function createCompiler(): Compiler {
  let left = MOST_WORK;
  /** The members of lists and objects, each of which is counted once. */
  let counts = new Map<object, number>();
  const spend = (work: number): void => {
    left -= work;
    if (left < 0) throw new Error("it looks at too many values");
  };
  const membersOf = (value: unknown): number => {
    if (!isObject(value)) return 0;
    const known = counts.get(value);
    if (known !== undefined) return known;
    const count = Array.isArray(value) ? value.length : value instanceof Map ? value.size : Object.keys(value).length;
    counts.set(value, count);
    return count;
  };
  const isPresent = (value: unknown): boolean => {
    if (value instanceof Optional) return value.hasValue() && isPresent(value.value());
    return isObject(value) ? membersOf(value) > 0 : Boolean(value);
  };
  const counted = (value: unknown): unknown => {
    // What is spent already looks at nothing more.
    spend(0);
    spend(workOf(value, left + 1));
    return value;
  };
  const measured = (value: unknown): unknown => {
    spend(1);
    if (typeof value === "string") spend(Math.floor(value.length / READ_PIECE));
    // Its size is that of its keys, which have to be listed.
    else if (!Array.isArray(value)) spend(membersOf(value));
    return value;
  };
  const looped = (value: unknown, body: bigint): unknown => {
    spend(1);
    const count = membersOf(value);
    if (count > MOST_ELEMENTS) throw new Error(`it loops over ${count} elements; ${MOST_ELEMENTS} are allowed`);
    spend(count * (1 + Number(body)));
    return value;
  };
  const searched = (text: unknown, method: string, args: readonly unknown[]): unknown => {
    spend(1);
    const [wanted, from] = args;
    if (typeof text !== "string" || typeof wanted !== "string") throw new Error(`${method}() is for texts`);
    spend(Math.ceil((text.length * wanted.length) / SEARCH_PIECE));
    return search(method, text, wanted, from);
  };
  const environment = numbers(new Environment(OPTIONS), isPresent)
    .registerFunction(`${COUNTED}(dyn): dyn`, counted, SYNC)
    .registerFunction(`${MEASURED}(dyn): dyn`, measured, SYNC)
    .registerFunction(`${LOOPED}(dyn, int): dyn`, looped, SYNC)
    .registerFunction(`${SEARCHED}(dyn, string, list): dyn`, searched, SYNC)
    .registerFunction(`${DIVISOR}(dyn): dyn`, divisor, SYNC)
    .registerFunction(`${FINITE}(dyn): dyn`, finite, SYNC);
  for (const name of [...VARIABLES, ...LAST_STEP.values()]) environment.registerVariable(name, "dyn");
  return {
    begin: () => {
      left = MOST_WORK;
      if (counts.size > 0) counts = new Map();
    },
    isSpent: () => left < 0,
    compile: (condition) => {
      const paths: (readonly string[])[] = [];
      const reads = new Map<string, readonly string[]>();
      const text = printToEvaluate(condition, {
        presenceOf: (path) => {
          const name = `${PRESENT}_${paths.push(path) - 1}`;
          if (!environment.hasVariable(name)) environment.registerVariable(name, "bool");
          return name;
        },
        reads: (path) => reads.set(JSON.stringify(path), path),
      });
      const parsed = environment.parse(text);
      // The longest first, since nothing can be placed inside a map any more.
      const operands = [...reads.values()].toSorted((a, b) => b.length - a.length);
      return (variables) => {
        const prepared = withMaps(variables, operands, membersOf);
        if (paths.length === 0) return parsed(prepared);
        const all: Record<string, unknown> = { ...prepared };
        for (const [index, path] of paths.entries()) all[`${PRESENT}_${index}`] = isPresent(valueAt(variables, path));
        return parsed(all);
      };
    },
  };
}

/** Members of an object that is read as it is. */
const FEW_MEMBERS = 128;

/**
 * The variables, with a map in place of each large object that is read: the library lists the members of an object whenever it is
 * an operand, and those of a map never. `operands` are different paths, the longest first.
 */
function withMaps(
  variables: Readonly<Record<string, unknown>>,
  operands: readonly (readonly string[])[],
  membersOf: (value: unknown) => number,
): Readonly<Record<string, unknown>> {
  let all = variables;
  for (const path of operands) {
    const value = valueAt(all, path);
    if (isObject(value) && !Array.isArray(value) && membersOf(value) > FEW_MEMBERS)
      all = placed(all, path, new Map(Object.entries(value)));
  }
  return all;
}

/** The object with another value at a path of fields that exist. */
function placed(
  object: Readonly<Record<string, unknown>>,
  path: readonly string[],
  value: unknown,
): Record<string, unknown> {
  const [name = "", ...rest] = path;
  const inside = object[name];
  return { ...object, [name]: rest.length > 0 && isObject(inside) ? placed(inside, rest, value) : value };
}

/** `contains`, `indexOf` and `lastIndexOf` of a text. */
function search(method: string, text: string, wanted: string, from: unknown): boolean | bigint {
  if (method === "contains") return text.includes(wanted);
  const isFirst = method === "indexOf";
  if (from === undefined) return BigInt(isFirst ? text.indexOf(wanted) : text.lastIndexOf(wanted));
  const start = Number(from);
  if (!Number.isInteger(start) || start < 0 || start > text.length)
    throw new Error(`${method}() begins outside of the text`);
  return BigInt(isFirst ? text.indexOf(wanted, start) : text.lastIndexOf(wanted, start));
}

const SYNC = { async: false };
/** The limits are for the text as it is printed, which is longer than the one that was checked. */
const OPTIONS = {
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 20_000, maxDepth: 2_000 },
};

/** Operators on numbers of JSON, which are doubles, with CEL's integers; and what both kinds of environment need. */
export function numbers(environment: Environment, isPresent: (value: unknown) => boolean): Environment {
  const ARITHMETIC = {
    "+": (a: number, b: number) => a + b,
    "-": (a: number, b: number) => a - b,
    "*": (a: number, b: number) => a * b,
    "/": (a: number, b: number) => a / b,
  };
  type Operand = number | bigint;
  for (const [op, compute] of Object.entries(ARITHMETIC)) {
    const mixed = (a: Operand, b: Operand): number => compute(Number(a), Number(b));
    // Without its return type, an operator on an integer and a double counts as one of integers and never equals a number.
    environment.registerOperator(`double ${op} int: double`, mixed);
    environment.registerOperator(`int ${op} double: double`, mixed);
  }
  for (const types of ["double % double", "double % int", "int % double"])
    environment.registerOperator(`${types}: double`, (a: Operand, b: Operand) => Number(a) % Number(b));
  environment.registerOperator("int == double", (a: Operand, b: Operand) => Number(a) === Number(b));
  return environment.registerFunction(`${PRESENT}(dyn): bool`, isPresent, SYNC);
}

function finite(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error("double() gives no number of JSON");
  return value;
}

function divisor(value: unknown): unknown {
  if (value === 0 || value === 0n) throw new Error("it divides by zero");
  return value;
}

/** A field at any depth; undefined if it is missing. */
function valueAt(value: unknown, path: readonly string[]): unknown {
  let here = value;
  for (const name of path) {
    if (!isObject(here) || Array.isArray(here)) return undefined;
    const member = Object.getOwnPropertyDescriptor(here, name);
    here = member?.value;
  }
  return here;
}

/** The values in a value, itself included, up to a limit. */
function workOf(value: unknown, limit: number): number {
  if (typeof value === "string") return 1 + Math.floor(value.length / TEXT_PIECE);
  if (!isObject(value)) return 1;
  let work = 1;
  for (const member of Array.isArray(value) ? value : value instanceof Map ? value.values() : Object.values(value)) {
    if (work >= limit) return work;
    work += workOf(member, limit - work);
  }
  return work;
}
