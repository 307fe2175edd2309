import { APICallError } from "@ai-sdk/provider";
import { type ErrorClass, isJsonObject, isSluiceError, type Json, type JsonObject, SluiceError } from "@sluice/core";
import type { SecretFilter } from "@sluice/core/runtime";
import { cleanMessage, failureOf } from "../reply/failure.ts";
import { NO_SECRETS, toBase64 } from "../reply/provider-values.ts";

// Values that JSON cannot represent are written as an object with one member whose name begins with `$`.

const MAX_DEPTH = 200;
const MAX_CAUSES = 5;

/** A provider's value as JSON: dates, bytes, URLs, errors and special numbers are tagged, functions omitted. */
export function encodeValue(value: unknown, depth = 0): Json {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $number: Object.is(value, -0) ? "-0" : `${value}` };
    case "bigint":
      return { $bigint: value.toString() };
    case "object":
      return value === null ? null : encodeObject(value, depth);
    default:
      return { $undefined: true };
  }
}

function encodeObject(value: object, depth: number): Json {
  if (depth >= MAX_DEPTH) throw new TypeError(`it is nested deeper than ${MAX_DEPTH} levels, or in a circle`);
  if (value instanceof Date) return { $date: Number.isNaN(value.getTime()) ? "" : value.toISOString() };
  if (value instanceof URL) return { $url: value.href };
  if (value instanceof Uint8Array) return { $bytes: toBase64(value) };
  if (value instanceof ArrayBuffer) return { $bytes: toBase64(new Uint8Array(value)) };
  if (value instanceof Error) return { $error: encodeError(value, NO_SECRETS) };
  if (Array.isArray(value)) return value.map((item) => encodeValue(item, depth + 1));
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined && typeof member !== "function" && typeof member !== "symbol")
    .map(([key, member]): [string, Json] => [key, encodeValue(member, depth + 1)]);
  // fromEntries defines members, so a key such as `__proto__` stays data.
  const json: JsonObject = Object.fromEntries(members);
  return members.length === 1 && members[0]?.[0].startsWith("$") === true ? { $object: json } : json;
}

/** The encoded value, with `text` applied to every text in it. Throws TypeError for an invalid tag. */
export function decodeValue(value: Json, text: (text: string) => string = (same) => same): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((item) => decodeValue(item, text));
  const entries = Object.entries(value);
  const [tag, held] = entries.length === 1 ? (entries[0] ?? []) : [];
  if (tag?.startsWith("$") === true && held !== undefined) return decodeTag(tag, held, text);
  return decodeMembers(value, text);
}

function decodeMembers(value: JsonObject, text: (text: string) => string): object {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [text(key), decodeValue(member, text)]));
}

function decodeTag(tag: string, held: Json, text: (text: string) => string): unknown {
  if (tag === "$undefined") return undefined;
  if (tag === "$object" && isJsonObject(held)) return decodeMembers(held, text);
  if (tag === "$error") return decodeError(held, text);
  if (typeof held === "string") {
    if (tag === "$date") return new Date(held);
    if (tag === "$bytes") return new Uint8Array(Buffer.from(held, "base64"));
    if (tag === "$url" && URL.canParse(text(held))) return new URL(text(held));
    if (tag === "$number") return Number(held);
    if (tag === "$bigint" && /^-?\d+$/.test(held)) return BigInt(held);
  }
  throw new TypeError(`${tag} is not a valid tag`);
}

/** Encodes an error that a provider threw or streamed. */
export function encodeThrown(thrown: unknown, secrets: SecretFilter): Json {
  if (thrown instanceof Error) return { $error: encodeError(thrown, secrets) };
  return typeof thrown === "object" && thrown !== null ? errorMembers(thrown, secrets, 0) : encodeValue(thrown);
}

/** Keeps only what determines the meaning of an error, with `retry-after` in milliseconds: no headers, bodies, addresses or stacks. */
function encodeError(error: Error, secrets: SecretFilter): JsonObject {
  const { retryAfterMs, resetAfterMs } = failureOf(error, false, secrets);
  return {
    ...errorMembers(error, secrets, 0),
    name: error.name,
    ...(isSluiceError(error) ? { sluice: error.class } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(resetAfterMs === undefined ? {} : { resetAfterMs }),
  };
}

const PLAIN_MEMBERS = new Set(["name", "code", "type", "status", "statusCode", "isRetryable"]);
const NESTED_MEMBERS = new Set(["error", "data", "cause"]);

function errorMembers(error: object, secrets: SecretFilter, depth: number): JsonObject {
  const members: [string, Json][] = [];
  // Some members of errors are not enumerable.
  for (const key of new Set([...Object.getOwnPropertyNames(error), "message"])) {
    const member: unknown = Reflect.get(error, key);
    if (key === "message" && typeof member === "string") members.push([key, cleanMessage(member, secrets)]);
    else if (PLAIN_MEMBERS.has(key) && ["string", "number", "boolean"].includes(typeof member))
      members.push([key, encodeValue(member)]);
    else if (NESTED_MEMBERS.has(key) && typeof member === "object" && member !== null && depth < MAX_CAUSES)
      members.push([key, errorMembers(member, secrets, depth + 1)]);
  }
  return Object.fromEntries(members);
}

const CLASSES: readonly ErrorClass[] = [
  "Validation",
  "ProviderTransient",
  "ProviderCapability",
  "ToolTransient",
  "ToolTerminal",
  "Session",
  "Cancellation",
  "Host",
];

/** The headers from which the same waits are read again. */
function limitHeaders(
  retryAfterMs: Json | undefined,
  resetAfterMs: Json | undefined,
): Readonly<Record<string, string>> {
  return {
    ...(typeof retryAfterMs === "number" ? { "retry-after-ms": String(retryAfterMs) } : {}),
    ...(typeof resetAfterMs === "number" ? { "ratelimit-reset": String(Math.ceil(resetAfterMs / 1_000)) } : {}),
  };
}

function decodeError(held: Json, text: (text: string) => string): Error {
  if (!isJsonObject(held)) throw new TypeError("$error does not contain an object");
  const { retryAfterMs, resetAfterMs, sluice, message: kept, ...rest } = held;
  const { name, code, statusCode } = rest;
  const message = text(typeof kept === "string" ? kept : "");
  const errorClass = CLASSES.find((known) => known === sluice);
  if (errorClass !== undefined && typeof code === "string") return new SluiceError(errorClass, code, message);
  // Absent members stay absent: an undefined status would differ from none.
  const members = {
    ...decodeMembers(rest, text),
    ...(typeof retryAfterMs === "number" || typeof resetAfterMs === "number"
      ? { responseHeaders: limitHeaders(retryAfterMs, resetAfterMs) }
      : {}),
  };
  if (name !== "AI_APICallError") return Object.assign(new Error(message), members);
  const status = typeof statusCode === "number" ? { statusCode } : {};
  const call = new APICallError({ message, url: "cassette:", requestBodyValues: {}, ...status });
  return Object.assign(call, members);
}
