import { addUsage, NO_USAGE, parseSiblingId, rootRunId } from "@sluice/core/runtime";
import type { ForkChild } from "../../words/routes.ts";
import { type ExecutionStatus, isUnfinished } from "../../words/symbols.ts";
import type { ExecutionView, ForkView, RunView } from "../run-view.ts";
import type { PipelinePart } from "./pipeline-view.ts";

/** A state as the progress bar and the graph show it. */
export interface StateStop {
  readonly id: string;
  /** Its last execution; undefined before the first. */
  readonly execution?: ExecutionView;
  readonly visits: number;
  /** Of a final state, which has no executions: how it ends the run, and whether a run or a branch came to it. */
  readonly final?: { readonly outcome: string; readonly reached: boolean };
  /** A branch ended here, without an execution of the state. */
  readonly endsBranch?: true;
}

/** A state, the siblings of a fan-out, or a state with the items of its latest list. */
export type Station =
  | { readonly kind: "stop"; readonly stop: StateStop }
  | { readonly kind: "fork"; readonly fork: ForkView; readonly stops: readonly StateStop[] }
  | { readonly kind: "list"; readonly fork: ForkView; readonly stop: StateStop; readonly items: ListItems };

/** The items of a list. */
export interface ListItems {
  readonly total: number;
  /** Whether all items have ended, and their outputs are joined. */
  readonly joined: boolean;
  /** The executions that began, in the order of the list. */
  readonly executions: readonly ExecutionView[];
  readonly completed: number;
  readonly failed: number;
  /** Skipped and cancelled ones. */
  readonly others: number;
  /** Those that continue, now or after a resume. */
  readonly active: readonly ExecutionView[];
}

/** Counts the items of a list of which some or all have begun. */
function listItems({ siblings, joined }: ForkView, executions: readonly ExecutionView[]): ListItems {
  const active = executions.filter(({ status }) => isUnfinished(status));
  const completed = executions.filter(({ status }) => status === "completed").length;
  const failed = executions.filter(({ status }) => status === "failed").length;
  const others = executions.length - active.length - completed - failed;
  const total = Math.max(siblings.length, executions.length);
  return { total, joined, executions, completed, failed, others, active };
}

/** The status of a list as a whole: how an item continues if one does, else the worst end. Undefined before the first item. */
export function listStatus({
  total,
  joined,
  executions,
  failed,
  others,
  active,
}: ListItems): ExecutionStatus | undefined {
  if (executions.length === 0) return undefined;
  if (active.length > 0)
    return (
      (["running", "retrying", "waiting"] as const).find((known) => active.some(({ status }) => status === known)) ??
      "suspended"
    );
  // Of a cancelled list, some items never begin; of another, the next one is about to.
  if (!joined && others === 0 && executions.length < total) return "running";
  if (failed > 0) return "failed";
  return others > 0 || executions.length < total ? "cancelled" : "completed";
}

/** Executions in their order, those of a list as one group. */
export type ExecutionGroup =
  | { readonly kind: "one"; readonly execution: ExecutionView }
  /** A branch of a fork, or another pipeline. */
  | {
      readonly kind: "child";
      readonly fork: ForkView;
      readonly child: ForkChild;
      /** The child's run. */
      readonly runId: string;
      /** All of them, also those in its groups. */
      readonly executions: readonly ExecutionView[];
      readonly groups: readonly ExecutionGroup[];
    }
  | { readonly kind: "list"; readonly fork: ForkView; readonly first: ExecutionView; readonly items: ListItems };

export function groupsOf(view: Pick<RunView, "executions" | "forks">): readonly ExecutionGroup[] {
  const forks = new Map(view.forks.map((fork) => [forkId(fork), fork]));
  const [first] = view.executions;
  const root = rootRunId(first?.runId ?? "");
  return groupsIn(view.executions, root, forks);
}

/** The same without the groups of branches and pipelines: their executions in order. */
export function flatGroupsOf(
  view: Pick<RunView, "executions" | "forks">,
): readonly Exclude<ExecutionGroup, { readonly kind: "child" }>[] {
  const flat = (groups: readonly ExecutionGroup[]): ReturnType<typeof flatGroupsOf> =>
    groups.flatMap((group) => (group.kind === "child" ? flat(group.groups) : [group]));
  return flat(groupsOf(view));
}

/** The status of a branch or a pipeline: how it ended, or what its last execution does. */
export function childStatus({
  fork,
  child,
  executions,
}: Extract<ExecutionGroup, { readonly kind: "child" }>): ExecutionStatus | undefined {
  const active = executions.findLast(({ status }) => isUnfinished(status) && status !== "interrupted");
  return fork.outcomes?.get(child.key) ?? active?.status ?? executions.at(-1)?.status;
}

/** The groups of executions in a run and the runs below it. */
function groupsIn(
  executions: readonly ExecutionView[],
  runId: string,
  forks: ReadonlyMap<string, ForkView>,
): readonly ExecutionGroup[] {
  const groups: ExecutionGroup[] = [];
  // The items of a list follow each other, and so do the executions of a child.
  for (let at = 0; at < executions.length; ) {
    const first = executions[at];
    if (first === undefined) break;
    const child = childOf(first, runId, forks);
    const list = child === undefined ? first.fork && forks.get(forkId(first.fork)) : undefined;
    const isBeside = (other: ExecutionView | undefined): boolean => {
      if (other === undefined) return false;
      if (child !== undefined) return other.runId === child.runId || other.runId.startsWith(`${child.runId}/`);
      return list?.list !== undefined && isOf(list, other);
    };
    let end = at + 1;
    while (isBeside(executions[end])) end += 1;
    const own = executions.slice(at, end);
    if (child !== undefined)
      groups.push({ kind: "child", ...child, executions: own, groups: groupsIn(own, child.runId, forks) });
    else if (list?.list === undefined) groups.push({ kind: "one", execution: first });
    else groups.push({ kind: "list", fork: list, first, items: listItems(list, own) });
    at = end;
  }
  return groups;
}

/** The child of a run that an execution belongs to; undefined for executions of the run itself, of siblings and of items. */
function childOf(
  execution: ExecutionView,
  runId: string,
  forks: ReadonlyMap<string, ForkView>,
): { readonly fork: ForkView; readonly child: ForkChild; readonly runId: string } | undefined {
  const [fanOut, key] = execution.runId.slice(runId.length + 1).split("/", 2);
  const fork = fanOut === undefined ? undefined : forks.get(forkId({ runId, fork: fanOut }));
  const childRun = `${runId}/${fanOut}/${key}`;
  const child = fork?.children?.find((one) => one.key === parseSiblingId(childRun)?.key);
  return fork === undefined || child === undefined ? undefined : { fork, child, runId: childRun };
}

function isOf({ runId, fork }: ForkView, execution: ExecutionView | undefined): boolean {
  return execution?.fork?.runId === runId && execution.fork.fork === fork;
}

function forkId({ runId, fork }: Pick<ForkView, "runId" | "fork">): string {
  return JSON.stringify([runId, fork]);
}

function stopsOf({ states, executions, path, forks }: StationSource): ReadonlyMap<string, StateStop> {
  const reached = new Set(path.flatMap(({ to }) => to));
  const terminals = new Set(
    forks.flatMap(({ children = [], join }) =>
      children.flatMap((one) => (one.kind === "branch" && one.terminal !== join ? [one.terminal] : [])),
    ),
  );
  const stops = new Map<string, StateStop>(
    states.map(({ id, outcome }) => [
      id,
      {
        id,
        visits: 0,
        ...(outcome === undefined ? {} : { final: { outcome, reached: reached.has(id) } }),
        ...(terminals.has(id) && reached.has(id) ? { endsBranch: true } : {}),
      },
    ]),
  );
  for (const execution of executions) {
    const { stateId: id, fork } = execution;
    const { visits = 0, execution: before } = stops.get(id) ?? {};
    // The items of a list are one visit.
    const isSame = fork !== undefined && before?.fork?.runId === fork.runId && before.fork.fork === fork.fork;
    stops.set(id, { id, execution, visits: isSame && before?.item !== execution.item ? visits : visits + 1 });
  }
  return stops;
}

/** What stations are made of: the part of a view that is about one pipeline. */
type StationSource = Pick<PipelinePart, "states" | "executions" | "forks" | "path">;

export function stopsIn(station: Station): readonly StateStop[] {
  return station.kind === "fork" ? station.stops : [station.stop];
}

/** The stations as a graph shows them: the one with the initial state first. */
export function stationsFromInitial(view: StationSource & Pick<PipelinePart, "initial">): readonly Station[] {
  const isFirst = (station: Station): boolean => stopsIn(station).some(({ id }) => id === view.initial);
  return stationsOf(view).toSorted((a, b) => Number(isFirst(b)) - Number(isFirst(a)));
}

/** The stations in declared order; the siblings of a state's latest fan-out are one station. */
export function stationsOf(view: StationSource): readonly Station[] {
  const stops = stopsOf(view);
  const forkOf = new Map(
    view.forks.flatMap((fork) => {
      // Each state of a branch is a station of its own.
      const states = fork.list === undefined ? (fork.children === undefined ? fork.siblings : []) : [fork.list];
      return states.map((id) => [id, fork] as const);
    }),
  );
  const placed = new Set<ForkView>();
  const stations: Station[] = [];
  for (const [id, stop] of stops) {
    const fork = forkOf.get(id);
    if (fork?.list !== undefined) {
      const items = listItems(
        fork,
        view.executions.filter((execution) => isOf(fork, execution)),
      );
      stations.push({ kind: "list", fork, stop, items });
      continue;
    }
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

/** What the items of a list took together; `endedAt` is undefined while one continues. */
export function sumOf(executions: readonly ExecutionView[]): Pick<ExecutionView, "usage" | "turns" | "startedAt"> & {
  readonly endedAt: number | undefined;
} {
  let [usage, turns] = [NO_USAGE, 0];
  let [startedAt, endedAt]: [number, number | undefined] = [Number.POSITIVE_INFINITY, 0];
  for (const execution of executions) {
    usage = addUsage(usage, execution.usage);
    turns += execution.turns;
    startedAt = Math.min(startedAt, execution.startedAt);
    endedAt =
      endedAt === undefined || execution.endedAt === undefined ? undefined : Math.max(endedAt, execution.endedAt);
  }
  return { usage, turns, startedAt, endedAt };
}
