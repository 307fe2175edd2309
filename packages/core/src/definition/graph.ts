import { parseChoice } from "./choice.ts";
import type { PipelineSpec, RowSpec, StateRoutes } from "./spec.ts";

/** What of a pipeline can be drawn by somebody who does not have it; `run.started` of a root holds it. */
export type PipelineShape = {
  readonly initial: string;
  /** In declared order. A list: as keys, ids that are called like secrets would be redacted with what they name. */
  readonly states: readonly StateShape[];
};
export type StateShape = {
  readonly id: string;
  readonly kind: string;
  /** The most turns of an attempt; absent where the kind has none. */
  readonly turnCap?: number;
  /** States it may lead to, siblings and joins included; absent where nothing says so. */
  readonly targets?: readonly string[];
};

/** Where a state may lead, as far as its definition says. */
export interface Edges {
  /** A bare function, or a kind that chooses for itself: any state, any end. Then the rest is not complete. */
  readonly anywhere: boolean;
  /** States that may be entered next, joins included. */
  readonly next: readonly string[];
  /** States that may run as siblings; their own ways are not followed. */
  readonly siblings: readonly string[];
  /** Whether it may end the run as completed. */
  readonly mayComplete: boolean;
  /** Whether anything says what comes after its success. */
  readonly handlesSuccess: boolean;
}

/** What a run may come to. Certain only when no bare function is on the way. */
export interface Reachability {
  readonly certain: boolean;
  /** States a run may be routed into, the initial one first. */
  readonly entered: ReadonlySet<string>;
  readonly siblings: ReadonlySet<string>;
  readonly mayComplete: boolean;
}

/** Kinds that make their own choice and need no route. */
const CHOOSING_KINDS: ReadonlySet<string> = new Set(["router", "terminal"]);

export function edgesOf(spec: PipelineSpec, state: string): Edges {
  if (CHOOSING_KINDS.has(spec.states.get(state)?.kind ?? "")) {
    return { anywhere: true, next: [], siblings: [], mayComplete: true, handlesSuccess: true };
  }
  return spec.routes.kind === "table"
    ? waysOfRows(
        spec,
        spec.routes.rows.filter((row) => row.from === state || row.from === "*"),
      )
    : waysOfRoutes(spec.routes.next.get(state));
}

/** The states of a pipeline and the ways between them, as far as its definition says. */
export function pipelineShape(spec: PipelineSpec): PipelineShape {
  const states = [...spec.states].map(([id, { kind, agent }]): StateShape => {
    const targets = declaredWays(spec, id);
    return {
      id,
      kind,
      ...(agent === undefined ? {} : { turnCap: agent.turnCap }),
      ...(targets === undefined ? {} : { targets }),
    };
  });
  return { initial: spec.initial, states };
}

function declaredWays(spec: PipelineSpec, state: string): readonly string[] | undefined {
  const { anywhere, handlesSuccess, next, siblings } = edgesOf(spec, state);
  const targets = [...new Set([...siblings, ...next])];
  // A state whose success nobody routes, such as a sibling, may still be routed when it failed.
  return anywhere || (!handlesSuccess && targets.length === 0) ? undefined : targets;
}

/** Follows all ways from the initial state. */
export function reach(spec: PipelineSpec): Reachability {
  const entered = new Set<string>();
  const siblings = new Set<string>();
  let certain = true;
  let mayComplete = false;
  const waiting = [spec.initial];
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    if (entered.has(state) || !spec.states.has(state)) continue;
    entered.add(state);
    const ways = edgesOf(spec, state);
    if (ways.anywhere) certain = false;
    if (ways.mayComplete) mayComplete = true;
    for (const sibling of ways.siblings) siblings.add(sibling);
    waiting.push(...ways.next);
  }
  return { certain, entered, siblings, mayComplete };
}

function waysOfRoutes(routes: StateRoutes | undefined): Edges {
  if (routes === undefined)
    return { anywhere: false, next: [], siblings: [], mayComplete: false, handlesSuccess: false };
  // A declared route names states, not in which part they take part, and may always end the run.
  return {
    anywhere: routes.targets === undefined,
    next: routes.targets ?? [],
    siblings: [],
    mayComplete: true,
    handlesSuccess: true,
  };
}

function waysOfRows(spec: PipelineSpec, rows: readonly RowSpec[]): Edges {
  const next: string[] = [];
  const siblings: string[] = [];
  let mayComplete = false;
  for (const row of rows) {
    const reading = parseChoice(row.to, spec.states, null);
    if (!reading.ok) continue;
    const { shape } = reading;
    if (shape.kind === "to") next.push(shape.state);
    if (shape.kind === "done") mayComplete = true;
    if (shape.kind === "fanOut") {
      next.push(shape.join);
      siblings.push(...shape.siblings.map((sibling) => sibling.state));
    }
  }
  return { anywhere: false, next, siblings, mayComplete, handlesSuccess: rows.some((row) => row.on === "success") };
}
