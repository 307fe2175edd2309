import type { AgentSpec, Elapsed, LimitHit, RecordedOutcome, StepCall } from "@sluice/core";
import type { ModelFailure } from "../models/reply/reply.ts";
import type { CallUsage } from "./budget.ts";
import { checkCompletions } from "./contract.ts";
import type { Message } from "./messages.ts";
import { type CompletionCheckRecord, decodeReply, encodeChecks, type ReplyRecord } from "./reply-record.ts";

/** What a model step records. `lost` is a call whose process ended before it could record the result. */
export type ModelStepRecord = CallUsage & {
  readonly worked: Elapsed;
  /** Messages that the call consumed: part of the transcript from this call on, even if it failed. */
  readonly messages?: readonly Message[];
} & (
    | { readonly kind: "reply"; readonly reply: ReplyRecord; readonly completions: readonly CompletionCheckRecord[] }
    | { readonly kind: "failed"; readonly error: ModelFailure }
    | { readonly kind: "limit"; readonly hit: LimitHit }
    | { readonly kind: "lost" }
  );

/** Whether a recorded step contains a decision: only replies do, namely which completions are valid. */
export function decidesCompletion({ value }: RecordedOutcome): boolean {
  return recordedIn(value).kind === "reply";
}

/** Replays a model step without calling the model: checks the completions of the recorded reply against the current schema. */
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
