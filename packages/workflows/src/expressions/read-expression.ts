import { type ASTNode, Environment, ParseError } from "@marcbachmann/cel-js";
import { suggestOneOf } from "@sluice/core/runtime";
import type { CelProblem } from "./problem.ts";
import { type CelVariable, LAST_STEP, VARIABLES } from "./variables.ts";
import { foreignSpellings } from "./words.ts";

/** A condition that parses and uses only what is allowed. */
export interface Expression {
  readonly text: string;
  readonly ast: ASTNode;
  /** The variables it reads. */
  readonly reads: ReadonlySet<CelVariable>;
}

const MOST_CHARACTERS = 4096;
/** As CEL counts them: nodes of the tree, and brackets, calls and fields inside each other. */
const PARSER = new Environment({ enableOptionalTypes: true, limits: { maxAstNodes: 500, maxDepth: 32 } });

/** Macros that call an expression for each element of a list or each key of a map. */
export const COMPREHENSIONS: ReadonlySet<string> = new Set(["all", "exists", "exists_one", "filter", "map"]);
const FUNCTIONS: ReadonlySet<string> = new Set(["has", "size", "int", "double", "string", "bool", "dyn"]);
const METHODS: ReadonlySet<string> = new Set([
  ...COMPREHENSIONS,
  "contains",
  "startsWith",
  "endsWith",
  "size",
  "lowerAscii",
  "upperAscii",
  "trim",
  "indexOf",
  "lastIndexOf",
  "substring",
  "orValue",
  "hasValue",
  "value",
]);
/** Names of other languages and what CEL has instead. */
const CEL_NAMES: ReadonlyMap<string, string> = new Map([
  ["len", "size(x)"],
  ["str", "string(x)"],
  ["float", "double(x)"],
  ["lower", "x.lowerAscii()"],
  ["toLowerCase", "x.lowerAscii()"],
  ["upper", "x.upperAscii()"],
  ["toUpperCase", "x.upperAscii()"],
  ["strip", "x.trim()"],
  ["startswith", "x.startsWith(y)"],
  ["endswith", "x.endsWith(y)"],
  ["includes", "x.contains(y), or y in x for a list"],
  ["get", "x.?key.orValue(y)"],
  ["any", "x.exists(e, …)"],
  ["some", "x.exists(e, …)"],
  ["every", "x.all(e, …)"],
  ["matches", "contains, startsWith or endsWith"],
]);
const BANNED_FIELDS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Reads a condition, within the limits on its size. Never throws. */
export function readExpression(
  text: string,
): { readonly expression: Expression } | { readonly problems: readonly CelProblem[] } {
  const whole = { pos: 0, end: text.length };
  if (text.trim() === "")
    return { problems: [problemAt(whole, "expression-syntax", "the condition is empty", "remove it")] };
  if (text.length > MOST_CHARACTERS) {
    const message = `the condition has ${text.length} characters; ${MOST_CHARACTERS} are allowed`;
    return { problems: [problemAt(whole, "expression-limit", message)] };
  }
  const foreign = foreignSpellings(text, (candidate) => "ast" in parse(candidate));
  if (foreign.length > 0) return { problems: foreign };
  const parsed = parse(text);
  if ("problem" in parsed) return { problems: [parsed.problem] };
  const reads = new Set<CelVariable>();
  const problems = visit(parsed.ast, { reads, bound: [] });
  return problems.length > 0 ? { problems } : { expression: { text, ast: parsed.ast, reads } };
}

function parse(text: string): { readonly ast: ASTNode } | { readonly problem: CelProblem } {
  try {
    return { ast: PARSER.parse(text).ast };
  } catch (thrown) {
    // The parser is recursive: what exhausts the stack before a limit does is too deep all the same.
    if (thrown instanceof RangeError) return { problem: tooLarge("is nested too deeply", text) };
    if (!(thrown instanceof ParseError)) throw thrown;
    const { code, range, summary } = thrown;
    if (code === "limit_exceeded") {
      const what = summary.includes("maxDepth") ? "is nested more than 32 deep" : "has more than 500 parts";
      return { problem: tooLarge(what, text) };
    }
    const pos = Math.min(range?.start ?? 0, text.length);
    const end = Math.min(range?.end ?? pos, text.length);
    return {
      problem: problemAt({ pos, end }, "expression-syntax", `it is not a CEL expression: ${lowerFirst(summary)}`),
    };
  }
}

function tooLarge(what: string, { length: end }: string): CelProblem {
  const suggestion = "split it into several rows, or let a stage compute the answer";
  return problemAt({ pos: 0, end }, "expression-limit", `the condition ${what}`, suggestion);
}

interface Scope {
  /** The variables that were read so far. */
  readonly reads: Set<CelVariable>;
  /** The names that the comprehension around the node declares. */
  readonly bound: readonly string[];
}
type Problems = readonly CelProblem[];

function visit(node: ASTNode, scope: Scope): Problems {
  switch (node.op) {
    case "value":
      return [];
    case "id":
      return visitName(node.args, node, scope);
    case ".":
    case ".?": {
      const [object, name] = node.args;
      const banned = BANNED_FIELDS.has(name) ? [bannedField(node, name)] : [];
      const last = object.op === "id" && object.args === "output" ? LAST_STEP.get(name) : undefined;
      if (last === undefined) return [...visit(object, scope), ...banned];
      scope.reads.add(last);
      return banned;
    }
    case "[]":
    case "[?]": {
      const [, key] = node.args;
      const isBanned = key.op === "value" && typeof key.args === "string" && BANNED_FIELDS.has(key.args);
      return [...visitAll(node.args, scope), ...(isBanned ? [bannedField(key, String(key.args))] : [])];
    }
    case "call":
      return visitCall(node, node.args, scope);
    case "rcall":
      return visitMethod(node, node.args, scope);
    case "!_":
    case "-_":
      return visit(node.args, scope);
    case "map":
      return node.args.flatMap((entry) => visitAll(entry, scope));
    default:
      return visitAll(node.args, scope);
  }
}

function visitAll(nodes: readonly ASTNode[], scope: Scope): Problems {
  return nodes.flatMap((node) => visit(node, scope));
}

function bannedField(node: ASTNode, name: string): CelProblem {
  return problemAt(node, "expression-banned", `"${name}" cannot be read`);
}

function visitName(name: string, node: ASTNode, { reads, bound }: Scope): Problems {
  if (bound.includes(name)) return [];
  const variable = VARIABLES.find((known) => known === name);
  if (variable !== undefined) {
    reads.add(variable);
    return [];
  }
  const suggestion = LAST_STEP.has(name) ? `write output.${name}` : suggestOneOf(name, VARIABLES);
  return [problemAt(node, "expression-name", `there is no variable "${name}"`, suggestion)];
}

function visitCall(node: ASTNode, [name, args]: readonly [string, readonly ASTNode[]], scope: Scope): Problems {
  if (!FUNCTIONS.has(name)) return [unknownFunction(node, name, FUNCTIONS, "function")];
  if (name === "has" && args[0]?.op !== ".")
    return [problemAt(node, "expression-type", "has() takes a path", "write has(context.name)")];
  return visitAll(args, scope);
}

function visitMethod(
  node: ASTNode,
  [name, receiver, args]: readonly [string, ASTNode, readonly ASTNode[]],
  scope: Scope,
): Problems {
  if (!METHODS.has(name)) return [unknownFunction(node, name, METHODS, "method")];
  const before = visit(receiver, scope);
  const [variable, ...body] = args;
  if (!COMPREHENSIONS.has(name) || variable?.op !== "id") return [...before, ...visitAll(args, scope)];
  if (scope.bound.length > 0) {
    const message = `${name}() cannot be used inside another ${[...COMPREHENSIONS].join(", ")}`;
    return [...before, problemAt(node, "expression-banned", message, "let a stage compute the answer")];
  }
  if (isTaken(variable.args)) {
    const message = `"${variable.args}" is a variable already`;
    return [...before, problemAt(variable, "expression-name", message, "choose another name")];
  }
  return [...before, ...visitAll(body, { ...scope, bound: [...scope.bound, variable.args] })];
}

/** Whether a name is one of the variables, under which also the last step and the presence of paths are evaluated. */
function isTaken(name: string): boolean {
  const known: readonly string[] = [...VARIABLES, ...LAST_STEP.values()];
  return known.includes(name) || /^present_\d+$/.test(name);
}

function unknownFunction(
  node: ASTNode,
  name: string,
  known: ReadonlySet<string>,
  what: "function" | "method",
): CelProblem {
  const cel = CEL_NAMES.get(name);
  const suggestion = cel === undefined ? suggestOneOf(name, known) : `write ${cel}`;
  if (name === "matches")
    return problemAt(node, "expression-banned", "a regular expression can take unbounded time", suggestion);
  return problemAt(node, "expression-name", `there is no ${what} "${name}"`, suggestion);
}

function problemAt(
  { pos: offset, end }: Pick<ASTNode, "pos" | "end">,
  rule: CelProblem["rule"],
  message: string,
  suggestion?: string,
): CelProblem {
  const length = Math.max(1, end - offset);
  return { rule, message, suggestion, offset, length };
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
