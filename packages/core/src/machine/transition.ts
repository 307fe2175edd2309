import { deepFreeze, isObject, type Json, type JsonObject, textField } from "../base/json.ts";
import type { Arrival, Failed, SiblingOutcome, StageResult } from "../definition/result.ts";
import type { InterruptSpec, PipelineSpec } from "../definition/spec.ts";
import type { Choosing } from "./chosen-route.ts";
import { decideEvent, decideNext, eventResult, type NextDecision } from "./decide-next.ts";
import { interruptedFeedback } from "./interrupted.ts";
import { choiceText, legalEvents } from "./legal-events.ts";
import {
  contextOf,
  countOf,
  enteredOf,
  executionIdOf,
  type Joined,
  MAX_VISITS,
  type MachineView,
  maxHopsOf,
  type Patch,
  type PendingFanOut,
  statesToVisit,
} from "./machine-state.ts";
import type { OutputChange } from "./outputs.ts";
import { childKeyOf, type FanOutChoice, type ResolvedChoice, resolveChoice } from "./resolve-choice.ts";
import { routeTargets } from "./route-targets.ts";
import { inputAt, type StartAt, startProblems } from "./start-at.ts";
import type { Child, ChildEnd, MachineEnd, MachineInput, MachineLimit, Transition } from "./transition-types.ts";

/** What stands for the name of an interrupt when a message interrupts a sleep; also the name of the message's signal. */
export const MESSAGE = "message";

/**
 * Decides what follows from what has happened. Changes nothing. Whatever routes, conditions and schemas do, the result is a valid
 * transition. It is `decide`, the only part that runs code of the pipeline, and then `follow`. Throws for an input that cannot
 * follow, such as a result before the start, a second start, and other children than those of the fan-out that is pending.
 */
export async function transition(spec: PipelineSpec, view: MachineView, input: MachineInput): Promise<Transition> {
  return follow(spec, view, input, await decide(spec, view, input));
}

/**
 * Asks the pipeline what comes next. A journal records the answer, since the code that gave it may change or differ. A promise only
 * where there is something to wait for, since most routes are not asynchronous. Throws for an input that cannot follow.
 */
export function decide(
  spec: PipelineSpec,
  view: MachineView,
  input: MachineInput,
): Promise<NextDecision> | NextDecision {
  checkInput(view, input);
  const mayReturn = view.suspended.length > 0;
  switch (input.kind) {
    case "start":
      return decideStart(spec, view.run.input, input.at);
    case "cancelled":
    case "interrupted":
      return byDefault(withoutDecision(view, input));
    case "result": {
      const { result, ctx = contextOf(view) } = input;
      const { state } = enteredOf(view);
      return decideNext(spec, state, deepFreeze(result), ctx, mayReturn, choosingOf(spec, view, state, input));
    }
    case "event": {
      const { ctx = contextOf(view) } = input;
      return decideEvent(spec, enteredOf(view).state, input, ctx, mayReturn);
    }
    case "children": {
      const { choice } = pendingOf(view);
      const failure = fanOutFailure(view, input.ended);
      if (failure === undefined) return byDefault({ kind: "to", state: choice.join, input: choice.input });
      if (choice.onFail !== undefined) return decideEntry(spec, choice.onFail, undefined);
      const { attempts: attempt } = failure;
      const ctx = contextOf(view, { attempt }, joinedAs(choice, input.ended));
      return decideNext(spec, enteredOf(view).state, failure, ctx, mayReturn);
    }
    case "interrupt": {
      const { name, path, files = [path] } = input;
      const { target } = interruptOf(spec, name);
      const entering = decideEntry(spec, target, { interrupt: name, files: [...files] });
      return entering.then((decision) => ({ ...decision, by: "interrupt" }));
    }
    case "message": {
      const { orchestrator: state } = spec;
      if (state === undefined) throw new Error("only an orchestrated run takes messages while it sleeps");
      const { state: asleep, visit } = enteredOf(view);
      const about = { asleep, executionId: executionIdOf(asleep, visit), until: input.until };
      return { by: "interrupt", choice: { kind: "to", state, input: about } };
    }
    case "answer":
      return answered(view, input);
  }
}

const KINDS: Readonly<Record<MachineInput["kind"], true>> = {
  start: true,
  result: true,
  children: true,
  cancelled: true,
  interrupted: true,
  event: true,
  interrupt: true,
  message: true,
  answer: true,
};
const RESULTS: Readonly<Record<StageResult<unknown>["status"], true>> = {
  completed: true,
  failed: true,
  cancelled: true,
  skipped: true,
  paused: true,
};
const ENDS: Readonly<Record<ChildEnd["status"], true>> = {
  completed: true,
  skipped: true,
  failed: true,
  cancelled: true,
};

/** Throws for an input that cannot follow: a program may give the machine anything. */
function checkInput(view: MachineView, input: MachineInput): void {
  refuseUnknown("the input", input, "kind", KINDS);
  if (input.kind === "cancelled") return;
  if (input.kind === "start") {
    if (view.at !== undefined) throw new Error("the run has started before");
    if (input.at !== undefined && !(isObject(input.at) && typeof input.at.state === "string"))
      throw new Error("a run starts at a state, by its name");
    return;
  }
  enteredOf(view);
  if (input.kind === "answer") checkInput(view, input.of);
  else if (input.kind === "children") checkChildren(pendingOf(view), input.ended);
  else if (view.pending !== undefined)
    throw new Error(`${view.pending.id} is running: give the machine the ends of its children`);
  if (input.kind === "result" || input.kind === "interrupted")
    refuseUnknown("a result", input.result, "status", RESULTS);
  if (input.kind === "event" && typeof input.event !== "string") throw new Error("the name of an event must be a text");
}

function checkChildren({ id, choice }: PendingFanOut, ended: readonly ChildEnd[]): void {
  const { length } = choice.siblings;
  if (!Array.isArray(ended) || ended.length !== length)
    throw new Error(`${id} joins when all its ${length} children have ended`);
  for (const [index, sibling] of choice.siblings.entries()) {
    refuseUnknown(`a child of ${id}`, ended[index], "status", ENDS);
    const key = childKeyOf(sibling);
    if (ended[index]?.key !== key)
      throw new Error(`${id} joins its children in their order: number ${index} is ${key}`);
  }
}

function refuseUnknown(what: string, value: unknown, member: string, known: Readonly<Record<string, true>>): void {
  const given = isObject(value) ? value[member] : undefined;
  if (typeof given === "string" && known[given] === true) return;
  throw new Error(`${what} has none of these as its ${member}: ${Object.keys(known).join(", ")}`);
}

/** What a state that chooses could choose; undefined for any other. */
function choosingOf(
  spec: PipelineSpec,
  view: MachineView,
  state: string,
  { refused = [] }: Extract<MachineInput, { readonly kind: "result" }>,
): Choosing | undefined {
  const chooser = spec.states.get(state)?.chooses;
  if (chooser === undefined) return undefined;
  return { chooser, targets: routeTargets(spec, view, chooser), refused, fellBack: view.fellBack };
}

/** Turns a decision, new or recorded, into its effect, within the pipeline's caps. Runs no code of the pipeline. */
export function follow(
  spec: PipelineSpec,
  view: MachineView,
  given: MachineInput,
  trace: NextDecision | undefined,
): Transition {
  const input = given.kind === "answer" ? given.of : given;
  if (trace === undefined) return follow(spec, view, input, byDefault(withoutDecision(view, input)));
  const { choice, approval } = trace;
  if (approval !== undefined) return asking(view, approval.message, trace);
  if (choice.kind === "stay") return staying(spec, view, input, choice.reason, trace);
  const move = moveOf(spec, view, input, trace);
  switch (choice.kind) {
    case "to":
      if (input.kind === "interrupted") return again(spec, view, move, input);
      return entering(spec, view, move, choice);
    case "fanOut":
      return fanningOut(spec, view, move, choice);
    case "return":
      return returning(spec, view, move);
    case "done":
    case "fail":
    case "cancel": {
      const result = resultOf(view, input);
      const code = input.kind === "start" ? "input_invalid" : codeOf(trace, result);
      return ending(view, move, endOf(view, choice, { code, ...failedAt(trace, result) }));
    }
  }
}

/** Nothing changes before the answer. */
function asking(view: MachineView, message: string | undefined, trace: NextDecision): Transition {
  const { event, choice } = trace;
  const about = { from: enteredOf(view).state, to: choiceText(choice), ...(event === undefined ? {} : { event }) };
  return { effect: { kind: "approve", message, ...about, decision: trace }, patch: {}, trace };
}

function answered(view: MachineView, input: Extract<MachineInput, { readonly kind: "answer" }>): NextDecision {
  const { of, decision, approved, reason } = input;
  const { approval, ...asked } = decision;
  if (approval === undefined) throw new Error("the answer is to a decision that needs no approval");
  if (approved === true) return { ...asked, approved: true };
  const { context: _unmerged, choice, ...denied } = asked;
  const why = reason === undefined || reason === "" ? "" : `: ${reason}`;
  const refusal = `the move from ${enteredOf(view).state} to ${choiceText(choice)} was not approved${why}`;
  if (of.kind === "event") return { ...denied, choice: { kind: "stay", reason: refusal } };
  return { ...denied, code: "approval_denied", choice: failing(refusal) };
}

/** Changes nothing: not the context, not the counts, not what is suspended. */
function staying(
  spec: PipelineSpec,
  view: MachineView,
  input: MachineInput,
  reason: string,
  trace: NextDecision,
): Transition {
  if (input.kind !== "event") throw new Error("only a state that sent an event can stay");
  const { rejectedRows: rejected = [] } = trace;
  const legal = legalEvents(spec, enteredOf(view).state);
  return { effect: { kind: "stay", reason, rejected, legal }, patch: {}, trace };
}

/** What every move of the machine has in common. */
interface Move {
  readonly input: MachineInput;
  readonly trace: NextDecision;
  /** What the input adds, whatever follows. */
  readonly patch: Patch;
  /** Routes taken, with this one. */
  readonly hops: number;
  /** Whether this is a route: neither the start, nor what a fan-out or an interrupt names, is one. */
  readonly isRoute: boolean;
  /** Why the children that have ended failed. */
  readonly failure: Failed | undefined;
}

/** What a completed state merges into the context. */
function addedContext(input: MachineInput): JsonObject | undefined {
  return input.kind === "result" && input.result.status === "completed" ? input.result.adds?.context : undefined;
}

function moveOf(spec: PipelineSpec, view: MachineView, input: MachineInput, trace: NextDecision): Move {
  const failure = input.kind === "children" ? fanOutFailure(view, input.ended) : undefined;
  const isUnrouted = failure === undefined || pendingOf(view).choice.onFail !== undefined;
  const isAnswered = input.kind === "result" || input.kind === "event" || (input.kind === "children" && !isUnrouted);
  // A hop through the orchestrator is one, which its choice counts.
  const { choice } = trace;
  const isChosen = spec.orchestrator === undefined || (choice.kind === "to" && choice.state !== spec.orchestrator);
  const isRoute = isAnswered && isChosen;
  const { context = addedContext(input) } = trace;
  const own = countsOf(spec, view, input);
  // A router that fails again takes its fallback again; an orchestrator that never chooses must not loop through it.
  const isFallback = trace.by === "fallback" && enteredOf(view).state === spec.orchestrator;
  const counted: Patch = isFallback ? { ...own, fellBack: true } : own;
  const merged = context === undefined ? counted : { ...counted, context };
  // Only the handler's return continues what it interrupted; an interrupt of the handler suspends it, too.
  const stays =
    view.suspended.length === 0 ||
    input.kind === "interrupt" ||
    input.kind === "interrupted" ||
    input.kind === "message" ||
    trace.choice.kind === "return";
  const patch: Patch = stays ? merged : { ...merged, unwind: true };
  return { input, trace, patch, hops: view.hops + (isRoute ? 1 : 0), isRoute, failure };
}

function ending({ suspended }: MachineView, { patch, trace }: Move, end: MachineEnd): Transition {
  const unwind = suspended.length === 0 ? {} : { unwind: true as const };
  return { effect: { kind: "end", end }, patch: { ...patch, ...unwind }, trace };
}

/** Follows a choice of one state. */
function entering(
  spec: PipelineSpec,
  view: MachineView,
  move: Move,
  choice: Extract<ResolvedChoice, { readonly kind: "to" }>,
): Transition {
  const { input, trace, failure } = move;
  const { state, context } = choice;
  const end = endAt(spec, view, move, choice);
  // What a row sets stands above what an agent sends.
  const merged = context === undefined ? move.patch : { ...move.patch, context: { ...move.patch.context, ...context } };
  if (end !== undefined) return ending(view, { ...move, patch: merged }, end);
  const cap = exceededCap(spec, view, move.hops, [state]);
  if (cap !== undefined) return ending(view, withoutContext(move), cap);
  const patch: Patch = { ...merged, hops: move.isRoute ? 1 : 0 };
  if (input.kind === "interrupt")
    return enter(choice, { ...patch, suspend: { interrupt: input.name } }, undefined, trace);
  if (input.kind === "message") return enter(choice, { ...patch, suspend: { interrupt: MESSAGE } }, undefined, trace);
  const isPause = input.kind === "result" && input.result.status === "paused" && state === enteredOf(view).state;
  if (input.kind !== "children" || move.isRoute) return enter(choice, patch, undefined, trace, isPause);
  const { choice: joined } = pendingOf(view);
  const outputs = failure === undefined ? joining(patch, joined, input.ended) : patch;
  return enter(choice, outputs, joinedAs(joined, input.ended), trace);
}

function enteredAgain(view: MachineView): ResolvedChoice {
  const { state, input } = enteredOf(view);
  return { kind: "to", state, input };
}

/**
 * A new visit of the same state, or the orchestrator, which chooses what follows. No cap is checked: a person interrupted it, so
 * nothing repeats by itself.
 */
function again(
  spec: PipelineSpec,
  view: MachineView,
  { patch, trace }: Move,
  interrupted: Extract<MachineInput, { readonly kind: "interrupted" }>,
): Transition {
  const { state, input, visit, arrivedBy, afterPause } = enteredOf(view);
  const feedback = interruptedFeedback(executionIdOf(state, visit), interrupted);
  const { orchestrator } = spec;
  if (orchestrator !== undefined && state !== orchestrator) {
    const ended = { state, executionId: executionIdOf(state, visit), status: "interrupted", feedback };
    const choosing = { state: orchestrator, input: ended };
    return { effect: { kind: "enter", ...choosing }, patch: { ...patch, enter: choosing }, trace };
  }
  const enter = {
    state,
    input,
    feedback,
    ...(arrivedBy === undefined ? {} : { arrivedBy }),
    ...(afterPause === undefined ? {} : { afterPause }),
    ...(view.joined === undefined ? {} : { joined: view.joined }),
    ...(interrupted.missed === undefined ? {} : { missed: interrupted.missed }),
  };
  return { effect: { kind: "enter", state, input }, patch: { ...patch, enter }, trace };
}

/** A run that reached a cap did not move, so nothing is merged. */
function withoutContext({ patch: { context: _unmerged, ...patch }, ...move }: Move): Move {
  return { ...move, patch };
}

function enter(
  { state, input, prompt }: Extract<ResolvedChoice, { readonly kind: "to" }>,
  patch: Patch,
  joined: Joined | undefined,
  trace: NextDecision,
  isPause = false,
): Transition {
  const chosen = prompt === undefined ? { state, input } : { state, input, prompt };
  const withJoined = joined === undefined ? chosen : { ...chosen, joined };
  const entered = isPause ? { ...withJoined, afterPause: true as const } : withJoined;
  const arrivedBy = arrivalBy(trace);
  return {
    effect: { kind: "enter", state, input },
    patch: { ...patch, enter: arrivedBy === undefined ? entered : { ...entered, arrivedBy } },
    trace,
  };
}

function arrivalBy({ event, rationale }: NextDecision): Arrival | undefined {
  if (event === undefined) return undefined;
  return rationale === undefined ? { event } : { event, rationale };
}

/** How the run ends that is led to a final state, or the branch that is led to its terminal one; neither is entered. */
function endAt(
  { states }: PipelineSpec,
  view: MachineView,
  move: Move,
  choice: Extract<ResolvedChoice, { readonly kind: "to" }>,
  isJoin = move.input.kind === "children" && move.failure === undefined,
): MachineEnd | undefined {
  const { input, trace } = move;
  const { state } = choice;
  // A handler is entered, even one that is also where the branch ends.
  if (input.kind === "interrupt") return undefined;
  // What a choosing state gives a final state is the run's output; its own output only says where the run goes.
  const isChosen = trace.by === "model" || trace.by === "fallback";
  const output = isJoin || isChosen ? choice.input : outputOf(input);
  if (state === view.terminal) return { status: "completed", output, state };
  const final = states.get(state)?.final;
  switch (final?.outcome) {
    case undefined:
      return undefined;
    case "completed":
      return { ...completedEnd(view, output, `in ${state}`), state };
    case "failed":
      return {
        status: "failed",
        code: "failed",
        message: `ended in state ${state}${ledBy(view, move)}`,
        state,
      };
    case "cancelled":
      return { status: "cancelled", reason: `ended in state ${state}${ledBy(view, move)}`, state };
  }
}

/** What led to a final state, for people: it is often the only error that they see. */
function ledBy(view: MachineView, { input, failure, trace: { event } }: Move): string {
  if (event !== undefined) return `, by the event ${event} of state ${enteredOf(view).state}`;
  if (input.kind !== "result") return failure === undefined ? "" : `, after ${failure.message}`;
  const { state } = enteredOf(view);
  const { result } = input;
  if (result.status === "failed") return `, after state ${state} failed (${result.code}): ${result.message}`;
  return result.status === "completed" ? `, after state ${state}` : `, after state ${state} was ${result.status}`;
}

/** The output that led to what comes next. */
function outputOf(input: MachineInput): Json {
  if (input.kind === "event") return { event: input.event, data: input.data };
  return input.kind === "result" && input.result.status === "completed" ? input.result.output : null;
}

/** A branch completes at its terminal state only. */
function completedEnd({ terminal }: MachineView, output: Json, where: string): MachineEnd {
  if (terminal === undefined) return { status: "completed", output };
  const message = `the branch ended ${where}, before its terminal state ${terminal}`;
  return { status: "failed", code: "failed", message };
}

function returning(spec: PipelineSpec, view: MachineView, move: Move): Transition {
  if (view.suspended.length === 0) throw new Error("a return follows an interrupt");
  const cap = exceededCap(spec, view, move.hops, []);
  if (cap !== undefined) return ending(view, withoutContext(move), cap);
  const { patch, trace } = move;
  return { effect: { kind: "return" }, patch: { ...patch, hops: move.isRoute ? 1 : 0, resume: true }, trace };
}

async function decideEntry(spec: PipelineSpec, state: string, input: Json | undefined): Promise<NextDecision> {
  const reading = await resolveChoice({ kind: "to", state, input }, spec, null);
  if (reading.ok) return byDefault(reading.choice);
  const { reason } = reading;
  return { ...byDefault(failing(reason)), rejected: reason };
}

function interruptOf({ interrupts }: PipelineSpec, name: string): InterruptSpec {
  const found = interrupts.find((interrupt) => interrupt.name === name);
  if (found === undefined) throw new Error(`the pipeline has no interrupt ${name}`);
  return found;
}

async function decideStart(spec: PipelineSpec, input: Json, at: StartAt | undefined): Promise<NextDecision> {
  if (at !== undefined) {
    const [problem] = startProblems(spec, input, at);
    if (problem === undefined) return await decideEntry(spec, at.state, inputAt(spec, input, at));
    const reason = `${problem.path}: ${problem.message}`;
    return { ...byDefault(failing(reason)), rejected: reason };
  }
  const { initial: state } = spec;
  if (spec.states.get(state)?.inputSchema === undefined) return byDefault({ kind: "to", state, input });
  return await decideEntry(spec, state, input);
}

/** The failure of the state that started the fan-out, whose failure route then decides; undefined if the join can be entered. */
export function fanOutFailure(view: MachineView, ended: readonly ChildEnd[]): Failed | undefined {
  const { id, choice, after } = pendingOf(view);
  const unsuccessful = ended.filter(isUnsuccessful);
  const needed = choice.onFailure === "any" ? ended.length : 1;
  if (choice.onFailure === "settle" || unsuccessful.length < needed) return undefined;
  // Leaves out children that were only cancelled because another one failed.
  const failures = unsuccessful.filter(({ status }) => status === "failed");
  const failed = failures.length > 0 ? failures : unsuccessful;
  const named = choice.list === undefined ? failed : failed.slice(0, MOST_ITEMS);
  const reasons = named.map(({ key, message }) => `${key}: ${message}`);
  const more = failed.length - named.length;
  const { executionId, attempts, turns, usage, ms } = after;
  return deepFreeze<Failed>({
    executionId,
    attempts,
    turns,
    usage,
    ms,
    status: "failed",
    code: "fan_out",
    message: `${failedText(choice)}: ${reasons.join("; ")}${more === 0 ? "" : `; and ${more} more`}`,
    detail: { fanOut: id, failed: failed.map(({ key }) => key), ...firstPlace(failed) },
  });
}

/** The place of the first of these that has one. */
function firstPlace(failed: readonly { readonly at?: string }[]): { readonly at?: string } {
  const at = failed.find((end) => end.at !== undefined)?.at;
  return at === undefined ? {} : { at };
}

function failedText({ siblings: [first] }: FanOutChoice): string {
  switch (first?.kind) {
    case "invoke":
      return `pipeline ${first.pipeline} failed`;
    case "branch":
      return "branches failed";
    case undefined:
      return "parallel stages failed";
  }
}

/** A message names no more failed items of a list than these. */
const MOST_ITEMS = 20;

function isUnsuccessful(end: ChildEnd): end is Extract<ChildEnd, { readonly message: string }> {
  return end.status === "failed" || end.status === "cancelled";
}

/** What the input itself adds, whatever is decided. */
function countsOf(spec: PipelineSpec, view: MachineView, input: MachineInput): Patch {
  switch (input.kind) {
    case "interrupted":
    case "result": {
      const { result } = input;
      const state = enteredOf(view).state;
      const turns = [{ state, turns: result.turns }];
      if (result.status !== "completed" || state === spec.orchestrator) return { turns };
      const own = { state, output: result.output };
      const parts = result.adds?.upstream;
      if (parts === undefined) return { turns, outputs: [own] };
      return { turns, outputs: [...Object.entries(parts).map(([part, output]) => ({ state: part, output })), own] };
    }
    case "children": {
      const { siblings } = pendingOf(view).choice;
      const states = new Map(
        siblings.flatMap((each) => (each.kind === undefined ? [[childKeyOf(each), each.state]] : [])),
      );
      return {
        turns: input.ended.flatMap(({ key, turns }) => {
          const state = states.get(key);
          return state === undefined ? [] : [{ state, turns }];
        }),
      };
    }
    case "event":
      return { outputs: [{ state: enteredOf(view).state, output: outputOf(input) }] };
    default:
      return {};
  }
}

/** The result that a route decided about; undefined for the start, a join and a cancel. */
function resultOf(view: MachineView, input: MachineInput): StageResult<Json> | undefined {
  if (input.kind === "result") return input.result;
  if (input.kind === "event") {
    const { state, visit } = enteredOf(view);
    const attempts = input.ctx?.attempt ?? 1;
    return eventResult(input.event, input.data, { executionId: executionIdOf(state, visit), attempts });
  }
  return input.kind === "children" ? fanOutFailure(view, input.ended) : undefined;
}

/** A cancel leaves nothing to decide. Anything else was decided, unless a journal has a gap. */
function withoutDecision(view: MachineView, input: MachineInput): ResolvedChoice {
  if (input.kind === "interrupted") return enteredAgain(view);
  if (input.kind === "cancelled") return { kind: "cancel", reason: input.reason };
  const result = resultOf(view, input);
  if (result?.status === "cancelled") return { kind: "cancel", reason: result.reason };
  return failing(`state ${enteredOf(view).state} ended without a choice`);
}

/** Visits are counted when a state is entered; here it is only judged whether one more is allowed. */
function exceededCap(
  spec: PipelineSpec,
  view: MachineView,
  hops: number,
  entered: readonly string[],
): MachineEnd | undefined {
  const { maxVisits = MAX_VISITS } = spec.limits;
  const maxHops = maxHopsOf(spec);
  if (hops > maxHops) return overLimit("maxHops", "limit_hops", `the run took ${maxHops} routes without an end`);
  const full = entered.find((state) => state !== spec.orchestrator && countOf(view, state).visits >= maxVisits);
  if (full === undefined) return undefined;
  return overLimit("maxVisits", "limit_visits", `state ${full} was entered ${maxVisits} times`);
}

/** Forks inside each other. Their branches multiply, so that forks that lead to each other would fill any budget. */
const MAX_FORKS = 4;

function tooDeep({ forks }: MachineView, { siblings }: FanOutChoice): MachineEnd | undefined {
  if (forks < MAX_FORKS || !siblings.some(({ kind }) => kind === "branch")) return undefined;
  return overLimit("forks", "limit_forks", `more than ${MAX_FORKS} forks are inside each other`);
}

function overLimit(limit: MachineLimit, code: string, message: string): MachineEnd {
  return { status: "failed", code, message, limit };
}

function fanningOut(spec: PipelineSpec, view: MachineView, move: Move, choice: FanOutChoice): Transition {
  const { input, trace } = move;
  const isEmpty = choice.siblings.length === 0;
  const { join: state, input: joinInput } = choice;
  const end = isEmpty ? endAt(spec, view, move, { kind: "to", state, input: joinInput }, true) : undefined;
  if (end !== undefined) return ending(view, move, end);
  const cap = exceededCap(spec, view, move.hops, isEmpty ? [state] : statesToVisit(choice)) ?? tooDeep(view, choice);
  if (cap !== undefined) return ending(view, withoutContext(move), cap);
  const patch: Patch = { ...move.patch, hops: move.isRoute ? 1 : 0 };
  if (isEmpty) {
    const joined = joining(patch, choice, []);
    return enter({ kind: "to", state, input: joinInput }, joined, joinedAs(choice, []), trace);
  }
  const after = resultOf(view, input);
  if (after === undefined) throw new Error("a fan-out follows the result of a state");
  const fanOut: PendingFanOut = { id: `fan-${view.fanOuts + 1}`, choice, after };
  const children = choice.siblings.map((sibling): Child => {
    if (sibling.kind !== undefined) return sibling;
    const { state: id, input: own } = sibling;
    return { kind: "sibling", key: childKeyOf(sibling), state: id, input: own };
  });
  return { effect: { kind: "fanOut", fanOut, children }, patch: { ...patch, fanOut }, trace };
}

/** Adds the outputs that a join sees. Those of children stand last, in declared order; an earlier one never stays. */
function joining(patch: Patch, { siblings, list }: FanOutChoice, ended: readonly ChildEnd[]): Patch {
  const outputs = new Map(ended.flatMap((end) => (end.status === "completed" ? [[end.key, end.output] as const] : [])));
  const last = ended.findLast(({ status }) => status === "completed");
  // Where an output is found upstream, and the key of its child.
  const places =
    list === undefined
      ? siblings.map(childKeyOf).map((key) => [key, key] as const)
      : [[list, last?.key ?? ""] as const];
  const changes = places.flatMap(([state, key]): readonly OutputChange[] => {
    const output = outputs.get(key);
    return output === undefined ? [{ state }] : [{ state }, { state, output }];
  });
  return { ...patch, outputs: [...(patch.outputs ?? []), ...changes] };
}

function joinedAs({ list }: FanOutChoice, ended: readonly ChildEnd[]): Joined {
  if (list !== undefined) {
    const items = ended.map(({ turns: _turns, ...item }) => item);
    return { items: { [list]: items } };
  }
  const outcomes = ended.map((end): readonly [string, SiblingOutcome] => {
    if (!isUnsuccessful(end)) return [end.key, { status: end.status }];
    const { status, code, message } = end;
    return [end.key, { status, code, message }];
  });
  return { fork: Object.fromEntries(outcomes) };
}

/** An unhandled failure gives its code to the run. */
function codeOf({ by, code }: NextDecision, result: StageResult<Json> | undefined): string {
  return code ?? (by === "default" && result?.status === "failed" ? result.code : "failed");
}

/**
 * Where the code threw that a failed run is due to: a route, a hook of a state whose failure nothing handles, or the condition of
 * a row without which no row says what follows.
 */
function failedAt(
  { by, at, rejectedRows = [] }: NextDecision,
  result: StageResult<Json> | undefined,
): { readonly at?: string } {
  if (at !== undefined) return { at };
  if (by !== "default" || result === undefined) return {};
  return result.status === "failed" ? placeIn(result.detail) : firstPlace(rejectedRows);
}

/** What `detail.at` of a failed result says. */
export function placeIn(detail: Json | undefined): { readonly at?: string } {
  const at = textField(detail, "at");
  return at === undefined ? {} : { at };
}

function endOf(
  view: MachineView,
  choice: Extract<ResolvedChoice, { readonly kind: "done" | "fail" | "cancel" }>,
  failure: { readonly code: string; readonly at?: string },
): MachineEnd {
  switch (choice.kind) {
    case "done":
      return completedEnd(view, choice.output, "with done()");
    case "fail":
      return { status: "failed", ...failure, message: choice.reason };
    case "cancel":
      return { status: "cancelled", reason: choice.reason };
  }
}

function pendingOf({ pending }: MachineView): PendingFanOut {
  if (pending === undefined) throw new Error("no fan-out is pending");
  return pending;
}

function failing(reason: string): ResolvedChoice {
  return { kind: "fail", reason };
}

function byDefault(choice: ResolvedChoice): NextDecision {
  return { by: "default", choice };
}
