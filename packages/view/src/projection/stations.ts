import type { ExecutionView, ForkView, RunView } from "./run-view.ts";

/** A state as the progress bar and the graph show it. */
export interface StateStop {
  readonly id: string;
  /** Its last execution; undefined before the first. */
  readonly execution?: ExecutionView;
  readonly visits: number;
}

/** A state, or the siblings of a fan-out. */
export type Station =
  | { readonly kind: "stop"; readonly stop: StateStop }
  | { readonly kind: "fork"; readonly fork: ForkView; readonly stops: readonly StateStop[] };

function stopsOf({ states, executions }: Pick<RunView, "states" | "executions">): ReadonlyMap<string, StateStop> {
  const stops = new Map<string, StateStop>(states.map(({ id }) => [id, { id, visits: 0 }]));
  for (const execution of executions) {
    const { stateId: id } = execution;
    stops.set(id, { id, execution, visits: (stops.get(id)?.visits ?? 0) + 1 });
  }
  return stops;
}

export function stopsIn(station: Station): readonly StateStop[] {
  return station.kind === "stop" ? [station.stop] : station.stops;
}

/** The stations as a graph shows them: the one with the initial state first. */
export function stationsFromInitial(view: RunView): readonly Station[] {
  const isFirst = (station: Station): boolean => stopsIn(station).some(({ id }) => id === view.initial);
  return stationsOf(view).toSorted((a, b) => Number(isFirst(b)) - Number(isFirst(a)));
}

/** The stations in declared order; the siblings of a state's latest fan-out are one station. */
export function stationsOf(view: Pick<RunView, "states" | "executions" | "forks">): readonly Station[] {
  const stops = stopsOf(view);
  const forkOf = new Map(view.forks.flatMap((fork) => fork.siblings.map((sibling) => [sibling, fork] as const)));
  const placed = new Set<ForkView>();
  const stations: Station[] = [];
  for (const [id, stop] of stops) {
    const fork = forkOf.get(id);
    const siblings = fork?.siblings.filter((sibling) => forkOf.get(sibling) === fork) ?? [];
    if (fork === undefined || siblings.length < 2) stations.push({ kind: "stop", stop });
    else if (!placed.has(fork)) {
      placed.add(fork);
      const beside = siblings.map((sibling) => stops.get(sibling) ?? { id: sibling, visits: 0 });
      stations.push({ kind: "fork", fork, stops: beside });
    }
  }
  return stations;
}
