// The states of a run as the entries of a plan.
import type { PlanEntry, PlanEntryStatus } from "@agentclientprotocol/sdk";
import {
  type ExecutionView,
  isUnfinished,
  type RailStation,
  type RunView,
  railOf,
  type StateStop,
  stateLabel,
} from "@sluice/view";

/** The states in declared order; siblings and branches have an entry each. A run that has ended lists only states that it entered. */
export function planEntries(view: RunView): PlanEntry[] {
  const isOver = view.endedAt !== undefined;
  return railOf(view).flatMap((station) => stationEntries(station, isOver));
}

function stationEntries(station: RailStation, isOver: boolean): readonly PlanEntry[] {
  switch (station.kind) {
    case "stop":
      return entriesOf(station.stop, "", isOver);
    case "fork":
    case "children":
      return station.stops.flatMap((stop) => entriesOf(stop, ", in parallel", isOver));
    case "list": {
      const { total, completed, failed } = station.items;
      const faults = failed === 0 ? "" : `, ${failed} failed`;
      return entriesOf(station.stop, `: ${completed} of ${total} items${faults}`, isOver);
    }
  }
}

function entriesOf({ id, execution, visits, final }: StateStop, detail: string, isOver: boolean): readonly PlanEntry[] {
  // A final state has no execution: the result says where the run ended.
  if (final !== undefined || (isOver && execution === undefined)) return [];
  const visit = visits > 1 ? ` (visit ${visits})` : "";
  const content = `${stateLabel(id)}${visit}${detail}${execution === undefined ? "" : howItEnded(execution)}`;
  return [{ content, priority: "medium", status: statusOf(execution) }];
}

/** A plan knows no failed entries. */
function howItEnded({ status }: ExecutionView): string {
  return status === "completed" || isUnfinished(status) ? "" : ` (${status})`;
}

function statusOf(execution: ExecutionView | undefined): PlanEntryStatus {
  if (execution === undefined) return "pending";
  return isUnfinished(execution.status) ? "in_progress" : "completed";
}
