import type { AgentSpec, Elapsed, LimitHit, RecordedOutcome, StepCall } from "@sluice/core";
import type { ModelFailure } from "../models/reply/reply.ts";
import type { CallUsage } from "./budget.ts";
import { checkCompletions } from "./contract.ts";
import type { Message } from "./messages.ts";
import { type CompletionCheckRecord, decodeReply, encodeChecks, type ReplyRecord } from "./reply-record.ts";

/** What a model step records; `lost` is a call whose process did not live to record what came of it. */
export type ModelStepRecord = CallUsage & {
  readonly worked: Elapsed;
  /** What people had said by then: in the transcript from this call on, whatever came of it. */
  readonly messages?: readonly Message[];
} & (
    | { readonly kind: "reply"; readonly reply: ReplyRecord; readonly completions: readonly CompletionCheckRecord[] }
    | { readonly kind: "failed"; readonly error: ModelFailure }
    | { readonly kind: "limit"; readonly hit: LimitHit }
    | { readonly kind: "lost" }
  );

/** Of what a model's step recorded only a reply holds a decision: whether its completions fit. */
export function decidesCompletion({ value }: RecordedOutcome): boolean {
  return recordedIn(value).kind === "reply";
}

/** A replay of a model's step: the recorded reply, with its completions checked by today's schema. No model is asked. */
export async function replayedCompletion(
  { value, events }: RecordedOutcome,
  agent: AgentSpec,
  call: StepCall,
): Promise<ModelStepRecord> {
  for (const event of events) call.event(event);
  const recorded = recordedIn(value);
  if (recorded.kind !== "reply") return recorded;
  const reply = decodeReply(recorded.reply);
  const alone = reply.calls.every(({ tool }) => tool === agent.completionTool);
  const completions = alone ? await checkCompletions(reply, agent) : [];
  return { ...recorded, completions: encodeChecks(completions, reply) };
}

function recordedIn(value: string): ModelStepRecord {
  return JSON.parse(value);
}
