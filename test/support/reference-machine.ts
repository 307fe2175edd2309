import type { Json, JsonObject } from "@sluice/core";

// A second opinion on routing: where a run goes, what its code reads and what it writes on the way, computed from a machine that is
// plain data. It is written from docs/ alone and shares no module with the run loop.

/** A value computed from what a route reads. A path that leads nowhere is null. */
export type Expr =
  | { readonly op: "value"; readonly value: Json }
  | { readonly op: "read"; readonly path: readonly string[] }
  | { readonly op: "object"; readonly fields: readonly (readonly [string, Expr])[] }
  | { readonly op: "list"; readonly of: readonly Expr[] }
  | { readonly op: "same" | "below"; readonly left: Expr; readonly right: Expr };

/** What user code may return that no record can hold, and what is no choice at all. */
export type Unrecordable = "map" | "date" | "bigint" | "nan" | "function" | "cycle";
export type NoChoice =
  | "undefined"
  | "null"
  | "number"
  | "text"
  | "list"
  | "unknown kind"
  | "no reason"
  | "no state"
  | "no siblings"
  | "odd sibling"
  | "odd policy"
  | "odd context"
  | "odd stages"
  | "odd execution";

/** What a route does. Names of states may be wrong: a route is code. */
export type RouteNode =
  | { readonly do: "to"; readonly state: string; readonly input?: Expr; readonly context?: PatchNode }
  | {
      readonly do: "fanOut";
      readonly siblings: readonly SiblingNode[];
      readonly join: string;
      readonly input?: Expr;
      readonly onFailure?: "cancel" | "settle";
    }
  | ListNode
  | {
      readonly do: "stages";
      readonly stages: readonly string[];
      readonly execution: "sequential" | "parallel";
      readonly join?: string;
    }
  | { readonly do: "done"; readonly output?: Expr }
  | { readonly do: "fail" | "cancel"; readonly reason: string }
  /** A choice that holds such a value: `done`, or `to` a state with it in its input or patch. */
  | {
      readonly do: "unrecordable";
      readonly value: Unrecordable;
      readonly as: "output" | "input" | "context";
      readonly state: string;
    }
  | { readonly do: "noChoice"; readonly value: NoChoice; readonly states: readonly [string, string] }
  | { readonly do: "throw"; readonly message: string }
  /** A promise of what another node does. */
  | { readonly do: "later"; readonly promised: RouteNode }
  | { readonly do: "if"; readonly when: Expr; readonly yes: RouteNode; readonly no: RouteNode };
export type PatchNode = readonly (readonly [string, Expr])[];
export interface SiblingNode {
  readonly state: string;
  readonly input?: Expr;
  readonly context?: PatchNode;
}
/** One state over a list of items. */
export interface ListNode {
  readonly do: "forEach";
  readonly state: string;
  readonly items: Expr;
  /** The field of an item that is its key; without it the index is. */
  readonly key?: string;
  readonly join: string;
  readonly input?: Expr;
  readonly onFailure?: "cancel" | "settle";
  readonly maxParallel?: number;
}
export type GuardNode =
  | { readonly guard: "returns"; readonly value: Expr }
  | { readonly guard: "throws" }
  | { readonly guard: "later"; readonly promised: GuardNode };

/** How one execution of a state ends. */
export type Outcome =
  | { readonly status: "completed"; readonly output: Json }
  | { readonly status: "failed"; readonly code: "tool" | "model" | "timeout"; readonly message: string }
  | { readonly status: "skipped" }
  | { readonly status: "cancelled"; readonly reason: string };
export interface StateNode {
  readonly id: string;
  /** Whether its inputSchema asks for an object with a number `x`. */
  readonly needsX: boolean;
  /** By visit, and by `pick` of the input; after the last come the first again. */
  readonly outcomes: readonly Outcome[];
}
export interface RouteFunctionNode {
  /** Declared with `route([…], fn)`. */
  readonly targets?: readonly string[];
  readonly body: RouteNode;
}
export interface StateRoutesNode {
  readonly completed: RouteFunctionNode;
  readonly failed?: RouteFunctionNode;
  readonly skipped?: RouteFunctionNode;
}
export interface RowNode {
  readonly from: string;
  readonly on: "success" | "failure" | "skipped";
  readonly when?: GuardNode;
  readonly to: string | RouteNode;
}
export interface Machine {
  readonly states: readonly StateNode[];
  readonly initial: string;
  readonly input: JsonObject;
  readonly context: JsonObject;
  readonly limits: { readonly maxVisits?: number; readonly maxHops?: number; readonly maxItems?: number };
  readonly routes:
    | { readonly kind: "functions"; readonly next: Readonly<Record<string, StateRoutesNode>> }
    | { readonly kind: "table"; readonly rows: readonly RowNode[] };
}

/** How a child ended, as `ctx.fork` shows it. */
export type Ended =
  | { readonly status: "completed" | "skipped" }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string };
/** What the code of one execution reads. */
export interface Sight {
  readonly visit: number;
  readonly input: Json;
  readonly upstream: JsonObject;
  readonly context: JsonObject;
  readonly fork?: Readonly<Record<string, Ended>>;
  /** The branches that `fork` names and `upstream` holds, in the order of its keys. */
  readonly joined?: readonly string[];
  readonly items?: Readonly<Record<string, readonly ItemEnd[]>>;
}
export type ItemEnd = Ended & { readonly key: string; readonly output?: Json };
/** What a route function or a condition is called with. */
export interface Asked {
  readonly execution: string;
  /** The row of a table whose condition it is. */
  readonly row?: number;
  readonly result: Json;
  readonly sight: Sight;
  /** Siblings that may have been cancelled before they ended like this. */
  readonly raced?: readonly string[];
}
export interface Entered {
  readonly execution: string;
  readonly sight: Sight;
}
export type TraceEvent =
  | { readonly type: "attempt.started"; readonly execution: string; readonly visit: number }
  | { readonly type: "attempt.finished"; readonly execution: string; readonly outcome: string; readonly code?: string }
  | { readonly type: "route.rejected"; readonly execution: string; readonly from: string }
  | RouteDecided
  | { readonly type: "context.changed"; readonly execution: string; readonly patch: JsonObject }
  | { readonly type: "limit.reached"; readonly limit: string }
  | {
      readonly type: "fanOut.started";
      readonly fanOut: string;
      readonly siblings: readonly string[];
      readonly join: string;
    }
  | {
      readonly type: "fanOut.joined";
      readonly fanOut: string;
      readonly outcomes: readonly { readonly name: string; readonly status: string }[];
      readonly raced?: readonly string[];
    }
  | { readonly type: "run.finished"; readonly status: string; readonly code?: string; readonly message?: string };
export interface RouteDecided {
  readonly type: "route.decided";
  readonly execution: string;
  readonly from: string;
  readonly choice: string;
  readonly to?: string | readonly string[];
  readonly join?: string;
  /** Of `fail(reason)` and `cancel(reason)`; the texts of Sluice's own reasons are free. */
  readonly reason?: string;
  readonly by: "function" | "table" | "default";
  readonly row?: number;
  /** The rows whose condition was asked and did not answer true. */
  readonly refused?: readonly number[];
}
/** What one run of a tree does: the root, or a child of a fan-out. */
export interface RunTrace {
  readonly events: readonly TraceEvent[];
  readonly entered: readonly Entered[];
  readonly asked: readonly Asked[];
  /** It may be cancelled at any point of this, by a sibling that fails. */
  readonly raced: boolean;
}
export interface StageEnd {
  readonly execution: string;
  readonly status: string;
  readonly code?: string;
  readonly output?: Json;
  readonly raced: boolean;
}
export type End =
  | { readonly status: "completed"; readonly output: Json }
  /** Without a message where Sluice words it. */
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message?: string };
export interface Expectation {
  /** By what follows the root's id in the run's own: `""`, `/fan-1/b`. */
  readonly runs: ReadonlyMap<string, RunTrace>;
  readonly stages: readonly StageEnd[];
  readonly end: End;
}

/** The longest list that a run accepts, unless `limits.maxItems` says otherwise. */
const MAX_ITEMS = 1_000;

export interface Scope {
  readonly result: Json;
  readonly ctx: Json;
}
export function evaluate(expr: Expr, scope: Scope): Json {
  switch (expr.op) {
    case "value":
      return expr.value;
    case "read":
      return expr.path.reduce<Json>(
        (from, key) => (isRecord(from) && Object.hasOwn(from, key) ? (from[key] ?? null) : null),
        { result: scope.result, ctx: scope.ctx },
      );
    case "object":
      return recordOf(expr.fields.map(([key, value]) => [key, evaluate(value, scope)]));
    case "list":
      return expr.of.map((item) => evaluate(item, scope));
    case "same":
      return same(evaluate(expr.left, scope), evaluate(expr.right, scope));
    case "below": {
      const left = evaluate(expr.left, scope);
      const right = evaluate(expr.right, scope);
      return typeof left === "number" && typeof right === "number" && left < right;
    }
  }
}

/** The outcome of one execution, which both sides look up. */
export function outcomeOf(state: StateNode, visit: number, input: Json): Outcome {
  const pick = isRecord(input) && typeof input.pick === "number" ? input.pick : 0;
  const outcome = state.outcomes[(visit - 1 + pick) % state.outcomes.length];
  if (outcome === undefined) throw new Error(`state ${state.id} has no outcomes`);
  return outcome;
}

/** The key of one item of a list, which both sides compute. */
export function itemKey({ key }: ListNode, item: Json, index: number): string {
  const own = key !== undefined && isRecord(item) ? item[key] : undefined;
  return typeof own === "string" ? own : String(index);
}

/** The branch that a node takes, with nothing but the last node and whether it came as a promise. */
export function branchOf(node: RouteNode, scope: Scope): { readonly node: RouteNode; readonly later: boolean } {
  if (node.do === "if") return branchOf(evaluate(node.when, scope) === true ? node.yes : node.no, scope);
  if (node.do === "later") return { ...branchOf(node.promised, scope), later: true };
  return { node, later: false };
}

type Resolved =
  | { readonly kind: "to"; readonly state: string; readonly input: Json; readonly patch?: JsonObject }
  | {
      readonly kind: "fanOut";
      readonly children: readonly { readonly key: string; readonly state: string; readonly input: Json }[];
      readonly list?: string;
      readonly join: string;
      readonly input: Json;
      readonly onFailure: "cancel" | "settle";
    }
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "cancel"; readonly reason: string };

/** A choice that can be followed; undefined for one that cannot. */
function resolve(machine: Machine, node: RouteNode, scope: Scope, ownOutput: Json): Resolved | undefined {
  const states = new Map(machine.states.map((state) => [state.id, state]));
  const fits = (id: string, input: Json): boolean => {
    const state = states.get(id);
    if (state === undefined) return false;
    return !state.needsX || (isRecord(input) && typeof input.x === "number");
  };
  const inputOf = (expr: Expr | undefined): Json => (expr === undefined ? null : evaluate(expr, scope));
  switch (node.do) {
    case "to": {
      const input = inputOf(node.input);
      if (!fits(node.state, input)) return undefined;
      if (node.context === undefined) return { kind: "to", state: node.state, input };
      if (node.context.some(([key]) => key === "__proto__" || key === "constructor" || key.startsWith("_")))
        return undefined;
      const patch = recordOf(node.context.map(([key, value]) => [key, evaluate(value, scope)]));
      return { kind: "to", state: node.state, input, patch };
    }
    case "fanOut": {
      const children = node.siblings.map(({ state, input }) => ({ key: state, state, input: inputOf(input) }));
      const input = inputOf(node.input);
      const isValid =
        children.length > 0 &&
        new Set(children.map(({ key }) => key)).size === children.length &&
        children.every((child) => child.state !== node.join && fits(child.state, child.input)) &&
        node.siblings.every(({ context }) => context === undefined) &&
        fits(node.join, input);
      if (!isValid) return undefined;
      return {
        kind: "fanOut",
        children,
        join: node.join,
        input,
        onFailure: node.onFailure ?? "cancel",
      };
    }
    case "forEach": {
      const items = evaluate(node.items, scope);
      if (!Array.isArray(items) || items.length > (machine.limits.maxItems ?? MAX_ITEMS)) return undefined;
      const children = items.map((item: Json, index) => ({
        key: itemKey(node, item, index),
        state: node.state,
        input: item,
      }));
      const input = inputOf(node.input);
      const isValid =
        new Set(children.map(({ key }) => key)).size === children.length &&
        states.has(node.state) &&
        node.state !== node.join &&
        children.every((child) => fits(child.state, child.input)) &&
        fits(node.join, input);
      if (!isValid) return undefined;
      const onFailure = node.onFailure ?? "cancel";
      return { kind: "fanOut", children, list: node.state, join: node.join, input, onFailure };
    }
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
    case "cancel":
      return { kind: node.do, reason: node.reason };
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

function targetsOf(choice: Resolved): readonly string[] {
  if (choice.kind === "to") return [choice.state];
  if (choice.kind !== "fanOut") return [];
  // An empty list names its state too.
  return choice.list === undefined
    ? [...choice.children.map(({ state }) => state), choice.join]
    : [choice.list, choice.join];
}

interface Decision {
  readonly choice: Resolved;
  readonly by: RouteDecided["by"];
  readonly rejected: boolean;
  readonly row?: number;
  readonly refused?: readonly number[];
  /** The code of the run's end, if the choice is Sluice's own. */
  readonly code?: string;
}
/** A result as far as routes and records tell it. */
type Result =
  | { readonly status: "completed"; readonly output: Json }
  | { readonly status: "failed"; readonly code: string; readonly message?: string }
  | { readonly status: "skipped" };

/** What the pipeline says about a result, and who is asked on the way. */
function decide(machine: Machine, state: string, result: Result, scope: Scope, asks: (row?: number) => void): Decision {
  const ownOutput = result.status === "completed" ? result.output : null;
  const unhandled: Decision = {
    choice: { kind: "fail", reason: "" },
    by: "default",
    rejected: false,
    code: result.status === "failed" ? result.code : "failed",
  };
  if (machine.routes.kind === "functions") {
    const fn = machine.routes.next[state]?.[result.status];
    if (fn === undefined) return unhandled;
    asks();
    const choice = resolve(machine, fn.body, scope, ownOutput);
    const { targets } = fn;
    if (
      choice === undefined ||
      (targets !== undefined && targetsOf(choice).some((target) => !targets.includes(target)))
    )
      return { choice: { kind: "fail", reason: "" }, by: "function", rejected: true, code: "failed" };
    return { choice, by: "function", rejected: false };
  }
  const event = { completed: "success", failed: "failure", skipped: "skipped" }[result.status];
  const refused: number[] = [];
  for (const [index, row] of machine.routes.rows.entries()) {
    if ((row.from !== "*" && row.from !== state) || row.on !== event) continue;
    if (row.when !== undefined) {
      asks(index);
      if (!fires(row.when, scope)) {
        refused.push(index);
        continue;
      }
    }
    const node: RouteNode = typeof row.to === "string" ? { do: "to", state: row.to } : row.to;
    const choice = resolve(machine, node, scope, ownOutput);
    if (choice === undefined) return { ...unhandled, by: "table", rejected: true, row: index, refused, code: "failed" };
    return { choice, by: "table", rejected: false, row: index, refused };
  }
  return { ...unhandled, refused };
}

function fires(guard: GuardNode, scope: Scope): boolean {
  if (guard.guard === "later") return fires(guard.promised, scope);
  return guard.guard === "returns" && evaluate(guard.value, scope) === true;
}

/** What a run of the machine does from its start to its end. */
export function interpret(machine: Machine): Expectation {
  const { maxVisits = 10, maxHops = 10 * machine.states.length } = machine.limits;
  const runs = new Map<string, RunTrace>();
  const stages: StageEnd[] = [];
  const events: TraceEvent[] = [];
  const entered: Entered[] = [];
  const asked: Asked[] = [];
  const visits = new Map<string, number>();
  const upstream = new Map<string, Json>();
  let context = machine.context;
  let hops = 0;
  let fanOuts = 0;

  const visitsOf = (state: string): number => visits.get(state) ?? 0;
  const finish = (end: End): Expectation => {
    const { status } = end;
    events.push({
      type: "run.finished",
      status,
      ...(end.status === "completed"
        ? {}
        : { code: end.code, ...(end.message === undefined ? {} : { message: end.message }) }),
    });
    runs.set("", { events, entered, asked, raced: false });
    return { runs, stages, end };
  };
  const capped = (limit: "maxHops" | "maxVisits"): Expectation => {
    events.push({ type: "limit.reached", limit });
    return finish({ status: "failed", code: limit === "maxHops" ? "limit_hops" : "limit_visits" });
  };

  let next: { readonly state: string; readonly input: Json; readonly also?: Also } = {
    state: machine.initial,
    input: machine.input,
  };
  for (;;) {
    const { state: id, input, also = {} } = next;
    if (visitsOf(id) >= maxVisits) return capped("maxVisits");
    const visit = visitsOf(id) + 1;
    visits.set(id, visit);
    const state = stateOf(machine, id);
    const execution = `${id}#${visit}`;
    const outcome = outcomeOf(state, visit, input);
    const sight = (more: Also = also): Sight => ({ visit, input, upstream: recordOf([...upstream]), context, ...more });
    entered.push({ execution, sight: sight() });
    events.push(...attempt(execution, visit, outcome));
    stages.push(stageEnd(execution, outcome, false));
    if (outcome.status === "cancelled") {
      return finish({ status: "cancelled", code: "cancelled", message: outcome.reason });
    }

    let result: Result = outcome;
    let seen = sight();
    let raced: readonly string[] = [];
    // A fan-out that fails hands its failure to the routes of the state that began it, so one execution may be routed again.
    for (;;) {
      const facts = resultFacts(execution, result);
      const decision = decide(machine, id, result, scopeOf(facts, seen), (row) => {
        asked.push({
          execution,
          ...(row === undefined ? {} : { row }),
          result: facts,
          sight: seen,
          ...(raced.length > 0 ? { raced } : {}),
        });
      });
      const { choice, code } = decision;
      // A route reads its own state's output from the result; the states after it read it from upstream.
      if (result.status === "completed") upstream.set(id, result.output);
      if (decision.rejected) events.push({ type: "route.rejected", execution, from: id });
      events.push(decided(execution, id, decision));
      if (choice.kind === "done") return finish({ status: "completed", output: choice.output });
      if (choice.kind === "fail" || choice.kind === "cancel") {
        const status = choice.kind === "fail" ? "failed" : "cancelled";
        return finish(code === undefined ? { status, code: status, message: choice.reason } : { status, code });
      }
      if (choice.kind === "to" && choice.patch !== undefined) {
        events.push({ type: "context.changed", execution, patch: choice.patch });
        context = recordOf([...Object.entries(context), ...Object.entries(choice.patch)]);
      }
      hops += 1;
      if (hops > maxHops) return capped("maxHops");
      if (choice.kind === "to") {
        next = { state: choice.state, input: choice.input };
        break;
      }

      const { children, join, list } = choice;
      if (list !== undefined && children.length === 0) {
        upstream.delete(list);
        next = { state: join, input: choice.input, also: { items: { [list]: [] } } };
        break;
      }
      const branches = [...new Set(children.map((child) => child.state))];
      if (branches.some((branch) => visitsOf(branch) >= maxVisits)) return capped("maxVisits");
      for (const branch of branches) visits.set(branch, visitsOf(branch) + 1);
      fanOuts += 1;
      const fanOut = `fan-${fanOuts}`;
      const ends = children.map((child) => {
        const childVisit = visitsOf(child.state);
        return {
          ...child,
          visit: childVisit,
          outcome: outcomeOf(stateOf(machine, child.state), childVisit, child.input),
        };
      });
      const hasFailed = ends.some((end) => isFailure(end.outcome));
      const isCancelled = hasFailed && choice.onFailure === "cancel";
      // Which of them end before the first failure reaches them is a matter of time.
      const late = isCancelled ? ends.map(({ key }) => key) : [];
      events.push({ type: "fanOut.started", fanOut, siblings: children.map(({ key }) => key), join });
      for (const end of ends) {
        runs.set(`/${fanOut}/${end.key}`, childTrace(end, { upstream: recordOf([...upstream]), context }, isCancelled));
        stages.push(stageEnd(`${end.state}#${end.visit}`, end.outcome, isCancelled));
      }
      events.push({
        type: "fanOut.joined",
        fanOut,
        outcomes: ends.map(({ key, outcome: how }) => ({
          name: key,
          status: how.status === "skipped" ? "completed" : how.status,
        })),
        ...(isCancelled ? { raced: late } : {}),
      });
      const fork = Object.fromEntries(ends.map(({ key, outcome: how }) => [key, endedAs(how)]));
      const items = ends.map(({ key, outcome: how }): ItemEnd => {
        const ended = { ...endedAs(how), key };
        return how.status === "completed" ? { ...ended, output: how.output } : ended;
      });
      const joined = (): Also =>
        list === undefined ? { fork, joined: joinedOf(upstream, fork) } : { items: { [list]: items } };
      if (isCancelled) {
        result = { status: "failed", code: "fan_out" };
        seen = sight(joined());
        raced = late;
        continue;
      }
      const outputs = ends.flatMap(({ state: branch, outcome: how }): (readonly [string, Json])[] =>
        how.status === "completed" ? [[branch, how.output]] : [],
      );
      // The join reads what its branches say now, in declared order, and nothing of what they said in an earlier fan-out.
      for (const { state: branch } of ends) upstream.delete(branch);
      for (const [branch, output] of outputs) upstream.set(branch, output);
      next = { state: join, input: choice.input, also: joined() };
      break;
    }
  }
}

type Also = Pick<Sight, "fork" | "items" | "joined">;

function joinedOf(upstream: ReadonlyMap<string, Json>, fork: object): readonly string[] {
  return [...upstream.keys()].filter((id) => Object.hasOwn(fork, id));
}

function stateOf(machine: Machine, id: string): StateNode {
  const state = machine.states.find((one) => one.id === id);
  if (state === undefined) throw new Error(`the machine has no state ${id}`);
  return state;
}

function isFailure(outcome: Outcome): boolean {
  return outcome.status === "failed" || outcome.status === "cancelled";
}

function attempt(execution: string, visit: number, outcome: Outcome): readonly TraceEvent[] {
  const code = outcome.status === "failed" ? { code: outcome.code } : {};
  return [
    { type: "attempt.started", execution, visit },
    { type: "attempt.finished", execution, outcome: outcome.status, ...code },
  ];
}

function stageEnd(execution: string, outcome: Outcome, raced: boolean): StageEnd {
  const { status } = outcome;
  const code = status === "failed" ? { code: outcome.code } : {};
  const output = status === "completed" ? { output: outcome.output } : {};
  return { execution, status, ...code, ...output, raced };
}

function endedAs(outcome: Outcome): Ended {
  switch (outcome.status) {
    case "completed":
    case "skipped":
      return { status: outcome.status };
    case "failed":
      return { status: "failed", code: outcome.code, message: outcome.message };
    case "cancelled":
      return { status: "cancelled", code: "cancelled", message: outcome.reason };
  }
}

/** A child of a fan-out: one execution, and no route. */
function childTrace(
  child: { readonly state: string; readonly input: Json; readonly visit: number; readonly outcome: Outcome },
  from: Pick<Sight, "upstream" | "context">,
  raced: boolean,
): RunTrace {
  const { input, visit, outcome } = child;
  const execution = `${child.state}#${visit}`;
  const status = outcome.status === "skipped" ? "completed" : outcome.status;
  return {
    events: [...attempt(execution, visit, outcome), { type: "run.finished", status }],
    entered: [{ execution, sight: { visit, input, ...from } }],
    asked: [],
    raced,
  };
}

function decided(execution: string, from: string, { choice, by, row, refused, code }: Decision): RouteDecided {
  const base = {
    type: "route.decided",
    execution,
    from,
    by,
    ...(row === undefined ? {} : { row }),
    ...(refused === undefined || refused.length === 0 ? {} : { refused }),
  } as const;
  switch (choice.kind) {
    case "to":
      return { ...base, choice: "to", to: choice.state };
    case "fanOut":
      return {
        ...base,
        choice: "fanOut",
        to: choice.list === undefined ? choice.children.map(({ state }) => state) : [choice.list],
        join: choice.join,
      };
    case "done":
      return { ...base, choice: "done" };
    case "fail":
    case "cancel":
      return { ...base, choice: choice.kind, ...(code === undefined ? { reason: choice.reason } : {}) };
  }
}

/** The fields of a result that routes of these machines may read. */
function resultFacts(execution: string, result: Result): JsonObject {
  switch (result.status) {
    case "completed":
      return { executionId: execution, status: "completed", output: result.output };
    case "failed": {
      const { code, message } = result;
      return { executionId: execution, status: "failed", code, ...(message === undefined ? {} : { message }) };
    }
    case "skipped":
      return { executionId: execution, status: "skipped" };
  }
}

function scopeOf(result: JsonObject, sight: Sight): Scope {
  const { fork, items, joined: _order, ...plain } = sight;
  return {
    result,
    ctx: {
      ...plain,
      ...(fork === undefined ? {} : { fork }),
      ...(items === undefined ? {} : { items }),
    },
  };
}

function isRecord(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object of its own keys, whatever they are called. */
function recordOf(entries: readonly (readonly [string, Json])[]): JsonObject {
  return Object.fromEntries(entries);
}

function same(left: Json, right: Json): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
