// A state machine as the definition of a pipeline.

import { type AnyPipeline, type AnyState, fail, field, final, type Guard, isJson, type Problem } from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import { isObject } from "@sluice/core/runtime";
import { celGuards } from "../expressions/cel-guard.ts";
import type { CelTypes } from "../expressions/variables.ts";
import { type FindingAt, runInput } from "../format.ts";
import { outcomeOf } from "../kinds/ends.ts";
import { type OrchestratorFields, orchestratorOf, orchestratorPath } from "../kinds/orchestrator.ts";
import { problemFindings } from "../read/problem-finding.ts";
import type { Finding } from "../read/shape.ts";
import { ANY, checkMachine, handlesSuccess, isRouted, reachedStates } from "./check.ts";
import { type CompiledPart, compileState } from "./compile-steps.ts";
import { stateOf, typesOf, variablesOf } from "./conditions.ts";
import { type Layout, layOut, type PlacedState, type PlacedStep } from "./layout.ts";
import { pauseFindings } from "./pauses.ts";
import type { FlujoDocument, FlujoMachine } from "./read-document.ts";
import { readsInput, stageRoots, stateTemplates } from "./templates.ts";

/** What the machines of a document share. */
export interface Workflow {
  readonly document: FlujoDocument;
  /** By alias. */
  readonly imports: ReadonlyMap<string, AnyPipeline>;
}
export interface CompiledMachine {
  readonly definition: PipelineDefinition;
  readonly findings: readonly Finding[];
  /** Where in the document a problem of the definition is. */
  locate(problem: Problem): FindingAt;
}

/** `orchestrator` is of the document, whose states it chooses; machines inside of it have their own transitions. */
export function compileMachine(
  workflow: Workflow,
  machine: FlujoMachine,
  id: string,
  orchestrator?: OrchestratorFields,
): CompiledMachine {
  const isOrchestrated = orchestrator !== undefined;
  const reached = isOrchestrated
    ? new Set([...machine.states.keys(), ...machine.ends.map(({ name }) => name)])
    : reachedStates(machine);
  const layout = layOut(workflow.document, machine, reached, id);
  const findings: Finding[] = [...checkMachine(machine, workflow.document.findings, orchestrator), ...layout.findings];
  const stages: Record<string, AnyState> = {};
  const pipelines: Record<string, AnyPipeline> = {};
  const parts = new Map<string, CompiledPart>();
  for (const state of layout.states) {
    const part = compileState(workflow.document, layout, state, (step) => nestedPipeline(workflow, step));
    parts.set(state.id, part);
    stages[state.id] = part.state;
    for (const [key, pipeline] of part.pipelines) pipelines[key] = pipeline;
    findings.push(...part.findings);
  }
  for (const { name } of machine.ends)
    if (reached.has(name)) stages[layout.idOf(name)] = final(outcomeOf(name, machine.states.get(name)?.outcome));
  const rows = isOrchestrated ? NO_ROWS : rowsOf(workflow.document, machine, layout, reached);
  findings.push(...rows.findings, ...pauseFindings(machine, layout, ({ id: state }) => parts.get(state)?.pipelines));
  const definition: PipelineDefinition = {
    id,
    input: runInput,
    stages,
    initial: machine.start === undefined ? "" : layout.idOf(machine.start),
    ...(isOrchestrated
      ? { orchestrator: orchestratorOf(orchestrator, { template: runTemplates, stateId: layout.idOf }) }
      : { transitions: rows.rows.map(({ row }) => row) }),
    pipelines,
  };
  return {
    definition,
    findings,
    locate: (problem) =>
      locateOrchestrator(workflow.document, problem) ??
      locateInStates(machine, layout, parts, problem) ??
      locateInRows(machine, rows.rows, problem) ?? { path: machine.path, what: "key" },
  };
}

const NO_ROWS: ReturnType<typeof rowsOf> = { rows: [], findings: [] };

/** The templates of the orchestrator, which reads no step. */
function runTemplates(text: string): string {
  return stateTemplates(
    text,
    stageRoots(() => undefined),
  );
}

function locateOrchestrator(document: FlujoDocument, { path }: Problem): FindingAt | undefined {
  const at = orchestratorPath(path);
  return at === undefined ? undefined : { path: document.at(...at), what: at.length === 1 ? "key" : "value" };
}

/** The pipeline of an import or of a machine inside a state. */
function nestedPipeline(
  workflow: Workflow,
  { use, pipeline: key }: PlacedStep,
): { readonly pipeline?: AnyPipeline; readonly findings: readonly Finding[] } {
  if (use.kind === "import") {
    const pipeline = workflow.imports.get(use.alias);
    return pipeline === undefined ? { findings: [] } : { pipeline, findings: [] };
  }
  if (use.kind !== "machine") return { findings: [] };
  const { definition, findings, locate } = compileMachine(workflow, use.machine, key);
  if (findings.some(({ severity }) => severity === "error")) return { findings };
  const { spec, problems } = compilePipeline(definition);
  return { pipeline: { id: spec.id, spec }, findings: [...findings, ...problemFindings(problems, locate)] };
}

type Row = NonNullable<PipelineDefinition["transitions"]>[number];
/** A row; `at` is its index in the document. */
interface PlacedRow {
  readonly row: Row;
  readonly at?: number;
}

/** The rows of the machine. Those of states that are never entered are left out. */
function rowsOf(
  document: FlujoDocument,
  machine: FlujoMachine,
  layout: Layout,
  reached: ReadonlySet<string>,
): { readonly rows: readonly PlacedRow[]; readonly findings: readonly Finding[] } {
  const { states, idOf } = layout;
  const read = variablesOf(layout);
  const celGuard = celGuards();
  const types = new Map<string, CelTypes>();
  const findings: Finding[] = [];
  const rows: PlacedRow[] = [];
  const input = inputOf(machine, states);
  for (const [at, { from, on, when, to }] of machine.transitions.entries()) {
    const state = states.find(({ name }) => name === from);
    let guard: Guard | undefined;
    if (when !== undefined) {
      const known = types.get(`${on} ${from}`) ?? typesOf(layout, { on, from: state }, document.fields.context_schema);
      types.set(`${on} ${from}`, known);
      const made = celGuard(when, known, read);
      guard = made.guard;
      for (const { rule, message, suggestion, offset, length } of made.problems ?? []) {
        const path = machine.at("transitions", at, "when");
        findings.push({ severity: "error", rule, message: sentence(message), suggestion, path, offset, length });
      }
    }
    if ((from !== ANY && state === undefined) || !reached.has(to)) continue;
    const condition = guard === undefined ? {} : { when: guard };
    rows.push({ row: { from: from === ANY ? ANY : idOf(from), on, to: idOf(to), input, ...condition }, at });
  }
  for (const { name, id } of states) {
    if (handlesSuccess(machine, name) || isRouted(machine, name)) continue;
    rows.push({ row: { from: id, on: "success", to: fail(`${name} completed, and no transition leads on from it`) } });
  }
  return { rows, findings };
}

/** The input of a state: what the state before it gave and, where it may be read, the last answer of a person. */
function inputOf(machine: FlujoMachine, states: readonly PlacedState[]): NonNullable<Row["input"]> {
  const passesAnswer = readsAnswer(machine);
  const questions = new Map(states.map(({ id, steps }) => [id, steps.findLast(({ use }) => use.kind === "ask")?.key]));
  return (result, ctx) => {
    // The answer to a pause is in the input of every state that its row leads to.
    if (result.status === "paused") return { previous_step: field(result.request, "answer") ?? null };
    const previous = { previous_step: result.status === "completed" && isJson(result.output) ? result.output : null };
    if (!passesAnswer) return previous;
    const question = questions.get(stateOf(result));
    const added = result.status === "completed" ? result.adds?.upstream : undefined;
    const given = question === undefined ? undefined : added?.[question];
    const before = isObject(ctx.input) && isJson(ctx.input.answer) ? ctx.input.answer : null;
    return { ...previous, answer: given ?? before };
  };
}

/** Whether a state of the machine may read the last answer: in a template, or in a file that it imports. */
function readsAnswer({ states }: FlujoMachine): boolean {
  return [...states.values()].some(({ steps }) =>
    steps.some(
      ({ fields, machine }) =>
        fields.uses !== undefined ||
        (machine !== undefined && readsAnswer(machine)) ||
        [fields.prompt, fields.message, fields.input].some((text) => typeof text === "string" && readsInput(text)),
    ),
  );
}

function sentence(message: string): string {
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`;
}

function locateInStates(
  machine: FlujoMachine,
  { states, idOf }: Layout,
  parts: ReadonlyMap<string, CompiledPart>,
  problem: Problem,
): FindingAt | undefined {
  const { path } = problem;
  const [, id, rest = ""] = /^stages\.([\w-]+)\.?(.*)$/su.exec(path) ?? [];
  const part = id === undefined || rest === "" ? undefined : parts.get(id);
  if (part !== undefined) return part.locate({ ...problem, path: rest });
  const state = id === undefined ? undefined : [...machine.states.values()].find(({ name }) => idOf(name) === id);
  if (state !== undefined) return { path: state.path, what: "key" };
  const [, key, inside = ""] = /^pipelines\.([\w-]+)\.?(.*)$/su.exec(path) ?? [];
  const owner = states.find(({ steps }) => steps.some(({ pipeline }) => pipeline === key));
  if (key === undefined || owner === undefined) return undefined;
  return parts.get(owner.id)?.locateIn(key, { ...problem, path: inside });
}

function locateInRows(machine: FlujoMachine, rows: readonly PlacedRow[], { path }: Problem): FindingAt | undefined {
  const [, index, inRow = ""] = /^transitions\[(\d+)\](.*)$/su.exec(path) ?? [];
  const at = index === undefined ? undefined : rows[Number(index)]?.at;
  if (at !== undefined) return { path: machine.at("transitions", at, ...(inRow.startsWith(".to") ? ["to"] : [])) };
  if (path === "initial") return { path: machine.at("start_state") };
  return path === "transitions" ? { path: machine.at("transitions"), what: "key" } : undefined;
}
