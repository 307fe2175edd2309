import { digestOf, field, isSluiceError, type Json, type OpenRequest, type SluiceEvent } from "@sluice/core";
import { textAt } from "@sluice/view/words";

/** UTF-16 units of arguments, keys and all, that a card shows. What is longer cannot be read, and what is not read is not approved. */
export const MOST_SHOWN = 100_000;

/**
 * Why a request cannot be approved on a card, or undefined. A card shows what the request's body holds and an approval names
 * the request's digest: unless the one is the digest of the other, something else could run than was shown.
 */
export function approvalFault(request: OpenRequest): string | undefined {
  if (sizeOf(request.body, MOST_SHOWN) > MOST_SHOWN) return "it is too long to be shown whole";
  return digestFault(request);
}

/** Why what a request shows is not what its run asked for, by the run's record, or undefined. A store keeps requests beside that. */
export function requestFault(request: OpenRequest, events: readonly SluiceEvent[]): string | undefined {
  const { runId, requestId, digest, body } = request;
  const asked = events.findLast(
    ({ type, data, ...event }) => ASKING.has(type) && event.runId === runId && data.requestId === requestId,
  );
  if (asked === undefined) return "the record of its run has no such request";
  const isOther = asked.data.digest !== digest || textAt(asked.data.body, "tool") !== textAt(body, "tool");
  return isOther ? "the record of its run asks for something else" : digestFault(request);
}

const ASKING: ReadonlySet<string> = new Set(["grant.requested", "request.opened"]);

function digestFault({ kind, body, digest }: OpenRequest): string | undefined {
  const about = kind === "grantStageTool" ? (field(body, "proposed") ?? field(body, "input")) : body;
  if (about === undefined) return "it does not say what would run";
  try {
    return digestOf(about) === digest ? undefined : "its digest is not that of what is shown";
  } catch (thrown) {
    if (isSluiceError(thrown, "not_json")) return "what it shows has no digest";
    throw thrown;
  }
}

/** About how many characters the JSON of a value has; stops counting beyond `most`. */
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
