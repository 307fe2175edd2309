import type { Attributes } from "@opentelemetry/api";
import type { EventDraft, EventType, Json } from "@sluice/core";
import { clean } from "./names.ts";

/** Events that are told as events of the span they happened in, and what of their data is told: never what somebody wrote. */
const TOLD: Partial<Record<EventType, readonly string[]>> = {
  "model.retried": ["turn", "try", "code", "waitMs"],
  "message.received": ["turn"],
  "hook.vetoed": ["callId", "tool", "hook"],
  "grant.consumed": ["requestId", "callId"],
  "completion.accepted": ["turn", "callId"],
  "completion.rejected": ["turn", "callId", "code"],
  "route.decided": ["from", "choice", "to", "join"],
  "route.rejected": ["from"],
  "fork.joined": ["fork"],
  "limit.near": ["limit", "used", "max"],
  "limit.reached": ["limit", "used", "max"],
};

/** What an event says on a span; undefined for those that are not told there. */
export function spanEvent({ type, data }: EventDraft): { name: string; attributes: Attributes } | undefined {
  const told = TOLD[type];
  if (told === undefined) return undefined;
  const attributes: Attributes = {};
  for (const field of told) {
    const value = attributeOf(data[field]);
    if (value !== undefined)
      attributes[`sluice.${field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`] = value;
  }
  return { name: `sluice.${type}`, attributes };
}

function attributeOf(value: Json | undefined): string | number | string[] | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "string") return clean(value);
  return Array.isArray(value) ? value.filter((item) => typeof item === "string").map(clean) : undefined;
}
