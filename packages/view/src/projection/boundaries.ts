import type { SluiceEvent } from "@sluice/core";
import { parseExecutionId } from "../words/audit-filter.ts";
import type { EventLine } from "../words/event-lines.ts";
import { textAt } from "../words/fields.ts";
import { oneLine } from "../words/words.ts";
import type { BoundaryItem, NoteTone } from "./run-view.ts";

/** What a transcript says of its execution's events; calls have items of their own. */
const TOLD: ReadonlySet<string> = new Set([
  "stage.precondition",
  "stage.exit",
  "model.retried",
  "grant.answered",
  "grant.expired",
  "request.answered",
  "request.expired",
  "route.rejected",
  "route.decided",
  "limit.near",
  "limit.reached",
]);
/** Of those the ones that say why, or how much: a sentence of its own behind what happened. */
const EXPLAINED: ReadonlySet<string> = new Set([
  "stage.exit",
  "model.retried",
  "route.rejected",
  "limit.near",
  "limit.reached",
]);
/** What happens to a run as a whole. */
const RUN_TOLD: ReadonlySet<string> = new Set([
  "run.started",
  "run.forked",
  "run.resumed",
  "run.suspended",
  "fanOut.started",
  "fanOut.joined",
  "limit.near",
  "limit.reached",
]);

/** The boundary that an event of an execution is in its transcript, if any. */
export function boundaryOf(event: SluiceEvent, said: EventLine | undefined): BoundaryItem | undefined {
  const { type, data } = event;
  if (type === "attempt.started") return attemptOf(event);
  if (type === "attempt.finished" && textAt(data, "outcome") === "retry")
    return note(`sent back: ${oneLine(textAt(data, "feedback"))}`, "notice");
  // The call itself tells who approved or denied it.
  if (type === "grant.answered" && (textAt(data, "answer") === "approve" || textAt(data, "answer") === "deny"))
    return undefined;
  return said !== undefined && TOLD.has(type) ? noteOf(type, said) : undefined;
}

/** The boundary that an event outside executions is in a run's log, if any. */
export function runBoundaryOf({ type }: SluiceEvent, said: EventLine | undefined): BoundaryItem | undefined {
  return said !== undefined && RUN_TOLD.has(type) ? noteOf(type, said) : undefined;
}

export function note(text: string, tone: NoteTone): BoundaryItem {
  return { kind: "boundary", rank: "note", text, tone };
}

/** What was said, in one line. */
export function lineOf({ who, what, more }: EventLine): string {
  return `${who} ${what} ${more}`.trimEnd();
}

function attemptOf({ executionId = "", attempt = 1 }: SluiceEvent): BoundaryItem {
  const { stateId, visit } = parseExecutionId(executionId);
  const parts = [oneLine(stateId, 64)];
  if (visit > 1) parts.push(`visit ${visit}`);
  if (attempt > 1) parts.push(`attempt ${attempt}`);
  return { kind: "boundary", rank: "attempt", text: parts.join(" · "), tone: attempt > 1 ? "notice" : "plain" };
}

function noteOf(type: string, { what, more, tone }: EventLine): BoundaryItem {
  const between = EXPLAINED.has(type) || what === "ends" ? ": " : " ";
  const text = more === "" ? what : `${what}${between}${more}`;
  return note(text, tone === "good" || tone === "bad" || tone === "notice" ? tone : "plain");
}
