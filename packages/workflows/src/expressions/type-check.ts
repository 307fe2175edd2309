import { Environment } from "@marcbachmann/cel-js";
import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { isClosedSchema, isObject, resolveReference, suggestOneOf } from "@sluice/core/runtime";
import { numbers } from "./evaluator.ts";
import { printToCheck } from "./print.ts";
import type { CelProblem } from "./problem.ts";
import type { Expression } from "./read-expression.ts";
import { type CelTypes, type CelVariable, LAST_STEP, LAST_STEP_TYPE, VARIABLES } from "./variables.ts";

const KNOWN_TYPES: CelTypes = { event: { type: "string" }, last_step: LAST_STEP_TYPE };

/** What is wrong with a condition for values of these types; undefined if nothing is certain. */
export type TypeChecker = (expression: Expression, types: CelTypes) => CelProblem | undefined;

/** Checks conditions; those of the same types share their environment. */
export function createTypeChecker(): TypeChecker {
  const known = new WeakMap<CelTypes, Types>();
  return (expression, types) => {
    const declared = known.get(types) ?? declare(types);
    known.set(types, declared);
    return typeProblem(expression, declared);
  };
}

function declare(types: CelTypes): Types {
  const declared = createTypes();
  for (const name of [...VARIABLES, ...LAST_STEP.values()])
    declared.environment.registerVariable(name, declared.typeOf(types[name] ?? KNOWN_TYPES[name], nameOf(name)));
  return declared;
}

function typeProblem({ ast, text }: Expression, declared: Types): CelProblem | undefined {
  const printed = printToCheck(ast);
  const { valid, type, error } = declared.environment.check(printed.text);
  if (valid) return resultProblem(type ?? "dyn", text);
  const range = error?.range ?? { start: 0, end: printed.text.length };
  const offset = printed.origin(range.start);
  const length = Math.max(1, Math.min(range.end - range.start, text.length - offset));
  const summary = error?.summary ?? "it has no type";
  const missing = error?.code === "no_such_key" ? /^No such key: (.*)$/s.exec(summary)?.[1] : undefined;
  if (missing === undefined) return { rule: "expression-type", message: typeMessage(summary), offset, length };
  const fields = declared.fieldsOf(error?.node);
  const suggestion = fields === undefined ? undefined : suggestOneOf(missing, fields);
  return {
    rule: "expression-name",
    message: `there is no field "${missing}"`,
    suggestion,
    offset,
    length: Math.max(1, Math.min(missing.length, text.length - offset)),
  };
}

/** The variable as an expression spells it. */
function nameOf(name: CelVariable): string {
  return LAST_STEP.has(name) ? `output.${name}` : name;
}

function resultProblem(type: string, text: string): CelProblem | undefined {
  if (type === "bool" || type.startsWith("dyn")) return undefined;
  const message = `the condition gives ${type}, not true or false`;
  return { rule: "expression-type", message, suggestion: "compare it with a value", offset: 0, length: text.length };
}

function typeMessage(summary: string): string {
  const overload = /^no such overload: (\S+) (\S+) (\S+)$/.exec(summary);
  if (overload !== null) return `"${overload[2]}" is not defined for ${overload[1]} and ${overload[3]}`;
  const indexed = /^Cannot index type '(.*)'$/s.exec(summary)?.[1];
  if (indexed !== undefined) return `a value of type ${indexed} has no fields`;
  return summary.slice(0, 1).toLowerCase() + summary.slice(1);
}

/** Keywords with which a schema allows more than its properties say. */
const OPEN_KEYWORDS = ["anyOf", "oneOf", "allOf", "if", "not", "patternProperties", "dependentSchemas"];
const DEEPEST = 12;
const MOST_TYPES = 500;

interface Types {
  readonly environment: Environment;
  /** The CEL type of a schema; `dyn` where it does not say. */
  typeOf(schema: JsonObject | undefined, name: string): string;
  /** The fields of the object that a failed field access is on. */
  fieldsOf(node: unknown): readonly string[] | undefined;
}

function createTypes(): Types {
  const environment = numbers(
    new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false }),
    Boolean,
  );
  const fields = new Map<string, readonly string[]>();
  const read = (schema: Json | undefined, root: JsonObject, name: string, depth: number): string => {
    const here = resolveReference(schema, root);
    if (!isJsonObject(here) || depth > DEEPEST || OPEN_KEYWORDS.some((keyword) => field(here, keyword) !== undefined))
      return "dyn";
    switch (here.type) {
      case "string":
        return "string";
      case "boolean":
        return "bool";
      case "array":
        return `list<${read(field(here, "items"), root, `${name}.items`, depth + 1)}>`;
      case "object": {
        const properties = field(here, "properties");
        if (!isClosedSchema(here, properties) || fields.size >= MOST_TYPES) return "dyn";
        const plain = name.replace(/[^\w.]/g, "_");
        const typeName = fields.has(plain) ? `${plain}_${fields.size}` : plain;
        fields.set(typeName, Object.keys(properties));
        const members = Object.entries(properties).map(
          ([key, member]) => [key, read(member, root, `${name}.${key}`, depth + 1)] as const,
        );
        environment.registerType(typeName, { fields: Object.fromEntries(members) });
        return typeName;
      }
      // A number of JSON is compared with integers and doubles alike.
      default:
        return "dyn";
    }
  };
  return {
    environment,
    typeOf: (schema, name) => (schema === undefined ? "dyn" : read(schema, schema, name, 0)),
    fieldsOf: (node) => {
      const object = objectOf(node);
      return object === undefined ? undefined : fields.get(object);
    },
  };
}

/** The type of the object whose field was read, which the checker leaves at the node. */
function objectOf(node: unknown): string | undefined {
  if (!isObject(node) || !("args" in node) || !Array.isArray(node.args)) return undefined;
  const [object]: readonly unknown[] = node.args;
  if (!isObject(object) || !("checkedType" in object) || !isObject(object.checkedType)) return undefined;
  const { checkedType } = object;
  return "name" in checkedType && typeof checkedType.name === "string" ? checkedType.name : undefined;
}
