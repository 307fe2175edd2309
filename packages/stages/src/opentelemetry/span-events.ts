import type { Attributes } from "@opentelemetry/api";
import type { EventDraft, EventType, Json } from "@sluice/core";
import { clean, textIn } from "./names.ts";

/** Events that become span events, and which fields of their data become attributes: never texts of users, models or tools. */
const REPORTED: Partial<Record<EventType, Readonly<Record<string, string>>>> = {
  "model.fallback": { turn: "sluice.turn", try: "sluice.try", code: "sluice.code" },
  "model.retried": { turn: "sluice.turn", try: "sluice.try", code: "sluice.code", waitMs: "sluice.wait_ms" },
  "message.received": { turn: "sluice.turn" },
  "hook.vetoed": { callId: "gen_ai.tool.call.id", tool: "gen_ai.tool.name", hook: "sluice.hook" },
  "grant.consumed": { requestId: "sluice.request.id", callId: "gen_ai.tool.call.id" },
  "completion.accepted": { callId: "gen_ai.tool.call.id" },
  "completion.rejected": { callId: "gen_ai.tool.call.id", code: "sluice.code" },
  "transition.accepted": { callId: "gen_ai.tool.call.id", to: "sluice.to" },
  "transition.rejected": { callId: "gen_ai.tool.call.id" },
  "route.decided": { from: "sluice.from", choice: "sluice.choice", to: "sluice.to", join: "sluice.join" },
  "route.rejected": { from: "sluice.from" },
  "fanOut.joined": { fanOut: "sluice.fan_out" },
  "limit.near": { limit: "sluice.limit", used: "sluice.used", max: "sluice.max" },
  "limit.reached": { limit: "sluice.limit", used: "sluice.used", max: "sluice.max" },
};

/** The span event for an event; undefined for events that are not reported. */
export function spanEvent(event: EventDraft): { name: string; attributes: Attributes } | undefined {
  const { type } = event;
  const fields = REPORTED[type];
  if (fields === undefined) return undefined;
  const { data } = event;
  const attributes: Attributes = {};
  for (const [field, name] of Object.entries(fields)) {
    const value = attributeOf(data[field]);
    if (value !== undefined) attributes[name] = value;
  }
  return { name: `sluice.${type}`, attributes };
}

/** The attributes of a span whose route was decided. */
export function transitionOf({ from, to }: EventDraft["data"]): Attributes {
  return {
    "sluice.executed_transition_from": textIn(from),
    "sluice.executed_transition_to": textIn(to),
  };
}

function attributeOf(value: Json | undefined): string | number | string[] | undefined {
  if (typeof value === "number") return value;
  return Array.isArray(value) ? value.filter((item) => typeof item === "string").map(clean) : textIn(value);
}
