import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { ActScope, AgentSpec, Usage } from "@sluice/core";
import { addUsage, type LimitHit } from "@sluice/core/runtime";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";
import type { ModelFailure } from "../models/reply/reply.ts";
import { NO_USAGE, spendingOf, usageOfCall } from "./budget.ts";
import { messagesAsPrompt, NO_MESSAGES } from "./messages.ts";
import { backoffMs, MAX_ATTEMPTS, mayRetry, modelStep, reservationOf, type TurnRequest } from "./model-attempt.ts";
import type { ModelStepRecord } from "./model-step-record.ts";
import { type CompletionCheck, decodeChecks, decodeReply, type Reply } from "./reply-record.ts";
import { backoffStepNames, modelStepName } from "./step-names.ts";
import type { Transcript } from "./transcript.ts";

/** The result of all attempts of a turn. `completions` are checked only if the reply has no other calls. */
export type TurnAnswer = { readonly usage: Usage } & (
  | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure; readonly tries: number }
  | { readonly kind: "limit"; readonly hit: LimitHit }
  | { readonly kind: "cancelled" }
);

/** One turn of a model. Each attempt is one step; waits between attempts survive a restart. */
export class ModelTurn implements TurnRequest {
  readonly turn: number;
  readonly agent: AgentSpec;
  readonly model: ResolvedModel;
  readonly facts: ModelFacts;
  readonly transcript: Transcript;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly caller: TurnRequest["caller"];
  readonly #scope: ActScope;
  #usage = NO_USAGE;
  #steps = 0;
  #failures = 0;

  constructor(scope: ActScope, { turn, agent, model, facts, transcript, tools, caller }: TurnRequest) {
    this.turn = turn;
    this.agent = agent;
    this.model = model;
    this.facts = facts;
    this.transcript = transcript;
    this.tools = tools;
    this.caller = caller;
    this.#scope = scope;
  }

  /** Calls the model once. */
  call(): Promise<ModelStepRecord> {
    this.#steps += 1;
    return modelStep(this.#scope, modelStepName(this.turn, this.#steps), {
      request: this,
      reserve: reservationOf(this.#scope, this),
      step: this.#steps,
      number: this.#failures + 1,
      messages: NO_MESSAGES,
    });
  }

  /** The result of the turn after this attempt; undefined when the model must be called again, after waiting for the backoff. */
  async accept(recorded: ModelStepRecord): Promise<TurnAnswer | undefined> {
    const { limits } = this.#scope;
    for (const text of messagesAsPrompt(recorded.messages ?? NO_MESSAGES)) this.transcript.user(text);
    limits.restoreElapsed(recorded.elapsed);
    const callUsage = usageOfCall(recorded, recorded.kind === "reply" ? recorded.reply.usage : undefined);
    limits.record(spendingOf(callUsage));
    const usage = addUsage(this.#usage, callUsage);
    this.#usage = usage;
    switch (recorded.kind) {
      case "reply": {
        const reply = decodeReply(recorded.reply);
        return { kind: "reply", reply, completions: decodeChecks(recorded.completions, reply), usage };
      }
      case "limit":
        return { kind: "limit", hit: recorded.hit, usage };
      case "lost":
        return undefined;
      case "failed": {
        const { error } = recorded;
        this.#failures += 1;
        if (error.kind === "aborted") return { kind: "cancelled", usage };
        if (!mayRetry(error) || this.#failures >= MAX_ATTEMPTS)
          return { kind: "failed", error, tries: this.#failures, usage };
        await this.#backOff(error);
        return this.#scope.signal.aborted ? { kind: "cancelled", usage } : undefined;
      }
    }
  }

  async #backOff(error: ModelFailure): Promise<void> {
    const { steps, wait } = this.#scope;
    const { failedAt, backoff } = backoffStepNames(this.turn, this.#steps);
    const now = await steps.now(failedAt);
    await wait(backoff, now + backoffMs(error, this.#failures));
  }
}
