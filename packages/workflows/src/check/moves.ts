// Where each state of a pipeline may go, as far as its definition says.

import type { ChoiceShape, PipelineSpec, RowSpec, StateSpec } from "@sluice/core";
import { parseChoice } from "@sluice/core/runtime";

/** A row of a table that may be looked at when a state ends or sends an event, or a target that a model may choose. */
export interface Move {
  /** Its place in the table; below 0 for a target that a model may choose. */
  readonly index: number;
  readonly row: RowSpec;
  readonly shape: ChoiceShape;
}

/** The routes of a state that are functions. */
export interface FunctionRoutes {
  /** Where they may lead; undefined for a bare function, which may lead anywhere. */
  readonly targets: readonly string[] | undefined;
}

/** The moves of every state. */
export interface MoveTable {
  /** The rows of a state in the order in which they are tried. Empty for final states and for routes that are functions. */
  of(state: string): readonly Move[];
}

export function moveTable(spec: PipelineSpec): MoveTable {
  const { routes, states, limits } = spec;
  const own = new Map<string, Move[]>();
  const common: Move[] = [];
  for (const [index, row] of (routes.kind === "table" ? routes.rows : []).entries()) {
    const reading = parseChoice(row.to, states, null, limits.maxItems);
    if (!reading.ok) continue;
    const move = { index, row, shape: reading.shape };
    const known = row.from === EVERY_STATE ? common : own.get(row.from);
    if (known === undefined) own.set(row.from, [move]);
    else known.push(move);
  }
  const chosen = chosenMoves(spec);
  const made = new Map<string, readonly Move[]>();
  const make = (state: string): readonly Move[] => {
    const of = states.get(state);
    if (of === undefined || of.final !== undefined) return [];
    const moves = [...(own.get(state) ?? []), ...common].filter(({ row }) => mayBeAsked(row, of));
    const rows = common.length === 0 ? moves : moves.toSorted((a, b) => a.index - b.index);
    return [...rows, ...(chosen.get(state) ?? [])];
  };
  return {
    of: (state) => {
      const known = made.get(state) ?? make(state);
      made.set(state, known);
      return known;
    },
  };
}

export const EVERY_STATE = "*";

/** The targets that the models of routers and of an orchestrator may choose, by state. */
function chosenMoves({ states, orchestrator }: PipelineSpec): ReadonlyMap<string, readonly Move[]> {
  const chosen = new Map<string, readonly Move[]>();
  let index = 0;
  const moveTo = (from: string, label: string, shape: ChoiceShape): Move => {
    index -= 1;
    const to = shape.kind === "to" ? shape.state : shape.kind;
    // Its own trigger, since no target comes before another one.
    return { index, row: { from, on: { event: `choice ${to}` }, to: { kind: "done", output: null }, label }, shape };
  };
  for (const [id, { chooses, final }] of states) {
    if (chooses !== undefined) {
      const { targets, fallback, ends } = chooses;
      const all = new Set(fallback === undefined ? targets : [...targets, fallback.to]);
      const moves = [...all].map((state) => moveTo(id, CHOSEN, { kind: "to", state, input: null }));
      const own = ends === true ? [moveTo(id, CHOSEN, { kind: "done", output: null })] : [];
      chosen.set(id, [...moves, ...own]);
    } else if (orchestrator !== undefined && final === undefined)
      chosen.set(id, [moveTo(id, "ended", { kind: "to", state: orchestrator, input: null })]);
  }
  return chosen;
}

/** A move that a model chooses, as people read it. */
const CHOSEN = "chosen by the model";

/** A state that completes by events or by a choice has no other success, and only one that completes by events has events. */
function mayBeAsked({ on }: RowSpec, { completesByEvents, chooses }: StateSpec): boolean {
  if (typeof on !== "string") return completesByEvents === true;
  return on !== "success" || (completesByEvents !== true && chooses === undefined);
}

/** The functions that route a state; undefined if there are none. */
export function functionsOf({ routes }: PipelineSpec, state: string): FunctionRoutes | undefined {
  const own = routes.kind === "functions" ? routes.next.get(state) : undefined;
  return own === undefined ? undefined : { targets: own.targets };
}

/** What a move waits for, so that only moves of the same kind compete. */
export function triggerKey({ row: { on } }: Move): string {
  return typeof on === "string" ? on : `event ${on.event}`;
}

/** A move in words: its own name, or what it waits for. */
export function moveWords({ row: { on, label } }: Move): string {
  if (label !== undefined) return label;
  if (typeof on === "string") return `on ${on}`;
  return on.event === ANY_EVENT ? "any other event" : on.event;
}

/** The event of a move that is for all events that no other one names. */
export const ANY_EVENT = "*";

/** The states that a choice may enter in its own run, which is all but those of its children. */
export function entersOf(shape: ChoiceShape): readonly string[] {
  switch (shape.kind) {
    case "to":
      return [shape.state];
    case "fanOut":
      return [shape.join];
    case "fork":
    case "invoke":
      return shape.onFail === undefined ? [shape.onComplete] : [shape.onComplete, shape.onFail];
    default:
      return [];
  }
}
