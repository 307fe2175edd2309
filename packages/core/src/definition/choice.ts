import { isJsonObject, isObject, isTexts, type JsonObject, toJsonValue } from "../base/json.ts";
import { idFault, suggestOneOf } from "../base/problems.ts";
import { isCount } from "./state-rules.ts";

// What a choice sends to a state, at compile time only. A pipeline compares it with what its states take, apart from their names: a
// union of one choice for each state would not let the compiler suggest the nearest name.
declare const INPUTS: unique symbol;
/** States by name, as functions of their inputs. */
type Sends<T extends string, I> = (states: { readonly [K in T]: (input: I) => void }) => void;

/** Continues in a state, whose input is not checked by the compiler. */
export interface ToAny<T extends string> {
  readonly kind: "to";
  readonly state: T;
  readonly input: unknown;
  /** Merged shallowly into `ctx.context`. */
  readonly context?: JsonObject;
}
/** Continues in a state. */
export interface To<T extends string, I = undefined> extends ToAny<T> {
  readonly input: I;
  readonly [INPUTS]?: Sends<T, I>;
}
/** Continues in one of the states that `Takes` has, by name, as functions of their inputs. The name is compared first, which an interface that extends `ToAny` would not do. */
export interface ToOneOf<T extends string, Takes> {
  readonly kind: "to";
  readonly state: T;
  readonly input: unknown;
  readonly context?: JsonObject;
  readonly [INPUTS]?: (states: Takes) => void;
}
export interface FanOut<T extends string, J extends string> {
  readonly kind: "fanOut";
  readonly siblings: readonly (T | ToAny<T>)[];
  readonly join: J;
  /** The join's input. */
  readonly input?: unknown;
  /** `cancel` (default): one failure cancels the rest and fails the fan-out. `settle`: all run to their ends, which the join sees in `ctx.fork`. */
  readonly onFailure?: "cancel" | "settle";
}
/** Runs one state for each item of a list, which is not checked by the compiler. */
export interface ForEachAny<T extends string, J extends string> {
  readonly kind: "forEach";
  readonly state: T;
  /** Each is the input of one child. */
  readonly items: readonly unknown[];
  /** One for each item, in the same order. */
  readonly keys: readonly string[];
  readonly join: J;
  /** The join's input. */
  readonly input?: unknown;
  readonly onFailure?: "cancel" | "settle";
  readonly maxParallel?: number;
}
/** Runs one state for each item of a list. */
export interface ForEach<T extends string, I, J extends string> extends ForEachAny<T, J> {
  readonly items: readonly I[];
  readonly [INPUTS]?: Sends<T, I>;
}
/** Runs one of the states that `Takes` has for each item of a list. */
export interface ForEachOneOf<T extends string, J extends string, Takes> {
  readonly kind: "forEach";
  readonly state: T;
  readonly items: readonly unknown[];
  readonly keys: readonly string[];
  readonly join: J;
  readonly input?: unknown;
  readonly onFailure?: "cancel" | "settle";
  readonly maxParallel?: number;
  readonly [INPUTS]?: (states: Takes) => void;
}
export interface ForEachOptions<I, J extends string> {
  readonly join: J;
  /** Names an item: its child's journal and its result. Unique in the list. Default: the index. */
  readonly key?: (item: I, index: number) => string;
  /** The join's input. */
  readonly input?: unknown;
  /** As in `fanOut`. */
  readonly onFailure?: "cancel" | "settle";
  /** How many items run at the same time, at most as many as the session allows. */
  readonly maxParallel?: number;
}
/** One branch of a fork: from `initial` along its routes until they lead to `terminal`, which is not entered. */
export interface Branch<T extends string> {
  readonly initial: T;
  readonly terminal: T;
  /** Of the initial state. */
  readonly input?: unknown;
}
/** Runs branches of the same pipeline concurrently, each in its own child run with a copy of the context. */
export interface Fork<T extends string> extends ForkOptions<T> {
  readonly kind: "fork";
  /** By key. The output of a branch is `ctx.upstream.<key>`. */
  readonly branches: Readonly<Record<string, Branch<T>>>;
}
export interface ForkOptions<T extends string> {
  /** `all` (default): one failed branch cancels the others and fails the fork. `any`: the first completed branch cancels the others; the fork fails if all fail. */
  readonly join?: "all" | "any";
  /** The state that a completed fork continues in. */
  readonly onComplete: T;
  /** The state that a failed fork continues in. Without it, the failure is one of the state that forked. */
  readonly onFail?: T;
  /** The input of `onComplete`. */
  readonly input?: unknown;
}
/** Runs another pipeline as a child run. */
export interface Invoke<T extends string> extends InvokeOptions<T> {
  readonly kind: "invoke";
  /** A key of the pipeline's `pipelines`. */
  readonly pipeline: string;
}
export interface InvokeOptions<T extends string> {
  /** Names the child run, and its output in `ctx.upstream`. Default: the event that led here, else the name of the pipeline. */
  readonly key?: string;
  /** The state that continues after the child has completed. */
  readonly onComplete: T;
  /** The state that continues after the child has failed. Without it, the failure is one of the state that invoked. */
  readonly onFail?: T;
  /** Merged into the child's initial context. */
  readonly input?: JsonObject;
}
/** Continues the execution that an interrupt suspended. */
export interface Return {
  readonly kind: "return";
}
export interface Done<O> {
  readonly kind: "done";
  readonly output: O;
}
export interface Fail {
  readonly kind: "fail";
  readonly reason: string;
}
export interface Cancel {
  readonly kind: "cancel";
  readonly reason: string;
}
/** A choice as data: [] is done with the state's output, one sequential stage is `to`, two or more parallel ones are `fanOut`. */
export interface StageList<T extends string> {
  readonly stages: readonly T[];
  readonly execution: "sequential" | "parallel";
  readonly join?: T;
}
/** A choice with unchecked state names. */
export type AnyChoice =
  | ToAny<string>
  | FanOut<string, string>
  | ForEachAny<string, string>
  | Fork<string>
  | Invoke<string>
  | Return
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<string>;

/** Continues in a state. `input` is checked against its `inputSchema`; `context` is merged into the run's. */
export function to<const T extends string>(state: T): To<T>;
export function to<const T extends string, I>(
  state: T,
  input: I,
  options?: { readonly context?: JsonObject },
): To<T, I>;
export function to(state: string, input?: unknown, options: { readonly context?: JsonObject } = {}): ToAny<string> {
  return { kind: "to", state, input, ...options };
}

/** Runs several states concurrently, each in its own child run, then continues in `join`, which sees their outputs upstream. */
export function fanOut<const T extends string, const J extends string>(
  siblings: readonly (T | ToAny<T>)[],
  options: { readonly join: J; readonly input?: unknown; readonly onFailure?: "cancel" | "settle" },
): FanOut<T, J> {
  return { kind: "fanOut", siblings, ...options };
}

/**
 * Runs a state once for each item of a list, each in its own child run with the item as its input, then continues in `join`, which
 * reads how each item ended in `ctx.items`. An empty list continues in `join` at once.
 */
export function forEach<const T extends string, I, const J extends string>(
  state: T,
  items: readonly I[],
  options: ForEachOptions<I, J>,
): ForEach<T, I, J> {
  const { key = (_item, index) => String(index), ...rest } = options;
  // Plain JavaScript may pass anything; what is not a list is refused where the choice is read.
  const keys = Array.isArray(items) ? items.map((item: I, index) => key(item, index)) : [];
  return { kind: "forEach", state, items, keys, ...rest };
}

/**
 * Runs several branches concurrently, each in its own child run that walks from its `initial` state to its `terminal` one, then
 * continues in `onComplete`, which sees the output of each branch in `ctx.upstream.<key>` and how it ended in `ctx.fork`.
 */
export function fork<const B extends string, const J extends string>(
  branches: Readonly<Record<string, Branch<B>>>,
  options: ForkOptions<J>,
): Fork<B | J> {
  return { kind: "fork", branches, ...options };
}

/** Runs another pipeline, one of `pipelines`, in a child run, then continues in `onComplete`, which sees its output upstream. */
export function invoke<const T extends string>(pipeline: string, options: InvokeOptions<T>): Invoke<T> {
  return { kind: "invoke", pipeline, ...options };
}

/** Continues the execution that an interrupt suspended. Only what an interrupt's target does may lead to it. */
export function backToInterrupted(): Return {
  return { kind: "return" };
}

/** Ends the run as completed. */
export function done<O>(output: O): Done<O> {
  return { kind: "done", output };
}

/** Ends the run as failed. */
export function fail(reason: string): Fail {
  return { kind: "fail", reason };
}

/** Ends the run as cancelled. */
export function cancel(reason: string): Cancel {
  return { kind: "cancel", reason };
}

/** What a route with declared targets may return: a choice among them, or an end. */
export type ChoiceAmong<T extends string> =
  | ToAny<T>
  | FanOut<T, T>
  | ForEachAny<T, T>
  | Fork<T>
  | Invoke<T>
  | Return
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<T>;
/** A route with declared targets. */
export interface DeclaredRoute<Result, Ctx, C> {
  (result: Result, ctx: Ctx): C;
  readonly targets: readonly string[];
}

/**
 * Declares the targets of a route for checks and graphs. Any other target is refused; a bare function may choose any.
 */
export function route<const T extends string, Result, Ctx, C extends ChoiceAmong<T>>(
  targets: readonly T[],
  fn: (result: Result, ctx: Ctx) => C,
): DeclaredRoute<Result, Ctx, C> {
  return Object.assign((result: Result, ctx: Ctx): C => fn(result, ctx), { targets });
}

/** A route's declared targets; undefined for a bare function. */
export function declaredTargets(candidate: unknown): readonly string[] | undefined {
  if (typeof candidate !== "function" || !("targets" in candidate) || !Array.isArray(candidate.targets))
    return undefined;
  return candidate.targets.filter((target) => typeof target === "string");
}

/** A well-formed choice of known states, with unchecked payloads. */
export type ChoiceShape =
  | { readonly kind: "to"; readonly state: string; readonly input: unknown; readonly context?: JsonObject }
  | {
      readonly kind: "fanOut";
      readonly siblings: readonly SiblingShape[];
      readonly join: string;
      readonly input: unknown;
      readonly onFailure: "cancel" | "settle";
      /** The state of a list, whose siblings have keys. */
      readonly list?: string;
      readonly maxParallel?: number;
    }
  | {
      readonly kind: "fork";
      readonly branches: readonly BranchShape[];
      readonly join: "all" | "any";
      readonly onComplete: string;
      readonly onFail?: string;
      readonly input: unknown;
    }
  | {
      readonly kind: "invoke";
      readonly pipeline: string;
      /** Undefined: the event that led here, else the name of the pipeline. */
      readonly key?: string;
      readonly onComplete: string;
      readonly onFail?: string;
      readonly input: JsonObject;
    }
  | { readonly kind: "return" }
  | { readonly kind: "done"; readonly output: unknown }
  | { readonly kind: "fail" | "cancel"; readonly reason: string };
export interface BranchShape extends Required<Branch<string>> {
  readonly key: string;
}
export interface SiblingShape {
  readonly state: string;
  readonly input: unknown;
  /** Of an item of a list. */
  readonly key?: string;
}
export type ParsedChoice =
  | { readonly ok: true; readonly shape: ChoiceShape }
  | { readonly ok: false; readonly reason: string };

type Refused = Extract<ParsedChoice, { readonly ok: false }>;
type Fields = Readonly<Record<string, unknown>>;
/** What a choice is read against: the states of a pipeline. */
export interface KnownStates {
  has(id: string): boolean;
  keys(): Iterable<string>;
  /** What keeps a state from running alone in a child: that it has no body, or that only a row completes it. */
  get(
    id: string,
  ): { readonly final?: unknown; readonly completesByEvents?: true; readonly chooses?: object } | undefined;
}
type States = KnownStates;

const KINDS = ["to", "fanOut", "forEach", "fork", "invoke", "return", "done", "fail", "cancel"];
/** Items of one list, unless `limits.maxItems` says otherwise. */
const MAX_ITEMS = 1_000;
/** Characters of a key, which is part of a run's id. */
const LONGEST_KEY = 200;

/** Reads a choice from a route, a table or a model. `output` ends the run for an empty list of stages. */
export function parseChoice(value: unknown, states: States, output: unknown, maxItems = MAX_ITEMS): ParsedChoice {
  if (typeof value === "string")
    return refuse(`"${value.slice(0, 80)}" is a name, not a choice; write to("${value.slice(0, 80)}")`);
  if (!isFields(value))
    return refuse(`${value === null ? "null" : typeof value} is not a choice; return to(…), done(…) or another`);
  if ("stages" in value) return readStageList(value, states, output);
  switch (value.kind) {
    case "to":
      return readTo(value, states);
    case "fanOut":
      return readFanOut(value, states);
    case "forEach":
      return readForEach(value, states, maxItems);
    case "fork":
      return readFork(value, states);
    case "invoke":
      return readInvoke(value, states);
    case "return":
      return extraKeys(value, ["kind"]) ?? { ok: true, shape: { kind: "return" } };
    case "done":
      return extraKeys(value, ["kind", "output"]) ?? { ok: true, shape: { kind: "done", output: value.output } };
    case "fail":
    case "cancel":
      return readEnd(value, value.kind);
    default:
      return refuse(
        "then" in value
          ? "a promise is not a choice; routes are synchronous"
          : `it has no kind of choice; ${suggestOneOf(String(value.kind), KINDS)}`,
      );
  }
}

function readTo(value: Fields, states: States): ParsedChoice {
  const { state, input, context } = value;
  const fault = extraKeys(value, ["kind", "state", "input", "context"]) ?? unknownState(state, states, "to");
  if (fault !== undefined) return fault;
  if (typeof state !== "string") return refuse("to() names no state");
  if (context === undefined) return { ok: true, shape: { kind: "to", state, input } };
  const patch = readPatch(context);
  return patch.ok ? { ok: true, shape: { kind: "to", state, input, context: patch.value } } : refuse(patch.reason);
}

function readFanOut(value: Fields, states: States): ParsedChoice {
  const { siblings, join, input, onFailure = "cancel" } = value;
  const extra = extraKeys(value, ["kind", "siblings", "join", "input", "onFailure"]);
  if (extra !== undefined) return extra;
  if (!Array.isArray(siblings) || siblings.length === 0) return refuse("fanOut() needs at least one sibling");
  if (onFailure !== "cancel" && onFailure !== "settle") return refuse('onFailure must be "cancel" or "settle"');
  const read: SiblingShape[] = [];
  for (const entry of siblings) {
    const sibling = readSibling(entry, states);
    if ("reason" in sibling) return sibling;
    read.push(sibling);
  }
  const fault = unknownState(join, states, "the join") ?? siblingsFault(read, join);
  if (fault !== undefined) return fault;
  if (typeof join !== "string") return refuse("fanOut() names no join");
  return { ok: true, shape: { kind: "fanOut", siblings: read, join, input, onFailure } };
}

function readForEach(value: Fields, states: States, maxItems: number): ParsedChoice {
  const { state, items, keys, join, input, onFailure = "cancel", maxParallel } = value;
  const known = ["kind", "state", "items", "keys", "join", "input", "onFailure", "maxParallel"];
  const fault =
    extraKeys(value, known) ??
    siblingFault(state, states, "forEach") ??
    unknownState(join, states, "the join") ??
    (state === join ? refuse(`the join ${String(join)} is also the state of the list`) : undefined);
  if (fault !== undefined) return fault;
  if (typeof state !== "string" || typeof join !== "string") return refuse("forEach() names no state and no join");
  if (onFailure !== "cancel" && onFailure !== "settle") return refuse('onFailure must be "cancel" or "settle"');
  if (maxParallel !== undefined && !isCount(maxParallel)) return refuse("maxParallel must be a whole number from 1");
  if (!Array.isArray(items)) return refuse("the items of forEach() are not a list");
  if (items.length > maxItems)
    return refuse(`the list has ${items.length} items, and limits.maxItems allows ${maxItems}`);
  if (!Array.isArray(keys) || keys.length !== items.length) return refuse("forEach() needs one key for each item");
  const seen = new Set<string>();
  const siblings: SiblingShape[] = [];
  for (let index = 0; index < items.length; index += 1) {
    const key: unknown = keys[index];
    const wrong = keyFault(key);
    if (wrong !== undefined) return refuse(`the key of item ${index} ${wrong}`);
    if (typeof key !== "string") continue;
    if (seen.has(key)) return refuse(`two items have the key ${JSON.stringify(key)}; keys are unique in a list`);
    seen.add(key);
    siblings.push({ state, key, input: items[index] });
  }
  const limit = maxParallel === undefined ? {} : { maxParallel };
  return { ok: true, shape: { kind: "fanOut", siblings, join, input, onFailure, list: state, ...limit } };
}

function readFork(value: Fields, states: States): ParsedChoice {
  const { branches, join = "all", onComplete, onFail, input } = value;
  const extra = extraKeys(value, ["kind", "branches", "join", "onComplete", "onFail", "input"]);
  if (extra !== undefined) return extra;
  if (join !== "all" && join !== "any") return refuse('the join of fork() must be "all" or "any"');
  if (!isFields(branches) || Object.keys(branches).length === 0) return refuse("fork() needs at least one branch");
  const read: BranchShape[] = [];
  for (const [key, branch] of Object.entries(branches)) {
    const shape = readBranch(key, branch, states);
    if ("reason" in shape) return shape;
    read.push(shape);
  }
  const after = readAfter({ onComplete, onFail }, states);
  if ("reason" in after) return after;
  return { ok: true, shape: { kind: "fork", branches: read, join, ...after, input } };
}

function readBranch(key: string, branch: unknown, states: States): BranchShape | Refused {
  const what = `the branch ${JSON.stringify(key.slice(0, 80))}`;
  const fault = idFault(key);
  if (fault !== undefined) return refuse(`the key of a branch: ${fault}`);
  if (!isFields(branch)) return refuse(`${what} must be { initial, terminal }`);
  const { initial, terminal, input } = branch;
  const wrong =
    extraKeys(branch, ["initial", "terminal", "input"]) ??
    childFault(initial, states, `the start of ${what}`) ??
    unknownState(terminal, states, `the end of ${what}`);
  if (wrong !== undefined) return wrong;
  if (typeof initial !== "string" || typeof terminal !== "string") return refuse(`${what} names no states`);
  if (initial === terminal) return refuse(`${what} starts where it ends, in ${initial}`);
  return { key, initial, terminal, input };
}

function readInvoke(value: Fields, states: States): ParsedChoice {
  const { pipeline, key, onComplete, onFail, input } = value;
  const extra = extraKeys(value, ["kind", "pipeline", "key", "onComplete", "onFail", "input"]);
  if (extra !== undefined) return extra;
  if (typeof pipeline !== "string") return refuse("invoke() names no pipeline");
  const fault = key === undefined ? undefined : idFault(key);
  if (fault !== undefined) return refuse(`the key of invoke(): ${fault}`);
  const after = readAfter({ onComplete, onFail }, states);
  if ("reason" in after) return after;
  const patch = input === undefined ? ({ ok: true, value: {} } as const) : readPatch(input);
  if (!patch.ok) return refuse(`the input of invoke(): ${patch.reason}`);
  const named = typeof key === "string" ? { key } : {};
  return { ok: true, shape: { kind: "invoke", pipeline, ...named, ...after, input: patch.value } };
}

/** The key of an invoked pipeline that was given none: the event that leads to it, if that can be a key. */
export function invokeKey(event: string | undefined, pipeline: string): string {
  return event !== undefined && idFault(event) === undefined ? event : pipeline;
}

function readAfter(
  { onComplete, onFail }: { readonly onComplete: unknown; readonly onFail: unknown },
  states: States,
): { readonly onComplete: string; readonly onFail?: string } | Refused {
  const fault =
    unknownState(onComplete, states, "onComplete") ??
    (onFail === undefined ? undefined : unknownState(onFail, states, "onFail"));
  if (fault !== undefined) return fault;
  if (typeof onComplete !== "string") return refuse("onComplete names no state");
  return { onComplete, ...(typeof onFail === "string" ? { onFail } : {}) };
}

/** A child of one state uses no rows, so an event cannot complete it. */
function siblingFault(state: unknown, states: States, what: string): Refused | undefined {
  const fault = childFault(state, states, what);
  if (fault !== undefined || typeof state !== "string") return fault;
  if (states.get(state)?.chooses !== undefined)
    return refuse(`${what}: ${state} chooses what follows it, which only a branch of fork() can follow`);
  if (states.get(state)?.completesByEvents !== true) return undefined;
  return refuse(`${what}: ${state} completes by events, which only a branch of fork() routes`);
}

/** A state that runs in a child has a body. */
function childFault(state: unknown, states: States, what: string): Refused | undefined {
  const unknown = unknownState(state, states, what);
  if (unknown !== undefined || typeof state !== "string" || states.get(state)?.final === undefined) return unknown;
  return refuse(`${what}: ${state} is a final state, which does not run`);
}

function keyFault(key: unknown): string | undefined {
  if (typeof key !== "string") return "is not a text";
  if (key === "" || key.length > LONGEST_KEY) return `has ${key.length} characters, not 1 to ${LONGEST_KEY}`;
  return key.isWellFormed() ? undefined : "is not valid Unicode";
}

function readSibling(entry: unknown, states: States): SiblingShape | Refused {
  if (typeof entry === "string") return siblingFault(entry, states, "a sibling") ?? { state: entry, input: undefined };
  if (!isFields(entry) || entry.kind !== "to") return refuse('a sibling must be a name or to("name", input)');
  const reading = readTo(entry, states);
  if (!reading.ok) return reading;
  if (reading.shape.kind !== "to") return refuse("a sibling must be a state");
  if (reading.shape.context !== undefined) return refuse("a sibling cannot change the context");
  const fault = siblingFault(reading.shape.state, states, "a sibling");
  if (fault !== undefined) return fault;
  return { state: reading.shape.state, input: reading.shape.input };
}

function siblingsFault(siblings: readonly SiblingShape[], join: unknown): Refused | undefined {
  const names = siblings.map(({ state }) => state);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return refuse(`${twice} is a sibling twice`);
  return names.some((name) => name === join) ? refuse(`the join ${String(join)} is also a sibling`) : undefined;
}

function readEnd(value: Fields, kind: "fail" | "cancel"): ParsedChoice {
  const { reason } = value;
  const extra = extraKeys(value, ["kind", "reason"]);
  if (extra !== undefined) return extra;
  if (typeof reason !== "string" || reason.trim() === "") return refuse(`${kind}() needs a reason`);
  return { ok: true, shape: { kind, reason } };
}

/** `{ stages, execution, join }`. */
function readStageList(value: Fields, states: States, output: unknown): ParsedChoice {
  const { stages, execution, join } = value;
  const extra = extraKeys(value, ["stages", "execution", "join"]);
  if (extra !== undefined) return extra;
  if (!isTexts(stages)) return refuse("stages must be a list of names");
  if (execution !== "sequential" && execution !== "parallel")
    return refuse('execution must be "sequential" or "parallel"');
  if (stages.length === 0) return { ok: true, shape: { kind: "done", output } };
  const [only, ...more] = stages;
  if (execution === "parallel") {
    if (more.length === 0) return refuse("parallel needs two or more stages");
    return readFanOut({ kind: "fanOut", siblings: stages, join }, states);
  }
  if (more.length > 0) return refuse(`one stage can be next, not ${stages.length}; let ${only} route to ${more[0]}`);
  if (join !== undefined) return refuse("a join belongs to parallel stages");
  return readTo({ kind: "to", state: only }, states);
}

/** Characters of an event's name. */
const LONGEST_EVENT = 200;

/** Why a text cannot be the name of an event; undefined if it can. */
export function eventFault(event: unknown): string | undefined {
  if (typeof event !== "string") return "must be the name of an event";
  if (event.trim() !== event || event === "") return "must have at least one character, and no spaces around it";
  return sentEventFault(event);
}

/** Why no state can send an event of this name; undefined if a row may decide about it. */
export function sentEventFault(event: string): string | undefined {
  if (event.length > LONGEST_EVENT) return `has more than ${LONGEST_EVENT} characters`;
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(event) ? "holds an invisible character" : undefined;
}

/** What a patch may hold at its top, where it is merged: names of ours and of every object are not for it. */
export function readPatch(
  value: unknown,
): { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly reason: string } {
  const own = toJsonValue(value);
  if (!own.ok) return { ok: false, reason: `the context is not JSON: ${own.fault}` };
  if (!isJsonObject(own.value)) return { ok: false, reason: "the context must be an object" };
  const bad = Object.keys(own.value).find((key) => key.startsWith("_") || key === "constructor");
  return bad === undefined
    ? { ok: true, value: own.value }
    : { ok: false, reason: `the context cannot hold ${JSON.stringify(bad)}` };
}

function unknownState(state: unknown, states: States, what: string): Refused | undefined {
  if (typeof state !== "string") return refuse(`${what} names no state`);
  if (states.has(state)) return undefined;
  return refuse(
    `${what}: there is no state ${JSON.stringify(state.slice(0, 80))}; ${suggestOneOf(state, states.keys()) ?? ""}`,
  );
}

function extraKeys(value: Fields, known: readonly string[]): Refused | undefined {
  const extra = Object.keys(value).find((key) => !known.includes(key));
  return extra === undefined
    ? undefined
    : refuse(`a choice has no ${JSON.stringify(extra)}; ${suggestOneOf(extra, known)}`);
}

function isFields(value: unknown): value is Fields {
  return isObject(value) && !Array.isArray(value);
}

function refuse(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

/** Where a choice of a definition leads, in words. */
export function shapeText(shape: ChoiceShape): string {
  switch (shape.kind) {
    case "fanOut": {
      const { siblings, list, join } = shape;
      const children =
        list === undefined ? siblings.map(({ state }) => state) : [`${list} for each of ${siblings.length} items`];
      return childrenText(children, false, join);
    }
    case "fork": {
      const branches = shape.branches.map(({ key, initial, terminal }) => branchText(key, initial, terminal));
      return childrenText(branches, shape.join === "any", shape.onComplete);
    }
    case "invoke":
      return childrenText([`pipeline ${shape.pipeline}`], false, shape.onComplete);
    default:
      return simpleText(shape);
  }
}

type Simple =
  | { readonly kind: "to"; readonly state: string }
  | { readonly kind: "return" | "done" }
  | { readonly kind: "fail" | "cancel"; readonly reason: string };

/** Where a choice leads that has no children, in words. */
export function simpleText(choice: Simple): string {
  switch (choice.kind) {
    case "to":
      return choice.state;
    case "return":
      return "the interrupted state";
    case "done":
      return "the end of the run";
    case "fail":
      return `a failed end: ${choice.reason}`;
    case "cancel":
      return `a cancelled end: ${choice.reason}`;
  }
}

export function branchText(key: string, initial: string, terminal: string): string {
  return `${key} (${initial} to ${terminal})`;
}

export function childrenText(children: readonly string[], isAny: boolean, join: string): string {
  return `${children.join(isAny ? " or " : " and ")}, then ${join}`;
}
