import { field, isSluiceError, type Json, type OpenRequest, type SluiceEvent } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import type { RunRequest } from "@sluice/view";
import { REQUEST_EVENTS, recordFault } from "@sluice/view/words";

/** Longest request that a card shows and that can be approved there, in UTF-16 units. */
export const MOST_SHOWN = 100_000;

/**
 * Why a request cannot be approved on a card, or undefined. A card shows the body and an approval names the digest: if they
 * do not match, or differ from the run's record, something else could run than was shown.
 */
export function approvalFault(request: RunRequest): string | undefined {
  if (request.fault !== undefined) return request.fault;
  if (sizeOf(request.body, MOST_SHOWN) > MOST_SHOWN) return "it is too long to be shown whole";
  return digestFault(request);
}

/** How a request differs from the run's record, or undefined; a store keeps requests apart from the record. */
export function requestFault(request: OpenRequest, events: readonly SluiceEvent[]): string | undefined {
  const { runId, requestId } = request;
  const recorded = events.findLast(
    ({ type, data, ...event }) => REQUEST_EVENTS.has(type) && event.runId === runId && data.requestId === requestId,
  );
  if (recorded === undefined) return "the record of its run has no such request";
  return recordFault(request, recorded.data) ?? digestFault(request);
}

function digestFault({ kind, body, digest }: OpenRequest): string | undefined {
  const subject = kind === "grantStageTool" ? (field(body, "proposed") ?? field(body, "input")) : body;
  if (subject === undefined) return "it does not say what would run";
  try {
    return digestOf(subject) === digest ? undefined : "its digest is not that of what is shown";
  } catch (thrown) {
    if (isSluiceError(thrown, "not_json")) return "what it shows has no digest";
    throw thrown;
  }
}

/** The approximate length of a value's JSON; stops counting beyond `most`. */
export function sizeOf(value: Json, most: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 8;
  let size = 2;
  for (const [key, member] of Object.entries(value)) {
    size += key.length + 4 + sizeOf(member, most - size);
    if (size > most) break;
  }
  return size;
}
