import { type ASTNode, Environment, Optional } from "@marcbachmann/cel-js";
import { isObject } from "@sluice/core/runtime";
import { COUNTED, DIVISOR, LOOPED, PRESENT, printToEvaluate } from "./print.ts";
import { LAST_STEP, VARIABLES } from "./variables.ts";

/** Elements that one comprehension may visit. */
const MOST_ELEMENTS = 1_000;
/** Values that one evaluation may look at, about 5 ms. */
const MOST_WORK = 100_000;
/** Texts cost one for each piece of this length. */
const TEXT_PIECE = 256;

/** Evaluates a condition for variables; throws what went wrong. */
export type Evaluate = (variables: Readonly<Record<string, unknown>>) => unknown;
export type Compile = (condition: ASTNode) => Evaluate;

/** Compiles conditions that share a limit on the work of one evaluation. */
export function createCompiler(): Compile {
  let left = MOST_WORK;
  const spend = (work: number): void => {
    left -= work;
    if (left < 0) throw new Error("it looks at too many values");
  };
  const environment = numbers(new Environment(OPTIONS))
    .registerFunction(
      `${COUNTED}(dyn): dyn`,
      (value: unknown) => {
        spend(workOf(value, left + 1));
        return value;
      },
      SYNC,
    )
    .registerFunction(
      `${LOOPED}(dyn, int): dyn`,
      (value: unknown, body: bigint) => {
        const count = elementsOf(value);
        if (count > MOST_ELEMENTS) throw new Error(`it loops over ${count} elements; ${MOST_ELEMENTS} are allowed`);
        spend(count * Number(body));
        return value;
      },
      SYNC,
    );
  environment.registerFunction(`${DIVISOR}(dyn): dyn`, divisor, SYNC);
  for (const name of [...VARIABLES, ...LAST_STEP.values()]) environment.registerVariable(name, "dyn");
  return (condition) => {
    const paths: (readonly string[])[] = [];
    const parsed = environment.parse(
      printToEvaluate(condition, (path) => {
        const name = `${PRESENT}_${paths.push(path) - 1}`;
        if (!environment.hasVariable(name)) environment.registerVariable(name, "bool");
        return name;
      }),
    );
    return (variables) => {
      left = MOST_WORK;
      return parsed(paths.length === 0 ? variables : withPresence(variables, paths));
    };
  };
}

function withPresence(
  variables: Readonly<Record<string, unknown>>,
  paths: readonly (readonly string[])[],
): Readonly<Record<string, unknown>> {
  const all: Record<string, unknown> = { ...variables };
  for (let index = 0; index < paths.length; index += 1)
    all[`${PRESENT}_${index}`] = isPresent(valueAt(variables, paths[index] ?? []));
  return all;
}

const SYNC = { async: false };
/** The limits are for the text as it is printed, which is longer than the one that was checked. */
const OPTIONS = {
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 20_000, maxDepth: 2_000 },
};

/** Operators on numbers of JSON, which are doubles, with CEL's integers; and what both kinds of environment need. */
export function numbers(environment: Environment): Environment {
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

/** Not missing, null, false, 0, "" or an empty list or object. */
function isPresent(value: unknown): boolean {
  if (value instanceof Optional) return value.hasValue() && isPresent(value.value());
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) ? Object.keys(value).length > 0 : Boolean(value);
}

function elementsOf(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : 0;
}

/** The values in a value, itself included, up to a limit. */
function workOf(value: unknown, limit: number): number {
  if (typeof value === "string") return 1 + Math.floor(value.length / TEXT_PIECE);
  if (!isObject(value)) return 1;
  let work = 1;
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    if (work >= limit) return work;
    work += workOf(member, limit - work);
  }
  return work;
}
