import type { AgentSpec, RecordedOutcome, StepCall } from "@sluice/core";
import { checkCompletions } from "./completions.ts";
import { keepChecks, readReply } from "./kept-reply.ts";
import type { Recorded } from "./model-try.ts";

/** Of what a model's step recorded only a reply holds a decision: whether its completions fit. */
export function answersAnew({ value }: RecordedOutcome): boolean {
  return recordedIn(value).kind === "reply";
}

/** A replay of a model's step: the recorded reply, with its completions checked by today's schema. No model is asked. */
export async function answeredAnew(
  { value, events }: RecordedOutcome,
  agent: AgentSpec,
  call: StepCall,
): Promise<Recorded> {
  for (const event of events) call.event(event);
  const recorded = recordedIn(value);
  if (recorded.kind !== "reply") return recorded;
  const reply = readReply(recorded.reply);
  const alone = reply.calls.every(({ tool }) => tool === agent.completionTool);
  const completions = alone ? await checkCompletions(reply, agent) : [];
  return { ...recorded, completions: keepChecks(completions, reply) };
}

function recordedIn(value: string): Recorded {
  return JSON.parse(value);
}
