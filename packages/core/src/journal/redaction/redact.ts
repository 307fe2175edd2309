import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { mayHoldSecret, namesSecret, redactText } from "./redact-text.ts";
import { REDACTION_MARKER } from "./secret-filter.ts";

/** Characters of a key's name that stay where its value stood. */
const LONGEST_NAME = 40;

/** Replaces what looks like a secret in a value: by the name of its key, or by its form. */
export function redactJson(value: Json): Json {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  return isJsonObject(value) ? redactObject(value) : value.map(redactJson);
}

function redactObject(value: JsonObject): JsonObject {
  const entries: [string, Json][] = [];
  for (const [key, member] of Object.entries(value)) {
    const hidden =
      namesSecret(key) && (typeof member === "string" ? member !== "" : typeof member === "object" && member !== null);
    entries.push([redactText(key), hidden ? `${REDACTION_MARKER}${key.slice(0, LONGEST_NAME)}]` : redactJson(member)]);
  }
  return Object.fromEntries(entries);
}

/** The JSON text of an event's data with what looks like a secret replaced; most texts hold no hint of one and are done. */
export function redactedJson(data: JsonObject): string {
  const text = JSON.stringify(data);
  return mayHoldSecret(text) ? JSON.stringify(redactObject(data)) : text;
}
