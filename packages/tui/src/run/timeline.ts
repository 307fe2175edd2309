import type { SluiceEvent } from "@sluice/core";
import { runDepth } from "@sluice/core/runtime";
import { executionKey, reduceRun, span, stateLabel } from "@sluice/view";
import { cleanInline, cut, type Line, type Style } from "@sluice/view/text";
import { type AuditFilter, describeEvent, type EventLine, matchesFilter } from "@sluice/view/words";

/** One event of a run, as the audit shows it. Its texts are safe to print; `depth` is that of its run below the root. */
export interface TimelineRow extends EventLine {
  readonly at: number;
  readonly type: SluiceEvent["type"];
  /** Its execution; undefined for events of the run itself. */
  readonly key?: string;
}

export interface TimelineFilter extends AuditFilter {
  /** Words that a row must all contain, ignoring case. */
  readonly text?: string;
}

/** The filtered events of a run and the runs below it, which are in the order of their tree. */
export function timeline(events: readonly SluiceEvent[], filter: TimelineFilter = {}): readonly TimelineRow[] {
  const rootId = events[0]?.runId ?? "";
  const reducer = reduceRun(rootId);
  return events
    .map((event) =>
      rowOf(event, runDepth(event.runId) - runDepth(rootId), reducer.event(event) ?? describeEvent(event)),
    )
    .filter((row) => isWanted(row, filter));
}

const TIME = 10;
const WHO = 16;

/** One row of the audit: seconds since `startedAt`, the event and the decision. At most `width` columns. */
export function timelineLine(
  row: TimelineRow,
  { width, startedAt }: { readonly width: number; readonly startedAt: number },
): Line {
  const { at, depth, who, what, more, by, why } = row;
  const seconds = `+${((at - startedAt) / 1_000).toFixed(3)}`.padStart(TIME);
  const details = more === "" ? [] : [span(` ${more}`)];
  const reason = why === "" || more.includes(why) ? "" : `: ${why}`;
  const decided = by === "" && reason === "" ? [] : [span(` — ${by}${reason}`, "dim")];
  return cut(
    [
      span(`${seconds}  `, "dim"),
      span(`${"  ".repeat(Math.min(depth, 8))}${who} `.padEnd(WHO), "accent"),
      span(what, styleOf(row)),
      ...details,
      ...decided,
    ],
    width,
  );
}

function rowOf({ at, type, runId, executionId }: SluiceEvent, depth: number, line: EventLine): TimelineRow {
  const { who, what, more, by, why } = line;
  return {
    ...line,
    at,
    type,
    depth,
    ...(executionId === undefined ? {} : { key: executionKey(runId, executionId) }),
    who: stateLabel(who),
    what: cleanInline(what),
    more: cleanInline(more),
    by: cleanInline(by),
    why: cleanInline(why),
  };
}

/** The row as text, in lower case. */
export function searchText({ type, who, what, more, by, why }: TimelineRow): string {
  return `${who} ${what} ${more} ${by} ${why} ${type}`.toLowerCase();
}

function isWanted(row: TimelineRow, filter: TimelineFilter): boolean {
  if (!matchesFilter(row, filter)) return false;
  const words = (filter.text ?? "").toLowerCase().split(/\s+/);
  return words.every((word) => searchText(row).includes(word));
}

function styleOf({ tone }: TimelineRow): Style {
  return tone === "faint" || tone === "name" ? "plain" : tone;
}
