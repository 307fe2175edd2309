import type { Hop, RunView } from "../../projection/run-view.ts";
import { type StateStop, type Station, stationsOf } from "../../projection/stations.ts";
import { headOf } from "../../text/clean.ts";

/** Where a run ended: what its last route chose. */
export type Ending = "done" | "fail" | "cancel";

export type NodePosition =
  | { readonly kind: "stop"; readonly stop: StateStop; readonly isFirst: boolean }
  | { readonly kind: "end"; readonly ending: Ending };

/** A way from one place to another; `taken` 0 is one that could have been taken. */
export interface Way {
  readonly from: string;
  readonly to: string;
  readonly taken: number;
}

/** What there is to draw: rows of places that stand side by side, and the ways between them. */
export interface GraphPlan {
  readonly rows: readonly (readonly (readonly [id: string, place: NodePosition])[])[];
  readonly ways: readonly Way[];
  /** States that are not drawn. */
  readonly left: number;
}

/** Siblings beside each other; more of them go on in the next row. */
const MOST_BESIDE = 4;
/** States beyond which nobody reads a picture. */
const MOST_STATES = 80;
const LONGEST_NAME = 100;

/** The pipeline with the path a run took, in the order its states were declared, the first one first. */
export function planOf(view: RunView): GraphPlan {
  const stations = inOrder(stationsOf(view), view.initial);
  const stops = stations.flatMap((station) => (station.kind === "stop" ? [[station.stop]] : chunks(station.stops)));
  const shown: (readonly StateStop[])[] = [];
  let count = 0;
  for (const row of stops) {
    count += row.length;
    if (count <= MOST_STATES) shown.push(row);
  }
  const endings = [...new Set(view.path.flatMap(({ runId, choice }) => endingOf(choice, runId === view.runId)))];
  const rows = shown.map((row) =>
    row.map((stop) => [stop.id, { kind: "stop" as const, stop, isFirst: stop.id === view.initial }] as const),
  );
  const ends = endings.map((ending) => [endId(ending), { kind: "end" as const, ending }] as const);
  const known = new Set([...shown.flat().map(({ id }) => id), ...endings.map(endId)]);
  const ways = waysOf(view).filter(({ from, to }) => known.has(from) && known.has(to));
  return {
    rows: ends.length === 0 ? rows : [...rows, ends],
    ways,
    left: Math.max(0, stops.flat().length - shown.flat().length),
  };
}

/** The way a run took, in words. */
export function pathWords(path: RunView["path"], rootId: string): readonly string[] {
  return path
    .filter(({ runId }) => runId === rootId)
    .map(({ from, choice, to, join = "?" }) => {
      const names = to.slice(0, MOST_STATES).map(short);
      if (choice === "to") return `${short(from)} → ${names.join(", ")}`;
      if (choice === "fanOut") return `${short(from)} → ${names.join(" ∥ ")} side by side, then ${short(join)}`;
      return `${short(from)} → ${ENDS[choice]}`;
    });
}

export const ENDS: Readonly<Record<Ending, string>> = {
  done: "the run is done",
  fail: "the run fails",
  cancel: "the run is cancelled",
};

function short(name: string): string {
  return headOf(name, LONGEST_NAME);
}

/** No state's id can begin so. */
function endId(ending: Ending): string {
  return `\n${ending}`;
}

function endingOf(choice: Hop["choice"], isRoot: boolean): readonly Ending[] {
  return isRoot && choice !== "to" && choice !== "fanOut" ? [choice] : [];
}

function waysOf({ path, states, forks, runId }: RunView): readonly Way[] {
  const ways = new Map<string, Way>();
  const add = (from: string, to: string, taken: number): void => {
    const key = JSON.stringify([from, to]);
    ways.set(key, { from, to, taken: (ways.get(key)?.taken ?? 0) + taken });
  };
  for (const { from, choice, to, runId: of } of path) {
    for (const target of to) add(from, target, 1);
    for (const ending of endingOf(choice, of === runId)) add(from, endId(ending), 1);
  }
  for (const { siblings, join, joined } of forks) for (const sibling of siblings) add(sibling, join, joined ? 1 : 0);
  // A state that forks reaches its join by way of the siblings.
  const joins = new Map(path.map(({ from, join }) => [from, join] as const));
  for (const { id, targets = [] } of states)
    for (const target of targets) if (joins.get(id) !== target) add(id, target, 0);
  return [...ways.values()];
}

function chunks(stops: readonly StateStop[]): readonly (readonly StateStop[])[] {
  const rows = Math.ceil(stops.length / MOST_BESIDE);
  const each = Math.ceil(stops.length / Math.max(1, rows));
  return Array.from({ length: rows }, (_, row) => stops.slice(row * each, (row + 1) * each));
}

function inOrder(stations: readonly Station[], initial: string | undefined): readonly Station[] {
  const start = stations.find((station) =>
    (station.kind === "stop" ? [station.stop] : station.stops).some(({ id }) => id === initial),
  );
  return start === undefined ? stations : [start, ...stations.filter((station) => station !== start)];
}
