import { type ASTNode, EvaluationError } from "@marcbachmann/cel-js";
import type { Guard, GuardScope, GuardVerdict } from "@sluice/core";
import { messageOf, shortened } from "@sluice/core/runtime";
import { type Compiler, createCompiler, type Evaluate } from "./evaluator.ts";
import { isPath } from "./print.ts";
import type { CelProblem } from "./problem.ts";
import { type Expression, readExpression } from "./read-expression.ts";
import { createTypeChecker } from "./type-check.ts";
import { type CelRead, type CelTypes, type CelVariable, celVariable } from "./variables.ts";

export type CelGuard =
  | { readonly guard: Guard; readonly problems?: undefined }
  | { readonly guard?: undefined; readonly problems: readonly CelProblem[] };

/** `types` has the JSON Schemas of variables; `read` reads them. */
export type CelGuardMaker = (expression: string, types?: CelTypes, read?: CelRead) => CelGuard;

/**
 * Makes a guard from a CEL expression, or says what is wrong with it. Where schemas of its variables are given, unknown fields and
 * operations that cannot succeed are problems. The guard fires only if the expression gives `true`; a missing field and any other
 * error while it is evaluated is a condition that does not fire, with the reason.
 */
export const celGuard: CelGuardMaker = (expression, types, read) => celGuards()(expression, types, read);

/** Makes the guards of one document, which share what it costs to make the first. */
export function celGuards(): CelGuardMaker {
  const compiler = createCompiler();
  const typeProblem = createTypeChecker();
  return (expression, types = NO_TYPES, read = celVariable) => {
    const reading = readExpression(expression);
    if ("problems" in reading) return { problems: reading.problems };
    const problem = typeProblem(reading.expression, types);
    if (problem !== undefined) return { problems: [problem] };
    const names = [...reading.expression.reads];
    const conditions = conditionsOf(reading.expression, compiler);
    return {
      guard: {
        text: expression.trim(),
        evaluate: (scope) => {
          compiler.begin();
          return evaluate(conditions, variablesOf(names, read, scope), compiler);
        },
      },
    };
  };
}

const NO_TYPES: CelTypes = {};

/** One operand of the outermost `&&`: they are evaluated one by one, so that a verdict names the one that does not hold. */
interface Condition {
  readonly text: string;
  readonly isPath: boolean;
  readonly evaluate: Evaluate;
}

function conditionsOf({ ast, text }: Expression, compiler: Compiler): readonly Condition[] {
  return operandsOf(ast).map((node) => ({
    text: textOf(node, text),
    isPath: isPath(node),
    evaluate: compiler.compile(node),
  }));
}

function operandsOf(node: ASTNode): readonly ASTNode[] {
  return node.op === "&&" ? [...operandsOf(node.args[0]), ...operandsOf(node.args[1])] : [node];
}

const LONGEST_TEXT = 120;

/** What is written at a node. A node leaves out brackets around its parts, without which the text would mislead. */
function textOf({ start, end }: ASTNode, whole: string): string {
  const own = whole.slice(start, end).replace(/\s+/g, " ");
  const isBalanced = own.split("(").length === own.split(")").length;
  return shortened(isBalanced ? own : whole.trim().replace(/\s+/g, " "), LONGEST_TEXT);
}

function variablesOf(
  names: readonly CelVariable[],
  read: CelRead,
  scope: GuardScope,
): Readonly<Record<string, unknown>> {
  const variables: Record<string, unknown> = {};
  for (const name of names) variables[name] = read(name, scope) ?? null;
  return variables;
}

/** As CEL's `&&`: false wins over an error, whatever their order. */
function evaluate(
  conditions: readonly Condition[],
  variables: Readonly<Record<string, unknown>>,
  { isSpent }: Pick<Compiler, "isSpent">,
): GuardVerdict {
  let failure: string | undefined;
  for (const condition of conditions) {
    const value = valueOfCondition(condition, variables);
    if (value === true) continue;
    const { text } = condition;
    if (value === false) {
      const why = condition.isPath ? `${text} is missing or empty` : `${text} is false`;
      return { fires: false, why };
    }
    failure ??= `${text} cannot be evaluated: ${value.fault}`;
    if (isSpent()) break;
  }
  return failure === undefined ? { fires: true, why: "its condition is true" } : { fires: false, why: failure };
}

function valueOfCondition(
  { evaluate: run }: Condition,
  variables: Readonly<Record<string, unknown>>,
): boolean | { readonly fault: string } {
  try {
    const value = run(variables);
    return typeof value === "boolean" ? value : { fault: `it gives ${typeName(value)}, not true or false` };
  } catch (thrown) {
    return { fault: thrown instanceof EvaluationError ? faultText(thrown.summary) : messageOf(thrown) };
  }
}

function faultText(summary: string): string {
  const missing = /^No such key: (.*)$/s.exec(summary)?.[1];
  return missing === undefined ? summary : `there is no ${missing}`;
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return "null";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
