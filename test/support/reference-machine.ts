import type { Json, JsonObject } from "@sluice/core";

// A machine as plain data, and what a run of it shows. The second opinion on routing reads it (reference-step.ts: one transition,
// reference-run.ts: a whole run); it is written from the documentation alone and shares no module with the machine or the run loop.

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
  | ForkNode
  | InvokeNode
  /** `$return`: back to the execution that an interrupt suspended. */
  | { readonly do: "return" }
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
/** Branches of several states, each until its terminal. */
export interface ForkNode {
  readonly do: "fork";
  readonly branches: readonly {
    readonly key: string;
    readonly initial: string;
    readonly terminal: string;
    readonly input?: Expr;
  }[];
  readonly join?: "all" | "any";
  readonly onComplete: string;
  readonly onFail?: string;
  readonly input?: Expr;
}
/** A run of another machine. */
export interface InvokeNode {
  readonly do: "invoke";
  readonly pipeline: string;
  readonly key?: string;
  readonly onComplete: string;
  readonly onFail?: string;
  readonly input?: Expr;
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
  | { readonly status: "paused"; readonly request: Json }
  | { readonly status: "cancelled"; readonly reason: string };
/** What one execution does before its outcome, if it comes to that. */
export type Act =
  | { readonly act: "event"; readonly event: string; readonly data: JsonObject }
  /** It changes a file of the workspace. */
  | { readonly act: "touch"; readonly path: string };
export interface StateNode {
  readonly id: string;
  /** A final state: how the run ends. */
  readonly final?: "completed" | "failed" | "cancelled";
  /** It completes by events, and has no output of its own. */
  readonly events?: true;
  /** As `outcomes`. */
  readonly acts?: readonly (readonly Act[])[];
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
  readonly on: "success" | "failure" | "skipped" | "pause" | { readonly event: string };
  readonly when?: GuardNode;
  readonly to: string | RouteNode;
  readonly approval?: ApprovalNode;
}
/** A person has to agree first. */
export interface ApprovalNode {
  readonly message?: string;
  /** What they say, by visit; after the last come the first again. */
  readonly says: readonly ("yes" | "no" | "nobody")[];
}
/** What the person reads, which names the row. */
export function approvalMessage({ message }: ApprovalNode, row: number): string | undefined {
  return message === undefined ? undefined : `${message} (row ${row})`;
}
export interface InterruptNode {
  readonly name: string;
  readonly files: string;
  readonly target: string;
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
  readonly interrupts?: readonly InterruptNode[];
  /** Of a branch's walk: the state that completes it, and is not entered. */
  readonly terminal?: string;
  /** The machines that it may invoke. */
  readonly pipelines?: Readonly<Record<string, Machine>>;
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
  /** As in `Asked`. */
  readonly raced?: readonly string[];
}
export type TraceEvent =
  | { readonly type: "attempt.started"; readonly execution: string; readonly visit: number }
  | { readonly type: "attempt.finished"; readonly execution: string; readonly outcome: string; readonly code?: string }
  | { readonly type: "route.rejected"; readonly execution: string; readonly from: string }
  | {
      readonly type: "transition.accepted" | "transition.rejected";
      readonly execution: string;
      readonly turn: number;
      readonly event: string;
    }
  | {
      readonly type: "interrupt.started" | "interrupt.returned";
      readonly execution: string;
      readonly interrupt: string;
      readonly other: string;
    }
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
      /** Those of which the first to end cancels the others. */
      readonly deciding?: readonly string[];
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
  readonly by: "function" | "table" | "default" | "event" | "safe_next" | "interrupt";
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
  /** Time decides where it goes, so that no run can be compared with it. */
  readonly isOpen?: boolean;
}

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

/** What one execution does before that, which both sides look up too. */
export function actsOf({ acts = [] }: StateNode, visit: number, input: Json): readonly Act[] {
  const pick = isRecord(input) && typeof input.pick === "number" ? input.pick : 0;
  return acts[(visit - 1 + pick) % Math.max(1, acts.length)] ?? [];
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

export function isRecord(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object of its own keys, whatever they are called. */
export function recordOf(entries: readonly (readonly [string, Json])[]): JsonObject {
  return Object.fromEntries(entries);
}

function same(left: Json, right: Json): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

export function nodeOf({ states }: Machine, id: string): StateNode {
  const node = states.find((one) => one.id === id);
  if (node === undefined) throw new Error(`the machine has no state ${id}`);
  return node;
}
