import type { JsonObject } from "../base/json.ts";

/** Every type of event that a journal records. */
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
  "model.fallback",
  "model.warned",
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
  "transition.accepted",
  "transition.rejected",
  "execution.interrupted",
  "execution.suspended",
  "execution.continued",
  "interrupt.started",
  "interrupt.returned",
  "route.decided",
  "route.rejected",
  "context.changed",
  "fanOut.started",
  "fanOut.joined",
  "command.started",
  "sleep.started",
  "sleep.ended",
  "limit.near",
  "limit.reached",
  "hook.vetoed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An event that is not recorded yet. */
export interface EventDraft {
  readonly type: EventType;
  /** The state and its visit: `plan#1`. */
  readonly executionId?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

/** A recorded event. */
export interface SluiceEvent extends EventDraft {
  /** `<runId>/<seq>/<index in its record>`. */
  readonly id: string;
  readonly runId: string;
  /** Commit time by the host's clock, in epoch milliseconds. */
  readonly at: number;
}
