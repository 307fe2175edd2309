import { shortened } from "../base/cut-texts.ts";
import type { JsonObject } from "../base/json.ts";
import { type BranchShape, parseChoice, shapeText } from "./choice.ts";
import type { PipelineMeta, PipelineSpec, RouteChooser, RowSpec, StateRoutes, StateSpec } from "./spec.ts";

/** A pipeline's graph as data, which a root's `run.started` records. */
export type PipelineShape = {
  readonly initial: string;
  /** In declared order. A list, since redaction would replace values under keys that look like names of secrets. */
  readonly states: readonly StateShape[];
  /** The state that chooses what follows every other one. */
  readonly orchestrator?: string;
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
  /** Branches of forks: where they start and end. Each walks along routes, but never enters its terminal state. */
  readonly branches: readonly Pick<BranchShape, "initial" | "terminal">[];
  /** Whether it may end the run as completed. */
  readonly mayComplete: boolean;
  /** Whether a route handles its success. */
  readonly handlesSuccess: boolean;
}

/** What a run may reach; certain only without bare functions. */
export interface Reachability {
  readonly certain: boolean;
  /** States a run, or a branch of it, may be routed into, the initial one first. */
  readonly entered: ReadonlySet<string>;
  readonly siblings: ReadonlySet<string>;
  /** States that end a branch, for which they are not entered. */
  readonly terminals: ReadonlySet<string>;
  readonly mayComplete: boolean;
}

export function edgesOf(spec: PipelineSpec, state: string): Edges {
  const { routes, states } = spec;
  const of = states.get(state);
  if (of?.final !== undefined) return edgesOfRows(spec, [], false);
  if (of?.chooses !== undefined) return edgesOfChooser(of.chooses, edgesOfOtherResults(spec, state));
  if (spec.orchestrator !== undefined) return edgesOfRoutes({ targets: [spec.orchestrator] }, false);
  if (routes.kind === "functions") return edgesOfRoutes(routes.next.get(state));
  const byEvents = of?.completesByEvents === true;
  return edgesOfRows(
    spec,
    routes.rows.filter((row) => isRowOf(row, state) && mayFire(row, byEvents)),
    byEvents,
  );
}

/** A state that chooses is routed only when it fails or is skipped. */
function edgesOfOtherResults(spec: PipelineSpec, state: string): Edges {
  const { routes } = spec;
  if (routes.kind === "functions") return edgesOfRoutes(routes.next.get(state));
  const rows = routes.rows.filter((row) => isRowOf(row, state) && typeof row.on === "string" && row.on !== "success");
  return edgesOfRows(spec, rows, false);
}

function edgesOfChooser({ targets, fallback, ends }: RouteChooser, others: Edges): Edges {
  const own = fallback === undefined ? targets : [...targets, fallback.to];
  return {
    ...others,
    next: [...new Set([...own, ...others.next])],
    mayComplete: ends === true || others.mayComplete,
    handlesSuccess: true,
  };
}

/** Whether a row is for a state. */
export function isRowOf({ from }: RowSpec, state: string): boolean {
  return from === state || from === "*";
}

/** Whether a row routes the pause of a state. */
export function routesPause({ routes }: PipelineSpec, state: string): boolean {
  return routes.kind === "table" && routes.rows.some((row) => row.on === "pause" && isRowOf(row, state));
}

/** A state that completes by events has no other success, and only such a state has events. */
function mayFire({ on }: RowSpec, byEvents: boolean): boolean {
  if (typeof on !== "string") return byEvents;
  return on !== "success" || !byEvents;
}

/** A pipeline and all that it or its states may run, each once. */
export function pipelinesWithin(spec: PipelineSpec): readonly PipelineSpec[] {
  const found = new Set([spec]);
  for (const one of found) {
    for (const invoked of one.pipelines.values()) found.add(invoked);
    for (const { owns = [] } of one.states.values()) for (const own of owns) found.add(own);
  }
  return [...found];
}

/** All states with a body of a pipeline and of those that it may run. */
export function statesWithin(spec: PipelineSpec): readonly StateSpec[] {
  const states = pipelinesWithin(spec).flatMap((each) => [...each.states.values()]);
  return states.filter(({ final }) => final === undefined);
}

export function pipelineShape(spec: PipelineSpec): PipelineShape {
  const states = [...spec.states].map(([id, { kind, shape }]): StateShape => {
    const targets = declaredTargetsOf(spec, id);
    return { id, kind, ...shape, ...(targets === undefined ? {} : { targets }) };
  });
  const { initial, orchestrator } = spec;
  return { initial, states, ...(orchestrator === undefined ? {} : { orchestrator }) };
}

/**
 * What the first record of a run shows of its pipeline to people who read the run: the states, the rows of the table, the
 * interrupts, and what its author says about it.
 */
export function recordedGraph(spec: PipelineSpec): JsonObject {
  const { interrupts } = spec;
  const rows = recordedRows(spec);
  const meta = metaWithin(spec);
  return {
    shape: pipelineShape(spec),
    ...(rows === undefined ? {} : { rows }),
    ...(interrupts.length === 0 ? {} : { interrupts: interrupts.map((interrupt) => ({ ...interrupt })) }),
    ...(meta === undefined ? {} : { meta: { ...meta } }),
  };
}

/** A row of a table as a run records it, for people who read its decisions. A type, since it is JSON. */
type RecordedRow = Pick<RowSpec, "from" | "on"> & {
  /** The condition in words; absent if there is none. */
  readonly when?: string;
  /** Where it leads, in words. */
  readonly to: string;
  /** A person has to approve the move. */
  readonly approval?: true;
  readonly label?: string;
};

/** A run records no more rows than these, and no longer texts of one. */
const MOST_ROWS = 200;
const LONGEST_TEXT = 200;

/** The rows of a table by their position: the first 200. Undefined for a pipeline that routes by functions. */
function recordedRows({ routes, states, limits }: PipelineSpec): readonly RecordedRow[] | undefined {
  if (routes.kind !== "table") return undefined;
  return routes.rows.slice(0, MOST_ROWS).map(({ from, on, when, to, approval, label }): RecordedRow => {
    const reading = parseChoice(to, states, null, limits.maxItems);
    return {
      from,
      on,
      ...(when === undefined ? {} : { when: shortened(when.text, LONGEST_TEXT) }),
      to: reading.ok ? shortened(shapeText(reading.shape), LONGEST_TEXT) : "nowhere",
      ...(approval === undefined ? {} : { approval: true }),
      ...(label === undefined ? {} : { label: shortened(label, LONGEST_TEXT) }),
    };
  });
}

const LEVELS: readonly NonNullable<PipelineMeta["dangerLevel"]>[] = ["safe", "moderate", "dangerous"];

/** Of a pipeline and all that it may run: the highest level of danger, and `captureOutput: false` if any of them says so. */
function metaWithin(spec: PipelineSpec): PipelineMeta | undefined {
  const all = pipelinesWithin(spec).flatMap(({ meta }) => meta ?? []);
  const dangerLevel = LEVELS.findLast((level) => all.some((meta) => meta.dangerLevel === level));
  const isWithheld = all.some(({ captureOutput }) => captureOutput === false);
  if (dangerLevel === undefined && !isWithheld) return undefined;
  return {
    ...(dangerLevel === undefined ? {} : { dangerLevel }),
    ...(isWithheld ? { captureOutput: false } : {}),
  };
}

function declaredTargetsOf(spec: PipelineSpec, state: string): readonly string[] | undefined {
  if (spec.states.get(state)?.final !== undefined) return [];
  const { anywhere, handlesSuccess, next, siblings, branches } = edgesOf(spec, state);
  const ofBranches = branches.flatMap(({ initial, terminal }) => [initial, terminal]);
  const targets = [...new Set([...siblings, ...ofBranches, ...next])];
  // A state without a success route, such as a sibling, may still have a failure route.
  return anywhere || (!handlesSuccess && targets.length === 0) ? undefined : targets;
}

/** Follows all routes from the initial state and from the targets of interrupts. */
export function reach(spec: PipelineSpec): Reachability {
  const entered = new Set<string>();
  const siblings = new Set<string>();
  const terminals = new Set<string>();
  const walked = new Set<string>();
  const known = new Map<string, Edges>();
  let certain = true;
  let mayComplete = false;
  // A branch has its own walk, which ends at its terminal state.
  const waiting: { readonly state: string; readonly terminal?: string }[] = [
    ...spec.interrupts.map(({ target }) => ({ state: target })).toReversed(),
    { state: spec.initial },
  ];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { state, terminal } = at;
    if (!spec.states.has(state)) continue;
    const step = JSON.stringify([state, terminal ?? null]);
    if (state === terminal || walked.has(step)) continue;
    walked.add(step);
    entered.add(state);
    const edges = known.get(state) ?? edgesOf(spec, state);
    known.set(state, edges);
    if (edges.anywhere) certain = false;
    // A branch completes at its terminal state only.
    const completes = edges.mayComplete || spec.states.get(state)?.final?.outcome === "completed";
    if (completes && terminal === undefined) mayComplete = true;
    for (const sibling of edges.siblings) siblings.add(sibling);
    for (const branch of edges.branches) terminals.add(branch.terminal);
    const inside = terminal === undefined ? {} : { terminal };
    waiting.push(...edges.next.map((next) => ({ state: next, ...inside })));
    waiting.push(...edges.branches.map(({ initial, terminal: end }) => ({ state: initial, terminal: end })));
  }
  return { certain, entered, siblings, terminals, mayComplete };
}

function edgesOfRoutes(routes: Pick<StateRoutes, "targets"> | undefined, mayComplete = routes !== undefined): Edges {
  const isRouted = routes !== undefined;
  // A declared target may be a state, a sibling or a join, and every route may end the run.
  return {
    anywhere: isRouted && routes.targets === undefined,
    next: routes?.targets ?? [],
    siblings: [],
    branches: [],
    mayComplete,
    handlesSuccess: isRouted,
  };
}

function edgesOfRows(spec: PipelineSpec, rows: readonly RowSpec[], byEvents: boolean): Edges {
  const next: string[] = [];
  const siblings: string[] = [];
  const branches: BranchShape[] = [];
  let mayComplete = false;
  for (const row of rows) {
    const reading = parseChoice(row.to, spec.states, null, spec.limits.maxItems);
    if (!reading.ok) continue;
    const { shape } = reading;
    switch (shape.kind) {
      case "to":
        next.push(shape.state);
        break;
      case "done":
        mayComplete = true;
        break;
      case "fanOut":
        next.push(shape.join);
        siblings.push(...(shape.list === undefined ? shape.siblings.map(({ state }) => state) : [shape.list]));
        break;
      case "fork":
      case "invoke":
        next.push(shape.onComplete, ...(shape.onFail === undefined ? [] : [shape.onFail]));
        if (shape.kind === "fork") branches.push(...shape.branches);
        break;
      case "return":
      case "fail":
      case "cancel":
        break;
    }
  }
  const handlesSuccess = rows.some(({ on }) => (byEvents ? typeof on !== "string" : on === "success"));
  return { anywhere: false, next, siblings, branches, mayComplete, handlesSuccess };
}
