import {
  type AllowedTool,
  type AvailableTool,
  type AvailableTools,
  type CompiledSchema,
  type ModelSettings,
  type PipelineSpec,
  type Problem,
  SluiceError,
  type StageContext,
  type StateSpec,
} from "@sluice/core";
import { compileEnvelope } from "@sluice/core/gate";
import { isObject, isTexts, pipelinesWithin, problemsError, statesWithin } from "@sluice/core/runtime";
import { optionProblems } from "../models/provider-options.ts";

/** The tool that reads skills. */
export const READ_SKILL = "ReadSkill";

/** The options of an agent state, as stage() leaves them. */
export interface AgentSpec extends ModelSettings {
  /** The rendered system prompt. Throws Validation `prompt_unresolved` for a template path that does not exist. */
  prompt(ctx: StageContext): string;
  readonly visibility: "allowed" | "session";
  /** Without it and its schema, the state completes by events. */
  readonly completionTool?: string;
  readonly completionSchema?: CompiledSchema<unknown>;
  readonly turnCap: number;
}

/** Throws Validation `state_invalid` for a state that neither stage() nor router() made. */
export function readAgent({ kind, options }: StateSpec): AgentSpec {
  if (isAgentSpec(options)) return options;
  const how = kind === "router" ? "a router with router()" : "an agent state with stage()";
  throw new SluiceError("Validation", "state_invalid", `create ${how}`);
}

/** The kinds of states whose options are an `AgentSpec`. */
export const MODEL_KINDS: ReadonlySet<string> = new Set(["agent", "router", "orchestrator"]);

/** The states of a pipeline that call a model, by id. Throws the error of `readAgent`. */
export function agentsOf({ states }: PipelineSpec): ReadonlyMap<string, AgentSpec> {
  const agents = [...states].filter(([, { kind }]) => MODEL_KINDS.has(kind));
  return new Map(agents.map(([id, state]) => [id, readAgent(state)]));
}

/** The same of a pipeline and of those that it may run, with the ids of their states, which need not be unique. */
export function agentsWithin(spec: PipelineSpec): readonly (readonly [id: string, agent: AgentSpec])[] {
  return pipelinesWithin(spec).flatMap((each) => [...agentsOf(each)]);
}

/** The tools that an agent is shown. */
export function shownTools(
  { allowedTools, tools }: AvailableTools,
  { visibility }: Pick<AgentSpec, "visibility">,
): readonly AvailableTool[] {
  return visibility === "session" || allowedTools === undefined ? tools : tools.filter(({ allowed }) => allowed);
}

/** The agents whose cost a cap limits: their own, that of their pipeline, or that of a pipeline or a state that runs it. */
export function costCappedAgents(spec: PipelineSpec): readonly AgentSpec[] {
  const { limits, states, pipelines } = spec;
  if (limits.maxCostUsd !== undefined) return agentsWithin(spec).map(([, agent]) => agent);
  const own = [...agentsOf(spec)].filter(([id]) => states.get(id)?.limits?.maxCostUsd !== undefined);
  const started = [...states.values()].flatMap(({ owns = [], runs = [], limits: caps }) => {
    if (caps?.maxCostUsd === undefined) return owns.flatMap(costCappedAgents);
    const called = runs.flatMap(({ pipeline }) => pipelines.get(pipeline) ?? []);
    return [...owns, ...called].flatMap((one) => agentsWithin(one).map(([, agent]) => agent));
  });
  return [...own.map(([, agent]) => agent), ...started, ...[...pipelines.values()].flatMap(costCappedAgents)];
}

/** The provider options that the states of a pipeline may not set, with paths such as `stages.plan.providerOptions.openai.store`. */
export function providerOptionProblems(spec: PipelineSpec): readonly Problem[] {
  return [...agentsOf(spec)].flatMap(([id, { providerOptions }]) =>
    providerOptions === undefined
      ? []
      : optionProblems(providerOptions).map((one) => ({ ...one, path: `stages.${id}.${one.path}` })),
  );
}

/** Throws Validation `provider_option_refused`, which lists every refused option of a pipeline and of those that it may run. */
export function refuseProviderOptions(spec: PipelineSpec): void {
  const problems = pipelinesWithin(spec).flatMap(providerOptionProblems);
  if (problems.length === 0) return;
  throw problemsError(
    "provider_option_refused",
    `Pipeline ${spec.id} sets provider options that are refused:`,
    problems,
  );
}

/** What the prompts of a pipeline read of the project's files. */
export interface ProjectNeeds {
  /** The text of AGENTS.md. */
  readonly agents: boolean;
  /** The skills that states with an envelope may read. The prompts of other states name none. */
  readonly skills: boolean;
}

export function projectNeeds(spec: PipelineSpec): ProjectNeeds {
  const states = statesWithin(spec);
  const templates = states.flatMap((state) => Object.values(state.templates ?? {}).flat());
  return {
    agents: templates.some(({ path: [root] }) => root === "project"),
    skills: mayCall(spec, READ_SKILL, []),
  };
}

/** Whether any stage of the pipeline may call a tool without a grant. Stages without an envelope have the tools of `withoutEnvelope`. */
export function mayCall(spec: PipelineSpec, tool: string, withoutEnvelope: readonly AllowedTool[]): boolean {
  return statesWithin(spec).some(
    ({ allowedTools = withoutEnvelope }) => compileEnvelope(allowedTools).rulesFor(tool).length > 0,
  );
}

function isAgentSpec(options: unknown): options is AgentSpec {
  if (!isObject(options)) return false;
  const { prompt, visibility, completionTool, completionSchema, turnCap } = options;
  return (
    typeof prompt === "function" &&
    (visibility === "allowed" || visibility === "session") &&
    (completionTool === undefined
      ? completionSchema === undefined
      : typeof completionTool === "string" && isCompiledSchema(completionSchema)) &&
    typeof turnCap === "number" &&
    hasModelSettings(options)
  );
}

function hasModelSettings(options: Readonly<Record<string, unknown>>): boolean {
  const { model, fallbackModels = [], temperature, topP, seed, stopSequences = [], maxOutputTokens } = options;
  const { reasoning, toolChoice, providerOptions, cache } = options;
  return (
    [fallbackModels, stopSequences].every(isTexts) &&
    [model, reasoning, toolChoice].every((text) => text === undefined || typeof text === "string") &&
    [temperature, topP, seed, maxOutputTokens].every((number) => number === undefined || typeof number === "number") &&
    (providerOptions === undefined || isObject(providerOptions)) &&
    (cache === undefined || typeof cache === "boolean")
  );
}

function isCompiledSchema(schema: unknown): boolean {
  return isObject(schema) && typeof schema.check === "function" && isObject(schema.jsonSchema);
}
