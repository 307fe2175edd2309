import type { SluiceEvent } from "@sluice/core";
import { executionKey, reduceRun, span, stateLabel } from "@sluice/view";
import { cleanInline, cut, type Line, type Style } from "@sluice/view/text";
import {
  type AuditFilter,
  describeEvent,
  type EventLine,
  inForkOrder,
  matchesFilter,
  type Verdict,
} from "@sluice/view/words";

/** One boundary of a run, as the audit shows it. Its texts are safe to write. */
export interface TimelineRow {
  readonly id: string;
  readonly at: number;
  readonly type: SluiceEvent["type"];
  /** How deep its run is below the root. */
  readonly depth: number;
  /** The execution it belongs to, to jump to; absent for what happened to a run. */
  readonly key?: string;
  readonly stage?: string;
  readonly tool?: string;
  readonly who: string;
  readonly what: string;
  readonly more: string;
  /** Who or what decided, and why; empty where nothing was decided. */
  readonly by: string;
  readonly why: string;
  readonly verdict?: Verdict;
  readonly style: Style;
}

export interface TimelineFilter extends AuditFilter {
  /** Words that a row's text or its type holds, all of them; upper and lower case are the same. */
  readonly text?: string;
  /** Only where something was decided: proposals, answers, gates, routes, limits. */
  readonly decisions?: boolean;
}

/** Every boundary of a run and the runs below it, siblings behind the fork that started them; those a filter lets through. */
export function timeline(events: readonly SluiceEvent[], filter: TimelineFilter = {}): readonly TimelineRow[] {
  const runs = new Map<string, SluiceEvent[]>();
  for (const event of events) {
    const known = runs.get(event.runId);
    if (known === undefined) runs.set(event.runId, [event]);
    else known.push(event);
  }
  // The root's come first, however the events were read.
  const byDepth = [...runs].toSorted(([a], [b]) => a.split("/").length - b.split("/").length);
  const reducer = reduceRun(byDepth[0]?.[0] ?? "");
  return inForkOrder(byDepth.map(([runId, own]) => ({ runId, events: own })))
    .map(({ event, depth }) => rowOf(event, depth, reducer.event(event) ?? describeEvent(event)))
    .filter((row) => isWanted(row, filter));
}

/** Columns of a row before what it says. */
const TIME = 10;
const WHO = 16;

/** One row of the audit: seconds since `startedAt`, who, what, more, and who decided. Never wider than `width`. */
export function timelineLine(
  row: TimelineRow,
  { width, startedAt }: { readonly width: number; readonly startedAt: number },
): Line {
  const { at, depth, who, what, more, by, why, style } = row;
  const seconds = `+${((at - startedAt) / 1_000).toFixed(3)}`.padStart(TIME);
  const said = more === "" ? [] : [span(` ${more}`)];
  // What was said may hold the reason already.
  const reason = why === "" || more.includes(why) ? "" : `: ${why}`;
  const decided = by === "" && reason === "" ? [] : [span(` — ${by}${reason}`, "dim")];
  return cut(
    [
      span(`${seconds}  `, "dim"),
      span(`${"  ".repeat(Math.min(depth, 8))}${who} `.padEnd(WHO), "accent"),
      span(what, style),
      ...said,
      ...decided,
    ],
    width,
  );
}

function rowOf(event: SluiceEvent, depth: number, line: EventLine): TimelineRow {
  const { id, at, type, runId, executionId } = event;
  const { stage, tool, verdict, what, more, by, why, tone } = line;
  return {
    id,
    at,
    type,
    depth,
    ...(executionId === undefined ? {} : { key: executionKey(runId, executionId) }),
    ...(stage === undefined ? {} : { stage }),
    ...(tool === undefined ? {} : { tool }),
    who: stateLabel(executionId ?? "run"),
    what: cleanInline(what),
    more: cleanInline(more),
    by: cleanInline(by),
    why: cleanInline(why),
    ...(verdict === undefined ? {} : { verdict }),
    style: styleOf(tone),
  };
}

function isWanted(row: TimelineRow, filter: TimelineFilter): boolean {
  const { text = "", decisions = false } = filter;
  if (!matchesFilter(row, filter)) return false;
  if (decisions && row.by === "") return false;
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return true;
  const held = `${row.who} ${row.what} ${row.more} ${row.by} ${row.why} ${row.type}`.toLowerCase();
  return words.every((word) => held.includes(word));
}

function styleOf(tone: string): Style {
  switch (tone) {
    case "good":
    case "bad":
    case "notice":
    case "strong":
      return tone;
    default:
      return "plain";
  }
}
