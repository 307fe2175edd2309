import { hash } from "node:crypto";
import { SluiceError } from "./errors.ts";
import { isJsonObject, type Json, unicodeFault } from "./json.ts";

/**
 * The RFC 8785 text of a JSON value: members ordered by UTF-16 code unit, numbers and strings as ECMAScript writes them.
 * Throws Validation `not_json` for anything else, including lone surrogates, so that different values never share a text.
 */
export function canonicalJson(value: Json): string {
  const fault = unicodeFault(value);
  if (fault !== undefined) throw new SluiceError("Validation", "not_json", fault);
  return write(value);
}

/** SHA-256 of the UTF-8 bytes of `text`, lowercase hex. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** SHA-256 of the canonical JSON of `value`, regardless of the order of its members. */
export function digestOf(value: Json): string {
  return sha256(canonicalJson(value));
}

function write(value: Json): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (!isJsonObject(value)) return `[${value.map(write).join(",")}]`;
  let members = "";
  // sort() orders by code unit by default, as RFC 8785 requires.
  for (const key of Object.keys(value).sort()) {
    const member = value[key] ?? null;
    const text = typeof member === "object" ? write(member) : JSON.stringify(member);
    members += `${members === "" ? "" : ","}${JSON.stringify(key)}:${text}`;
  }
  return `{${members}}`;
}
