import {
  field,
  type JournalRecord,
  type Json,
  type RecordedOutcome,
  type StepCall,
  type StepCost,
  type Usage,
} from "@sluice/core";
import type { AttemptRef, AttemptStepRef } from "@sluice/core/host";
import { decodeValue, type LimitHit, parseAttemptStep, parseStoredJson } from "@sluice/core/runtime";
import type { AfterFailure } from "../models/provider-faults.ts";
import type { ModelFailure } from "../models/reply/reply.ts";
import { type CallUsage, readReservation, usageOfCall } from "./budget.ts";
import type { CheckScope, Completion } from "./completion/completion.ts";
import type { Message } from "./messages.ts";
import {
  type CompletionCheckRecord,
  callsOnly,
  decodeReply,
  encodeChecks,
  type Reply,
  wasStopped,
} from "./reply-record.ts";

// The names of an agent's own steps in an attempt:
//
//   "turn/" turn "/" ( "completion" | "model" [ "/" call ] [ "/failed-at" | "/backoff" ] )

/** A model step, by its place among those of its turn; the first has the plain name. */
export function modelStepName(turn: number, call: number): string {
  return call === 1 ? `turn/${turn}/model` : `turn/${turn}/model/${call}`;
}

/** The steps of the wait that follows a failed model step. */
export function backoffStepNames(turn: number, call: number): { readonly failedAt: string; readonly backoff: string } {
  const model = modelStepName(turn, call);
  return { failedAt: `${model}/failed-at`, backoff: `${model}/backoff` };
}

export function completionStepName(turn: number): string {
  return `turn/${turn}/completion`;
}

export type AgentStepRef =
  | Exclude<AttemptStepRef, { readonly kind: "custom" }>
  | (AttemptRef & { readonly kind: "model" | "backoff" | "completion"; readonly turn: number })
  /** A step of a kind that is not an agent. */
  | (AttemptRef & { readonly kind: "custom"; readonly name: string });

/** Reads the id of a step inside an attempt; undefined for any other. Never throws. */
export function parseAgentStep(stepId: string): AgentStepRef | undefined {
  const step = parseAttemptStep(stepId);
  if (step?.kind !== "custom") return step;
  const { kind: _custom, name, ...attempt } = step;
  const [, turn, completion, wait] = AGENT_STEP.exec(name) ?? [];
  if (turn === undefined) return step;
  const kind = completion !== undefined ? "completion" : wait !== undefined ? "backoff" : "model";
  return { ...attempt, kind, turn: Number(turn) };
}

const AGENT_STEP = /^turn\/(\d+)\/(?:(completion)|model(?:\/\d+)?(\/failed-at|\/backoff)?)$/;

/** What a model step records. `lost` is a call whose process ended before it could record the result. */
export type ModelStepRecord = CallUsage & {
  /** Where earlier versions recorded the running time. */
  readonly elapsed?: Required<Pick<StepCost, "stateMs" | "runMs">>;
  /** Messages that the call consumed: part of the transcript from this call on, even if it failed. */
  readonly messages?: readonly Message[];
} & (
    | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheckRecord[] }
    /**
     * `partial` is the text of a reply that was interrupted. Earlier versions did not record when the call failed, in epoch
     * milliseconds, and what followed.
     */
    | {
        readonly kind: "failed";
        readonly error: ModelFailure;
        readonly partial?: string;
        readonly at?: number;
        readonly next?: AfterFailure;
      }
    | { readonly kind: "limit"; readonly hit: LimitHit }
    | { readonly kind: "lost" }
  );

/** Whether a recorded step contains a decision: only replies do, namely which completions are valid. */
export function decidesCompletion({ value }: RecordedOutcome): boolean {
  const recorded = recordedIn(value);
  return recorded.kind === "reply" && !wasStopped(recorded.completions);
}

/** Replays a model step without calling the model: checks the completions of the recorded reply against the current schema. */
export async function replayedCompletion(
  { value, events }: RecordedOutcome,
  { completion, turn }: { readonly completion: Completion; readonly turn: number },
  scope: CheckScope,
  call: StepCall,
): Promise<ModelStepRecord> {
  for (const event of events) call.event(event);
  const recorded = recordedIn(value);
  if (recorded.kind !== "reply") return recorded;
  const reply = decodeReply(recorded.reply);
  const completions = callsOnly(reply, completion.own) ? await completion.check(reply, turn, scope) : [];
  return { ...recorded, completions: encodeChecks(completions, reply) };
}

function recordedIn(value: string): ModelStepRecord {
  return decodeValue(value, isModelStep, "model");
}

/** What the calls of a model step used. */
export function usageOfStep(step: ModelStepRecord): Usage {
  return usageOfCall(step, step.kind === "reply" ? step.reply.usage : undefined);
}

/** What a model step records as its cost. A lost call counts already with what its open record says. */
export function costOfStep(step: ModelStepRecord): StepCost | undefined {
  return step.kind === "lost" ? undefined : usageOfStep(step);
}

/** The cost of a record of a model step that has none beside its value, as earlier versions recorded it. */
export function costInValue({ phase, stepId, value }: JournalRecord): StepCost | undefined {
  if (parseAgentStep(stepId)?.kind !== "model") return undefined;
  const read = parseStoredJson(value);
  if (!read.ok) return undefined;
  if (phase === "open") return readReservation(read.value);
  if (!isModelStep(read.value) || read.value.elapsed === undefined) return undefined;
  return { ...costOfStep(read.value), ...read.value.elapsed };
}

function isModelStep(value: Json): value is ModelStepRecord {
  const counted = field(value, "counted");
  const isCounted = counted === undefined || hasNumbers(counted, "inputTokens", "outputTokens");
  const isPriced = field(value, "costUsd") === undefined || hasNumbers(value, "costUsd");
  const elapsed = field(value, "elapsed");
  const isTimed = elapsed === undefined || hasNumbers(elapsed, "stateMs", "runMs");
  if (!isCounted || !isPriced || !isTimed) return false;
  switch (field(value, "kind")) {
    case "reply":
      return isReplyRecord(field(value, "reply")) && isListOf(field(value, "completions"), isCheckRecord);
    case "failed":
      return hasTexts(field(value, "error"), "kind", "code", "message") && isAfterFailure(field(value, "next"));
    case "limit":
      return hasTexts(field(value, "hit"), "code", "limit", "message");
    default:
      return field(value, "kind") === "lost";
  }
}

function isAfterFailure(next: Json | undefined): boolean {
  switch (field(next, "kind")) {
    case "retry":
      return hasNumbers(next, "until");
    case "suspend":
      return field(next, "retryAt") === undefined || hasNumbers(next, "retryAt");
    case "fallback":
    case "fail":
      return true;
    default:
      return next === undefined;
  }
}

function isReplyRecord(reply: Json | undefined): boolean {
  const isCall = (call: Json): boolean => hasNumbers(call, "index") && hasTexts(call, "id", "tool");
  const isPart = (part: Json): boolean => hasTexts(part, "type");
  return (
    isListOf(field(reply, "content"), isPart) &&
    isListOf(field(reply, "calls"), isCall) &&
    hasNumbers(reply, "chars") &&
    hasTexts(reply, "finishReason") &&
    hasNumbers(field(reply, "usage"), "inputTokens", "outputTokens")
  );
}

function isCheckRecord(check: Json): boolean {
  const ok = field(check, "ok");
  return hasNumbers(check, "index") && (ok === true || (ok === false && Array.isArray(field(check, "issues"))));
}

function isListOf(value: Json | undefined, isItem: (item: Json) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function hasTexts(value: Json | undefined, ...keys: readonly string[]): boolean {
  return keys.every((key) => typeof field(value, key) === "string");
}

function hasNumbers(value: Json | undefined, ...keys: readonly string[]): boolean {
  return keys.every((key) => typeof field(value, key) === "number");
}
