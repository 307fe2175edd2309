import { isJsonObject, type Json, jsonFault } from "@sluice/core";
import type { ProviderData } from "../reply/reply.ts";

/** Deeper values are refused: the journal's own limit is 256, and a reply wraps what it holds in a few levels. */
export const MAX_DEPTH = 128;

/** How deep `jsonFault` believes it starts, so that it stops after MAX_DEPTH levels. */
const START_DEPTH = 256 - MAX_DEPTH;

/** Why a parsed value cannot be journaled (too deep, a number beyond all bounds), or undefined. */
export function depthFault(value: unknown): string | undefined {
  return jsonFault(value, "$", START_DEPTH);
}

/** A provider's value as plain JSON: bytes become base64, dates and URLs strings. Undefined when it cannot be. */
export function toJson(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value, plain);
  } catch {
    return undefined; // a cycle or bottomless nesting: the caller says that the value was left out
  }
  if (text === undefined) return undefined;
  const json: Json = JSON.parse(text);
  return depthFault(json) === undefined ? json : undefined;
}

function plain(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value);
  return typeof value === "bigint" ? value.toString() : value;
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Provider metadata as data to send back, or undefined when there is none that could be. */
export function providerData(metadata: unknown): ProviderData | undefined {
  if (metadata === undefined || metadata === null) return undefined;
  const json = toJson(metadata);
  if (!isJsonObject(json)) return undefined;
  // fromEntries defines members, so that a provider called `__proto__` stays data.
  const entries = Object.entries(json).flatMap(([provider, data]) =>
    isJsonObject(data) ? [[provider, data] as const] : [],
  );
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
