// Flujo's state machines, and files that are lists of its steps, as pipelines.

import {
  type AnyPipeline,
  type AnyState,
  fail,
  final,
  type Guard,
  type GuardScope,
  type Problem,
  type RunLimits,
} from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import { celGuard } from "../expressions/cel-guard.ts";
import type { FindingAt, WorkflowCompilation, WorkflowFormat, WorkflowReading, WorkflowReference } from "../format.ts";
import { idFor, idsFor } from "../read/names.ts";
import type { Finding } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { runInput } from "../run-input.ts";
import { ANY, checkMachine, handlesSuccess, outcomeOf, reachedStates } from "./check.ts";
import { type CompiledPart, findingOf, stageOf, stepsOf } from "./compile-steps.ts";
import { type StateSteps, typesOf, variablesOf } from "./conditions.ts";
import { type FlujoDocument, type FlujoMachine, type FlujoStep, isFlujo, readDocument } from "./read-document.ts";
import type { RunCaps } from "./schema.ts";
import { type KnownStep, knowStep } from "./step-kinds.ts";
import { childRoots, stepsRead, type TemplateRoots } from "./templates.ts";

/** The format of documents with `kind: StateMachine` or `steps`. */
export const flujo: WorkflowFormat = { name: "flujo", recognizes: isFlujo, read };

function read(source: SourceFile): WorkflowReading {
  const document = readDocument(source.value);
  const { body } = document;
  const name = document.name ?? ("machine" in body ? body.machine.name : undefined) ?? nameOfFile(source.file);
  const references = Object.entries(document.fields.imports ?? {}).map(
    ([alias, path]): WorkflowReference => ({ name: relative(path), path: document.at("imports", alias) }),
  );
  return {
    id: idFor(name),
    findings: document.findings,
    references,
    compile: (workflows) => compileDocument(document, idFor(name), workflows),
  };
}

function nameOfFile(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1).replace(/\.\w+$/u, "");
  return name === "" ? "workflow" : name;
}

/** The path of an import, which may be written without folders. */
function relative(path: string): string {
  return path.includes("/") ? path : `./${path}`;
}

function compileDocument(
  document: FlujoDocument,
  id: string,
  workflows: ReadonlyMap<string, AnyPipeline>,
): WorkflowCompilation {
  const imports = new Map<string, AnyPipeline>();
  for (const [alias, path] of Object.entries(document.fields.imports ?? {})) {
    const workflow = workflows.get(relative(path));
    if (workflow !== undefined) imports.set(alias, workflow);
  }
  const { body } = document;
  const machine = "machine" in body ? body.machine : sequence(document, body.steps);
  const compiled = compileMachine({ document, imports }, machine, id);
  const { context, limits } = document.fields;
  const definition: PipelineDefinition = {
    ...compiled.definition,
    ...(context === undefined ? {} : { context }),
    ...(limits === undefined ? {} : { limits: runLimits(limits) }),
  };
  return {
    definition,
    findings: compiled.findings,
    locate: (problem) => locateField(document, problem) ?? compiled.locate(problem),
  };
}

function runLimits({ max_hops, max_visits, max_tokens, max_cost_usd, timeout_s }: RunCaps): RunLimits {
  return {
    ...(max_hops === undefined ? {} : { maxHops: max_hops }),
    ...(max_visits === undefined ? {} : { maxVisits: max_visits }),
    ...(max_tokens === undefined ? {} : { maxTokens: max_tokens }),
    ...(max_cost_usd === undefined ? {} : { maxCostUsd: max_cost_usd }),
    ...(timeout_s === undefined ? {} : { timeoutMs: timeout_s * 1000 }),
  };
}

function locateField(document: FlujoDocument, { path }: Problem): FindingAt | undefined {
  const [name = ""] = path.split(".");
  if (name === "context" || name === "limits") return { path: document.at(name) };
  return name === "id" ? { path: document.at("name") } : undefined;
}

/** A list of steps as a machine: each step is a state, which leads to the next. */
function sequence(document: FlujoDocument, steps: readonly FlujoStep[]): FlujoMachine {
  const end = freeName(
    "done",
    steps.map(({ name }) => name),
  );
  const names = [...steps.map(({ name }) => name), end];
  const part = { path: document.at("steps"), at: (): readonly (string | number)[] => document.at("steps") };
  return {
    name: document.name,
    start: names[0],
    ends: [{ name: end, path: part.path }],
    states: new Map(steps.map((step) => [step.name, { name: step.name, steps: [step], path: step.path, at: step.at }])),
    names: new Set(names),
    transitions: steps.map(({ name }, index) => ({ from: name, on: "success", to: names[index + 1] ?? end })),
    ...part,
  };
}

function freeName(wanted: string, taken: readonly string[]): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!taken.includes(name)) return name;
  }
}

/** What the machines of a document share. */
interface Workflow {
  readonly document: FlujoDocument;
  readonly imports: ReadonlyMap<string, AnyPipeline>;
}
interface CompiledMachine {
  readonly definition: PipelineDefinition;
  readonly findings: readonly Finding[];
  locate(problem: Problem): FindingAt;
}

function compileMachine(workflow: Workflow, machine: FlujoMachine, id: string): CompiledMachine {
  const findings: Finding[] = [...checkMachine(machine)];
  const ended = new Map(machine.ends.map((end) => [end.name, end]));
  const ids = idsFor(new Set([...machine.states.keys(), ...ended.keys()]));
  const idOf = (name: string): string => ids.get(name) ?? name;
  const reached = reachedStates(machine);
  const states: (StateSteps & { readonly name: string })[] = [];
  for (const state of machine.states.values()) {
    if (ended.has(state.name)) continue;
    const known: KnownStep[] = [];
    for (const step of state.steps) {
      const one = knowStep(workflow.document, step);
      findings.push(...one.findings);
      if (one.known !== undefined) known.push(one.known);
    }
    if (reached.has(state.name)) states.push({ name: state.name, id: idOf(state.name), steps: known, isStage: false });
  }
  const stages = stagesAmong(states);
  const parts = new Map<string, CompiledPart>();
  const keys = pipelineKeys(states, id);
  for (const state of stages) {
    const part = compileState(workflow, state, stages, keys);
    findings.push(...part.findings);
    parts.set(state.id, part);
  }
  const finals = [...ended.keys()].filter((name) => reached.has(name));
  const rows = rowsOf(workflow, machine, { stages, idOf, reached }, findings);
  const stageStates: Record<string, AnyState> = {};
  for (const [stateId, { state }] of parts) stageStates[stateId] = state;
  for (const name of finals) stageStates[idOf(name)] = final(outcomeOf(name, machine.states.get(name)));
  const pipelines: Record<string, AnyPipeline> = {};
  for (const { pipelines: own } of parts.values()) for (const [key, pipeline] of own) pipelines[key] = pipeline;
  const definition: PipelineDefinition = {
    id,
    input: runInput,
    stages: stageStates,
    initial: machine.start === undefined ? "" : idOf(machine.start),
    transitions: rows.map(({ row }) => row),
    pipelines,
  };
  const locate = (problem: Problem): FindingAt => {
    const { path } = problem;
    const [, stateId = "", rest = ""] = /^stages\.([\w-]+)\.?(.*)$/su.exec(path) ?? [];
    const part = parts.get(stateId);
    if (part !== undefined && rest !== "") return part.locate({ ...problem, path: rest });
    const state = [...machine.states.values()].find(({ name }) => idOf(name) === stateId);
    if (state !== undefined) return { path: state.path, what: "key" };
    const [, index, inRow = ""] = /^transitions\[(\d+)\](.*)$/su.exec(path) ?? [];
    const at = index === undefined ? undefined : rows[Number(index)]?.at;
    if (at !== undefined)
      return { path: inRow.startsWith(".to") ? machine.at("transitions", at, "to") : machine.at("transitions", at) };
    const [, key = "", inside = ""] = /^pipelines\.([\w-]+)\.?(.*)$/su.exec(path) ?? [];
    const nested = keys.stepOf(key);
    if (nested !== undefined) return { path: nested.step.path, what: "key" };
    if (path === "initial") return { path: machine.at("start_state") };
    return inside === "" && path === "transitions"
      ? { path: machine.at("transitions"), what: "key" }
      : { path: machine.path, what: "key" };
  };
  return { definition, findings, locate };
}

/**
 * The states whose one step is an agent's become that stage. A step that writes to the context, or reads what only steps know,
 * stays a step.
 */
function stagesAmong<S extends StateSteps & { readonly name: string }>(states: readonly S[]): readonly S[] {
  const isPlain = ({ steps: [only, ...more] }: S): boolean =>
    only !== undefined && more.length === 0 && only.use.kind === "agent" && only.save.length === 0;
  let stages = new Set(states.filter(isPlain));
  for (;;) {
    const names = new Set([...stages].flatMap(({ steps }) => steps.map(({ step }) => step.name)));
    const readable = (state: S): boolean =>
      state.steps.every(
        ({ use }) => use.kind !== "agent" || stepsRead(use.agent.prompt).every((name) => names.has(name)),
      );
    const kept = new Set([...stages].filter(readable));
    if (kept.size === stages.size) break;
    stages = kept;
  }
  return states.map((state) => ({ ...state, isStage: stages.has(state) }));
}

interface PipelineKeys {
  keyOf(step: KnownStep): string;
  stepOf(key: string): KnownStep | undefined;
}

/** A key for each pipeline that a step runs: the alias of an import, else the names of the state and the step. */
function pipelineKeys(states: readonly (StateSteps & { readonly name: string })[], id: string): PipelineKeys {
  const names = new Map<KnownStep, string>();
  for (const state of states)
    for (const step of state.steps)
      names.set(step, step.use.kind === "import" ? step.use.alias : `${state.id}-${idFor(step.step.name)}`);
  // A pipeline cannot run another one of its own id.
  const ids = idsFor(new Set([id, ...names.values()]));
  const keyOf = (step: KnownStep): string => {
    const name = names.get(step) ?? "";
    const key = ids.get(name) ?? name;
    return key === id && step.use.kind !== "import" ? `${key.slice(0, 60)}-in` : key;
  };
  return { keyOf, stepOf: (key) => [...names.keys()].find((step) => keyOf(step) === key) };
}

function compileState(
  workflow: Workflow,
  state: StateSteps,
  states: readonly StateSteps[],
  keys: PipelineKeys,
): CompiledPart {
  const [only] = state.steps;
  if (state.isStage && only?.use.kind === "agent") {
    const stage = stageOf(workflow.document, only, only.use.agent, rootsOf(states));
    return { ...stage, pipelines: new Map() };
  }
  const outputKey = (name: string): string => stageOfStep(states, name)?.id ?? idFor(name);
  return stepsOf(workflow.document, state.steps, {
    roots: childRoots(outputKey),
    outputKey,
    pipelineKey: keys.keyOf,
    nested: (step) => nestedPipeline(workflow, step, keys.keyOf(step)),
  });
}

/** The state that is a step as a stage. */
function stageOfStep(states: readonly StateSteps[], name: string): StateSteps | undefined {
  return states.find(({ isStage, steps: [only] }) => isStage && only?.step.name === name);
}

/** Where a stage finds what its templates read. */
function rootsOf(states: readonly StateSteps[]): TemplateRoots {
  return {
    previousStep: "ctx.input.previous_step",
    answer: "ctx.input.answer",
    stepPath: (name) => {
      const state = stageOfStep(states, name);
      return state === undefined ? undefined : `ctx.upstream.${state.id}`;
    },
  };
}

function nestedPipeline(
  workflow: Workflow,
  { use, step }: KnownStep,
  id: string,
): { readonly pipeline?: AnyPipeline; readonly findings: readonly Finding[] } {
  if (use.kind === "import") {
    const pipeline = workflow.imports.get(use.alias);
    return pipeline === undefined ? { findings: [] } : { pipeline, findings: [] };
  }
  if (use.kind !== "machine") return { findings: [] };
  const compiled = compileMachine(workflow, use.machine, id);
  if (compiled.findings.some(({ severity }) => severity === "error")) return { findings: compiled.findings };
  const { spec, problems } = compilePipeline(compiled.definition);
  const found = problems.map((problem) => findingOf(problem, compiled.locate(problem)));
  return {
    pipeline: { id: spec.id, spec },
    findings: [
      ...compiled.findings,
      ...found.map((one) => ({ ...one, path: one.path.length === 0 ? step.path : one.path })),
    ],
  };
}

type Row = NonNullable<PipelineDefinition["transitions"]>[number];

/** The rows of the machine; `at` is the row in the document. */
function rowsOf(
  { document }: Workflow,
  machine: FlujoMachine,
  known: {
    readonly stages: readonly (StateSteps & { readonly name: string })[];
    readonly idOf: (name: string) => string;
    readonly reached: ReadonlySet<string>;
  },
  findings: Finding[],
): readonly { readonly row: Row; readonly at?: number }[] {
  const { stages, idOf, reached } = known;
  const read = variablesOf(stages);
  const rows: { readonly row: Row; readonly at?: number }[] = [];
  for (const [at, { from, on, when, to }] of machine.transitions.entries()) {
    const state = stages.find(({ name }) => name === from);
    let guard: Guard | undefined;
    if (when !== undefined) {
      const made = celGuard(when, typesOf(stages, { on, from: state }, document.fields.context_schema), read);
      guard = made.guard;
      for (const { rule, message, suggestion, offset, length } of made.problems ?? []) {
        const hint = suggestion === undefined ? {} : { suggestion };
        const path = machine.at("transitions", at, "when");
        findings.push({ severity: "error", rule, message: sentence(message), ...hint, path, offset, length });
      }
    }
    if ((from !== ANY && state === undefined) || !reached.has(to)) continue;
    const row: Row = { from: from === ANY ? ANY : idOf(from), on, to: idOf(to) };
    const passes = on === "success" ? { input: passOn } : {};
    rows.push({ row: { ...row, ...passes, ...(guard === undefined ? {} : { when: guard }) }, at });
  }
  for (const { name, id } of stages) {
    if (handlesSuccess(machine, name)) continue;
    rows.push({
      row: { from: id, on: "success", to: fail(`${name} completed, and no transition says what comes next`) },
    });
  }
  return rows;
}

/** The input of a state that follows another one. */
function passOn(result: GuardScope["result"]): { readonly previous_step: unknown } {
  return { previous_step: result.status === "completed" ? result.output : null };
}

function sentence(message: string): string {
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`;
}
