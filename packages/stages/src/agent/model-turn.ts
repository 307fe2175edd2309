import type { ActScope, Usage } from "@sluice/core";
import { addUsage, type LimitHit } from "@sluice/core/runtime";
import type { ModelFailure } from "../models/reply/reply.ts";
import { NO_USAGE } from "./budget.ts";
import { messagesAsPrompt, NO_MESSAGES } from "./messages.ts";
import { backoffMs, MAX_ATTEMPTS, mayRetry, modelStep, reservationOf, type TurnRequest } from "./model-attempt.ts";
import { usageOfStep } from "./model-step-record.ts";
import { type CompletionCheck, decodeChecks, decodeReply, type Reply } from "./reply-record.ts";
import { backoffStepNames, modelStepName } from "./step-names.ts";

/** The result of all attempts of a turn. `completions` are checked only if the reply has no other calls. */
export type TurnAnswer = { readonly usage: Usage } & (
  | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure; readonly tries: number }
  | { readonly kind: "limit"; readonly hit: LimitHit }
  | { readonly kind: "cancelled" }
);

/** One turn of a model. Each attempt is one step; waits between attempts survive a restart. */
export async function modelTurn(scope: ActScope, request: TurnRequest): Promise<TurnAnswer> {
  const { turn, transcript } = request;
  let usage = NO_USAGE;
  let failures = 0;
  for (let step = 1; ; step += 1) {
    const recorded = await modelStep(scope, modelStepName(turn, step), {
      request,
      reserve: reservationOf(scope, request),
      step,
      number: failures + 1,
      messages: NO_MESSAGES,
    });
    for (const text of messagesAsPrompt(recorded.messages ?? NO_MESSAGES)) transcript.user(text);
    usage = addUsage(usage, usageOfStep(recorded));
    if (recorded.kind === "reply") {
      const reply = decodeReply(recorded.reply);
      return { kind: "reply", reply, completions: decodeChecks(recorded.completions, reply), usage };
    }
    if (recorded.kind === "limit") return { kind: "limit", hit: recorded.hit, usage };
    if (recorded.kind === "lost") continue;
    const { error } = recorded;
    failures += 1;
    if (error.kind === "aborted") return { kind: "cancelled", usage };
    if (!mayRetry(error) || failures >= MAX_ATTEMPTS) return { kind: "failed", error, tries: failures, usage };
    const { failedAt, backoff } = backoffStepNames(turn, step);
    const now = await scope.steps.now(failedAt);
    await scope.wait(backoff, now + backoffMs(error, failures));
    if (scope.signal.aborted) return { kind: "cancelled", usage };
  }
}
