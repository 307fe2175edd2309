import type { JsonObject } from "../base/json.ts";
import { parseChoice } from "./choice.ts";
import type { PipelineSpec, RowSpec, StateRoutes } from "./spec.ts";

/** A pipeline's graph as data, which a root's `run.started` records. */
export type PipelineShape = {
  readonly initial: string;
  /** In declared order. A list, since redaction would replace values under keys that look like names of secrets. */
  readonly states: readonly StateShape[];
};
/** A state with what its kind shows of it, such as a cap. */
export type StateShape = JsonObject & {
  readonly id: string;
  readonly kind: string;
  /** States it may lead to, including siblings and joins; absent if unknown. */
  readonly targets?: readonly string[];
};

/** Where a state may lead, as far as its definition declares. */
export interface Edges {
  /** Whether it may lead to any state or end, as a bare function may; the other fields are then incomplete. */
  readonly anywhere: boolean;
  /** States that may be entered next, including joins. */
  readonly next: readonly string[];
  /** States that may run as siblings, whose own routes are not used. */
  readonly siblings: readonly string[];
  /** Whether it may end the run as completed. */
  readonly mayComplete: boolean;
  /** Whether a route handles its success. */
  readonly handlesSuccess: boolean;
}

/** What a run may reach; certain only without bare functions. */
export interface Reachability {
  readonly certain: boolean;
  /** States a run may be routed into, the initial one first. */
  readonly entered: ReadonlySet<string>;
  readonly siblings: ReadonlySet<string>;
  readonly mayComplete: boolean;
}

export function edgesOf(spec: PipelineSpec, state: string): Edges {
  return spec.routes.kind === "table"
    ? edgesOfRows(
        spec,
        spec.routes.rows.filter((row) => row.from === state || row.from === "*"),
      )
    : edgesOfRoutes(spec.routes.next.get(state));
}

export function pipelineShape(spec: PipelineSpec): PipelineShape {
  const states = [...spec.states].map(([id, { kind, shape }]): StateShape => {
    const targets = declaredTargetsOf(spec, id);
    return { id, kind, ...shape, ...(targets === undefined ? {} : { targets }) };
  });
  return { initial: spec.initial, states };
}

function declaredTargetsOf(spec: PipelineSpec, state: string): readonly string[] | undefined {
  const { anywhere, handlesSuccess, next, siblings } = edgesOf(spec, state);
  const targets = [...new Set([...siblings, ...next])];
  // A state without a success route, such as a sibling, may still have a failure route.
  return anywhere || (!handlesSuccess && targets.length === 0) ? undefined : targets;
}

/** Follows all routes from the initial state. */
export function reach(spec: PipelineSpec): Reachability {
  const entered = new Set<string>();
  const siblings = new Set<string>();
  let certain = true;
  let mayComplete = false;
  const waiting = [spec.initial];
  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    if (entered.has(state) || !spec.states.has(state)) continue;
    entered.add(state);
    const edges = edgesOf(spec, state);
    if (edges.anywhere) certain = false;
    if (edges.mayComplete) mayComplete = true;
    for (const sibling of edges.siblings) siblings.add(sibling);
    waiting.push(...edges.next);
  }
  return { certain, entered, siblings, mayComplete };
}

function edgesOfRoutes(routes: StateRoutes | undefined): Edges {
  const isRouted = routes !== undefined;
  // A declared target may be a state, a sibling or a join, and every route may end the run.
  return {
    anywhere: isRouted && routes.targets === undefined,
    next: routes?.targets ?? [],
    siblings: [],
    mayComplete: isRouted,
    handlesSuccess: isRouted,
  };
}

function edgesOfRows(spec: PipelineSpec, rows: readonly RowSpec[]): Edges {
  const next: string[] = [];
  const siblings: string[] = [];
  let mayComplete = false;
  for (const row of rows) {
    const reading = parseChoice(row.to, spec.states, null, spec.limits.maxItems);
    if (!reading.ok) continue;
    const { shape } = reading;
    if (shape.kind === "to") next.push(shape.state);
    if (shape.kind === "done") mayComplete = true;
    if (shape.kind === "fork" || shape.kind === "invoke") {
      next.push(shape.onComplete, ...(shape.onFail === undefined ? [] : [shape.onFail]));
      if (shape.kind === "fork") next.push(...shape.branches.flatMap(({ initial, terminal }) => [initial, terminal]));
    }
    if (shape.kind === "fanOut") {
      next.push(shape.join);
      siblings.push(...(shape.list === undefined ? shape.siblings.map(({ state }) => state) : [shape.list]));
    }
  }
  return { anywhere: false, next, siblings, mayComplete, handlesSuccess: rows.some((row) => row.on === "success") };
}
