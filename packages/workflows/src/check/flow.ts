// Which states of a pipeline a run may enter and which rows may fire, with what is known of the context on the way.

import type { ChoiceShape, PipelineSpec } from "@sluice/core";
import {
  ANY_CONTEXT,
  contradictionIn,
  either,
  impossibleIn,
  initialContext,
  isImpliedBy,
  type KnownContext,
  patched,
  sameContext,
} from "./conditions.ts";
import { functionsOf, type Move, type MoveTable, moveTable, triggerKey } from "./moves.ts";

/** A state as a run comes to it. */
export interface Stop {
  readonly state: string;
  /** Of a branch: the state that completes it. */
  readonly terminal: string | undefined;
  /** A child of a fan-out, whose routes are not used. */
  readonly isSibling: boolean;
  /** What is known of the context there. */
  readonly context: KnownContext;
}

/** What a run may do. Nothing that it may do is missing; what it holds may be more than what a run can do. */
export interface Flow {
  /** False if a bare function routes a state that may be entered: it may lead anywhere. */
  readonly certain: boolean;
  /** The states that may be entered, or end a run or a branch. */
  readonly reached: ReadonlySet<string>;
  readonly stops: readonly Stop[];
  /** The rows of a state, whether or not they may fire. */
  rows(state: string): readonly Move[];
  /** The rows of a state that may fire. */
  moves(state: string): readonly Move[];
  /** The row that always fires before another; undefined if the other one may be asked. */
  before(state: string, move: Move): Move | undefined;
}

/** Arrivals and comparisons of one pipeline, so that a huge one costs seconds at most. */
const MOST_WORK = 400_000;

/** Follows all rows that may fire, from the initial state and from the targets of interrupts. Of a huge pipeline, all rows may. */
export function flowOf(spec: PipelineSpec): Flow {
  const table = moveTable(spec);
  const walk: Walk = {
    spec,
    table,
    stops: new Map(),
    handlers: new Set(),
    waiting: [],
    reached: new Set(),
    fired: new Map(),
    overtaken: new Map(),
    certain: true,
    work: 0,
  };
  arrive(walk, { state: spec.initial, terminal: undefined, isSibling: false, context: initialContext(spec.context) });
  for (let stop = walk.waiting.pop(); stop !== undefined; stop = walk.waiting.pop()) {
    const now = walk.stops.get(keyOf(stop));
    if (now !== undefined) leave(walk, now);
    if (walk.work > MOST_WORK) return anyFlow(spec, table);
  }
  const moves = new Map<string, readonly Move[]>();
  return {
    certain: walk.certain,
    reached: walk.reached,
    stops: [...walk.stops.values()],
    rows: table.of,
    moves: (state) => {
      const fired = walk.fired.get(state);
      const known = moves.get(state) ?? table.of(state).filter(({ index }) => fired?.has(index) === true);
      moves.set(state, known);
      return known;
    },
    before: (state, { index }) => overtakenIn(walk, state).get(index),
  };
}

/** What is certain without a look at the rows. */
function anyFlow({ states }: PipelineSpec, table: MoveTable): Flow {
  const reached = new Set(states.keys());
  const stops = [...states.keys()].map((state) => ({
    state,
    terminal: undefined,
    isSibling: false,
    context: ANY_CONTEXT,
  }));
  return { certain: false, reached, stops, rows: table.of, moves: table.of, before: () => undefined };
}

interface Walk {
  readonly spec: PipelineSpec;
  readonly table: MoveTable;
  readonly stops: Map<string, Stop>;
  /** The keys of the stops whose states handle an interrupt. */
  readonly handlers: Set<string>;
  readonly waiting: Stop[];
  readonly reached: Set<string>;
  /** The rows that may fire, by state. */
  readonly fired: Map<string, Set<number>>;
  /** By state, for each row that never fires the one that does in its place. */
  readonly overtaken: Map<string, ReadonlyMap<number, Move>>;
  certain: boolean;
  work: number;
}

function keyOf({ state, terminal, isSibling }: Stop): string {
  return JSON.stringify([state, terminal ?? null, isSibling]);
}

/** Adds what is known when a run comes to a state. */
function arrive(walk: Walk, stop: Stop): void {
  const { spec, stops, handlers, waiting, reached } = walk;
  const { state, terminal, isSibling, context } = stop;
  walk.work += 1;
  const of = spec.states.get(state);
  if (of === undefined) return;
  reached.add(state);
  // A run ends at its final state, and a branch at its terminal one.
  if (of.final !== undefined || (state === terminal && !isSibling)) return;
  const known = stops.get(keyOf(stop));
  // A handler that was followed before may return to this state, too.
  if (known === undefined) {
    walk.work += handlers.size;
    for (const key of handlers) waiting.push(...presentIn(stops, key));
    if (handlesInterrupt(spec, state)) handlers.add(keyOf(stop));
  }
  const now = known === undefined ? stop : { ...stop, context: either(known.context, context) };
  if (known !== undefined && sameContext(known.context, now.context)) return;
  stops.set(keyOf(stop), now);
  waiting.push(now);
}

function presentIn(stops: ReadonlyMap<string, Stop>, key: string): readonly Stop[] {
  const stop = stops.get(key);
  return stop === undefined ? [] : [stop];
}

function leave(walk: Walk, stop: Stop): void {
  const { spec } = walk;
  const { state, context, isSibling } = stop;
  for (const { target } of spec.interrupts) handle(walk, stop, target);
  if (isSibling) return;
  const functions = functionsOf(spec, state);
  if (functions !== undefined) {
    if (functions.targets === undefined) walk.certain = false;
    // The functions may change the context as they like.
    for (const target of functions.targets ?? []) arrive(walk, { ...stop, state: target, context: ANY_CONTEXT });
  }
  const overtaken = overtakenIn(walk, state);
  for (const move of walk.table.of(state)) {
    walk.work += 1;
    if (walk.work > MOST_WORK) return;
    if (overtaken.has(move.index) || !mayHold(move, context)) continue;
    if (move.shape.kind === "return" && !handlesInterrupt(spec, state)) continue;
    const fired = walk.fired.get(state) ?? new Set();
    walk.fired.set(state, fired.add(move.index));
    follow(walk, stop, move.shape, contextAfter(spec, state, move, context));
  }
}

function mayHold({ row: { when } }: Move, context: KnownContext): boolean {
  return when === undefined || (contradictionIn(when) === undefined && impossibleIn(when, context) === undefined);
}

/** A handler is entered from every state, and goes back to it. */
function handle(walk: Walk, { terminal, context }: Stop, target: string): void {
  // The handler of a branch that is interrupted is entered even where the branch ends.
  const own = target === terminal ? {} : { terminal };
  arrive(walk, { terminal: undefined, ...own, state: target, isSibling: false, context });
}

/** Whether a state handles an interrupt; only from there a run can return. */
export function handlesInterrupt({ interrupts }: PipelineSpec, state: string): boolean {
  return interrupts.some(({ target }) => target === state);
}

/** What is known of the context once a move was made. */
function contextAfter(spec: PipelineSpec, state: string, { row, shape }: Move, before: KnownContext): KnownContext {
  const patch = shape.kind === "to" ? shape.context : undefined;
  // An agent sends any data with an event; a state of another kind may add anything when it completes.
  const { chooses } = spec.states.get(state) ?? {};
  if (chooses !== undefined) return patched(before, patch);
  const adds = typeof row.on !== "string" || (row.on === "success" && spec.states.get(state)?.kind !== "agent");
  return patched(adds ? ANY_CONTEXT : before, patch);
}

function follow(walk: Walk, from: Stop, shape: ChoiceShape, context: KnownContext): void {
  const { terminal } = from;
  const enter = (state: string): void => arrive(walk, { state, terminal, isSibling: false, context });
  // The failure rows of a state decide about its failed children, with the context as the move to them left it.
  const fail = (): void => {
    if (walk.table.of(from.state).some(({ row: { on } }) => on === "failure")) arrive(walk, { ...from, context });
  };
  switch (shape.kind) {
    case "to":
      enter(shape.state);
      break;
    case "fanOut":
      for (const { state } of shape.siblings) arrive(walk, { state, terminal, isSibling: true, context });
      enter(shape.join);
      if (shape.onFailure === "cancel") fail();
      break;
    case "fork":
      for (const branch of shape.branches)
        arrive(walk, { state: branch.initial, terminal: branch.terminal, isSibling: false, context });
      enter(shape.onComplete);
      if (shape.onFail === undefined) fail();
      else enter(shape.onFail);
      break;
    case "invoke":
      enter(shape.onComplete);
      if (shape.onFail === undefined) fail();
      else enter(shape.onFail);
      break;
    case "return":
      // The state that was interrupted continues with what its handler has added.
      for (const stop of [...walk.stops.values()]) arrive(walk, { ...stop, context });
      break;
    case "done":
    case "fail":
    case "cancel":
      break;
  }
}

/** Earlier rows that a row is compared with. */
const MOST_COMPARED = 40;

/** The rows of a state that never fire, since an earlier row of the same trigger fires whenever they would. */
function overtakenIn(walk: Walk, state: string): ReadonlyMap<number, Move> {
  const known = walk.overtaken.get(state);
  if (known !== undefined) return known;
  const overtaken = new Map<number, Move>();
  const earlier = new Map<string, Move[]>();
  for (const move of walk.table.of(state)) {
    const key = triggerKey(move);
    const before = earlier.get(key) ?? [];
    walk.work += before.length;
    const first = before.find((other) => firesWherever(other, move));
    if (first !== undefined) overtaken.set(move.index, first);
    // A row without a condition ends the search for all that follow.
    else if (move.row.when === undefined) before.unshift(move);
    else if (before.length < MOST_COMPARED) before.push(move);
    earlier.set(key, before);
  }
  walk.overtaken.set(state, overtaken);
  return overtaken;
}

function firesWherever({ row: { when } }: Move, { row }: Move): boolean {
  return when === undefined || (row.when !== undefined && isImpliedBy(when, row.when));
}
