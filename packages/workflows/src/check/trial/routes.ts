// What the routes of a pipeline say about what happened in a recorded run.

import {
  field,
  type Json,
  type JsonObject,
  type PipelineSpec,
  parseJson,
  type RunJournal,
  type StageResult,
} from "@sluice/core";
import {
  apply,
  decide,
  initialState,
  type MachineInput,
  type MachineState,
  type NextDecision,
  type OutputChange,
  type ResolvedChoice,
} from "@sluice/core/machine";
import { isDecision, parseAttemptStep, parseSiblingId, readLeft, textField } from "@sluice/core/runtime";
import { nameOf } from "../finding.ts";

/** A recorded decision that would be another one now. */
export interface TrialRoute {
  readonly runId: string;
  readonly executionId: string;
  readonly state: string;
  /** How the state ended, or the event that it sent. */
  readonly on: string;
  readonly was: string;
  readonly now: string;
}

export interface TriedRoutes {
  readonly routes: readonly TrialRoute[];
  /** Decisions that were made again. */
  readonly decisions: number;
  /** States of the run that the pipeline lacks. */
  readonly unknownStates: readonly string[];
}

/**
 * Decides again what follows each result and each event of a run, with the context and the outputs that the run had there. The
 * walk stays on the recorded path, whatever is decided now. `journals` are the run's own and those of its children.
 */
export async function tryRoutes(
  spec: PipelineSpec,
  journals: readonly RunJournal[],
  input: Json,
): Promise<TriedRoutes> {
  const tried: Trying = { spec, journals, routes: [], decisions: 0, unknown: new Set() };
  const root = journals.find(({ parentId }) => parentId === undefined);
  if (root !== undefined) await walk(tried, root, initialState(spec, { input, id: root.runId }));
  return { routes: tried.routes, decisions: tried.decisions, unknownStates: [...tried.unknown] };
}

interface Trying {
  readonly spec: PipelineSpec;
  readonly journals: readonly RunJournal[];
  readonly routes: TrialRoute[];
  decisions: number;
  readonly unknown: Set<string>;
}

async function walk(tried: Trying, journal: RunJournal, machine: MachineState): Promise<void> {
  let waiting: Waiting | undefined;
  const { runId } = journal;
  for (const { phase, stepId, value } of journal.records) {
    if (phase !== "done") continue;
    if (stepId.startsWith("fan-")) await join(tried, journal, machine, stepId);
    const step = parseAttemptStep(stepId);
    if (step === undefined) continue;
    const { executionId, state } = step;
    at(machine, state, step.visit);
    if (step.kind === "accept" && step.part === "open") {
      const decision = decisionIn(value);
      // An event that was accepted is decided when its state is left.
      if (decision?.event !== undefined && decision.choice.kind === "stay")
        await compare(tried, machine, { runId, executionId, state }, eventOf(decision), decision);
    } else if (step.kind === "interrupt") {
      interrupt(machine, value);
    } else if (step.kind === "leave") {
      const left = readLeft(value);
      if (left?.kind !== "left" || left.next === null || left.interrupted === true) continue;
      const { result, next } = left;
      const input = next.event === undefined ? resultInput(result) : eventOf(next);
      if (result.status !== "cancelled") await compare(tried, machine, { runId, executionId, state }, input, next);
      if (next.approval === undefined) move(machine, input, next);
      else waiting = { input };
    } else if (step.kind === "approval" && waiting !== undefined) {
      const decision = decisionIn(value);
      if (decision === undefined || decision.approval !== undefined) continue;
      move(machine, waiting.input, decision);
      waiting = undefined;
    }
  }
}

/** A route that waits for a person. */
interface Waiting {
  readonly input: Decidable;
}
type Decidable = Extract<MachineInput, { readonly kind: "event" | "result" }>;

function decisionIn(value: string): NextDecision | undefined {
  const read = parseJson(value);
  const decision = read.ok ? field(read.value, "decision") : undefined;
  return decision !== undefined && isDecision(decision) ? decision : undefined;
}

function eventOf({ event = "", context = {} }: NextDecision): Decidable {
  return { kind: "event", event, data: context };
}

function resultInput(result: StageResult<Json>): Decidable {
  return { kind: "result", result };
}

/** The state that works now. The journal has it, whatever the pipeline says. */
function at(machine: MachineState, state: string, visit: number): void {
  if (machine.at?.state === state && machine.at.visit === visit) return;
  const { input = null } = machine.at?.state === state ? machine.at : {};
  machine.at = { state, input, visit };
}

async function compare(
  tried: Trying,
  machine: MachineState,
  place: Pick<TrialRoute, "runId" | "executionId" | "state">,
  input: Decidable,
  was: NextDecision,
): Promise<void> {
  const { spec } = tried;
  if (!spec.states.has(place.state)) {
    tried.unknown.add(place.state);
    return;
  }
  tried.decisions += 1;
  const now = await decide(spec, machine, input);
  const [before, after] = [words(spec, was), words(spec, now)];
  if (before === after) return;
  const on = input.kind === "event" ? `event ${input.event}` : input.result.status;
  tried.routes.push({ ...place, on, was: before, now: after });
}

function words(spec: PipelineSpec, decision: NextDecision): string {
  const asks = decision.approval === undefined && decision.approved === undefined ? "" : ", with an approval";
  return `${choiceWords(spec, decision.choice)}${asks}`;
}

function choiceWords(spec: PipelineSpec, choice: ResolvedChoice): string {
  switch (choice.kind) {
    case "to":
      return nameOf(spec, choice.state);
    case "fanOut": {
      const children = choice.siblings.map((child) =>
        child.kind === undefined ? (child.key ?? child.state) : child.key,
      );
      return `${children.join(" and ")}, then ${nameOf(spec, choice.join)}`;
    }
    case "stay":
      return "refused";
    case "return":
      return "back to the interrupted state";
    case "done":
      return "a completed end";
    case "fail":
      return "a failed end";
    case "cancel":
      return "a cancelled end";
  }
}

/** Adds what a decision of the run added. */
function move(machine: MachineState, input: Decidable, { choice, context }: NextDecision): void {
  const outputs: OutputChange[] = [];
  const state = machine.at?.state ?? "";
  let added: JsonObject | undefined = context;
  if (input.kind === "event") outputs.push({ state, output: { event: input.event, data: input.data } });
  else if (input.result.status === "completed") {
    const { adds, output } = input.result;
    outputs.push(...Object.entries(adds?.upstream ?? {}).map(([part, of]) => ({ state: part, output: of })));
    outputs.push({ state, output });
    added ??= adds?.context;
  }
  const set = choice.kind === "to" ? choice.context : undefined;
  const isReturn = choice.kind === "return" && machine.suspended.length > 0;
  apply(machine, {
    outputs,
    ...(isReturn ? { resume: true } : { unwind: true }),
    ...(added === undefined && set === undefined ? {} : { context: { ...added, ...set } }),
    ...(choice.kind === "to" ? { enter: { state: choice.state, input: choice.input } } : {}),
  });
}

/** The handler of an interrupt is entered, and the state waits. */
function interrupt(machine: MachineState, value: string): void {
  const read = parseJson(value);
  if (!read.ok || !isDecision(read.value) || read.value.choice.kind !== "to") return;
  const { state, input } = read.value.choice;
  apply(machine, { suspend: { interrupt: textField(input, "interrupt") ?? "" }, enter: { state, input } });
}

/** Walks the children of a fan-out that was recorded here, and adds their outputs. */
async function join(tried: Trying, { runId }: RunJournal, machine: MachineState, stepId: string): Promise<void> {
  const outputs: OutputChange[] = [];
  for (const child of tried.journals) {
    const of = parseSiblingId(child.runId);
    if (of?.parentId !== runId || of.fanOut !== stepId) continue;
    const { end } = child;
    const output =
      end?.status === "completed"
        ? (field(end.value, "output") ?? field(field(end.value, "result"), "output"))
        : undefined;
    if (output !== undefined) outputs.push({ state: of.key, output });
    // Only a child of the same pipeline has its states.
    if (isOfThis(tried.spec, child)) await walk(tried, child, { ...machine, counts: new Map(machine.counts) });
  }
  apply(machine, { outputs });
}

function isOfThis(spec: PipelineSpec, { records }: RunJournal): boolean {
  const states = records.flatMap(({ stepId }) => parseAttemptStep(stepId)?.state ?? []);
  return states.length > 0 && states.every((state) => spec.states.has(state));
}
