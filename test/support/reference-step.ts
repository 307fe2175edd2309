import type { Json, JsonObject } from "@sluice/core";
import {
  type ApprovalNode,
  type Asked,
  approvalMessage,
  branchOf,
  type End,
  type Ended,
  evaluate,
  type GuardNode,
  type ItemEnd,
  isRecord,
  itemKey,
  type Machine,
  nodeOf,
  type Outcome,
  type RouteDecided,
  type RouteNode,
  type RowNode,
  recordOf,
  type Scope,
  type Sight,
} from "./reference-machine.ts";

// One transition of a machine that is plain data: what a run does next, what it remembers, and whose code is asked on the way.

/** One execution of a state. */
export interface Place {
  readonly state: string;
  readonly visit: number;
  readonly input: Json;
  readonly also: Also;
}
/** What a join sees. */
export type Also = Pick<Sight, "fork" | "items">;
export interface RunState {
  readonly at?: Place;
  /** Innermost last. */
  readonly suspended: readonly { readonly place: Place; readonly interrupt: string }[];
  readonly visits: ReadonlyMap<string, number>;
  readonly hops: number;
  /** The forks around this run. */
  readonly forks: number;
  readonly upstream: ReadonlyMap<string, Json>;
  readonly context: JsonObject;
  readonly fanOuts: number;
  /** The fan-out whose children work. */
  readonly pending?: FanOutChoice;
  /** The decision that waits for a person. */
  readonly asking?: { readonly leaving: Leaving; readonly decision: Decision };
}
export type Happened =
  | { readonly kind: "start" }
  | { readonly kind: "event"; readonly event: string; readonly data: JsonObject }
  | { readonly kind: "interrupt"; readonly name: string; readonly path: string }
  | { readonly kind: "answer"; readonly approved: boolean }
  | { readonly kind: "result"; readonly outcome: Outcome }
  | { readonly kind: "children"; readonly ended: readonly ChildEnded[] }
  | { readonly kind: "cancelled"; readonly reason: string };
export type ChildEnded = Ended & { readonly key: string; readonly output?: Json };

export type Child =
  | { readonly kind: "sibling"; readonly key: string; readonly state: string; readonly input: Json }
  | {
      readonly kind: "branch";
      readonly key: string;
      readonly state: string;
      readonly terminal: string;
      readonly input: Json;
    }
  | { readonly kind: "invoke"; readonly key: string; readonly pipeline: string; readonly input: Json };
export interface FanOutChoice {
  readonly kind: "fanOut";
  readonly children: readonly Child[];
  readonly list?: string;
  readonly join: string;
  readonly onFail?: string;
  readonly input: Json;
  readonly policy: "cancel" | "settle" | "any";
}
export type Resolved =
  | { readonly kind: "to"; readonly state: string; readonly input: Json; readonly patch?: JsonObject }
  | FanOutChoice
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "cancel"; readonly reason: string }
  | { readonly kind: "return" }
  | { readonly kind: "stay" };
export interface Decision {
  readonly choice: Resolved;
  readonly by: RouteDecided["by"];
  /** The pipeline's code gave no choice that can be followed. */
  readonly rejected: boolean;
  readonly row?: number;
  readonly refused?: readonly number[];
  /** The code of the run's end, if the choice is Sluice's own. */
  readonly code?: string;
  readonly approval?: ApprovalNode;
  readonly approved?: true;
  readonly denied?: true;
  /** What was asked for, why, and what merges into the context then. */
  readonly event?: string;
  readonly rationale?: string;
  readonly data?: JsonObject;
}

export type Effect =
  | { readonly kind: "enter"; readonly state: string; readonly input: Json }
  | { readonly kind: "return" | "stay" }
  | { readonly kind: "approve"; readonly row: number; readonly message?: string }
  | { readonly kind: "fanOut"; readonly children: readonly Child[] }
  | {
      readonly kind: "end";
      readonly end: End;
      readonly limit?: Limit;
      /** The final state. */
      readonly state?: string;
    };
export interface Step {
  readonly effect: Effect;
  readonly after: RunState;
  readonly decision?: Decision;
  /** What the step merged into the context. */
  readonly merged?: JsonObject;
  readonly asked: readonly Asked[];
}

/** The longest list that a run accepts, unless `limits.maxItems` says otherwise. */
const MAX_ITEMS = 1_000;

/** A run before its start. */
export function beforeStart(machine: Machine): RunState {
  const { context } = machine;
  return { suspended: [], visits: new Map(), hops: 0, forks: 0, upstream: new Map(), context, fanOuts: 0 };
}

export function step(machine: Machine, before: RunState, happened: Happened): Step {
  const asked: Asked[] = [];
  switch (happened.kind) {
    case "start": {
      const { initial, input } = machine;
      if (!fits(machine, initial, input)) return ended(before, { status: "failed", code: "input_invalid" }, asked);
      return entering(machine, before, { state: initial, input, also: {} }, asked);
    }
    case "cancelled":
      return ended(before, { status: "cancelled", code: "cancelled", message: happened.reason }, asked);
    case "interrupt": {
      const interrupt = machine.interrupts?.find(({ name }) => name === happened.name);
      const place = placeOf(before);
      if (interrupt === undefined) throw new Error(`the machine has no interrupt ${happened.name}`);
      const input = { interrupt: happened.name, files: [happened.path] };
      const suspended = [...before.suspended, { place, interrupt: happened.name }];
      const decision: Decision = {
        choice: { kind: "to", state: interrupt.target, input },
        by: "interrupt",
        rejected: false,
      };
      if (visitsOf(before, interrupt.target) >= maxVisitsOf(machine))
        return { ...capped(before, "maxVisits", asked), decision };
      const next = entering(machine, before, { state: interrupt.target, input, also: {} }, asked);
      return { ...next, after: { ...next.after, suspended }, decision };
    }
    case "event": {
      const place = placeOf(before);
      const { event, data } = happened;
      const result: Result = { status: "completed", output: { event, data } };
      const leaving: Leaving = { result, sight: sightOf(before, place), data };
      return follow(machine, before, leaving, decideEvent(machine, before, leaving, event, asked), asked);
    }
    case "result": {
      const place = placeOf(before);
      const { outcome } = happened;
      if (outcome.status === "cancelled")
        return ended(before, { status: "cancelled", code: "cancelled", message: outcome.reason }, asked);
      const leaving: Leaving = { result: outcome, sight: sightOf(before, place) };
      return follow(machine, before, leaving, decide(machine, before, leaving, asked), asked);
    }
    case "children":
      return joining(machine, before, happened.ended, asked);
    case "answer": {
      const { asking, ...rest } = before;
      if (asking === undefined) throw new Error("nobody was asked");
      const { approval: _answered, ...decision } = asking.decision;
      if (happened.approved) return follow(machine, rest, asking.leaving, { ...decision, approved: true }, asked);
      // An event leaves the agent where it is; a result has nowhere else to go.
      const denied: Decision =
        asking.leaving.data === undefined
          ? { ...decision, choice: { kind: "fail", reason: "" }, code: "approval_denied", denied: true }
          : { ...decision, choice: { kind: "stay" } };
      return follow(machine, rest, asking.leaving, denied, asked);
    }
  }
}

/** The events that a state may ask for, in the order of its rows, and whether each of their edges needs a person. */
export function legalEvents(
  { routes }: Machine,
  state: string,
): readonly { readonly event: string; readonly approvals: readonly boolean[] }[] {
  if (routes.kind === "functions") return [];
  const events = new Map<string, boolean[]>();
  for (const { from, on, approval } of routes.rows) {
    if (typeof on !== "object" || (from !== "*" && from !== state)) continue;
    events.set(on.event, [...(events.get(on.event) ?? []), approval !== undefined]);
  }
  return [...events].map(([event, approvals]) => ({ event, approvals }));
}

/** An execution that asks to be left. */
interface Leaving {
  readonly result: Result;
  readonly sight: Sight;
  /** Of an event. */
  readonly data?: JsonObject;
}
/** A result as far as routes and records tell it. */
type Result =
  | { readonly status: "completed"; readonly output: Json }
  | { readonly status: "failed"; readonly code: string; readonly message?: string }
  | { readonly status: "paused"; readonly request: Json }
  | { readonly status: "skipped" };

function follow(
  machine: Machine,
  before: RunState,
  leaving: Leaving,
  decision: Decision,
  asked: readonly Asked[],
): Step {
  const { choice, approval, code } = decision;
  if (choice.kind === "stay") return { effect: { kind: "stay" }, after: before, decision, asked };
  if (approval !== undefined) {
    const row = decision.row ?? -1;
    const message = approvalMessage(approval, row);
    return {
      effect: { kind: "approve", row, ...(message === undefined ? {} : { message }) },
      after: { ...before, asking: { leaving, decision } },
      decision,
      asked,
    };
  }
  const place = placeOf(before);
  const { result, data } = leaving;
  const output = result.status === "completed" ? result.output : null;
  const upstream = new Map(before.upstream);
  // A route reads its own state's output from the result; the states after it read it from upstream.
  if (result.status === "completed") upstream.set(place.state, result.output);
  const patch = choice.kind === "to" ? choice.patch : undefined;
  const hasMerged = Object.keys(data ?? {}).length > 0 || patch !== undefined;
  const merged = recordOf([...Object.entries(data ?? {}), ...Object.entries(patch ?? {})]);
  const context = recordOf([...Object.entries(before.context), ...Object.entries(merged)]);
  const left: RunState = { ...before, upstream, context };
  const how = { decision, ...(hasMerged ? { merged } : {}) };
  // Nothing merges before the machine moves, and at a cap it does not.
  const stopped = (limit: Limit): Step => ({
    ...capped({ ...before, upstream }, limit, asked),
    decision,
  });
  if (choice.kind === "done") return { ...ended(left, { status: "completed", output: choice.output }, asked), ...how };
  if (choice.kind === "fail" || choice.kind === "cancel") {
    const status = choice.kind === "fail" ? "failed" : "cancelled";
    const end: End = code === undefined ? { status, code: status, message: choice.reason } : { status, code };
    return { ...ended(left, end, asked), ...how };
  }
  if (choice.kind === "to" && isEnd(machine, choice.state))
    return { ...final(machine, left, choice.state, output, asked), ...how };
  const { maxHops = 10 * machine.states.length } = machine.limits;
  const hops = before.hops + 1;
  if (hops > maxHops) return stopped("maxHops");
  const moved: RunState = { ...left, hops };
  if (choice.kind === "return") {
    const back = before.suspended.at(-1);
    if (back === undefined) throw new Error("nothing is suspended");
    const after = { ...moved, at: back.place, suspended: before.suspended.slice(0, -1) };
    return { effect: { kind: "return" }, after, asked, ...how };
  }
  const unwound: RunState = { ...moved, suspended: [] };
  if (choice.kind === "to") {
    const { state, input } = choice;
    if (visitsOf(before, state) >= maxVisitsOf(machine)) return stopped("maxVisits");
    return { ...entering(machine, unwound, { state, input, also: {} }, asked), ...how };
  }

  const { children, list } = choice;
  if (list !== undefined && children.length === 0) {
    upstream.delete(list);
    const input = choice.input;
    return {
      ...joined(machine, unwound, { state: choice.join, input, also: { items: { [list]: [] } } }, asked),
      ...how,
    };
  }
  const states = [...new Set(children.flatMap((child) => (child.kind === "invoke" ? [] : [child.state])))];
  if (states.some((state) => visitsOf(before, state) >= maxVisitsOf(machine))) return stopped("maxVisits");
  if (before.forks >= 4 && children.some(({ kind }) => kind === "branch")) return stopped("forks");
  const visits = new Map(before.visits);
  for (const state of states) visits.set(state, visitsOf(before, state) + 1);
  return {
    effect: { kind: "fanOut", children },
    after: { ...unwound, visits, fanOuts: before.fanOuts + 1, pending: choice },
    asked,
    ...how,
  };
}

function joining(machine: Machine, before: RunState, ended: readonly ChildEnded[], asked: Asked[]): Step {
  const { pending, ...rest } = before;
  if (pending === undefined) throw new Error("no fan-out is pending");
  const place = placeOf(rest);
  const { list, join, input, onFail, policy } = pending;
  const unsuccessful = ended.filter(({ status }) => status === "failed" || status === "cancelled");
  const hasFailed =
    policy === "cancel" ? unsuccessful.length > 0 : policy === "any" && unsuccessful.length === ended.length;
  const fork = Object.fromEntries(ended.map(({ key, output: _output, ...how }) => [key, how]));
  const also: Also = list === undefined ? { fork } : { items: { [list]: ended satisfies readonly ItemEnd[] } };
  if (hasFailed) {
    if (onFail !== undefined) {
      // The input is the join's.
      const choice: Resolved = { kind: "to", state: onFail, input: null };
      const decision: Decision = { choice, by: "default", rejected: false };
      return { ...joined(machine, rest, { state: onFail, input: null, also }, asked), decision };
    }
    const result: Result = { status: "failed", code: "fan_out" };
    const leaving: Leaving = { result, sight: sightOf(rest, { ...place, also }) };
    return follow(machine, rest, leaving, decide(machine, rest, leaving, asked), asked);
  }
  // The join reads what its children say now, in declared order, and nothing of what they said in an earlier fan-out.
  const upstream = new Map(rest.upstream);
  const nameOf = (key: string): string => list ?? key;
  for (const { key } of ended) upstream.delete(nameOf(key));
  for (const { key, output, status } of ended)
    if (status === "completed" && output !== undefined) upstream.set(nameOf(key), output);
  return joined(machine, { ...rest, upstream }, { state: join, input, also }, asked);
}

/** A join counts a visit and no hop, and may be a final state, whose output is the join's input. */
function joined(machine: Machine, before: RunState, next: Omit<Place, "visit">, asked: readonly Asked[]): Step {
  return isEnd(machine, next.state)
    ? final(machine, before, next.state, next.input, asked)
    : entering(machine, before, next, asked);
}

function entering(machine: Machine, before: RunState, next: Omit<Place, "visit">, asked: readonly Asked[]): Step {
  const { state, input } = next;
  if (visitsOf(before, state) >= maxVisitsOf(machine)) return capped(before, "maxVisits", asked);
  const visit = visitsOf(before, state) + 1;
  const visits = new Map(before.visits).set(state, visit);
  return { effect: { kind: "enter", state, input }, after: { ...before, visits, at: { ...next, visit } }, asked };
}

function final(machine: Machine, before: RunState, state: string, output: Json, asked: readonly Asked[]): Step {
  const outcome = state === machine.terminal ? "completed" : (nodeOf(machine, state).final ?? "completed");
  const end: End = outcome === "completed" ? { status: outcome, output } : { status: outcome, code: outcome };
  const step = ended(before, end, asked);
  return { ...step, effect: { kind: "end", end, state } };
}

/** Whether a run or a branch is over when it comes to a state. */
function isEnd(machine: Machine, state: string): boolean {
  return state === machine.terminal || nodeOf(machine, state).final !== undefined;
}

/** The caps of a run; `forks` are those inside each other. */
export type Limit = keyof typeof LIMIT_CODES;
const LIMIT_CODES = { maxHops: "limit_hops", maxVisits: "limit_visits", forks: "limit_forks" } as const;

function capped(before: RunState, limit: Limit, asked: readonly Asked[]): Step {
  const end: End = { status: "failed", code: LIMIT_CODES[limit] };
  const step = ended(before, end, asked);
  return { ...step, effect: { kind: "end", end, limit } };
}

function ended(before: RunState, end: End, asked: readonly Asked[]): Step {
  return { effect: { kind: "end", end }, after: { ...before, suspended: [] }, asked };
}

/** What the pipeline says about a result, and who is asked on the way. */
function decide(machine: Machine, before: RunState, leaving: Leaving, asked: Asked[]): Decision {
  const { result } = leaving;
  const { state } = placeOf(before);
  const ownOutput = result.status === "completed" ? result.output : null;
  const unhandled: Decision = {
    choice: { kind: "fail", reason: "" },
    by: "default",
    rejected: false,
    code: result.status === "failed" ? result.code : "failed",
  };
  if (machine.routes.kind === "functions") {
    const routes = machine.routes.next[state];
    const fn = result.status === "paused" ? undefined : routes?.[result.status];
    if (fn === undefined) return unhandled;
    const scope = ask(before, leaving, asked);
    const choice = resolve(machine, fn.body, scope, ownOutput);
    const { targets } = fn;
    if (
      choice === undefined ||
      isLost(choice, before) ||
      (targets !== undefined && targetsOf(choice).some((target) => !targets.includes(target)))
    )
      return { choice: { kind: "fail", reason: "" }, by: "function", rejected: true, code: "failed" };
    return { choice, by: "function", rejected: false };
  }
  const on = { completed: "success", failed: "failure", skipped: "skipped", paused: "pause" }[result.status];
  const matching = rowsOf(machine, state).filter(([, row]) => row.on === on);
  const { fired, refused } = firstToFire(before, leaving, matching, asked);
  if (fired === undefined) return { ...unhandled, refused };
  const [row, { to, approval }] = fired;
  const node: RouteNode =
    typeof to !== "string"
      ? to
      : {
          do: "to",
          state: to,
          ...(result.status === "paused" ? { input: { op: "value", value: result.request } } : {}),
        };
  const choice = resolve(machine, node, ask(before, leaving, []), ownOutput);
  if (choice === undefined || isLost(choice, before))
    return { ...unhandled, by: "table", rejected: true, row, refused, code: "failed" };
  return { choice, by: "table", rejected: false, row, refused, ...(approval === undefined ? {} : { approval }) };
}

/** What the rows say about an event: the first whose guard fires, or the agent stays. */
function decideEvent(machine: Machine, before: RunState, leaving: Leaving, event: string, asked: Asked[]): Decision {
  const rows = rowsOf(machine, placeOf(before).state);
  const named = rows.filter(([, { on }]) => typeof on === "object" && on.event === event && event !== "*");
  const isNamed = named.length > 0;
  const matching = isNamed ? named : rows.filter(([, { on }]) => typeof on === "object" && on.event === "*");
  const by = isNamed ? "event" : "safe_next";
  const stay: Decision = { choice: { kind: "stay" }, by, rejected: false, event };
  const rationale = leaving.data?.rationale;
  const said = {
    ...(typeof rationale === "string" ? { rationale: rationale.slice(0, 2_000) } : {}),
    ...(leaving.data === undefined ? {} : { data: leaving.data }),
  };
  if (Object.keys(leaving.data ?? {}).some(isReserved)) return stay;
  const { fired, refused } = firstToFire(before, leaving, matching, asked);
  if (fired === undefined) return { ...stay, refused };
  const [row, { to, approval }] = fired;
  const output = leaving.result.status === "completed" ? leaving.result.output : null;
  const node: RouteNode = typeof to === "string" ? { do: "to", state: to } : to;
  const choice = resolve(machine, node, ask(before, leaving, []), output, isNamed ? event : undefined);
  if (choice === undefined || isLost(choice, before)) return { ...stay, row, refused };
  return { ...stay, ...said, choice, row, refused, ...(approval === undefined ? {} : { approval }) };
}

type IndexedRow = readonly [number, RowNode];
function rowsOf({ routes }: Machine, state: string): readonly IndexedRow[] {
  if (routes.kind === "functions") return [];
  return [...routes.rows.entries()].filter(([, { from }]) => from === "*" || from === state);
}

function firstToFire(
  before: RunState,
  leaving: Leaving,
  rows: readonly IndexedRow[],
  asked: Asked[],
): { readonly fired?: IndexedRow; readonly refused: readonly number[] } {
  const refused: number[] = [];
  for (const [index, row] of rows) {
    if (row.when === undefined || fires(row.when, ask(before, leaving, asked, index)))
      return { fired: [index, row], refused };
    refused.push(index);
  }
  return { refused };
}

function fires(guard: GuardNode, scope: Scope): boolean {
  if (guard.guard === "later") return fires(guard.promised, scope);
  return guard.guard === "returns" && evaluate(guard.value, scope) === true;
}

/** Whether it would return to nothing. */
function isLost(choice: Resolved, { suspended }: RunState): boolean {
  return choice.kind === "return" && suspended.length === 0;
}

/** Keys that no data may write into the context. */
function isReserved(key: string): boolean {
  return key === "__proto__" || key === "constructor" || key.startsWith("_");
}

/** What code is called with. */
function ask(before: RunState, { result, sight }: Leaving, asked: Asked[], row?: number): Scope {
  const { state, visit } = placeOf(before);
  const execution = `${state}#${visit}`;
  const facts = resultFacts(execution, result);
  asked.push({ execution, ...(row === undefined ? {} : { row }), result: facts, sight });
  const { fork, items, joined: _order, ...plain } = sight;
  return {
    result: facts,
    ctx: { ...plain, ...(fork === undefined ? {} : { fork }), ...(items === undefined ? {} : { items }) },
  };
}

export function sightOf({ upstream, context }: RunState, { visit, input, also }: Place): Sight {
  const { fork } = also;
  const joined = fork === undefined ? {} : { joined: joinedOf(upstream, fork) };
  return { visit, input, upstream: recordOf([...upstream]), context, ...also, ...joined };
}

/** The fields of a result that routes of these machines may read. */
function resultFacts(execution: string, result: Result): JsonObject {
  const { status } = result;
  switch (status) {
    case "completed":
      return { executionId: execution, status, output: result.output };
    case "failed": {
      const { code, message } = result;
      return { executionId: execution, status, code, ...(message === undefined ? {} : { message }) };
    }
    case "skipped":
    case "paused":
      return { executionId: execution, status };
  }
}

function placeOf({ at }: RunState): Place {
  if (at === undefined) throw new Error("the run has entered no state");
  return at;
}
function visitsOf({ visits }: RunState, state: string): number {
  return visits.get(state) ?? 0;
}
function maxVisitsOf({ limits }: Machine): number {
  return limits.maxVisits ?? 10;
}
function joinedOf(upstream: ReadonlyMap<string, Json>, fork: object): readonly string[] {
  return [...upstream.keys()].filter((id) => Object.hasOwn(fork, id));
}

function fits({ states }: Machine, id: string, input: Json): boolean {
  const state = states.find((one) => one.id === id);
  if (state === undefined) return false;
  return !state.needsX || (isRecord(input) && typeof input.x === "number");
}

/** A choice that can be followed; undefined for one that cannot. */
function resolve(
  machine: Machine,
  node: RouteNode,
  scope: Scope,
  ownOutput: Json,
  event?: string,
): Resolved | undefined {
  const inputOf = (expr: RouteInput): Json => (expr === undefined ? null : evaluate(expr, scope));
  const works = (id: string, input: Json): boolean => fits(machine, id, input) && !isFinal(machine, id);
  switch (node.do) {
    case "to": {
      const input = inputOf(node.input);
      if (!fits(machine, node.state, input)) return undefined;
      if (node.context === undefined) return { kind: "to", state: node.state, input };
      if (node.context.some(([key]) => isReserved(key))) return undefined;
      const patch = recordOf(node.context.map(([key, value]) => [key, evaluate(value, scope)]));
      return { kind: "to", state: node.state, input, patch };
    }
    case "fanOut": {
      const children = node.siblings.map(
        ({ state, input }): Child => ({ kind: "sibling", key: state, state, input: inputOf(input) }),
      );
      const input = inputOf(node.input);
      const isValid =
        children.length > 0 &&
        hasOwnKeys(children) &&
        children.every((child) => child.key !== node.join && works(child.key, child.input)) &&
        node.siblings.every(({ context }) => context === undefined) &&
        fits(machine, node.join, input);
      if (!isValid) return undefined;
      return { kind: "fanOut", children, join: node.join, input, policy: node.onFailure ?? "cancel" };
    }
    case "forEach": {
      const items = evaluate(node.items, scope);
      if (!Array.isArray(items) || items.length > (machine.limits.maxItems ?? MAX_ITEMS)) return undefined;
      const children = items.map(
        (item: Json, index): Child => ({
          kind: "sibling",
          key: itemKey(node, item, index),
          state: node.state,
          input: item,
        }),
      );
      const input = inputOf(node.input);
      const isValid =
        hasOwnKeys(children) &&
        machine.states.some(({ id }) => id === node.state) &&
        node.state !== node.join &&
        children.every((child) => works(node.state, child.input)) &&
        fits(machine, node.join, input);
      if (!isValid) return undefined;
      const policy = node.onFailure ?? "cancel";
      return { kind: "fanOut", children, list: node.state, join: node.join, input, policy };
    }
    case "fork": {
      const { branches, onComplete: join, onFail } = node;
      const children = branches.map(
        ({ key, initial, terminal, input }): Child => ({
          kind: "branch",
          key,
          state: initial,
          terminal,
          input: inputOf(input),
        }),
      );
      const input = inputOf(node.input);
      const isValid =
        children.length > 0 &&
        branches.every((branch) => works(branch.initial, inputOf(branch.input)) && knows(machine, branch.terminal)) &&
        fits(machine, join, input) &&
        (onFail === undefined || fits(machine, onFail, null));
      if (!isValid) return undefined;
      const policy = node.join === "any" ? "any" : "cancel";
      return { kind: "fanOut", children, join, input, policy, ...(onFail === undefined ? {} : { onFail }) };
    }
    case "invoke": {
      const { pipeline, onComplete: join, onFail } = node;
      // A row names its event; what an agent makes up names nothing.
      const key = node.key ?? (event !== undefined && isId(event) ? event : pipeline);
      const input = node.input === undefined ? {} : inputOf(node.input);
      const children: readonly Child[] = [{ kind: "invoke", key, pipeline, input }];
      const isValid =
        machine.pipelines?.[pipeline] !== undefined &&
        fits(machine, join, null) &&
        (onFail === undefined || fits(machine, onFail, null));
      if (!isValid) return undefined;
      return {
        kind: "fanOut",
        children,
        join,
        input: null,
        policy: "cancel",
        ...(onFail === undefined ? {} : { onFail }),
      };
    }
    case "return":
      return { kind: "return" };
    case "stages": {
      const { stages, execution, join } = node;
      const [first] = stages;
      if (first === undefined) return { kind: "done", output: ownOutput };
      if (execution === "sequential") {
        return stages.length === 1 ? resolve(machine, { do: "to", state: first }, scope, ownOutput) : undefined;
      }
      if (stages.length < 2 || join === undefined) return undefined;
      const siblings = stages.map((state) => ({ state }));
      return resolve(machine, { do: "fanOut", siblings, join }, scope, ownOutput);
    }
    case "done":
      return { kind: "done", output: inputOf(node.output) };
    case "fail":
      return { kind: "fail", reason: node.reason };
    case "cancel":
      return { kind: "cancel", reason: node.reason };
    case "unrecordable":
    case "noChoice":
    case "throw":
      return undefined;
    case "later":
    case "if": {
      const branch = branchOf(node, scope);
      return resolve(machine, branch.node, scope, ownOutput);
    }
  }
}
type RouteInput = Parameters<typeof evaluate>[0] | undefined;

/** Whether a text may name a child run. */
function isId(text: string): boolean {
  return /^[A-Za-z][\w-]*$/.test(text) && !(text in Object.prototype);
}

function knows({ states }: Machine, id: string): boolean {
  return states.some((state) => state.id === id);
}
function isFinal({ states }: Machine, id: string): boolean {
  return states.some((state) => state.id === id && state.final !== undefined);
}
function hasOwnKeys(children: readonly Child[]): boolean {
  return new Set(children.map(({ key }) => key)).size === children.length;
}

function targetsOf(choice: Resolved): readonly string[] {
  if (choice.kind === "to") return [choice.state];
  if (choice.kind !== "fanOut") return [];
  const { children, list, join, onFail } = choice;
  // An empty list names its state too, and a branch its terminal.
  const states =
    list === undefined
      ? children.flatMap((child) => {
          if (child.kind === "invoke") return [];
          return child.kind === "branch" ? [child.state, child.terminal] : [child.state];
        })
      : [list];
  return [...states, join, ...(onFail === undefined ? [] : [onFail])];
}
