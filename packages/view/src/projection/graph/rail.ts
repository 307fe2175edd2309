// The states of a run in one line: what the progress bar shows.
import { isUnfinished } from "../../words/symbols.ts";
import type { ExecutionView, ForkView, RunView } from "../run-view.ts";
import { pipelinePart } from "./pipeline-view.ts";
import { type ExecutionGroup, groupsOf, type StateStop, type Station, stationsOf, stopsIn } from "./stations.ts";

/** A station of the run's pipeline, or the branches and other pipelines that it runs, each with the state that it is in. */
export type RailStation = Station | ChildrenStation;

export interface ChildrenStation {
  readonly kind: "children";
  readonly fork: ForkView;
  /** One for each child, and for each child of a child below it. */
  readonly stops: readonly ChildStop[];
}

/** A child; the execution is its active one, or its last one. */
export interface ChildStop extends StateStop {
  readonly executions: readonly ExecutionView[];
}

/**
 * The stations of the run's pipeline. The latest fork of a state follows it, with a stop for each branch in place of the states
 * that only branches enter. Final states appear once they are reached.
 */
export function railOf(view: RunView): readonly RailStation[] {
  const part = pipelinePart(view);
  const groups = groupsOf(view);
  const forks = new Map(
    part.forks.flatMap((fork) =>
      fork.children === undefined || fork.runId !== view.runId ? [] : [[fork.from, fork] as const],
    ),
  );
  const inBranches = branchStates(view, [...forks.values()]);
  const isShown = ({ id, final }: StateStop): boolean => final?.reached ?? !inBranches.has(id);
  const rail: RailStation[] = [];
  for (const station of stationsOf(part)) {
    if (stopsIn(station).some(isShown)) rail.push(station);
    for (const { id } of stopsIn(station)) {
      const fork = forks.get(id);
      if (fork !== undefined) rail.push(childrenStation(fork, groups));
      forks.delete(id);
    }
  }
  return [...rail, ...[...forks.values()].map((fork) => childrenStation(fork, groups))];
}

function childrenStation(fork: ForkView, groups: readonly ExecutionGroup[]): ChildrenStation {
  const begun = groups.flatMap((group) => (group.kind === "child" && isSame(group.fork, fork) ? [group] : []));
  const stops = (fork.children ?? []).flatMap(({ key }) => {
    const group = begun.find(({ child }) => child.key === key);
    return group === undefined ? [{ id: key, visits: 0, executions: [] }] : childStops(group, "");
  });
  return { kind: "children", fork, stops };
}

function childStops(
  { child: { key }, executions, groups }: Extract<ExecutionGroup, { readonly kind: "child" }>,
  above: string,
): readonly ChildStop[] {
  const name = `${above}${key}`;
  const nested = groups.flatMap((group) => (group.kind === "child" ? childStops(group, `${name}/`) : []));
  const inside = new Set(nested.flatMap((stop) => stop.executions));
  const own = executions.filter((one) => !inside.has(one));
  const execution = own.findLast(({ status }) => isUnfinished(status) && status !== "interrupted") ?? own.at(-1);
  if (execution === undefined) return nested;
  return [{ id: `${name}: ${execution.stateId}`, execution, visits: 1, executions: own }, ...nested];
}

/** The states that only branches enter. */
function branchStates({ runId, executions }: RunView, forks: readonly ForkView[]): ReadonlySet<string> {
  const states = new Set<string>();
  for (const { children = [] } of forks)
    for (const child of children) if (child.kind === "branch") states.add(child.state).add(child.terminal);
  const within = forks.map(({ fork }) => `${runId}/${fork}/`);
  for (const one of executions)
    if (one.invoked === undefined && within.some((run) => one.runId.startsWith(run))) states.add(one.stateId);
  for (const one of executions) if (one.runId === runId) states.delete(one.stateId);
  // A branch may end where its fork continues.
  for (const { join } of forks) states.delete(join);
  return states;
}

function isSame(a: ForkView, b: ForkView): boolean {
  return a.runId === b.runId && a.fork === b.fork;
}
