import { SluiceError } from "../base/errors.ts";
import { deepFreeze, type Json, type JsonObject } from "../base/json.ts";
import type { Failed, SiblingOutcome, StageContext, StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import {
  decideNext,
  type FanOutChoice,
  type NextDecision,
  type RejectedRow,
  type ResolvedChoice,
  type ResolvedSibling,
  resolveChoice,
} from "./decide-next.ts";
import type { LegalEvent } from "./legal-events.ts";
import {
  contextOf,
  countOf,
  enteredOf,
  type Joined,
  type MachineView,
  type Patch,
  type PendingFanOut,
  statesToVisit,
} from "./machine-state.ts";
import type { OutputChange } from "./outputs.ts";

/** What has happened to a run. */
export type MachineInput =
  | { readonly kind: "start" }
  /** The state that was entered last has ended. `ctx` is what its hooks read; without it the view's own context. */
  | { readonly kind: "result"; readonly result: StageResult<Json>; readonly ctx?: StageContext }
  /** All children of the pending fan-out have ended, in their declared order. */
  | { readonly kind: "children"; readonly ended: readonly ChildEnd[] }
  | { readonly kind: "cancelled"; readonly reason: string }
  /** The state that was entered last asks to move. `ctx` is what its hooks read; without it the view's own context. */
  | { readonly kind: "event"; readonly event: string; readonly data: JsonObject; readonly ctx?: StageContext }
  /** A changed file, with its path in the workspace, matched an interrupt. */
  | { readonly kind: "interrupt"; readonly name: string; readonly path: string }
  /** A person answered the question of an `approve` effect. */
  | {
      readonly kind: "answer";
      /** What the decision is about. */
      readonly of: Extract<MachineInput, { readonly kind: "event" | "result" | "children" }>;
      /** Of the effect. */
      readonly decision: NextDecision;
      readonly approved: boolean;
      /** Why not. */
      readonly reason?: string;
    };

/** How one child of a fan-out ended. */
export type ChildEnd = { readonly key: string; readonly turns: number } & (
  | { readonly status: "completed"; readonly output: Json }
  | { readonly status: "skipped" }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string }
);

/** What a run does next. */
export type Effect =
  | { readonly kind: "enter"; readonly state: string; readonly input: Json }
  | { readonly kind: "fanOut"; readonly fanOut: PendingFanOut; readonly children: readonly Child[] }
  | { readonly kind: "end"; readonly end: MachineEnd }
  /** The event was refused, and the state goes on. */
  | {
      readonly kind: "stay";
      readonly reason: string;
      /** The rows of the event that did not fire: the first 20. */
      readonly rejected: readonly RejectedRow[];
      readonly legal: readonly LegalEvent[];
    }
  /** Ask a person, then give the machine the answer. Nothing has changed yet. */
  | {
      readonly kind: "approve";
      readonly message: string | undefined;
      /** The state that asks to move. */
      readonly from: string;
      /** Where it would lead, in words. */
      readonly to: string;
      readonly event?: string;
      readonly decision: NextDecision;
    }
  /** The execution that was suspended last continues. */
  | { readonly kind: "return" };

/** A child of a fan-out, as data. `key` is unique in its fan-out. */
export type Child =
  /** One state. The key is the state's id, or that of a list's item. */
  | { readonly kind: "sibling"; readonly key: string; readonly state: string; readonly input: Json }
  /** From `state` along its routes to `terminal`. */
  | {
      readonly kind: "branch";
      readonly key: string;
      readonly state: string;
      readonly terminal: string;
      readonly input: Json;
    }
  /** A run of another pipeline of `pipelines`; `input` is merged into its initial context. */
  | { readonly kind: "invoke"; readonly key: string; readonly pipeline: string; readonly input: JsonObject };

/** `state` is the final state that ended the run. */
export type MachineEnd =
  | { readonly status: "completed"; readonly output: Json; readonly state?: string }
  | {
      readonly status: "failed";
      readonly code: string;
      readonly message: string;
      /** The cap of the run that was reached. */
      readonly limit?: "maxVisits" | "maxHops";
      readonly state?: string;
    }
  | { readonly status: "cancelled"; readonly reason: string; readonly state?: string };

export interface Transition {
  readonly effect: Effect;
  /** To be given to `apply` before the effect is performed. */
  readonly patch: Patch;
  /** What decided it and why, as a journal records it. */
  readonly trace: NextDecision;
}

/**
 * Decides what follows from what has happened. Changes nothing. Whatever routes, conditions and schemas do, the result is a valid
 * transition. It is `decide`, the only part that runs code of the pipeline, and then `follow`. Throws for an input that cannot
 * follow: a result before the start, and children where no fan-out is pending.
 */
export async function transition(spec: PipelineSpec, view: MachineView, input: MachineInput): Promise<Transition> {
  return follow(spec, view, input, await decide(spec, view, input));
}

/** Asks the pipeline what comes next. A journal records the answer, since the code that gave it may change or differ. */
export async function decide(spec: PipelineSpec, view: MachineView, input: MachineInput): Promise<NextDecision> {
  switch (input.kind) {
    case "start":
      return await decideStart(spec, view.run.input);
    case "cancelled":
      return byDefault(withoutDecision(view, input));
    case "result": {
      const { result, ctx = contextOf(view) } = input;
      return await decideNext(spec, enteredOf(view).state, deepFreeze(result), ctx);
    }
    case "children": {
      const { choice } = pendingOf(view);
      const failure = fanOutFailure(view, input.ended);
      if (failure === undefined) return byDefault({ kind: "to", state: choice.join, input: choice.input });
      const { attempts: attempt } = failure;
      const ctx = contextOf(view, { attempt }, joinedAs(choice, input.ended));
      return await decideNext(spec, enteredOf(view).state, failure, ctx);
    }
    case "event":
    case "interrupt":
    case "answer":
      throw new SluiceError("Host", "machine_input", `the machine cannot decide about ${input.kind} yet`);
  }
}

/** Turns a decision, new or recorded, into its effect, within the pipeline's caps. Runs no code of the pipeline. */
export function follow(
  spec: PipelineSpec,
  view: MachineView,
  input: MachineInput,
  trace: NextDecision | undefined,
): Transition {
  if (trace === undefined) return follow(spec, view, input, byDefault(withoutDecision(view, input)));
  const { choice } = trace;
  const known = countsOf(view, input);
  const result = resultOf(view, input);
  if (choice.kind !== "to" && choice.kind !== "fanOut") {
    const code = input.kind === "start" ? "input_invalid" : codeOf(trace, result);
    return { effect: { kind: "end", end: endOf(choice, code) }, patch: known, trace };
  }
  // Only routes are hops: neither the start nor the join of a fan-out is one.
  const hops = result === undefined ? 0 : 1;
  const isEmpty = choice.kind === "fanOut" && choice.siblings.length === 0;
  const entered = choice.kind === "to" ? [choice.state] : isEmpty ? [choice.join] : statesToVisit(choice);
  const end = exceededCap(spec, view, view.hops + hops, entered);
  if (end !== undefined) return { effect: { kind: "end", end }, patch: known, trace };
  const patch: Patch = { ...known, hops };
  if (choice.kind === "fanOut") {
    if (isEmpty) return entering(choice.join, choice.input, joining(patch, choice, []), joinedAs(choice, []), trace);
    return fanningOut(view, choice, patch, result, trace);
  }
  const { state, input: stateInput, context } = choice;
  const ended = input.kind === "children" && result === undefined ? input.ended : undefined;
  if (ended === undefined) {
    return entering(state, stateInput, context === undefined ? patch : { ...patch, context }, undefined, trace);
  }
  const { choice: joined } = pendingOf(view);
  return entering(state, stateInput, joining(patch, joined, ended), joinedAs(joined, ended), trace);
}

async function decideStart(spec: PipelineSpec, input: Json): Promise<NextDecision> {
  const { initial: state } = spec;
  if (spec.states.get(state)?.inputSchema === undefined) return byDefault({ kind: "to", state, input });
  const reading = await resolveChoice({ kind: "to", state, input }, spec, null);
  if (reading.ok) return byDefault(reading.choice);
  const { reason } = reading;
  return { ...byDefault({ kind: "fail", reason }), rejected: reason };
}

/** The failure of the state that started the fan-out, whose failure route then decides; undefined if the join can be entered. */
export function fanOutFailure(view: MachineView, ended: readonly ChildEnd[]): Failed | undefined {
  const { id, choice, after } = pendingOf(view);
  const unsuccessful = ended.filter(isUnsuccessful);
  if (choice.onFailure === "settle" || unsuccessful.length === 0) return undefined;
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
    message: `parallel stages failed: ${reasons.join("; ")}${more === 0 ? "" : `; and ${more} more`}`,
    detail: { fanOut: id, failed: failed.map(({ key }) => key) },
  });
}

/** A message names no more failed items of a list than these. */
const MOST_ITEMS = 20;

function isUnsuccessful(end: ChildEnd): end is Extract<ChildEnd, { readonly message: string }> {
  return end.status === "failed" || end.status === "cancelled";
}

/** What the input itself adds, whatever is decided. */
function countsOf(view: MachineView, input: MachineInput): Patch {
  switch (input.kind) {
    case "start":
    case "cancelled":
      return {};
    case "result": {
      const { result } = input;
      const state = enteredOf(view).state;
      const turns = [{ state, turns: result.turns }];
      return result.status === "completed" ? { turns, outputs: [{ state, output: result.output }] } : { turns };
    }
    case "children": {
      const { siblings } = pendingOf(view).choice;
      const states = new Map(
        siblings.flatMap((each) => (each.kind === undefined ? [[each.key ?? each.state, each.state]] : [])),
      );
      return {
        turns: input.ended.flatMap(({ key, turns }) => {
          const state = states.get(key);
          return state === undefined ? [] : [{ state, turns }];
        }),
      };
    }
    case "event":
    case "interrupt":
    case "answer":
      return {};
  }
}

/** The result that a route decided about; undefined for the start, a join and a cancel. */
function resultOf(view: MachineView, input: MachineInput): StageResult<Json> | undefined {
  if (input.kind === "result") return input.result;
  return input.kind === "children" ? fanOutFailure(view, input.ended) : undefined;
}

/** A cancel leaves nothing to decide. Anything else was decided, unless a journal has a gap. */
function withoutDecision(view: MachineView, input: MachineInput): ResolvedChoice {
  if (input.kind === "cancelled") return { kind: "cancel", reason: input.reason };
  const result = resultOf(view, input);
  if (result?.status === "cancelled") return { kind: "cancel", reason: result.reason };
  return { kind: "fail", reason: `state ${enteredOf(view).state} ended without a choice` };
}

/** Visits are counted when a state is entered; here it is only judged whether one more is allowed. */
function exceededCap(
  { limits, states }: PipelineSpec,
  view: MachineView,
  hops: number,
  entered: readonly string[],
): MachineEnd | undefined {
  const { maxVisits = 10, maxHops = 10 * states.size } = limits;
  if (hops > maxHops) return overLimit("maxHops", "limit_hops", `the run took ${maxHops} routes without an end`);
  const full = entered.find((state) => countOf(view, state).visits >= maxVisits);
  if (full === undefined) return undefined;
  return overLimit("maxVisits", "limit_visits", `state ${full} was entered ${maxVisits} times`);
}

function overLimit(limit: "maxVisits" | "maxHops", code: string, message: string): MachineEnd {
  return { status: "failed", code, message, limit };
}

function entering(
  state: string,
  input: Json,
  patch: Patch,
  joined: Joined | undefined,
  trace: NextDecision,
): Transition {
  const enter = { state, input, ...(joined === undefined ? {} : { joined }) };
  return { effect: { kind: "enter", state, input }, patch: { ...patch, enter }, trace };
}

function fanningOut(
  view: MachineView,
  choice: FanOutChoice,
  patch: Patch,
  after: StageResult<Json> | undefined,
  trace: NextDecision,
): Transition {
  if (after === undefined) throw new Error("a fan-out follows the result of a state");
  const fanOut: PendingFanOut = { id: `fan-${view.fanOuts + 1}`, choice, after };
  const children = choice.siblings.map((sibling): Child => {
    if (sibling.kind !== undefined) return sibling;
    const { state, input, key = state } = sibling;
    return { kind: "sibling", key, state, input };
  });
  return { effect: { kind: "fanOut", fanOut, children }, patch: { ...patch, fanOut }, trace };
}

/** Adds the outputs that a join sees. Those of children stand last, in declared order; an earlier one never stays. */
function joining(patch: Patch, { siblings, list }: FanOutChoice, ended: readonly ChildEnd[]): Patch {
  const outputs = new Map(ended.flatMap((end) => (end.status === "completed" ? [[end.key, end.output] as const] : [])));
  const last = ended.findLast(({ status }) => status === "completed");
  const keys = list === undefined ? siblings.map(upstreamKey) : [[list, last?.key ?? ""] as const];
  const changes = keys.flatMap(([state, key]): readonly OutputChange[] => {
    const output = outputs.get(key);
    return output === undefined ? [{ state }] : [{ state }, { state, output }];
  });
  return { ...patch, outputs: [...(patch.outputs ?? []), ...changes] };
}

/** Where the output of a child is found upstream, and the child's key. */
function upstreamKey(sibling: ResolvedSibling): readonly [upstream: string, key: string] {
  const key = sibling.kind === undefined ? sibling.state : sibling.key;
  return [key, key];
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
function codeOf({ by }: NextDecision, result: StageResult<Json> | undefined): string {
  return by === "default" && result?.status === "failed" ? result.code : "failed";
}

function endOf(choice: Exclude<ResolvedChoice, { readonly kind: "to" | "fanOut" }>, code: string): MachineEnd {
  switch (choice.kind) {
    case "done":
      return { status: "completed", output: choice.output };
    case "fail":
      return { status: "failed", code, message: choice.reason };
    case "cancel":
      return { status: "cancelled", reason: choice.reason };
    case "stay":
    case "return":
      throw new SluiceError("Host", "machine_input", `the machine cannot ${choice.kind} yet`);
  }
}

function pendingOf({ pending }: MachineView): PendingFanOut {
  if (pending === undefined) throw new Error("no fan-out is pending");
  return pending;
}

function byDefault(choice: ResolvedChoice): NextDecision {
  return { by: "default", choice };
}
