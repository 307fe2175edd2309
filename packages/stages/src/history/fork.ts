import {
  didYouMean,
  type ForkPoint,
  field,
  forkPointsOf,
  type Json,
  type JsonObject,
  type RunCopy,
  type RunJournal,
  readEvents,
  recordsBefore,
  SluiceError,
} from "@sluice/core";
import type { ChangeOptions } from "./pipeline-changes.ts";

/** Where a forked run leaves the one it comes from, and what is said where the pipeline is another by now. */
export interface ForkRunOptions extends ChangeOptions {
  /** The execution before which it begins, such as `review#1`: everything recorded before that is its past. */
  readonly from: string;
}

/** Shown where an execution is not known; a long run has more. */
const MOST_NAMES = 40;

/** The boundary before an execution, and what lies before it. Throws Validation `execution_unknown` with those there are. */
export function forkPointBefore(
  journals: readonly RunJournal[],
  from: string,
): { readonly boundary: ForkPoint; readonly past: readonly RunJournal[] } {
  const all = forkPointsOf(journals);
  const found = all.find(({ executionId }) => executionId === from);
  if (found !== undefined) return { boundary: found, past: recordsBefore(journals, found) };
  const ids = all.map(({ executionId }) => executionId);
  const runId = journals[0]?.runId ?? "";
  // A state alone is meant as its last visit.
  const close = ids.findLast((id) => id.startsWith(`${from}#`)) ?? didYouMean(from, ids);
  const more = ids.length > MOST_NAMES ? `, and ${ids.length - MOST_NAMES} more` : "";
  const there =
    ids.length === 0 ? "it has not entered a state yet" : `it has ${ids.slice(0, MOST_NAMES).join(", ")}${more}`;
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  throw new SluiceError("Validation", "execution_unknown", `run ${runId} has no execution ${from}; ${there}.${hint}`, {
    detail: { executions: ids },
  });
}

/** A copy of a run up to a boundary, whose first record and whose last copied one say where that past is from. */
export function forkRunCopy(
  of: string,
  { executionId, before, head, again }: ForkPoint,
  said: { readonly started: JsonObject; readonly forked: JsonObject },
): Omit<RunCopy, "runId"> {
  const forkedFrom = { runId: of, execution: executionId, head };
  const forked = { from: of, execution: executionId, head, records: before, ...said.forked };
  return {
    of,
    before,
    again,
    started: [{ type: "run.started", data: { ...said.started, forkedFrom } }],
    forked: [{ type: "run.forked", data: forked }],
  };
}

/** What a run did to files behind a boundary, which no fork takes back. */
export interface ChangedSince {
  /** Paths in the workspace that Edit, Write and watched commands changed, in order of their names. */
  readonly files: readonly string[];
  /** Calls that may have changed anything: commands that were not watched, and tools that are not Sluice's. */
  readonly unwatched: number;
}

/** Looks through everything that was recorded of a run and does not belong to the past of a fork. */
export function changedSince(journals: readonly RunJournal[], boundary: ForkPoint): ChangedSince {
  const past = new Map(recordsBefore(journals, boundary).map(({ runId, records }) => [runId, records.length]));
  const files = new Set<string>();
  let unwatched = 0;
  for (const { runId, records } of journals) {
    const writing = new Set<string>();
    for (const record of records.slice(past.get(runId) ?? 0))
      for (const { type, data, executionId, attempt } of readEvents(runId, record)) {
        const call = JSON.stringify([executionId ?? "", attempt ?? 0, data.callId ?? ""]);
        // A call that may write has its start in a record of its own, before it begins.
        if (type === "call.started" && record.phase === "open") writing.add(call);
        if (type !== "call.finished" || !writing.has(call)) continue;
        const changed = filesIn(data.facts);
        for (const file of changed ?? []) files.add(file);
        if (changed === undefined) unwatched += 1;
      }
  }
  return { files: [...files].sort(), unwatched };
}

/** What a watched command did to each file, behind its name. */
const HOW = / \((?:created|changed|removed)\)$/;

/** Undefined where nothing says which. */
function filesIn(facts: Json | undefined): readonly string[] | undefined {
  const path = field(facts, "path");
  if (typeof path === "string" && field(facts, "after") !== undefined) return [path];
  const changed = field(facts, "changed");
  if (!Array.isArray(changed) || field(facts, "compared") !== true) return undefined;
  return changed.flatMap((file: Json) => (typeof file === "string" ? [file.replace(HOW, "")] : []));
}
