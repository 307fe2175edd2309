import { deepFreeze, type JsonObject } from "../../base/json.ts";
import { redactedJson } from "../redaction/redact.ts";

const TEXT: unique symbol = Symbol("the JSON text of an event's data");

/** Data that many events share: its text is made once, redacted like any other. Spread into other data it is ordinary. */
export function sharedData(data: JsonObject): JsonObject {
  const shared = { ...data };
  Object.defineProperty(shared, TEXT, { value: redactedJson(shared) });
  return deepFreeze(shared);
}

/** The JSON text of an event's data, with what looks like a secret replaced. */
export function dataText(data: JsonObject): string {
  return hasText(data) ? data[TEXT] : redactedJson(data);
}

function hasText(data: JsonObject): data is JsonObject & { readonly [TEXT]: string } {
  return TEXT in data;
}
