import type { ASTNode } from "@marcbachmann/cel-js";
import { COMPREHENSIONS } from "./read-expression.ts";
import { LAST_STEP } from "./variables.ts";

// Writes a condition as the text that is checked or evaluated: a bare path becomes a question whether it is present, the last
// step's fields become variables, and what may take long is counted.

/** Whether a value is present and not empty. */
export const PRESENT = "present";
/** Counts a value against the work that one evaluation may do, and returns it. */
export const COUNTED = "counted";
/** Counts the elements of a comprehension, each with the parts of its body, and returns them. */
export const LOOPED = "looped";
/** Counts what a function reads of a value, and returns the value. */
export const MEASURED = "measured";
/** Searches a text with a method, and counts what that may take. */
export const SEARCHED = "searched";
const SEARCHES: ReadonlySet<string> = new Set(["contains", "indexOf", "lastIndexOf"]);
/** Refuses to divide by zero, which is infinity for numbers of JSON, and returns the number. */
export const DIVISOR = "divisor";
/** Refuses infinity and what is not a number, which a text may spell, and returns the number. */
export const FINITE = "finite";

export interface Printed {
  readonly text: string;
  /** The offset in the condition of what is printed at an offset. */
  origin(offset: number): number;
}

/** Prints paths as they are, so that unknown fields are found. */
export function printToCheck(node: ASTNode): Printed {
  const pieces = condition(node, { purpose: "check", bound: [] });
  const origins: { readonly at: number; readonly offset: number }[] = [];
  let at = 0;
  for (const { text, offset } of pieces) {
    if (offset !== undefined) origins.push({ at, offset });
    at += text.length;
  }
  return {
    text: textOf(pieces),
    origin: (printed) => origins.findLast((origin) => origin.at <= printed)?.offset ?? 0,
  };
}

/** What the evaluation of a condition prepares. */
export interface Preparation {
  /** The variable that says whether a bare path is present. */
  presenceOf(path: readonly string[]): string;
  /** Called with each other path, whose value is an operand. */
  reads(path: readonly string[]): void;
}

/** Prints bare paths so that they may be missing: as the variable that is prepared for them or, where none can be, as a call. */
export function printToEvaluate(node: ASTNode, preparation: Preparation): string {
  return textOf(condition(node, { purpose: "evaluate", bound: [], ...preparation }));
}

/** A part of the text, and where the condition has it. */
interface Piece {
  readonly text: string;
  readonly offset?: number;
}
interface Scope extends Partial<Preparation> {
  readonly purpose: "check" | "evaluate";
  /** The names that the comprehension around the node declares. */
  readonly bound: readonly string[];
}
type Pieces = readonly Piece[];
type Printer = (node: ASTNode, scope: Scope) => Pieces;

function textOf(pieces: Pieces): string {
  return pieces.map(({ text }) => text).join("");
}

/** Joins texts and pieces. */
function joined(...parts: readonly (string | Pieces)[]): Pieces {
  return parts.flatMap((part) => (typeof part === "string" ? [{ text: part }] : part));
}

function at(offset: number, text: string): Pieces {
  return [{ text, offset }];
}

function listed(lists: readonly Pieces[]): Pieces {
  return lists.flatMap((pieces, index) => (index === 0 ? pieces : [{ text: ", " }, ...pieces]));
}

/** A node where true or false is expected. */
function condition(node: ASTNode, scope: Scope): Pieces {
  switch (node.op) {
    case "||":
    case "&&":
      return joined("(", condition(node.args[0], scope), ` ${node.op} `, condition(node.args[1], scope), ")");
    case "!_":
      return joined(at(node.pos, "(!"), condition(node.args, scope), ")");
    case "?:":
      return ternary(node.args, scope, condition);
    default:
      return isPath(node) ? presence(node, scope) : value(node, scope);
  }
}

/** Whether a node is names, fields and elements: what can be missing. */
export function isPath(node: ASTNode): boolean {
  switch (node.op) {
    case "id":
      return true;
    case ".":
    case ".?":
    case "[]":
    case "[?]":
      return isPath(node.args[0]);
    default:
      return false;
  }
}

function presence(node: ASTNode, scope: Scope): Pieces {
  if (scope.purpose === "check") return joined(`${PRESENT}(`, path(node, scope, false), ")");
  const fixed = fixedPath(node, scope);
  const name = fixed && scope.presenceOf?.(fixed);
  return name === undefined ? joined(`${PRESENT}(`, path(node, scope, true), ")") : [{ text: name }];
}

/** With `optional`, every piece may be missing. */
function path(node: ASTNode, scope: Scope, optional: boolean): Pieces {
  const last = lastStepOf(node, scope);
  if (last !== undefined) return at(node.start, last);
  switch (node.op) {
    case ".":
    case ".?": {
      const dot = optional || node.op === ".?" ? ".?" : ".";
      return joined(path(node.args[0], scope, optional), dot, at(node.pos, node.args[1]));
    }
    case "[]":
    case "[?]": {
      const bracket = optional || node.op === "[?]" ? "[?" : "[";
      return joined(path(node.args[0], scope, optional), at(node.pos, bracket), value(node.args[1], scope), "]");
    }
    default:
      return value(node, scope);
  }
}

function readsFixed(node: ASTNode, scope: Scope): void {
  const fixed = fixedPath(node, scope);
  if (fixed !== undefined) scope.reads?.(fixed);
}

/** The variable of the run and the fields of a path whose fields are all written out. */
function fixedPath(node: ASTNode, scope: Scope): readonly string[] | undefined {
  const last = lastStepOf(node, scope);
  if (last !== undefined) return [last];
  switch (node.op) {
    case "id":
      return scope.bound.includes(node.args) ? undefined : [node.args];
    case ".":
    case ".?": {
      const object = fixedPath(node.args[0], scope);
      return object && [...object, node.args[1]];
    }
    case "[]":
    case "[?]": {
      const [object, key] = node.args;
      if (key.op !== "value" || typeof key.args !== "string") return undefined;
      const fields = fixedPath(object, scope);
      return fields && [...fields, key.args];
    }
    default:
      return undefined;
  }
}

/** The variable that `output.last_output` or `output.last_step` stands for. */
function lastStepOf(node: ASTNode, { bound }: Scope): string | undefined {
  if ((node.op !== "." && node.op !== ".?") || node.args[0].op !== "id") return undefined;
  return node.args[0].args === "output" && !bound.includes("output") ? LAST_STEP.get(node.args[1]) : undefined;
}

/** A node where any value may stand. */
function value(node: ASTNode, scope: Scope): Pieces {
  switch (node.op) {
    case "value":
      return at(node.start, node.input.slice(node.start, node.end));
    case "id":
      readsFixed(node, scope);
      return at(node.start, node.args);
    case ".":
    case ".?":
    case "[]":
    case "[?]":
      readsFixed(node, scope);
      return path(node, scope, false);
    case "call":
      return call(node, node.args, scope);
    case "rcall":
      return method(node, node.args, scope);
    case "list":
      return joined(at(node.start, "["), listed(node.args.map((item) => value(item, scope))), "]");
    case "map": {
      const entries = node.args.map(([key, item]) => joined(value(key, scope), ": ", value(item, scope)));
      return joined(at(node.start, "{"), listed(entries), "}");
    }
    case "-_":
      return joined(at(node.pos, "(-"), value(node.args, scope), ")");
    case "?:":
      return ternary(node.args, scope, value);
    case "||":
    case "&&":
    case "!_":
      return condition(node, scope);
    case "in":
      return operator(node.op, node.args, scope, [value, counted]);
    case "==":
    case "!=":
    case "<":
    case "<=":
    case ">":
    case ">=": {
      // Comparing with a literal takes no longer than the literal.
      const isShort = node.args.some(({ op }) => op === "value");
      return operator(node.op, node.args, scope, isShort ? [value, value] : [counted, counted]);
    }
    case "+":
      return operator(node.op, node.args, scope, [counted, counted]);
    case "/":
    case "%":
      return operator(node.op, node.args, scope, [value, divisor]);
    default:
      return operator(node.op, node.args, scope, [value, value]);
  }
}

function ternary([test, yes, no]: readonly [ASTNode, ASTNode, ASTNode], scope: Scope, branch: Printer): Pieces {
  return joined("(", condition(test, scope), " ? ", branch(yes, scope), " : ", branch(no, scope), ")");
}

function operator(
  op: string,
  [left, right]: readonly [ASTNode, ASTNode],
  scope: Scope,
  [printLeft, printRight]: readonly [Printer, Printer],
): Pieces {
  return joined("(", printLeft(left, scope), ` ${op} `, printRight(right, scope), ")");
}

/** A value that takes work in proportion to its size. */
function counted(node: ASTNode, scope: Scope): Pieces {
  if (node.op === "value" || scope.purpose === "check") return value(node, scope);
  return joined(`${COUNTED}(`, value(node, scope), ")");
}

function divisor(node: ASTNode, scope: Scope): Pieces {
  if (scope.purpose === "check") return value(node, scope);
  return joined(`${DIVISOR}(`, value(node, scope), ")");
}

function call(node: ASTNode, [name, args]: readonly [string, readonly ASTNode[]], scope: Scope): Pieces {
  const [first] = args;
  if (name === "double" && scope.purpose === "evaluate")
    return joined(at(node.pos, `${FINITE}(${name}(`), argumentsOf(args, scope), "))");
  if (name !== "has" || first === undefined) return joined(at(node.pos, `${name}(`), argumentsOf(args, scope), ")");
  if (lastStepOf(first, scope) !== undefined) return joined("(", path(first, scope, false), " != null)");
  // The checker of has() does not look at fields.
  return joined(at(node.pos, scope.purpose === "check" ? `${PRESENT}(` : "has("), path(first, scope, false), ")");
}

function method(
  node: ASTNode,
  [name, receiver, args]: readonly [string, ASTNode, readonly ASTNode[]],
  scope: Scope,
): Pieces {
  const [variable, ...body] = args;
  if (SEARCHES.has(name) && scope.purpose === "evaluate") {
    const given = listed(args.map((arg) => value(arg, scope)));
    return joined(at(node.pos, `${SEARCHED}(`), value(receiver, scope), `, "${name}", [`, given, "])");
  }
  if (!COMPREHENSIONS.has(name) || variable?.op !== "id")
    return joined(argument(receiver, scope), at(node.pos, `.${name}(`), argumentsOf(args, scope), ")");
  const work = body.reduce((sum, part) => sum + sizeOf(part), 1);
  const elements = value(receiver, scope);
  const inside: Scope = { ...scope, bound: [...scope.bound, variable.args] };
  // The last part of map() is a value; every other part is a condition.
  const parts = body.map((part, index) =>
    name === "map" && index === body.length - 1 ? value(part, inside) : condition(part, inside),
  );
  return joined(
    scope.purpose === "check" ? elements : joined(`${LOOPED}(`, elements, `, ${work})`),
    at(node.pos, `.${name}(`),
    listed([at(variable.start, variable.args), ...parts]),
    ")",
  );
}

function argumentsOf(args: readonly ASTNode[], scope: Scope): Pieces {
  return listed(args.map((arg) => argument(arg, scope)));
}

function argument(node: ASTNode, scope: Scope): Pieces {
  if (node.op === "value" || scope.purpose === "check") return value(node, scope);
  return joined(`${MEASURED}(`, value(node, scope), ")");
}

/** The parts of a node, about. */
function sizeOf({ start, end }: ASTNode): number {
  return Math.max(1, Math.ceil((end - start) / 8));
}
