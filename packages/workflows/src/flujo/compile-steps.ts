// The steps of a document as states: an agent's step as a stage, any others as a state of steps.

import { type AnyPipeline, type AnyState, final, isJsonObject, type Problem, stage } from "@sluice/core";
import { compilePipeline } from "@sluice/core/host";
import { suggestOneOf } from "@sluice/core/runtime";
import { type RunStep, type Step, stepsState } from "@sluice/stages";
import { type FindingAt, runInput } from "../format.ts";
import { compileKind, textsOfKind } from "../kinds/compile.ts";
import type { KindState } from "../kinds/fields.ts";
import { idFor } from "../read/names.ts";
import { problemFindings } from "../read/problem-finding.ts";
import type { Finding } from "../read/shape.ts";
import type { Layout, PlacedState, PlacedStep } from "./layout.ts";
import type { FlujoDocument } from "./read-document.ts";
import type { Agent, KnownStep } from "./step-kinds.ts";
import { outputOf } from "./step-kinds.ts";
import { childRoots, stageRoots, stateTemplates, stepsRead, type TemplateRoots } from "./templates.ts";

/** Model calls of one attempt, unless the step or its agent has a `turn_cap`. */
const TURN_CAP = 50;
/** The tool with which an agent completes its step. */
const SUBMIT = "submit";

export interface CompiledPart {
  readonly state: AnyState;
  /** The pipelines that its steps run, by key. */
  readonly pipelines: ReadonlyMap<string, AnyPipeline>;
  readonly findings: readonly Finding[];
  /** Where a problem of the state is; its path is relative to the state. */
  locate(problem: Problem): FindingAt;
  /** Where a problem of one of its pipelines is; its path is relative to that pipeline. */
  locateIn(key: string, problem: Problem): FindingAt | undefined;
}

/** An agent's step as a stage. */
function stageOf(
  document: FlujoDocument,
  known: KnownStep,
  agent: Agent,
  roots: TemplateRoots,
): Pick<CompiledPart, "state" | "findings" | "locate"> {
  const { max_retries, timeout_s } = known.step.fields;
  const { tools, model, temperature, settings, turnCap = TURN_CAP } = agent;
  const state = stage({
    prompt: stateTemplates(agent.prompt, roots),
    completionTool: SUBMIT,
    completionSchema: { ...agent.output, type: "object" },
    turnCap,
    ...(tools === undefined ? {} : { allowedTools: tools }),
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...settings,
    ...(max_retries === undefined ? {} : { retryPolicy: { maxAttempts: max_retries + 1 } }),
    ...(timeout_s === undefined ? {} : { limits: { timeoutMs: timeout_s * 1000 } }),
  });
  const locate = (problem: Problem): FindingAt => locateInStep(document, known, agent, problem);
  const findings = [...problemFindings(state.spec.problems, locate)];
  if (tools === undefined) {
    const message = `${JSON.stringify(known.step.name)} lists no tools, so the session's mode decides every tool call.`;
    const suggestion = 'write "tools", with [] for none';
    findings.push({
      severity: "warning",
      rule: "no-envelope",
      message,
      suggestion,
      path: known.step.path,
      what: "key",
    });
  }
  return { state, findings, locate };
}

type Nested = (step: PlacedStep) => { readonly pipeline?: AnyPipeline; readonly findings: readonly Finding[] };

/** One state: a stage, or steps that run in order. `nested` gives the pipelines of imports and machines. */
export function compileState(
  document: FlujoDocument,
  layout: Layout,
  state: PlacedState,
  nested: Nested,
): CompiledPart {
  const findings = state.steps.flatMap((step) => unknownSteps(document, layout, state, step));
  const [only] = state.steps;
  if (state.isStage && only?.use.kind === "other") {
    const made = kindStateOf(only, only.use.given, stageRoots(keyIn(layout, state)), layout);
    return { ...made, findings: [...findings, ...made.findings], pipelines: new Map(), locateIn: () => undefined };
  }
  if (state.isStage && only?.use.kind === "agent") {
    const made = stageOf(document, only, only.use.agent, stageRoots(keyIn(layout, state)));
    return { ...made, findings: [...findings, ...made.findings], pipelines: new Map(), locateIn: () => undefined };
  }
  const made = stepsOf(document, layout, state, nested);
  return { ...made, findings: [...findings, ...made.findings] };
}

/** The names that outputs have upstream, by step. */
function keyIn(layout: Layout, state: PlacedState): (step: string) => string | undefined {
  return (name) => layout.stepCalled(name, state)?.key;
}

/** The templates of a step that read steps which do not exist. */
function unknownSteps(
  document: FlujoDocument,
  layout: Layout,
  state: PlacedState,
  { step, use }: PlacedStep,
): readonly Finding[] {
  const { prompt, message, input } = step.fields;
  const named = use.kind === "agent" ? use.agent.named : undefined;
  const system = named === undefined ? undefined : document.fields.agents?.[named]?.system_prompt;
  const others = use.kind === "other" ? textsOfKind(use.given) : [];
  const kind = use.kind === "other" ? use.given.kind : "";
  const texts = [
    ...others.map(({ text, path }) => ({ text, path: step.at(kind, ...path) })),
    { text: prompt, path: step.at("prompt") },
    { text: message, path: step.at("message") },
    { text: typeof input === "string" ? input : undefined, path: step.at("input") },
    ...Object.entries(isJsonObject(input) ? input : {}).map(([name, value]) => ({
      text: typeof value === "string" ? value : undefined,
      path: step.at("input", name),
    })),
    { text: system, path: document.at("agents", named ?? "", "system_prompt") },
  ];
  const known = layout.states.flatMap(({ steps }) => steps.map((one) => one.step.name));
  return texts.flatMap(({ text = "", path }) =>
    stepsRead(text).flatMap(({ name, offset, length }): readonly Finding[] => {
      if (layout.stepCalled(name, state) !== undefined) return [];
      const suggestion = suggestOneOf(name, known);
      const why = `There is no step ${JSON.stringify(name)}.`;
      return [{ severity: "error", rule: "bad-template", message: why, suggestion, path, offset, length }];
    }),
  );
}

function stepsOf(document: FlujoDocument, layout: Layout, state: PlacedState, nested: Nested): CompiledPart {
  const { steps } = state;
  const keyOf = keyIn(layout, state);
  const roots = childRoots(keyOf);
  const pipelines = new Map<string, AnyPipeline>();
  const locators = new Map<string, (problem: Problem) => FindingAt>();
  const findings: Finding[] = [];
  const compiled = steps.map((placed): Step => {
    const { use, save, saveContext, key: name, pipeline: key } = placed;
    const saved = save.length === 0 ? {} : { save };
    if (use.kind === "ask") {
      const answer = use.answer === undefined ? {} : { answer: use.answer };
      return { kind: "ask", name, message: stateTemplates(use.message, roots), ...answer, ...saved };
    }
    if (use.kind === "agent" || use.kind === "other") {
      const one =
        use.kind === "agent"
          ? stageOf(document, placed, use.agent, roots)
          : kindStateOf(placed, use.given, roots, layout);
      const made = pipelineOf(placed, one);
      findings.push(...made.findings);
      pipelines.set(key, made.pipeline);
      locators.set(key, made.locate);
      const read = use.kind === "agent" ? [use.agent.prompt] : textsOfKind(use.given).map(({ text }) => text);
      const reads = new Set(read.flatMap(stepsRead).flatMap(({ name: step }) => keyOf(step) ?? []));
      return { kind: "run", name, pipeline: key, ...(reads.size === 0 ? {} : { reads: [...reads] }), ...saved };
    }
    const made = nested(placed);
    findings.push(...made.findings, ...deepTemplates(placed));
    if (made.pipeline !== undefined) pipelines.set(key, made.pipeline);
    return { kind: "run", name, pipeline: key, ...inputOf(placed, roots), ...saved, saveContext };
  });
  const last = steps.at(-1);
  const output = last === undefined ? undefined : outputOf(last);
  const made = stepsState({ steps: compiled, ...(output === undefined ? {} : { output }) });
  const locate = (problem: Problem): FindingAt => locateInSteps(steps, problem);
  findings.push(...problemFindings(made.spec.problems, locate));
  return {
    state: made,
    pipelines,
    findings,
    locate,
    locateIn: (key, problem) => {
      const step = steps.find(({ pipeline }) => pipeline === key)?.step;
      return locators.get(key)?.(inState(problem)) ?? (step && { path: step.path, what: "key" });
    },
  };
}

/** The fields of an import's input; a text is its task. */
function inputOf({ step: { fields } }: KnownStep, roots: TemplateRoots): Pick<RunStep, "input" | "texts"> {
  const { input } = fields;
  if (input === undefined) return {};
  const given = isJsonObject(input) ? Object.entries(input) : [["task", input] as const];
  const texts = given.flatMap(([name, value]) =>
    typeof value === "string" ? [[name, stateTemplates(value, roots)] as const] : [],
  );
  return {
    input: Object.fromEntries(given.filter(([, value]) => typeof value !== "string")),
    texts: Object.fromEntries(texts),
  };
}

/** Templates inside lists and objects of an import's input, which are not replaced. */
function deepTemplates({ step }: KnownStep): readonly Finding[] {
  const { input } = step.fields;
  return Object.entries(isJsonObject(input) ? input : {}).flatMap(([name, value]): readonly Finding[] => {
    if (typeof value === "string" || !JSON.stringify(value).includes("{{")) return [];
    const message = "A template inside a list or an object is not replaced.";
    const suggestion = "give it a field of its own";
    return [{ severity: "error", rule: "bad-template", message, suggestion, path: step.at("input", name) }];
  });
}

type OneState = Pick<CompiledPart, "state" | "findings" | "locate">;

/** A step that runs no agent and no other workflow. */
function kindStateOf({ step }: KnownStep, given: KindState, roots: TemplateRoots, layout: Layout): OneState {
  const compiled = compileKind(given, {
    template: (text) => stateTemplates(text, roots),
    templateFaults: () => [],
    stateId: layout.idOf,
    pipelineKey: (name) => name,
  });
  const at = (path: Finding["path"]): Finding["path"] => step.at(given.kind, ...path);
  const locate = (problem: Pick<Problem, "path">): FindingAt => {
    const inside = compiled.locate(problem);
    return { path: at(inside), what: inside.length === 0 ? "key" : "value" };
  };
  const own = compiled.findings.map((finding) => ({ ...finding, path: at(finding.path) }));
  const problems = problemFindings(compiled.state.spec.problems, locate);
  return { state: compiled.state, findings: [...own, ...problems], locate };
}

/** A step as a pipeline of its own, which runs as a child. */
function pipelineOf(
  placed: PlacedStep,
  { state, findings, locate }: OneState,
): Pick<CompiledPart, "findings" | "locate"> & { readonly pipeline: AnyPipeline } {
  const { pipeline: id } = placed;
  const name = idFor(placed.step.name);
  const end = name === "done" ? "end" : "done";
  const { spec, problems } = compilePipeline({
    id,
    input: runInput,
    stages: { [name]: state, [end]: final("completed") },
    initial: name,
    transitions: [{ from: name, on: "success", to: end }],
  });
  // The problems of the stage itself are among its findings.
  const own = state.spec.problems?.length ?? 0;
  const others = problemFindings(problems.slice(own), (problem) => locate(inState(problem)));
  return { pipeline: { id, spec }, findings: [...findings, ...others], locate };
}

/** A problem of a pipeline's state, by its path inside the state. */
function inState(problem: Problem): Problem {
  return { ...problem, path: problem.path.replace(/^stages\.[\w-]+\.?/u, "") };
}

/** The fields of a step or an agent by the options of a stage. */
const FIELDS: ReadonlyMap<string, string> = new Map([
  ["turnCap", "turn_cap"],
  ["model", "model"],
  ["temperature", "temperature"],
  ["topP", "top_p"],
  ["seed", "seed"],
  ["stopSequences", "stop_sequences"],
  ["reasoning", "reasoning"],
  ["toolChoice", "tool_choice"],
  ["providerOptions", "provider_options"],
  ["fallbackModels", "fallback_models"],
  ["retry", "retry"],
  ["onProviderFault", "on_provider_fault"],
  ["cache", "cache"],
  ["completionSchema", "output_schema"],
  ["allowedTools", "tools"],
  ["retryPolicy", "max_retries"],
  ["limits", "timeout_s"],
  ["prompt", "prompt"],
]);

function locateInStep(document: FlujoDocument, { step }: KnownStep, { named }: Agent, { path }: Problem): FindingAt {
  const [, option = "", index] = /^(\w*)(?:\[(\d+)\])?/u.exec(path) ?? [];
  const name = FIELDS.get(option);
  if (name === undefined) return { path: step.path, what: "key" };
  const inside = index === undefined ? [] : [Number(index)];
  if (Object.hasOwn(step.fields, name)) return { path: step.at(name, ...inside) };
  const agents = document.fields.agents ?? {};
  const agentName = name === "prompt" ? "system_prompt" : name;
  if (named === undefined || !Object.hasOwn(agents[named] ?? {}, agentName)) return { path: step.path, what: "key" };
  return { path: document.at("agents", named, agentName, ...inside) };
}

function locateInSteps(steps: readonly KnownStep[], { path }: Problem): FindingAt {
  const [, index, option, field] = /^steps\[(\d+)\](?:\.(\w+))?(?:\.(.+))?/u.exec(path) ?? [];
  const step = steps[Number(index)]?.step ?? steps[0]?.step;
  if (step === undefined) return { path: [], what: "key" };
  if (option === "message") return { path: step.at("message") };
  if (option === "texts" && field !== undefined)
    return { path: isJsonObject(step.fields.input) ? step.at("input", field) : step.at("input") };
  if (option === "answer") return { path: step.at("input_schema") };
  return option === "name" ? { path: step.at("name") } : { path: step.path, what: "key" };
}
