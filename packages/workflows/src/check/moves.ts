// Where each state of a pipeline may go, as far as its definition says.

import type { ChoiceShape, PipelineSpec, RowSpec } from "@sluice/core";
import { parseChoice } from "@sluice/core/runtime";

/** A row of a table that may be looked at when a state ends or sends an event. */
export interface Move {
  /** Its place in the table. */
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

export function moveTable({ routes, states, limits }: PipelineSpec): MoveTable {
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
  const made = new Map<string, readonly Move[]>();
  const make = (state: string): readonly Move[] => {
    const of = states.get(state);
    if (of === undefined || of.final !== undefined) return [];
    const moves = [...(own.get(state) ?? []), ...common].filter(({ row }) =>
      mayBeAsked(row, of.completesByEvents === true),
    );
    return common.length === 0 ? moves : moves.toSorted((a, b) => a.index - b.index);
  };
  return {
    of: (state) => {
      const known = made.get(state) ?? make(state);
      made.set(state, known);
      return known;
    },
  };
}

const EVERY_STATE = "*";

/** A state that completes by events has no other success, and only such a state has events. */
function mayBeAsked({ on }: RowSpec, byEvents: boolean): boolean {
  return typeof on === "string" ? on !== "success" || !byEvents : byEvents;
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
