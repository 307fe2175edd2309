import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";

/** The page of the fields of workflow documents, from their JSON Schema, and of the rules of their diagnostics. */
export function fieldReference(whole: JsonObject, rules: Readonly<Record<string, string>>): string {
  const definition = (name: string): Json | undefined => at(whole, "definitions", name);
  const schema = definition("statewright");
  const machine = definition("machineDocument");
  const step = definition("step");
  const state = at(schema, "properties", "states", "additionalProperties");
  const transitions = at(state, "properties", "on", "additionalProperties", "anyOf");
  const [, move, invocation, parting] = Array.isArray(transitions) ? transitions : [];
  const fork = at(parting, "properties", "fork");
  const interrupt = at(schema, "properties", "interrupts", "additionalProperties");
  return [
    "# Fields of workflow documents\n",
    "Every field of a [Statewright document](workflow-statewright.md), of a [Flujo state machine](workflow-flujo.md) and of the [states that run no agent](kinds.md). `npm run schema` writes this page and `@sluice/workflows/schema.json` from one schema. Editors use the file offline.\n",
    "Fields are written in snake_case or camelCase. A field that is written twice, in any spelling, is an error. So is a field that is not listed here, except in `meta` and `context`.\n",
    "## Statewright documents\n",
    section("The document", schema, 3),
    section("A state", state, 3),
    "### A transition\n",
    "The value of an event is the name of a state, one of the objects below, or a list of them: the first whose guards hold is taken.\n",
    section("With a target", move, 4),
    section("With another workflow", invocation, 4),
    section("With branches", parting, 4),
    section("The branches", fork, 5),
    section("A branch", at(fork, "properties", "branches", "additionalProperties"), 5),
    section("An orchestrator", at(schema, "properties", "orchestrator"), 3),
    section("A guard", at(schema, "properties", "guards", "additionalProperties"), 3),
    section("An interrupt", interrupt, 3),
    section("Its trigger", at(interrupt, "properties", "trigger"), 4),
    section("Meta", at(schema, "properties", "meta"), 3),
    "## Flujo state machines\n",
    section("The machine", machine, 3),
    "A file that is a list of steps has `steps` in place of `kind`, `start_state`, `end_states`, `states` and `transitions`.\n",
    section("A state with fields", definition("state"), 3),
    section("A step", step, 3),
    section("An output of an import", at(step, "properties", "outputs", "anyOf", "0", "items"), 4),
    section("A transition of a machine", at(machine, "properties", "transitions", "items"), 3),
    section("An agent", at(machine, "properties", "agents", "additionalProperties"), 3),
    section("Limits", at(machine, "properties", "limits"), 3),
    "## States without an agent\n",
    "Statewright documents and Flujo steps hold the fields of a kind under its name, such as `script: { command: [npm, test] }`. The frontmatter of a Markdown stage names the `kind` and holds its fields beside it.\n",
    ...KINDS.map((kind) => section(`\`${kind}\``, at(state, "properties", kind), 3)),
    "## Rules of diagnostics\n",
    "A diagnostic of a workflow file names the rule that the file breaks. Ids are stable.\n",
    [
      "| Rule | What it asks for |",
      "| --- | --- |",
      ...Object.entries(rules).map(([id, text]) => `| \`${id}\` | ${text} |`),
    ].join("\n"),
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}

const KINDS = ["script", "poll", "timer", "human", "pipeline", "router"];

function at(value: Json | undefined, ...keys: readonly string[]): Json | undefined {
  return keys.reduce<Json | undefined>(
    (inside, key) => (Array.isArray(inside) ? inside[Number(key)] : field(inside, key)),
    value,
  );
}

function section(title: string, schema: Json | undefined, level = 2): string {
  const properties = field(schema, "properties");
  const required = requiredOf(schema);
  const all = isJsonObject(properties) ? Object.entries(properties) : [];
  const sameAs = (name: string): readonly string[] =>
    all.flatMap(([other, about]) =>
      textOf(about) === `The same as \`${name}\`.` && !isCamelCase(other) ? [other] : [],
    );
  const rows = all
    .filter(([, about]) => !textOf(about).startsWith("The same as "))
    .map(([name, about]) => {
      const names = [name, ...sameAs(name)].map((word) => `\`${word}\``).join(", ");
      const needed = required.has(name) ? "required" : "";
      return `| ${names} | ${typeOf(about)} | ${needed} | ${textOf(about)} |`;
    });
  return [
    `${"#".repeat(level)} ${title}\n`,
    "| Field | Value |  | Meaning |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

function isCamelCase(name: string): boolean {
  return /[a-z][A-Z]/u.test(name);
}

/** Required in one spelling or in any of several. */
function requiredOf(schema: Json | undefined): ReadonlySet<string> {
  const texts = (value: Json | undefined): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
  const either = field(schema, "allOf");
  const spelled = Array.isArray(either) ? either.flatMap((one: Json) => field(one, "anyOf") ?? []) : [];
  return new Set([...texts(field(schema, "required")), ...spelled.flatMap((one) => texts(field(one, "required")))]);
}

function textOf(about: Json): string {
  return String(field(about, "description") ?? "");
}

function typeOf(about: Json): string {
  const options = field(about, "anyOf");
  if (Array.isArray(options)) return [...new Set(options.map(typeOf))].join(", ");
  const choices = field(about, "enum");
  if (Array.isArray(choices)) return choices.map((choice) => `\`${String(choice)}\``).join(", ");
  if (field(about, "const") !== undefined) return `\`${String(field(about, "const"))}\``;
  const types = field(about, "type");
  if (Array.isArray(types)) return types.map((type: Json) => typeOf({ type })).join(", ");
  switch (types) {
    case "string":
      return "text";
    case "integer":
      return field(about, "minimum") === 1 ? "whole number from 1" : "whole number";
    case "boolean":
      return "true or false";
    case "array":
      return "list";
    case undefined:
      return "any";
    default:
      return String(field(about, "type"));
  }
}
