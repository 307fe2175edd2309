// A walk of a pipeline with given outcomes: no model, no tool, no journal. Where it goes is decided by the machine alone.

import type { InterruptSpec, Json, JsonObject, PipelineSpec, RowSpec, StageResult } from "@sluice/core";
import {
  apply,
  type Child,
  type ChildEnd,
  type Effect,
  initialState,
  type LegalEvent,
  legalEvents,
  type MachineEnd,
  type MachineInput,
  type MachineState,
  type NextDecision,
  transition,
} from "@sluice/core/machine";
import { executionIdOf, issuesText, NO_USAGE, readPathScope } from "@sluice/core/runtime";
import { nameOf } from "../finding.ts";
import { ANY_EVENT, type MoveTable, moveTable, triggerKey } from "../moves.ts";
import type { ChildOutcome, Outcome } from "./outcomes.ts";

export interface Simulation {
  readonly hops: readonly SimulatedHop[];
  /** Absent if the outcomes were used up before, or one does not fit. */
  readonly end?: MachineEnd;
  /** Where the run waits, if it has not ended. */
  readonly waits?: SimulatedWait;
  /** The outcome that does not fit, from 0, and why. */
  readonly fault?: { readonly outcome: number; readonly message: string };
  /** The context at the end. */
  readonly context: JsonObject;
}
/** One decision of the machine. */
export interface SimulatedHop {
  /** The outcome that led to it, from 0; absent at the start. */
  readonly outcome?: number;
  /** The state that was left or asked to move; absent at the start. */
  readonly state?: string;
  /** What happened, in words. */
  readonly what: string;
  readonly rows: readonly DecidedRow[];
  /** What followed, in words. */
  readonly follows: string;
  readonly trace: NextDecision;
}
/** A row that was a candidate. */
export interface DecidedRow {
  /** From 0. */
  readonly row: number;
  readonly label?: string;
  /** What it waits for: `success`, or `event READY`. */
  readonly on: string;
  readonly when?: string;
  readonly approval: boolean;
  readonly verdict: "fired" | "did not fire" | "not asked";
  readonly why: string;
}
export interface SimulatedWait {
  readonly for: "outcome" | "approval" | "children";
  readonly state: string;
  /** Of a state that sends events. */
  readonly events: readonly LegalEvent[];
  /** Of a fan-out. */
  readonly children: readonly string[];
}

export interface SimulateOptions {
  /** The run's input. Default: `{}`. */
  readonly input?: Json;
}

/**
 * Walks a pipeline with given outcomes, one after another, and keeps every decision with the rows that were candidates. Runs the
 * conditions, routes and schemas of the pipeline and nothing else. Ends where the run ends, where an outcome does not fit, or
 * where there are no more.
 */
export async function simulate(
  spec: PipelineSpec,
  outcomes: readonly Outcome[],
  { input = {} }: SimulateOptions = {},
): Promise<Simulation> {
  const walk: Walk = {
    spec,
    moves: moveTable(spec),
    machine: initialState(spec, { input }),
    hops: [],
    asked: undefined,
    queued: [],
  };
  let end = await step(walk, { kind: "start" }, { what: "the run starts" });
  for (const [index, outcome] of outcomes.entries()) {
    const fault = end === undefined ? await happen(walk, outcome, index) : { message: "the run has already ended" };
    if (fault !== undefined && "message" in fault) return ended(walk, end, { outcome: index, message: fault.message });
    end = fault?.end;
  }
  return ended(walk, end, undefined);
}

interface Walk {
  readonly spec: PipelineSpec;
  readonly moves: MoveTable;
  readonly machine: MachineState;
  readonly hops: SimulatedHop[];
  /** The transition that a person has to approve. */
  asked:
    | {
        readonly of: Extract<MachineInput, { readonly kind: "event" | "result" | "children" }>;
        readonly decision: NextDecision;
      }
    | undefined;
  /** Interrupts that a change has triggered and that are not handled yet. */
  queued: readonly { readonly name: string; readonly path: string }[];
  children?: readonly Child[];
}
/** Why an outcome does not fit, or how the run ended. */
type Happened = { readonly message: string } | { readonly end: MachineEnd | undefined } | undefined;

function ended(walk: Walk, end: MachineEnd | undefined, fault: Simulation["fault"]): Simulation {
  const { hops, machine } = walk;
  const waits = end === undefined ? waitOf(walk) : undefined;
  return {
    hops,
    context: machine.context,
    ...(end === undefined ? {} : { end }),
    ...(waits === undefined ? {} : { waits }),
    ...(fault === undefined ? {} : { fault }),
  };
}

function waitOf({ spec, machine, asked, children = [] }: Walk): SimulatedWait {
  const state = machine.at?.state ?? spec.initial;
  const none = { state, events: [], children: [] };
  if (asked !== undefined) return { ...none, for: "approval" };
  if (machine.pending !== undefined) return { ...none, for: "children", children: children.map(({ key }) => key) };
  return { ...none, for: "outcome", events: legalEvents(spec, state) };
}

async function happen(walk: Walk, outcome: Outcome, index: number): Promise<Happened> {
  const { spec, machine, asked } = walk;
  const state = machine.at?.state ?? "";
  if (outcome.state !== undefined && outcome.state !== state && outcome.state !== nameOf(spec, state))
    return { message: `it is for ${outcome.state}, and the run is in ${nameOf(spec, state)}` };
  if ("approve" in outcome) {
    if (asked === undefined) return { message: "no transition waits for an approval" };
    const { approve: approved, reason } = outcome;
    const input: MachineInput = { kind: "answer", ...asked, approved, ...(reason === undefined ? {} : { reason }) };
    const what = approved ? "approved" : `not approved${reason === undefined ? "" : `: ${reason}`}`;
    return { end: await step(walk, input, { outcome: index, state, what }) };
  }
  if (asked !== undefined) return { message: "a transition waits for an approval" };
  if ("children" in outcome) return await join(walk, outcome.children, index, state);
  if (machine.pending !== undefined)
    return { message: `the children ${(walk.children ?? []).map(({ key }) => key).join(", ")} have not ended` };
  if ("interrupt" in outcome) return await change(walk, outcome.interrupt, index, state);
  const input = "event" in outcome ? eventOf(walk, outcome) : await resultOf(walk, outcome, state);
  if ("message" in input) return input;
  return { end: await step(walk, input, { outcome: index, state, what: whatOf(outcome) }) };
}

type WorkOutcome = Exclude<
  Outcome,
  { readonly approve: boolean } | { readonly interrupt: string } | { readonly children: object }
>;

function whatOf(outcome: WorkOutcome): string {
  if ("event" in outcome)
    return `event ${outcome.event}${outcome.data === undefined ? "" : ` ${JSON.stringify(outcome.data)}`}`;
  if ("failure" in outcome) return `failed (${outcome.failure})`;
  if ("skipped" in outcome) return "skipped";
  if ("pause" in outcome) return `paused, answered ${JSON.stringify(outcome.pause)}`;
  return `completed with ${JSON.stringify(outcome.output)}`;
}

function eventOf(
  { spec, machine }: Walk,
  { event, data = {} }: Extract<Outcome, { readonly event: string }>,
): MachineInput | { readonly message: string } {
  const state = machine.at?.state ?? "";
  if (spec.states.get(state)?.completesByEvents !== true)
    return { message: `${nameOf(spec, state)} completes with an output, not by events` };
  return { kind: "event", event, data };
}

async function resultOf(
  { spec, machine }: Walk,
  outcome: Exclude<WorkOutcome, { readonly event: string }>,
  state: string,
): Promise<MachineInput | { readonly message: string }> {
  const base = { ...NOTHING, executionId: executionIdOf(state, machine.at?.visit ?? 1) };
  if ("output" in outcome) {
    const of = spec.states.get(state);
    if (of?.completesByEvents === true)
      return { message: `${nameOf(spec, state)} completes by events, not with an output` };
    const verdict = await of?.output?.check(outcome.output);
    if (verdict?.ok === false)
      return { message: `the output does not fit the schema of ${nameOf(spec, state)}: ${issuesText(verdict.issues)}` };
    const adds = outcome.context === undefined ? {} : { adds: { context: outcome.context } };
    return { kind: "result", result: { ...base, status: "completed", output: outcome.output, ...adds } };
  }
  return { kind: "result", result: { ...base, ...unfinished(outcome) } };
}

type Unfinished =
  StageResult<Json> extends infer R
    ? R extends unknown
      ? Omit<R, keyof typeof NOTHING | "executionId">
      : never
    : never;

function unfinished(
  outcome: Extract<Outcome, { readonly failure: string } | { readonly skipped: true } | { readonly pause: Json }>,
): Unfinished {
  if ("failure" in outcome)
    return { status: "failed", code: outcome.failure, message: outcome.message ?? "as the simulation says" };
  return "skipped" in outcome ? { status: "skipped" } : { status: "paused", request: { answer: outcome.pause } };
}

const NOTHING = { attempts: 1, turns: 0, usage: NO_USAGE, ms: 0 } as const;

async function join(
  walk: Walk,
  given: Readonly<Record<string, ChildOutcome>>,
  index: number,
  state: string,
): Promise<Happened> {
  if (walk.machine.pending === undefined) return { message: "no children are running" };
  const children = walk.children ?? [];
  const unknown = Object.keys(given).find((key) => !children.some((child) => child.key === key));
  if (unknown !== undefined)
    return {
      message: `there is no child ${JSON.stringify(unknown)}; there are ${children.map(({ key }) => key).join(", ")}`,
    };
  const ended: ChildEnd[] = [];
  for (const { key } of children) {
    const outcome = Object.hasOwn(given, key) ? given[key] : undefined;
    if (outcome === undefined) return { message: `it does not say how the child ${key} ends` };
    ended.push(childEnd(key, outcome));
  }
  const what = ended.map(({ key, status }) => `${key} ${status}`).join(", ");
  return { end: await step(walk, { kind: "children", ended }, { outcome: index, state, what }) };
}

function childEnd(key: string, outcome: ChildOutcome): ChildEnd {
  if ("output" in outcome) return { key, turns: 0, status: "completed", output: outcome.output };
  if ("skipped" in outcome) return { key, turns: 0, status: "skipped" };
  return {
    key,
    turns: 0,
    status: "failed",
    code: outcome.failure,
    message: outcome.message ?? "as the simulation says",
  };
}

/** Starts the interrupts that a changed file matches, one after another. */
async function change(walk: Walk, path: string, index: number, state: string): Promise<Happened> {
  const { spec, machine } = walk;
  const handled = new Set(machine.suspended.map(({ interrupt }) => interrupt));
  const matching = spec.interrupts.filter((interrupt) => !handled.has(interrupt.name) && matches(interrupt, path));
  if (matching.length === 0) return { message: `no interrupt starts by a change of ${path}` };
  walk.queued = [...matching.map(({ name }) => ({ name, path })), ...walk.queued];
  return { end: await nextInterrupt(walk, { outcome: index, state }) };
}

function matches({ files }: InterruptSpec, path: string): boolean {
  const scope = readPathScope(files);
  // A pipeline with another pattern is refused when it is defined.
  return !scope.ok || scope.value(path.replace(/^\.\//u, ""));
}

async function nextInterrupt(
  walk: Walk,
  about: { readonly outcome?: number; readonly state: string },
): Promise<MachineEnd | undefined> {
  const [next, ...rest] = walk.queued;
  if (next === undefined) return undefined;
  walk.queued = rest;
  return await step(
    walk,
    { kind: "interrupt", ...next },
    { ...about, what: `${next.path} changed: interrupt ${next.name}` },
  );
}

/** Asks the machine, and does what it says until something has to happen. */
async function step(
  walk: Walk,
  input: MachineInput,
  about: Pick<SimulatedHop, "outcome" | "state" | "what">,
): Promise<MachineEnd | undefined> {
  const { spec, machine, hops } = walk;
  const { effect, patch, trace } = await transition(spec, machine, input);
  const rows = rowsOf(walk.moves, about.state, input, trace);
  // The rows say why already.
  const isExplained = rows.length > 0 && rows.every(({ verdict }) => verdict === "did not fire");
  const stays = effect.kind === "stay" && isExplained ? `stays in ${nameOf(spec, about.state ?? "")}` : undefined;
  hops.push({
    ...about,
    rows,
    follows: stays ?? followsOf(spec, machine, effect),
    trace,
  });
  apply(machine, patch);
  walk.asked = undefined;
  if (patch.unwind === true) walk.queued = [];
  switch (effect.kind) {
    case "end":
      return effect.end;
    case "approve":
      if (input.kind === "event" || input.kind === "result" || input.kind === "children")
        walk.asked = { of: input, decision: effect.decision };
      return undefined;
    case "fanOut":
      walk.children = effect.children;
      return undefined;
    case "return":
      return await nextInterrupt(walk, { state: machine.at?.state ?? "" });
    case "enter":
    case "stay":
      return undefined;
  }
}

function followsOf(spec: PipelineSpec, { suspended }: MachineState, effect: Effect): string {
  switch (effect.kind) {
    case "enter":
      return `enters ${nameOf(spec, effect.state)}`;
    case "fanOut":
      return `runs ${effect.children.map(({ key }) => key).join(" and ")}`;
    case "end":
      return endWords(spec, effect.end);
    case "stay":
      return `stays: ${effect.reason}`;
    case "approve":
      return `asks a person${effect.message === undefined ? "" : `: ${effect.message}`} (${effect.from} to ${effect.to})`;
    case "return":
      return `continues in ${nameOf(spec, suspended.at(-1)?.at.state ?? "")}`;
  }
}

export function endWords(spec: PipelineSpec, end: MachineEnd): string {
  const where = end.state === undefined ? "" : ` in ${nameOf(spec, end.state)}`;
  if (end.status === "completed") return `the run completes${where}`;
  if (end.status === "cancelled") return `the run is cancelled${where}: ${end.reason}`;
  return `the run fails${where} (${end.code}): ${end.message}`;
}

/** The rows that were candidates, in their order. */
function rowsOf(
  moves: MoveTable,
  state: string | undefined,
  input: MachineInput,
  trace: NextDecision,
): readonly DecidedRow[] {
  const of = input.kind === "answer" ? input.of : input;
  if (state === undefined || of.kind === "start" || of.kind === "interrupt" || of.kind === "cancelled") return [];
  const isByTable =
    trace.by === "table" || trace.by === "event" || trace.by === "safe_next" || trace.rejectedRows !== undefined;
  if (!isByTable) return [];
  const { rejectedRows = [], row: fired } = trace;
  const reasons = new Map(rejectedRows.map(({ row, why }) => [row, why]));
  const isOf = ({ on }: RowSpec): boolean => {
    if (of.kind !== "event") return typeof on === "string";
    return typeof on !== "string" && (trace.by === "safe_next" ? on.event === ANY_EVENT : on.event === of.event);
  };
  return moves.of(state).flatMap((move): readonly DecidedRow[] => {
    const { index, row } = move;
    if (!isOf(row)) return [];
    const { label, when, approval } = row;
    const facts = {
      row: index,
      on: triggerKey(move),
      approval: approval !== undefined,
      ...(label === undefined ? {} : { label }),
      ...(when === undefined ? {} : { when: when.text }),
    };
    if (index === fired)
      return [{ ...facts, verdict: "fired", why: when === undefined ? "it has no condition" : "its condition holds" }];
    const why = reasons.get(index);
    if (why !== undefined) return [{ ...facts, verdict: "did not fire", why }];
    const after = fired !== undefined && index > fired;
    return [
      {
        ...facts,
        verdict: after ? "not asked" : "did not fire",
        why: after ? "an earlier row fired" : "not recorded: more than 20 rows did not fire",
      },
    ];
  });
}
