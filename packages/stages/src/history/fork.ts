import { field, type Json, type JsonObject, type RunCopy, type RunJournal, SluiceError } from "@sluice/core";
import { asRead, forkPointsOf, readEvents, recordsBefore } from "@sluice/core/host";
import { didYouMean, type ForkPoint, textField } from "@sluice/core/runtime";
import type { ChangeOptions } from "./pipeline-changes.ts";

export interface ForkRunOptions extends ChangeOptions {
  /**
   * The execution before which the fork begins, such as `review#1`: it copies everything recorded before that. In a list,
   * `review#1` runs every item again, and `review#1:src/a.ts` the item with that key. `format#1:style` begins inside the child `style`.
   */
  readonly from: string;
  /** As for a new run. */
  readonly settings?: JsonObject;
}

/** Listed by the error for an unknown execution. */
const MAX_NAMES = 40;

/** The boundary before an execution, and the records before it. Throws Validation `execution_unknown`, which lists the executions. */
export function forkPointBefore(
  journals: readonly RunJournal[],
  from: string,
): { readonly boundary: ForkPoint; readonly past: readonly RunJournal[] } {
  const all = forkPointsOf(journals);
  const points = pointsAt(all, from);
  const [first] = points;
  if (first !== undefined) {
    const again = points.flatMap((point) => point.again);
    const boundary = asRead(journals, { ...first, executionId: from, again });
    return { boundary, past: recordsBefore(journals, boundary) };
  }
  const ids = [...new Set(all.map(({ executionId }) => executionId))];
  const runId = journals[0]?.runId ?? "";
  // A state's name alone means its last execution, and that of an execution the one inside a child.
  const close = ids.findLast((id) => id.startsWith(`${from}#`) || id.startsWith(`${from}:`)) ?? didYouMean(from, ids);
  const more = ids.length > MAX_NAMES ? `, and ${ids.length - MAX_NAMES} more` : "";
  const known =
    ids.length === 0 ? "it has not entered a state yet" : `it has ${ids.slice(0, MAX_NAMES).join(", ")}${more}`;
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  throw new SluiceError("Validation", "execution_unknown", `run ${runId} has no execution ${from}; ${known}.${hint}`, {
    detail: { executions: ids },
  });
}

/** The points before an execution: several for a list, one for each of its items. */
function pointsAt(all: readonly ForkPoint[], from: string): readonly ForkPoint[] {
  const points = Map.groupBy(all, ({ executionId }) => executionId);
  const whole = points.get(from);
  if (whole !== undefined) return whole;
  const at = from.indexOf(":");
  const key = from.slice(at + 1);
  const items = at === -1 ? [] : (points.get(from.slice(0, at)) ?? []);
  return items.filter(({ again }) => again.includes(key)).slice(0, 1);
}

/** A copy of a run up to a boundary. `run.started` and `run.forked` name the original run. */
export function forkRunCopy(
  of: string,
  { executionId, before, head, again, inside }: ForkPoint,
  data: { readonly started: JsonObject; readonly forked: JsonObject },
): Omit<RunCopy, "runId"> {
  const forkedFrom = { runId: of, execution: executionId, head };
  const forked = { from: of, execution: executionId, head, records: before, ...data.forked };
  return {
    of,
    before,
    again,
    ...(inside === undefined ? {} : { inside }),
    started: [{ type: "run.started", data: { ...data.started, forkedFrom } }],
    forked: [{ type: "run.forked", data: forked }],
  };
}

/** File changes after a boundary, which a fork does not roll back. */
export interface ChangedSince {
  /** Workspace paths that Edit, Write and watched commands changed, sorted. */
  readonly files: readonly string[];
  /** Calls that may have changed any file: unwatched commands and custom tools. */
  readonly unwatched: number;
}

/** Collects the file changes of all records after the boundary. */
export function changedSince(journals: readonly RunJournal[], boundary: ForkPoint): ChangedSince {
  const past = new Map(recordsBefore(journals, boundary).map(({ runId, records }) => [runId, records.length]));
  const files = new Set<string>();
  let unwatched = 0;
  for (const { runId, records } of journals) {
    const writing = new Set<string>();
    for (const record of records.slice(past.get(runId) ?? 0))
      for (const { type, data, executionId, attempt } of readEvents(runId, record)) {
        const call = JSON.stringify([executionId ?? "", attempt ?? 0, data.callId ?? ""]);
        // A call that may write records its start before it begins.
        if (type === "call.started" && record.phase === "open") writing.add(call);
        if (type !== "call.finished" || !writing.has(call)) continue;
        const changed = filesIn(data.facts);
        for (const file of changed ?? []) files.add(file);
        if (changed === undefined) unwatched += 1;
      }
  }
  return { files: [...files].sort(), unwatched };
}

/** The suffix that a watched command's facts add to each file. */
const CHANGE_KIND = / \((?:created|changed|removed)\)$/;

/** The changed files; undefined if unknown. */
function filesIn(facts: Json | undefined): readonly string[] | undefined {
  const path = textField(facts, "path");
  if (path !== undefined && field(facts, "after") !== undefined) return [path];
  const changed = field(facts, "changed");
  if (!Array.isArray(changed) || field(facts, "compared") !== true) return undefined;
  return changed.flatMap((file: Json) => (typeof file === "string" ? [file.replace(CHANGE_KIND, "")] : []));
}
