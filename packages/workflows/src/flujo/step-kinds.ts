// What a step of a document is, and whether its fields are those of its kind.

import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { suggestOneOf } from "@sluice/core/runtime";
import type { ContextPath, SavedOutput } from "@sluice/stages";
import type { DocumentPath } from "../diagnostic.ts";
import { KIND_NAMES, type KindState, kindsIn } from "../kinds/fields.ts";
import { modelFields, modelSettings } from "../kinds/model-fields.ts";
import { outputOfKind } from "../kinds/outputs.ts";
import type { Finding } from "../read/shape.ts";
import type { FlujoDocument, FlujoMachine, FlujoStep } from "./read-document.ts";
import type { AgentFields, StepFields } from "./schema.ts";

/** The output of an agent without an `output_schema`. */
const RESULT: JsonObject = {
  type: "object",
  properties: { result: { type: "string", description: "The result of the work." } },
  required: ["result"],
  additionalProperties: false,
};

export type StepUse =
  | { readonly kind: "agent"; readonly agent: Agent }
  | { readonly kind: "import"; readonly alias: string }
  | { readonly kind: "ask"; readonly message: string; readonly answer: JsonObject | undefined }
  | { readonly kind: "machine"; readonly machine: FlujoMachine }
  /** What runs no agent and no other workflow. */
  | { readonly kind: "other"; readonly given: KindState };

/** An agent step with the fields of the agent that it uses. */
export interface Agent {
  readonly prompt: string;
  readonly output: JsonObject;
  readonly tools: readonly string[] | undefined;
  readonly model: string | undefined;
  readonly temperature: number | undefined;
  readonly settings: ReturnType<typeof modelSettings>;
  readonly turnCap: number | undefined;
  /** The agent in the document that gives what the step does not. */
  readonly named: string | undefined;
}

export interface KnownStep {
  readonly step: FlujoStep;
  readonly use: StepUse;
  readonly save: readonly SavedOutput[];
  /** What an import or a machine gives back of its context. */
  readonly saveContext: readonly SavedOutput[];
}

/** The kind of a step, and the findings about its fields; undefined if its mistakes leave nothing to compile. */
export function knowStep(
  document: FlujoDocument,
  step: FlujoStep,
): { readonly known: KnownStep | undefined; readonly findings: readonly Finding[] } {
  const findings: Finding[] = [];
  const use = useOf(document, step, findings);
  findings.push(...nextStateFindings(step));
  const saved = savedBy(step, findings);
  return { known: use === undefined ? undefined : { step, use, ...saved }, findings };
}

/** The JSON Schema of a step's output, where the document says it. */
export function outputOf({ use }: KnownStep): JsonObject | undefined {
  if (use.kind === "agent") return use.agent.output;
  if (use.kind === "other") return outputOfKind(use.given);
  return use.kind === "ask" ? use.answer : undefined;
}

const COMMON = ["kind", "name", "description", "sink_to", "updates_context"];
const FIELDS = {
  agent: [
    ...COMMON,
    "uses",
    "prompt",
    "input",
    "tools",
    "output_schema",
    "model",
    "temperature",
    ...Object.keys(modelFields),
    "turn_cap",
    "max_retries",
    "timeout_s",
  ],
  import: [...COMMON, "uses", "input", "outputs"],
  ask: [...COMMON, "message", "input_schema"],
  other: [...COMMON, ...KIND_NAMES],
} as const;
const CALLED = {
  agent: "an agent's step",
  import: "a step that uses an import",
  ask: "a hitl step",
  other: "a step that runs no agent",
} as const;

function useOf(document: FlujoDocument, step: FlujoStep, findings: Finding[]): StepUse | undefined {
  const { fields, machine } = step;
  if (machine !== undefined) return { kind: "machine", machine };
  const kind = kindOf(fields);
  foreignFields(step, kind, findings);
  switch (kind) {
    case "ask": {
      const { message, input_schema: answer } = fields;
      if (message !== undefined) return { kind, message, answer };
      findings.push(missing(step, "message"));
      return undefined;
    }
    case "import": {
      const alias = (fields.uses ?? "").slice("imports.".length);
      const known = Object.keys(document.fields.imports ?? {});
      if (known.includes(alias)) return { kind, alias };
      findings.push(unknownUse(step, alias, known, "import"));
      return undefined;
    }
    case "agent":
      return agentOf(document, step, findings);
    case "other":
      return otherOf(step, findings);
  }
}

function otherOf(step: FlujoStep, findings: Finding[]): StepUse | undefined {
  const [given, second] = kindsIn(step.fields);
  if (given === undefined) return undefined;
  if (second !== undefined) {
    const message = `${JSON.stringify(step.name)} has both "${given.kind}" and "${second.kind}", and a step is of one kind.`;
    const suggestion = "split it into two steps";
    findings.push({
      severity: "error",
      rule: "two-kinds",
      message,
      suggestion,
      path: step.at(second.kind),
      what: "key",
    });
  }
  if (given.kind === "router")
    for (const name of ["sink_to", "updates_context"])
      if (Object.hasOwn(step.fields, name)) {
        const message = `A router's output is its choice, so ${JSON.stringify(name)} has nothing to save.`;
        findings.push({ severity: "error", rule: "no-effect", message, path: step.at(name), what: "key" });
      }
  return { kind: "other", given };
}

function kindOf(fields: StepFields): keyof typeof FIELDS {
  const { kind, uses, message, prompt } = fields;
  if (kindsIn(fields).length > 0) return "other";
  if (kind === "hitl") return "ask";
  if (kind === undefined && message !== undefined && prompt === undefined && uses === undefined) return "ask";
  return uses?.startsWith("imports.") === true ? "import" : "agent";
}

function foreignFields(step: FlujoStep, kind: keyof typeof FIELDS, findings: Finding[]): void {
  const own: readonly string[] = FIELDS[kind];
  for (const name of Object.keys(step.fields)) {
    if (own.includes(name)) continue;
    const message = `${JSON.stringify(name)} is not a field of ${CALLED[kind]}.`;
    findings.push({ severity: "error", rule: "unknown-key", message, path: step.at(name), what: "key" });
  }
}

function missing(step: FlujoStep, name: string, suggestion?: string): Finding {
  const message = `${JSON.stringify(step.name)} has no ${JSON.stringify(name)}.`;
  return { severity: "error", rule: "missing-field", message, suggestion, path: step.path, what: "key" };
}

function unknownUse(step: FlujoStep, name: string, known: readonly string[], what: "import" | "agent"): Finding {
  const message = `There is no ${what} ${JSON.stringify(name)}.`;
  const suggestion = suggestOneOf(name, known) ?? `add it to "${what}s"`;
  return { severity: "error", rule: `unknown-${what}`, message, suggestion, path: step.at("uses") };
}

function agentOf(document: FlujoDocument, step: FlujoStep, findings: Finding[]): StepUse | undefined {
  const { fields } = step;
  const { uses, prompt, input } = fields;
  const named = uses?.startsWith("agents.") === true ? uses.slice("agents.".length) : undefined;
  if (uses !== undefined && named === undefined) {
    const message = `${JSON.stringify(uses)} is neither an agent nor an import of this file.`;
    const suggestion = 'write "agents.<name>" or "imports.<alias>"; a function cannot be used';
    findings.push({ severity: "error", rule: "unknown-agent", message, suggestion, path: step.at("uses") });
    return undefined;
  }
  const agents = document.fields.agents ?? {};
  const agent: AgentFields | undefined =
    named !== undefined && Object.hasOwn(agents, named) ? agents[named] : undefined;
  if (named !== undefined && agent === undefined) {
    findings.push(unknownUse(step, named, Object.keys(agents), "agent"));
    return undefined;
  }
  const texts = [agent?.system_prompt, prompt, typeof input === "string" ? input : undefined];
  const whole = texts.filter((text) => text !== undefined).join("\n\n");
  if (isJsonObject(input)) {
    const message = "The input of an agent is text.";
    findings.push({ severity: "error", rule: "wrong-type", message, path: step.at("input") });
  }
  if (whole === "") {
    findings.push(missing(step, "prompt", 'write "prompt", or use an agent or an import with "uses"'));
    return undefined;
  }
  const output = fields.output_schema ?? agent?.output_schema ?? RESULT;
  if (output.type !== undefined && output.type !== "object") {
    const path =
      fields.output_schema === undefined
        ? document.at("agents", named ?? "", "output_schema", "type")
        : step.at("output_schema", "type");
    const suggestion = `write { type: object, properties: { result: … }, required: [result] }`;
    findings.push({
      severity: "error",
      rule: "wrong-type",
      message: "The output of an agent must be an object.",
      suggestion,
      path,
    });
  }
  return {
    kind: "agent",
    agent: {
      prompt: whole,
      output,
      tools: fields.tools ?? agent?.tools,
      model: fields.model ?? agent?.model,
      temperature: fields.temperature ?? agent?.temperature,
      settings: { ...modelSettings(agent ?? {}), ...modelSettings(fields) },
      turnCap: fields.turn_cap ?? agent?.turn_cap,
      named,
    },
  };
}

/** The field of the context that steps write to unless they name another. */
const SCRATCHPAD: ContextPath = ["scratchpad"];

function savedBy(step: FlujoStep, findings: Finding[]): Pick<KnownStep, "save" | "saveContext"> {
  const { sink_to, updates_context, outputs } = step.fields;
  const save: SavedOutput[] = [];
  const saveContext: SavedOutput[] = [];
  const target = (text: string, path: DocumentPath): ContextPath | undefined => contextPath(text, path, findings);
  if (sink_to !== undefined) {
    const to = target(sink_to, step.at("sink_to"));
    if (to !== undefined) save.push({ from: [], to });
  }
  if (updates_context !== undefined && updates_context !== false) {
    const to = updates_context === true ? SCRATCHPAD : target(updates_context, step.at("updates_context"));
    if (to !== undefined) save.push({ from: [], to, merge: true });
  }
  if (outputs === undefined) {
    saveContext.push({ from: [...SCRATCHPAD], to: SCRATCHPAD, merge: true });
    return { save, saveContext };
  }
  const pairs = Array.isArray(outputs)
    ? outputs.map(({ child, parent }, index) => ({ child, parent, path: step.at("outputs", index) }))
    : Object.entries(outputs).map(([child, parent]) => ({ child, parent, path: step.at("outputs", child) }));
  for (const { child, parent, path } of pairs) {
    const from = contextPath(child, path, findings);
    const to = contextPath(parent, path, findings);
    if (from === undefined || to === undefined) continue;
    saveContext.push({ from: [...from], to });
  }
  return { save, saveContext };
}

const PIECE = /^[A-Za-z][\w-]*$/u;
const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

/** A field of the context, with or without the word `context` before it. */
function contextPath(text: string, path: DocumentPath, findings: Finding[]): ContextPath | undefined {
  const pieces = text.replace(/^context\./u, "").split(".");
  const [first, ...rest] = pieces;
  if (first !== undefined && pieces.every((piece) => PIECE.test(piece) && !INHERITED.has(piece)))
    return [first, ...rest];
  const message = `${JSON.stringify(text.slice(0, 80))} is not a field of the context.`;
  const suggestion = 'write names with dots between them, such as "scratchpad.answer"';
  findings.push({ severity: "error", rule: "context-key", message, suggestion, path });
  return undefined;
}

const NEXT_STATE = "next_state";

/** A step of Flujo may name the next state; here rows alone do. */
function nextStateFindings(step: FlujoStep): readonly Finding[] {
  const { sink_to, updates_context, outputs, output_schema } = step.fields;
  const targets: (readonly [DocumentPath, string])[] = [];
  if (sink_to !== undefined) targets.push([step.at("sink_to"), sink_to]);
  if (typeof updates_context === "string") targets.push([step.at("updates_context"), updates_context]);
  if (Array.isArray(outputs))
    for (const [index, { parent }] of outputs.entries()) targets.push([step.at("outputs", index, "parent"), parent]);
  else for (const [child, parent] of Object.entries(outputs ?? {})) targets.push([step.at("outputs", child), parent]);
  const written = targets.flatMap(([path, target]) =>
    target.split(".").includes(NEXT_STATE) ? [nextState(path, "context.scratchpad.next_state", undefined)] : [],
  );
  const property = field(field(output_schema, "properties"), NEXT_STATE);
  if (property === undefined) return written;
  const path = step.at("output_schema", "properties", NEXT_STATE);
  return [...written, nextState(path, `output.${NEXT_STATE}`, field(property, "enum"), "key")];
}

function nextState(
  path: DocumentPath,
  value: string,
  choices: Json | undefined,
  what: "key" | "value" = "value",
): Finding {
  const names = Array.isArray(choices) ? choices.filter((choice) => typeof choice === "string").slice(0, 3) : [];
  const rows = (names.length === 0 ? ["review"] : names).map((name) => {
    const condition = value.startsWith("output") ? value.replace(NEXT_STATE, "choice") : "context.scratchpad.choice";
    return `{ from: …, on: success, when: '${condition} == "${name}"', to: ${name} }`;
  });
  return {
    severity: "error",
    rule: "next-state",
    message: `"${NEXT_STATE}" does not choose the next state: the transitions do.`,
    suggestion: `call it "choice", and write a transition for each state: ${rows.join(", ")}`,
    path,
    what,
  };
}
