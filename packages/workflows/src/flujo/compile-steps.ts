// The steps of a document as states: an agent's step as a stage, any others as a state of steps.

import {
  type AnyPipeline,
  type AnyState,
  final,
  isJsonObject,
  type JsonObject,
  type Problem,
  stage,
} from "@sluice/core";
import { compilePipeline } from "@sluice/core/host";
import { type Step, stepsState } from "@sluice/stages";
import type { FindingAt } from "../format.ts";
import { ruleOf } from "../problem-rule.ts";
import { idFor } from "../read/names.ts";
import type { Finding } from "../read/shape.ts";
import { runInput } from "../run-input.ts";
import type { FlujoDocument } from "./read-document.ts";
import type { Agent, KnownStep } from "./step-kinds.ts";
import { outputOf } from "./step-kinds.ts";
import { stateTemplates, stepsRead, type TemplateRoots } from "./templates.ts";

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
}

/** An agent's step as a stage. */
export function stageOf(
  document: FlujoDocument,
  known: KnownStep,
  agent: Agent,
  roots: TemplateRoots,
): Pick<CompiledPart, "state" | "findings" | "locate"> {
  const { max_retries, timeout_s } = known.step.fields;
  const { tools, model, temperature, turnCap = TURN_CAP } = agent;
  const state = stage({
    prompt: stateTemplates(agent.prompt, roots),
    completionTool: SUBMIT,
    completionSchema: { ...agent.output, type: "object" },
    turnCap,
    ...(tools === undefined ? {} : { allowedTools: tools }),
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(max_retries === undefined ? {} : { retryPolicy: { maxAttempts: max_retries + 1 } }),
    ...(timeout_s === undefined ? {} : { limits: { timeoutMs: timeout_s * 1000 } }),
  });
  const locate = (problem: Problem): FindingAt => locateInStep(document, known, agent, problem);
  const findings: Finding[] = (state.spec.problems ?? []).map((problem) => findingOf(problem, locate(problem)));
  if (tools === undefined) {
    const message = `${JSON.stringify(known.step.name)} lists no tools, so the session's mode decides about every tool call.`;
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

/** What steps that run in a state of their own need from their machine. */
export interface StepsAround {
  /** Where templates find what they read. */
  readonly roots: TemplateRoots;
  /** The name upstream of a step's output. */
  outputKey(step: string): string;
  /** The key of the pipeline that a step runs. */
  pipelineKey(step: KnownStep): string;
  /** The pipeline of an import or a machine. */
  nested(step: KnownStep): { readonly pipeline?: AnyPipeline; readonly findings: readonly Finding[] };
}

/** Steps that run in order, as one state. */
export function stepsOf(document: FlujoDocument, steps: readonly KnownStep[], around: StepsAround): CompiledPart {
  const { roots } = around;
  const pipelines = new Map<string, AnyPipeline>();
  const findings: Finding[] = [];
  const compiled = steps.map((known): Step => {
    const { use, save, saveContext, step } = known;
    const name = idFor(step.name);
    const saved = save.length === 0 ? {} : { save };
    if (use.kind === "ask") {
      const answer = use.answer === undefined ? {} : { answer: use.answer };
      return { kind: "ask", name, message: stateTemplates(use.message, roots), ...answer, ...saved };
    }
    const key = around.pipelineKey(known);
    if (use.kind === "agent") {
      const made = agentPipeline(document, known, use.agent, { id: key, roots });
      findings.push(...made.findings);
      pipelines.set(key, made.pipeline);
      const reads = [...new Set(stepsRead(use.agent.prompt).map((read) => around.outputKey(read)))];
      return { kind: "run", name, pipeline: key, ...(reads.length === 0 ? {} : { reads }), ...saved };
    }
    const made = around.nested(known);
    findings.push(...made.findings);
    if (made.pipeline !== undefined) pipelines.set(key, made.pipeline);
    return { kind: "run", name, pipeline: key, ...inputOf(known, roots), ...saved, saveContext };
  });
  const last = steps.at(-1);
  const output = last === undefined ? undefined : outputOf(last);
  const state = stepsState({ steps: compiled, ...(output === undefined ? {} : { output }) });
  const locate = (problem: Problem): FindingAt => locateInSteps(steps, problem);
  findings.push(...(state.spec.problems ?? []).map((problem) => findingOf(problem, locate(problem))));
  return { state, pipelines, findings, locate };
}

/** The fields of an import's input; a text is its task. */
function inputOf({ step: { fields } }: KnownStep, roots: TemplateRoots): { readonly input?: JsonObject } {
  const { input } = fields;
  if (input === undefined) return {};
  return { input: isJsonObject(input) ? input : { task: stateTemplates(input, roots) } };
}

/** A step of an agent as a pipeline of its own, which runs as a child. */
function agentPipeline(
  document: FlujoDocument,
  known: KnownStep,
  agent: Agent,
  { id, roots }: { readonly id: string; readonly roots: TemplateRoots },
): { readonly pipeline: AnyPipeline; readonly findings: readonly Finding[] } {
  const { state, findings, locate } = stageOf(document, known, agent, roots);
  const name = idFor(known.step.name);
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
  const others = problems.slice(own).map((problem) => findingOf(problem, locate(inState(problem))));
  return { pipeline: { id, spec }, findings: [...findings, ...others] };
}

/** A problem of a pipeline's state, by its path inside the state. */
export function inState(problem: Problem): Problem {
  return { ...problem, path: problem.path.replace(/^stages\.[\w-]+\.?/u, "") };
}

export function findingOf({ path, message, suggestion }: Problem, at: FindingAt): Finding {
  const subject = at.path.at(-1);
  const whole = subject === undefined ? message : `${JSON.stringify(String(subject))}: ${message}`;
  const hint = suggestion === undefined ? {} : { suggestion };
  return { severity: "error", rule: ruleOf({ path, message }), message: `${whole}.`, ...hint, ...at };
}

/** The fields of a step or an agent by the options of a stage. */
const FIELDS: ReadonlyMap<string, string> = new Map([
  ["turnCap", "turn_cap"],
  ["model", "model"],
  ["temperature", "temperature"],
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
  const [, index, option] = /^steps\[(\d+)\](?:\.(\w+))?/u.exec(path) ?? [];
  const step = steps[Number(index)]?.step ?? steps[0]?.step;
  if (step === undefined) return { path: [], what: "key" };
  if (option === "message") return { path: step.at("message") };
  if (option === "answer") return { path: step.at("input_schema") };
  return option === "name" ? { path: step.at("name") } : { path: step.path, what: "key" };
}
