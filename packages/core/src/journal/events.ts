import type { JsonObject } from "../base/json.ts";

/** Every boundary of a run that is written down. */
export const EVENT_TYPES = [
  "run.started",
  "run.forked",
  "run.suspended",
  "run.resumed",
  "run.finished",
  "stage.setup",
  "stage.init",
  "stage.precondition",
  "stage.act",
  "stage.assert",
  "stage.exit",
  "stage.next",
  "attempt.started",
  "attempt.finished",
  "turn.started",
  "turn.finished",
  "model.retried",
  "message.received",
  "call.decided",
  "call.started",
  "call.finished",
  "grant.requested",
  "grant.answered",
  "grant.consumed",
  "grant.expired",
  "request.opened",
  "request.answered",
  "request.expired",
  "completion.accepted",
  "completion.rejected",
  "route.decided",
  "route.rejected",
  "context.changed",
  "fanOut.started",
  "fanOut.joined",
  "limit.near",
  "limit.reached",
  "hook.vetoed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An event on its way into a record. */
export interface EventDraft {
  readonly type: EventType;
  /** `plan#1`: which entry into which state. */
  readonly executionId?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

/** An event as it stands in the journal; its id says where. */
export interface SluiceEvent extends EventDraft {
  /** `<runId>/<seq>/<index in its record>`. */
  readonly id: string;
  readonly runId: string;
  /** Epoch milliseconds, the host's clock at the commit. */
  readonly at: number;
}
