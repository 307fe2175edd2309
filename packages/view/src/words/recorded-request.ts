import { field, isJsonObject, type Json, type OpenRequest } from "@sluice/core";
import { isSameJson, redactJson } from "@sluice/core/runtime";
import { textAt } from "./fields.ts";

/** Event types that open requests. */
export const REQUEST_EVENTS: ReadonlySet<string> = new Set(["grant.requested", "request.opened"]);

/**
 * How a request of a store differs from the data of the event that opened it, or undefined. A store keeps requests apart from the
 * record, whose chain does not cover them.
 */
export function recordFault({ kind, digest, body }: OpenRequest, recorded: Json): string | undefined {
  const isSame =
    textAt(recorded, "kind") === kind &&
    textAt(recorded, "digest") === digest &&
    // The event is redacted, and the request is not.
    isSameJson(field(recorded, "body"), redactJson(body));
  if (!isSame) return "the record of its run asks for something else";
  const proposed = field(body, "proposed");
  if (kind !== "grantStageTool" || proposed === undefined || isCovered(field(body, "input"), proposed))
    return undefined;
  return "the tool changed arguments that look like a secret, so they cannot be compared with the record";
}

/** Whether what the event of a request does not show of the input is in the proposed arguments, which its digest covers. */
function isCovered(input: Json | undefined, proposed: Json | undefined): boolean {
  if (input === undefined || isSameJson(redactJson(input), input) || isSameJson(input, proposed)) return true;
  if (!isJsonObject(input) || !isJsonObject(proposed)) return false;
  // The name of a member may be why its value is redacted.
  return Object.entries(input).every(
    ([key, value]) => isSameJson(redactJson({ [key]: value }), { [key]: value }) || isCovered(value, proposed[key]),
  );
}
