import type { RunView } from "../run-view.ts";

/** How long no process executed a run between its start and its last event. A type alias, because commands print it. */
export type IdleTimes = {
  /** Milliseconds between a suspension and its resume. */
  readonly suspendedMs: number;
  /** Milliseconds between the last record of a process that ended without a word and the resume: what happened then is unknown. */
  readonly unknownMs: number;
  /** Since when the run is suspended, in epoch milliseconds. */
  readonly suspendedSince?: number;
  /** The last record of a process that ended without a word, in epoch milliseconds, if the run was not resumed since. */
  readonly unknownSince?: number;
};

/** The times in which no process executed a run. */
export function idleOf({ spans, startedAt }: Pick<RunView, "spans" | "startedAt">): IdleTimes {
  let [suspendedMs, unknownMs] = [0, 0];
  let since: Pick<IdleTimes, "suspendedSince" | "unknownSince"> = {};
  for (const { key, kind, from, to } of spans) {
    if (key !== undefined || (kind !== "suspended" && kind !== "unknown")) continue;
    if (to === undefined) since = kind === "unknown" ? { unknownSince: from } : { suspendedSince: from };
    else if (kind === "unknown") unknownMs += to - from;
    // What a fork copied ended before its start.
    else suspendedMs += Math.max(0, to - Math.max(from, startedAt));
  }
  return { suspendedMs, unknownMs, ...since };
}
