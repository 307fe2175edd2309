import { readFileSync } from "node:fs";
import { field, isJsonObject, type Json, type JsonObject, type JsonSchema } from "@sluice/core";
import { compileSchema } from "@sluice/core/runtime";
import { RULES, readSource, workflowJsonSchema } from "@sluice/workflows";
import { expect, test } from "vitest";
import { loadDocument } from "../support/workflows.ts";
import { fieldReference } from "./field-reference.ts";

const schema = workflowJsonSchema();

test("schema.json is the schema of the sources", async () => {
  await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot("../../packages/workflows/schema.json");
});

test("docs/workflow-fields.md has the fields of the schema and the rules", async () => {
  await expect(fieldReference(schema, RULES)).toMatchFileSnapshot("../../docs/workflow-fields.md");
});

// An editor has nothing but the file: it has to agree with loading.
const file: JsonSchema = JSON.parse(
  readFileSync(new URL("../../packages/workflows/schema.json", import.meta.url), "utf8"),
);
const around = (state: object): object => ({
  id: "w",
  initial: "a",
  states: { a: { allowed_tools: [], on: { DONE: "done" }, ...state }, done: { type: "final" } },
});
const documents: readonly (readonly [what: string, document: unknown, fits: boolean])[] = [
  ...["review", "deploy", "deploy-full"].map((name) => {
    const path = new URL(`../fixtures/workflows/statewright/${name}.json`, import.meta.url);
    return [`the document ${name}`, JSON.parse(readFileSync(path, "utf8")), true] as const;
  }),
  ["camelCase", around({ maxIterations: 3, denyEnv: ["A"], on: { GO: { invoke: "x", onComplete: "done" } } }), true],
  ["an unknown key", around({ max_iteration: 3 }), false],
  ["a wrong type", around({ max_iterations: "3" }), false],
  ["an invoke without what follows", around({ on: { GO: { invoke: "x" } } }), false],
  ...(
    [
      ["a command", { script: { command: ["npm", "test"], timeout: "15m", successCodes: [0, 2] } }, true],
      ["a command as a text", { script: { command: "npm test" } }, false],
      ["a poll without its time", { poll: { command: ["true"] } }, false],
      ["a timer", { timer: { until: 1_800_000_000_000 } }, true],
      [
        "a question with an answer by default",
        { human: { question: "?", answer: { type: "boolean" }, deadline: "1d", onDeadline: { answer: false } } },
        true,
      ],
      ["a router with a misspelled field", { router: { target: ["done"], prompt: "?" } }, false],
    ] as const
  ).map(([what, state, fits]) => {
    const states = { a: { ...state, on: { success: "done", failure: "done" } }, done: { type: "final" } };
    return [what, { id: "w", initial: "a", states }, fits] as const;
  }),
  [
    "an orchestrator",
    { id: "w", initial: "a", orchestrator: { instructions: "x" }, states: { a: { allowed_tools: [] } } },
    true,
  ],
  ["an empty list of transitions", around({ on: { GO: [] } }), false],
  ["a document without states", { id: "w", initial: "a" }, false],
  ...["orchestrate.yaml", "imports/clarification.yaml", "imports/concept_discovery.yaml"].map((name) => {
    const text = readFileSync(new URL(`../fixtures/workflows/flujo/${name}`, import.meta.url), "utf8");
    // Without its imports, which the test does not load.
    const { imports: _none, ...document } = objectOf(readSource(name, text).source?.value);
    return [`the file ${name}`, document, true] as const;
  }),
  ...[true, false].flatMap((fits) => {
    const step = { name: "x", prompt: "P", [fits ? "tools" : "tols"]: [] };
    const machine = (states: object) => ({
      kind: "StateMachine",
      name: "m",
      startState: "a",
      end_states: ["done"],
      states,
    });
    const what = fits ? "a step" : "a misspelled field of a step";
    return [
      [`${what} in a list`, machine({ a: [step] }), fits],
      [`${what} in a state`, machine({ a: { steps: [step] } }), fits],
      [`${what} in a file of steps`, { steps: [step] }, fits],
      [`${what} in a machine that is a step`, { steps: [machine({ a: [step] })] }, fits],
    ] as const;
  }),
];

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

test.each(documents)("%s fits the schema as it loads", async (_what, document, fits) => {
  const verdict = await compileSchema(file, "schema.json").check(document);
  expect(verdict.ok).toBe(fits);
  const shapes = ["unknown-key", "wrong-type", "missing-field"];
  const { diagnostics } = await loadDocument(document);
  expect(diagnostics.every(({ rule }) => !shapes.includes(rule))).toBe(fits);
});

test("every field of the schema has a description", () => {
  const missing: string[] = [];
  const look = (value: Json, path: string): void => {
    if (Array.isArray(value)) for (const entry of value) look(entry, path);
    if (!isJsonObject(value)) return;
    const { type, properties } = value;
    // A document has a field of this name, too.
    if (type === "object" && isJsonObject(properties)) {
      for (const [name, described] of Object.entries(properties))
        if (typeof field(described, "description") !== "string") missing.push(`${path}.${name}`);
    }
    for (const [key, member] of Object.entries(value)) look(member, `${path}.${key}`);
  };
  look(schema, "");
  expect(missing).toEqual([]);
});
