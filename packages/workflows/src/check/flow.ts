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
import { functionsOf, type Move, movesOf, triggerKey } from "./moves.ts";

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
  /** The moves of a state that may happen. */
  moves(state: string): readonly Move[];
  /** The row that always fires before another; undefined if the other one may be asked. */
  before(state: string, move: Move): Move | undefined;
}

/** Follows all rows that may fire, from the initial state and from the targets of interrupts. */
export function flowOf(spec: PipelineSpec): Flow {
  const walk: Walk = { spec, stops: new Map(), waiting: [], reached: new Set(), fired: new Map(), certain: true };
  arrive(walk, { state: spec.initial, terminal: undefined, isSibling: false, context: initialContext(spec.context) });
  for (let stop = walk.waiting.pop(); stop !== undefined; stop = walk.waiting.pop()) {
    const now = walk.stops.get(keyOf(stop));
    if (now !== undefined) leave(walk, now);
  }
  return {
    certain: walk.certain,
    reached: walk.reached,
    stops: [...walk.stops.values()],
    moves: (state) => movesOf(spec, state).filter(({ index }) => walk.fired.get(state)?.has(index) === true),
    before: (state, move) => overtakenBy(movesOf(spec, state), move),
  };
}

interface Walk {
  readonly spec: PipelineSpec;
  readonly stops: Map<string, Stop>;
  readonly waiting: Stop[];
  readonly reached: Set<string>;
  /** The rows that may fire, by state. */
  readonly fired: Map<string, Set<number>>;
  certain: boolean;
}

function keyOf({ state, terminal, isSibling }: Stop): string {
  return JSON.stringify([state, terminal ?? null, isSibling]);
}

/** Adds what is known when a run comes to a state. */
function arrive(walk: Walk, stop: Stop): void {
  const { spec, stops, waiting, reached } = walk;
  const { state, terminal, isSibling, context } = stop;
  const of = spec.states.get(state);
  if (of === undefined) return;
  reached.add(state);
  // A run ends at its final state, and a branch at its terminal one.
  if (of.final !== undefined || (state === terminal && !isSibling)) return;
  const known = stops.get(keyOf(stop));
  // A handler that was followed before may return to this state, too.
  if (known === undefined) waiting.push(...[...stops.values()].filter((other) => handlesInterrupt(spec, other.state)));
  const now = known === undefined ? stop : { ...stop, context: either(known.context, context) };
  if (known !== undefined && sameContext(known.context, now.context)) return;
  stops.set(keyOf(stop), now);
  waiting.push(now);
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
  const moves = movesOf(spec, state);
  for (const move of moves) {
    if (overtakenBy(moves, move) !== undefined || !mayHold(move, context)) continue;
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
  const adds = typeof row.on !== "string" || (row.on === "success" && spec.states.get(state)?.kind !== "agent");
  return patched(adds ? ANY_CONTEXT : before, patch);
}

function follow(walk: Walk, from: Stop, shape: ChoiceShape, context: KnownContext): void {
  const { terminal } = from;
  const enter = (state: string): void => arrive(walk, { state, terminal, isSibling: false, context });
  switch (shape.kind) {
    case "to":
      enter(shape.state);
      break;
    case "fanOut":
      for (const { state } of shape.siblings) arrive(walk, { state, terminal, isSibling: true, context });
      enter(shape.join);
      break;
    case "fork":
      for (const branch of shape.branches)
        arrive(walk, { state: branch.initial, terminal: branch.terminal, isSibling: false, context });
      enter(shape.onComplete);
      if (shape.onFail !== undefined) enter(shape.onFail);
      break;
    case "invoke":
      enter(shape.onComplete);
      if (shape.onFail !== undefined) enter(shape.onFail);
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

/** An earlier row of the same trigger that fires whenever this one would. */
function overtakenBy(moves: readonly Move[], move: Move): Move | undefined {
  return moves.find(
    (other) => other.index < move.index && triggerKey(other) === triggerKey(move) && firesWherever(other, move),
  );
}

function firesWherever({ row: { when } }: Move, { row }: Move): boolean {
  return when === undefined || (row.when !== undefined && isImpliedBy(when, row.when));
}
