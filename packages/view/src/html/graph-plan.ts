import type { Hop, RunView } from "../projection/run-view.ts";
import { type StateStop, type Station, stationsOf } from "../projection/stations.ts";
import { headOf } from "../text/clean.ts";

/** How a run's last route ends it. */
export type GraphEnd = "done" | "fail" | "cancel";

export type GraphNode =
  | { readonly kind: "stop"; readonly id: string; readonly stop: StateStop; readonly isInitial: boolean }
  | { readonly kind: "end"; readonly id: string; readonly ending: GraphEnd };

export interface Edge {
  readonly from: string;
  readonly to: string;
  /** How often it was taken; 0 for a possible transition. */
  readonly taken: number;
}

/** Rows of nodes, and the edges between them. */
export interface GraphPlan {
  readonly rows: readonly (readonly GraphNode[])[];
  readonly edges: readonly Edge[];
  /** The number of states that are left out. */
  readonly left: number;
}

/** Nodes in one row; more siblings continue in the next. */
const MOST_BESIDE = 4;
const MOST_STATES = 80;
const LONGEST_NAME = 100;

export const ENDS: Readonly<Record<GraphEnd, string>> = {
  done: "run completed",
  fail: "run failed",
  cancel: "run cancelled",
};

/** The pipeline with the transitions of a run: states in declared order, the initial state first. */
export function planOf(view: RunView): GraphPlan {
  const stops = inOrder(stationsOf(view), view.initial).flatMap((station) =>
    station.kind === "stop" ? [[station.stop]] : chunks(station.stops),
  );
  let states = 0;
  const rows: GraphNode[][] = [];
  for (const row of stops) {
    states += row.length;
    if (states > MOST_STATES) continue;
    rows.push(row.map((stop) => ({ kind: "stop", id: stop.id, stop, isInitial: stop.id === view.initial })));
  }
  const left = states - rows.flat().length;
  const endings = new Set(view.path.flatMap((hop) => endingOf(hop, view.runId) ?? []));
  if (endings.size > 0) rows.push([...endings].map((ending) => ({ kind: "end", id: endId(ending), ending })));
  const ids = new Set(rows.flat().map(({ id }) => id));
  return { rows, edges: edgesOf(view).filter(({ from, to }) => ids.has(from) && ids.has(to)), left };
}

/** The transitions of a run in words. */
export function pathWords(path: RunView["path"], rootId: string): readonly string[] {
  return path.filter(({ runId }) => runId === rootId).map((hop) => `${shortName(hop.from)} → ${hopTarget(hop)}`);
}

/** The target of a transition in words. */
export function hopTarget({ choice, to, join = "?" }: Hop): string {
  const names = to.slice(0, MOST_STATES).map(shortName);
  if (choice === "to") return names.join(", ");
  if (choice === "fanOut") return `${names.join(" ∥ ")} in parallel, then ${shortName(join)}`;
  return ENDS[choice];
}

function shortName(name: string): string {
  return headOf(name, LONGEST_NAME);
}

/** The id of an end node; no state's id contains a line break. */
function endId(ending: GraphEnd): string {
  return `\n${ending}`;
}

/** Only the root's routes end the run. */
function endingOf({ runId, choice }: Hop, rootId: string): GraphEnd | undefined {
  return runId !== rootId || choice === "to" || choice === "fanOut" ? undefined : choice;
}

function edgesOf({ path, states, forks, runId }: RunView): readonly Edge[] {
  const edges = new Map<string, Edge>();
  const add = (from: string, to: string, taken: number): void => {
    const key = JSON.stringify([from, to]);
    edges.set(key, { from, to, taken: (edges.get(key)?.taken ?? 0) + taken });
  };
  for (const hop of path) {
    for (const target of hop.to) add(hop.from, target, 1);
    const ending = endingOf(hop, runId);
    if (ending !== undefined) add(hop.from, endId(ending), 1);
  }
  for (const { siblings, join, joined } of forks) for (const sibling of siblings) add(sibling, join, joined ? 1 : 0);
  // A state that fans out reaches its join through the siblings.
  const joins = new Map(path.map(({ from, join }) => [from, join] as const));
  for (const { id, targets = [] } of states)
    for (const target of targets) if (joins.get(id) !== target) add(id, target, 0);
  return [...edges.values()];
}

function chunks(stops: readonly StateStop[]): readonly (readonly StateStop[])[] {
  const rows = Math.ceil(stops.length / MOST_BESIDE);
  const columns = Math.ceil(stops.length / Math.max(1, rows));
  return Array.from({ length: rows }, (_, row) => stops.slice(row * columns, (row + 1) * columns));
}

function inOrder(stations: readonly Station[], initial: string | undefined): readonly Station[] {
  const first = stations.find((station) =>
    (station.kind === "stop" ? [station.stop] : station.stops).some(({ id }) => id === initial),
  );
  return first === undefined ? stations : [first, ...stations.filter((station) => station !== first)];
}
