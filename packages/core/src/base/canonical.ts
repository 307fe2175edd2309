import { hash } from "node:crypto";
import { SluiceError } from "./errors.ts";
import type { Json } from "./json.ts";

const MAX_DEPTH = 256;

/**
 * The RFC 8785 text of a JSON value: members ordered by UTF-16 code unit, numbers and strings as ECMAScript writes them.
 * Throws Validation `not_json` for anything else, including lone surrogates, so that different values never share a text.
 */
export function canonicalJson(value: Json): string {
  return write(value, "$", 0);
}

/** SHA-256 of the UTF-8 bytes of `text`, lowercase hex. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** SHA-256 of the canonical JSON of `value`, regardless of the order of its members. */
export function digestOf(value: Json): string {
  return sha256(canonicalJson(value));
}

function write(value: unknown, path: string, depth: number): string {
  switch (typeof value) {
    case "string":
      return writeString(value, path);
    case "number":
      if (!Number.isFinite(value)) throw notJson(path, `${value} is not a JSON number`);
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return value === null ? "null" : writeContainer(value, path, depth);
    default:
      throw notJson(path, `${typeof value} is not JSON`);
  }
}

function writeString(text: string, path: string): string {
  if (!text.isWellFormed()) throw notJson(path, "a lone surrogate is not valid Unicode");
  return JSON.stringify(text);
}

function writeContainer(value: object, path: string, depth: number): string {
  if (depth >= MAX_DEPTH) throw notJson(path, `nested deeper than ${MAX_DEPTH} levels, or a cycle`);
  if (Array.isArray(value)) {
    const items: string[] = [];
    for (let index = 0; index < value.length; index += 1)
      items.push(write(value[index], `${path}[${index}]`, depth + 1));
    return `[${items.join(",")}]`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw notJson(path, "only plain objects are JSON");
  const members = new Map<string, unknown>(Object.entries(value));
  // sort() orders by code unit by default, as RFC 8785 requires.
  const texts = [...members.keys()].sort().map((key) => {
    const inside = `${path}.${key}`;
    return `${writeString(key, inside)}:${write(members.get(key), inside, depth + 1)}`;
  });
  return `{${texts.join(",")}}`;
}

function notJson(path: string, reason: string): SluiceError {
  const where = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new SluiceError("Validation", "not_json", `${where}: ${reason}`);
}
