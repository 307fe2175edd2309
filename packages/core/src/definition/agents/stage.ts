import { createReport, idFault, type Report } from "../../base/problems.ts";
import type { CompiledSchema, Schema } from "../../schema/schema.ts";
import { matchesName } from "../patterns/tool-pattern.ts";
import type { KindFacts } from "../spec.ts";
import { type CommonOptions, readEnvelope, schemaAt, stateSpec } from "../state.ts";
import { isCount } from "../state-rules.ts";
import { type CompiledTemplate, readTemplate } from "../template.ts";
import type { AnyState, AnyStates, EventOutput, EventStageOptions, Stage, StageOptions, State } from "../types.ts";
import { MODEL_SETTINGS, readModelSettings } from "./model-settings.ts";

/** StageOptions with erased types. */
type AgentOptions = CommonOptions &
  Omit<StageOptions<AnyStates, unknown, unknown>, keyof CommonOptions | "completionTool" | "completionSchema"> &
  Partial<Pick<StageOptions<AnyStates, unknown, unknown>, "completionTool" | "completionSchema">>;

const AGENT_KEYS = [
  "reads",
  "prompt",
  "visibility",
  ...MODEL_SETTINGS,
  "completionTool",
  "completionSchema",
  "turnCap",
];

/**
 * Defines an agent state: a fresh transcript, its own tools and a typed completion. Without `completionTool` and
 * `completionSchema` it completes by an event of its rows, and its output is `{ event, data }`. Never throws: `pipeline()`
 * reports its problems with all others.
 */
export function stage<const A extends Record<string, AnyState> = Record<never, never>, I = undefined>(
  options: EventStageOptions<A, I>,
): Stage<EventOutput, NoInfer<I>>;
export function stage<const A extends Record<string, AnyState> = Record<never, never>, O = unknown, I = undefined>(
  options: StageOptions<A, O, I>,
): Stage<O, NoInfer<I>>;
export function stage(given: AgentOptions): State & { readonly kind: "agent" } {
  const { prompt, visibility = "allowed", completionTool, completionSchema, turnCap, ...rest } = given;
  const report = createReport();
  const settings = readModelSettings(report, rest);
  const common: CommonOptions = settings.rest;
  const { references, render } = readPrompt(report, prompt, common.setup !== undefined);
  const completion = readCompletion(report, completionTool, completionSchema, common);
  if (!isCount(turnCap)) report.add("turnCap", "must be a whole number from 1", "it counts model calls");
  if (visibility !== "allowed" && visibility !== "session") report.add("visibility", 'must be "allowed" or "session"');
  const facts: KindFacts = {
    options: { prompt: render, visibility, ...completion.options, turnCap, ...settings.options },
    ...completion.facts,
    visibility,
    takesPrompt: true,
    templates: { prompt: references },
    shape: { turnCap },
    parts: {
      prompt: typeof prompt === "function" ? "a function" : { data: prompt },
      ...completion.parts,
      turnCap,
      ...(visibility === "allowed" ? {} : { visibility }),
      ...settings.parts,
    },
  };
  return { kind: "agent", spec: stateSpec("agent", common, { ...facts, keys: AGENT_KEYS, problems: report.problems }) };
}

interface Completion {
  readonly options: { readonly completionTool?: string; readonly completionSchema?: CompiledSchema<unknown> };
  readonly facts: KindFacts;
  readonly parts: NonNullable<KindFacts["parts"]>;
}

/** The tools of a stage that completes by events: one sends an event, one reads where the stage is. */
const BY_EVENTS: KindFacts = { completesByEvents: true, completionTool: "transition", ownTools: ["get_state"] };

/** How the stage completes: with a tool of its own, or, without one, by an event. */
function readCompletion(
  report: Report,
  completionTool: string | undefined,
  completionSchema: Schema<unknown> | undefined,
  common: CommonOptions,
): Completion {
  if (completionTool === undefined && completionSchema === undefined)
    return { options: {}, facts: BY_EVENTS, parts: { completes: "by events" } };
  if (completionTool === undefined)
    report.add("completionTool", "is missing: completionSchema describes its arguments");
  else checkCompletionTool(report, completionTool, common);
  if (completionSchema === undefined) {
    report.add("completionSchema", "is missing: it describes the arguments of completionTool");
    return { options: {}, facts: {}, parts: {} };
  }
  const output = readCompletionSchema(report, completionSchema);
  const named = completionTool === undefined ? {} : { completionTool };
  return {
    options: { ...named, completionSchema: output },
    facts: { output, checksOutput: true, ...named },
    parts: { ...named, out: output },
  };
}

type Prompt = Pick<CompiledTemplate, "references" | "render">;

/** Compiles the prompt of a state that a model works for, or reports what is wrong with it. */
export function readPrompt(
  report: Report,
  prompt: AgentOptions["prompt"],
  hasSetup: boolean,
  option = "prompt",
): Prompt {
  if (typeof prompt === "function") return { references: [], render: prompt };
  if (typeof prompt !== "string" || prompt.trim() === "") {
    report.add(option, "must be a text or a function that returns one");
    return { references: [], render: () => "" };
  }
  if (!prompt.isWellFormed()) report.add(option, "holds a lone surrogate, which is not valid Unicode");
  const reading = readTemplate(prompt);
  if (!reading.ok) {
    for (const { message, suggestion, place } of reading.faults) report.add(option, message, suggestion, place);
    return { references: [], render: () => prompt };
  }
  const setup = reading.value.references.find(({ path }) => path[0] === "setup");
  if (!hasSetup && setup !== undefined)
    report.add(option, "{{ctx.setup}} is the result of the setup hook, and there is none", undefined, setup.place);
  return reading.value;
}

/** A completion schema describes an object, since models send named arguments. */
function readCompletionSchema(report: Report, schema: Schema<unknown>): CompiledSchema<unknown> {
  const compiled = schemaAt(report, "completionSchema", schema);
  const { type } = compiled.jsonSchema;
  const combined = ["anyOf", "oneOf", "allOf", "$ref"].some((keyword) => keyword in compiled.jsonSchema);
  if (compiled.digest !== "" && type !== "object" && (type !== undefined || !combined)) {
    report.add(
      "completionSchema",
      "must describe an object, since a model completes with named fields",
      "wrap the value in an object",
    );
  }
  return compiled;
}

function checkCompletionTool(report: Report, name: string, common: CommonOptions): void {
  const fault = idFault(name);
  if (fault !== undefined) {
    report.add("completionTool", fault);
    return;
  }
  // `stateSpec` reports faults of the patterns.
  const patterns = readEnvelope(createReport(), common.allowedTools);
  if (patterns.some((pattern) => pattern.literal && matchesName(pattern, name))) {
    report.add(
      "completionTool",
      `${name} is listed in allowedTools`,
      "remove it: the completion tool is always available",
    );
  }
}
