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

/** The stations in declared order; the siblings of a state's latest fan-out are one station. */
export function stationsOf(view: Pick<RunView, "states" | "executions" | "forks">): readonly Station[] {
  const stops = stopsOf(view);
  const forkOf = new Map<string, ForkView>();
  for (const fork of view.forks) for (const sibling of fork.siblings) forkOf.set(sibling, fork);
  const siblingsOf = new Map<ForkView, readonly string[]>();
  for (const fork of view.forks)
    siblingsOf.set(
      fork,
      fork.siblings.filter((sibling) => forkOf.get(sibling) === fork),
    );
  const placed = new Set<ForkView>();
  const stations: Station[] = [];
  for (const [id, stop] of stops) {
    const fork = forkOf.get(id);
    const siblings = (fork && siblingsOf.get(fork)) ?? [];
    if (fork === undefined || siblings.length < 2) stations.push({ kind: "stop", stop });
    else if (!placed.has(fork)) {
      placed.add(fork);
      stations.push({
        kind: "fork",
        fork,
        stops: siblings.map((sibling) => stops.get(sibling) ?? { id: sibling, visits: 0 }),
      });
    }
  }
  return stations;
}
