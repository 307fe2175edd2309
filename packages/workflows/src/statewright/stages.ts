// The states of a Statewright document as stages, and what its mistakes are called in the document.

import { type AnyState, final, type Problem, type StateLimits, stage } from "@sluice/core";
import type { DocumentPath } from "../diagnostic.ts";
import type { FindingAt } from "../format.ts";
import { compileKind } from "../kinds/compile.ts";
import { outcomeOf } from "../kinds/ends.ts";
import { type KindState, onlyGiven } from "../kinds/fields.ts";
import type { KindNames } from "../kinds/make.ts";
import { modelSettings } from "../kinds/model-fields.ts";
import { problemFindings } from "../read/problem-finding.ts";
import type { Finding } from "../read/shape.ts";
import { fullTemplates, templateFindings } from "../read/template.ts";
import { kindOf } from "./edges.ts";
import type { StatewrightState } from "./schema.ts";

/** Model calls of one attempt, unless the state has a `turn_cap`. */
export const TURN_CAP = 50;

/** The tool with which an agent completes in a workflow with an orchestrator. */
const SUBMIT = "submit";
/** Its output, unless the state says otherwise. */
const RESULT = {
  properties: { result: { type: "string", description: "The result of the work." } },
  required: ["result"],
  additionalProperties: false,
};

export interface CompiledState {
  readonly state: AnyState;
  /** The mistakes of its own. */
  readonly findings: readonly Finding[];
  /** Where a problem of the state is. Its path is relative to the state. */
  locate(problem: Problem): FindingAt;
}

/** What a state needs of its document. */
export interface DocumentScope extends Pick<KindNames, "stateId" | "pipelineKey"> {
  /** Whether a model chooses what follows every state. An agent then completes with an output instead of an event. */
  readonly isOrchestrated: boolean;
}

/** Compiles one state. `id` is its name inside the pipeline. */
export function compileState(name: string, id: string, state: StatewrightState, around: DocumentScope): CompiledState {
  const path = ["states", name];
  if (state.type === "final") {
    const end = labelled(final(outcomeOf(name, state.outcome)), name, id);
    return { state: end, findings: [], locate: () => ({ path, what: "key" }) };
  }
  const kind = kindOf(state);
  if (kind !== undefined) return ofKind(name, id, kind, around);
  const templates = templateFindings(state.instructions ?? "");
  const envelope = envelopeOf(state);
  const fields = {
    prompt: promptOf(name, id, templates.length === 0 ? (state.instructions ?? "") : ""),
    turnCap: state.turn_cap ?? TURN_CAP,
    ...(envelope === undefined ? {} : { allowedTools: envelope.map(({ pattern }) => pattern) }),
    ...(state.model === undefined ? {} : { model: state.model }),
    ...modelSettings(state),
    ...limitsOf(state),
    ...environmentOf(state),
  };
  const schema = { ...(state.output_schema ?? RESULT), type: "object" } as const;
  const compiled = around.isOrchestrated
    ? stage({ ...fields, completionTool: SUBMIT, completionSchema: schema })
    : stage(fields);
  const tools = envelope?.map((entry) => entry.path) ?? [];
  const locate = (problem: Problem): FindingAt => locateIn(path, state, tools, problem);
  const broken = templates.map(
    (template): Finding => ({ severity: "error", rule: "bad-template", path: [...path, "instructions"], ...template }),
  );
  const problems = problemFindings(compiled.spec.problems, locate);
  return { state: labelled(compiled, name, id), findings: [...broken, ...problems], locate };
}

/** A state that runs no agent. */
function ofKind(name: string, id: string, given: KindState, ids: DocumentScope): CompiledState {
  const path = ["states", name, given.kind];
  const compiled = compileKind(given, { ...ids, template: fullTemplates, templateFaults: templateFindings });
  const locate = (problem: Problem): FindingAt => {
    const inside = compiled.locate(problem);
    return inside.length === 0 ? { path, what: "key" } : { path: [...path, ...inside] };
  };
  const own = compiled.findings.map((finding) => ({ ...finding, path: [...path, ...finding.path] }));
  const problems = problemFindings(compiled.state.spec.problems, locate);
  return { state: labelled(compiled.state, name, id), findings: [...own, ...problems], locate };
}

/** The state with its name in the recorded graph, if its id differs. */
function labelled({ kind, spec }: AnyState, name: string, id: string): AnyState {
  return name === id ? { kind, spec } : { kind, spec: { ...spec, shape: { ...spec.shape, label: name } } };
}

/** What stands for instructions where there are none. */
export const NO_INSTRUCTIONS = "Do the work of this phase, then leave it.";

function promptOf(name: string, id: string, instructions: string): string {
  const text = instructions.trim() === "" ? NO_INSTRUCTIONS : fullTemplates(instructions);
  return `${calledWords(name, id)}${text}`;
}

/** How the agent learns the name of its state, if its id differs. */
export function calledWords(name: string, id: string): string {
  const words = name === id ? "" : `The workflow calls this phase ${JSON.stringify(name)}.\n\n`;
  return words.replaceAll("{{", "\\{{");
}

interface EnvelopeEntry {
  readonly pattern: string;
  /** Relative to the state. */
  readonly path: DocumentPath;
}

/** The tools that need no approval. Allowed commands stand for a plain Bash. */
function envelopeOf({ allowed_tools, allowed_commands }: StatewrightState): readonly EnvelopeEntry[] | undefined {
  return allowed_tools?.flatMap((tool, index): readonly EnvelopeEntry[] => {
    if (tool !== "Bash" || allowed_commands === undefined) return [{ pattern: tool, path: ["allowed_tools", index] }];
    return allowed_commands.map((command, at) => ({
      pattern: commandPattern(command),
      path: ["allowed_commands", at],
    }));
  });
}

/** A command by its first words: whatever follows them is allowed. */
function commandPattern(command: string): string {
  const words = command.trim();
  return words === "*" || words.endsWith(" *") ? `Bash(${words})` : `Bash(${words} *)`;
}

/** The limits of a stage, and the fields that they are. */
export const LIMITS = [
  ["maxToolCalls", "max_iterations"],
  ["maxLinesPerEdit", "max_edit_lines"],
  ["maxFiles", "max_files_per_state"],
  ["maxResultBytes", "context_budget_bytes"],
] as const;

function limitsOf(state: StatewrightState): { readonly limits?: StateLimits } {
  const limits = LIMITS.flatMap(([limit, name]) => (state[name] === undefined ? [] : [[limit, state[name]] as const]));
  return limits.length === 0 ? {} : { limits: Object.fromEntries(limits) };
}

function environmentOf({ env_overrides, blocked_env }: StatewrightState): {
  readonly env?: { readonly set?: Readonly<Record<string, string>>; readonly block?: readonly string[] };
} {
  if (env_overrides === undefined && blocked_env === undefined) return {};
  const set = Object.fromEntries(Object.entries(env_overrides ?? {}).map(([name, value]) => [name, String(value)]));
  return { env: onlyGiven({ set: env_overrides === undefined ? undefined : set, block: blocked_env }) };
}

/** The fields of a state by the options of a stage. */
const FIELDS: Readonly<Record<string, string>> = {
  prompt: "instructions",
  turnCap: "turn_cap",
  model: "model",
  topP: "top_p",
  seed: "seed",
  stopSequences: "stop_sequences",
  reasoning: "reasoning",
  toolChoice: "tool_choice",
  providerOptions: "provider_options",
  fallbackModels: "fallback_models",
  retry: "retry",
  onProviderFault: "on_provider_fault",
  cache: "cache",
  ...Object.fromEntries(LIMITS.map(([limit, name]) => [`limits.${limit}`, name])),
  "env.block": "blocked_env",
  "env.set": "env_overrides",
  allowedTools: "allowed_tools",
  completionSchema: "output_schema",
};

function locateIn(
  path: DocumentPath,
  state: StatewrightState,
  tools: readonly DocumentPath[],
  problem: Problem,
): FindingAt {
  const tool = /^allowedTools\[(\d+)\]/u.exec(problem.path)?.[1];
  if (tool !== undefined) return { path: [...path, ...(tools[Number(tool)] ?? ["allowed_tools"])] };
  const variable = /^env\.set\.(.+)$/su.exec(problem.path)?.[1];
  if (variable !== undefined) return { path: [...path, "env_overrides", variable], what: "key" };
  const [, provider, option] = /^providerOptions\.([^.]*)(?:\.(.+))?$/su.exec(problem.path) ?? [];
  if (provider !== undefined)
    return { path: [...path, "provider_options", provider, ...(option === undefined ? [] : [option])], what: "key" };
  const field = FIELDS[problem.path];
  if (field === undefined || !Object.hasOwn(state, field)) return { path, what: "key" };
  return { path: [...path, field], ...templateIn(state.instructions ?? "", field, problem.message) };
}

/** The template that a problem of the prompt names. */
function templateIn(
  text: string,
  field: string,
  message: string,
): { readonly offset?: number; readonly length?: number } {
  if (field !== "instructions") return {};
  const [, path] = /\{\{ctx\.([^}]*)\}\}/u.exec(message) ?? [];
  if (path === undefined) return {};
  for (const { 0: template, index } of text.matchAll(/\{\{[^}]*\}\}/gu))
    if (fullTemplates(template).replaceAll(/\s/gu, "") === `{{ctx.${path}}}`)
      return { offset: index, length: template.length };
  return {};
}
