import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { type ActScope, type AgentSpec, addUsage, type LimitHit, type Usage } from "@sluice/core";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/model-facts.ts";
import type { ModelFailure } from "../models/reply/reply.ts";
import { NO_USAGE, spendingOf, usageOfCall } from "./budget.ts";
import { NO_MESSAGES, saidByPeople } from "./messages.ts";
import { backoffMs, MAX_TRIES, mayRetry, modelStep, reserveOf, type TurnRequest } from "./model-attempt.ts";
import type { Recorded } from "./model-step-record.ts";
import { type CompletionCheck, type Reply, readChecks, readReply } from "./reply-record.ts";
import type { Transcript } from "./transcript.ts";

/** Of all tries of a turn. `completions` are read already when it made no other calls: in the same record as the reply. */
export type TurnAnswer = { readonly usage: Usage } & (
  | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure; readonly tries: number }
  | { readonly kind: "limit"; readonly hit: LimitHit }
  | { readonly kind: "cancelled" }
);

/** One turn of a model, try by try. Every try is a step of its own; waits between tries survive a restart. */
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

  /** Asks the model once. */
  ask(): Promise<Recorded> {
    this.#steps += 1;
    return modelStep(this.#scope, this.#stepId, {
      request: this,
      reserve: reserveOf(this.#scope, this),
      step: this.#steps,
      number: this.#failures + 1,
      messages: NO_MESSAGES,
    });
  }

  /** What the turn came to with this try; undefined when the model is to be asked again, now that it was waited for that. */
  async take(recorded: Recorded): Promise<TurnAnswer | undefined> {
    const { limits } = this.#scope;
    for (const text of saidByPeople(recorded.messages ?? NO_MESSAGES)) this.transcript.user(text);
    limits.atLeast(recorded.worked);
    const spent = usageOfCall(recorded, recorded.kind === "reply" ? recorded.reply.usage : undefined);
    limits.spent(spendingOf(spent));
    this.#usage = this.#usage === NO_USAGE ? spent : addUsage(this.#usage, spent);
    const usage = this.#usage;
    switch (recorded.kind) {
      case "reply": {
        const reply = readReply(recorded.reply);
        return { kind: "reply", reply, completions: readChecks(recorded.completions, reply), usage };
      }
      case "limit":
        return { kind: "limit", hit: recorded.hit, usage };
      case "lost":
        return undefined;
      case "failed": {
        const { error } = recorded;
        this.#failures += 1;
        if (error.kind === "aborted") return { kind: "cancelled", usage };
        if (!mayRetry(error) || this.#failures >= MAX_TRIES)
          return { kind: "failed", error, tries: this.#failures, usage };
        await this.#backOff(error);
        return this.#scope.signal.aborted ? { kind: "cancelled", usage } : undefined;
      }
    }
  }

  async #backOff(error: ModelFailure): Promise<void> {
    const { steps, wait } = this.#scope;
    const now = await steps.now(`${this.#stepId}/failed-at`);
    await wait(`${this.#stepId}/backoff`, now + backoffMs(error, this.#failures));
  }

  /** The first keeps the plain name: journals mostly hold that. */
  get #stepId(): string {
    const first = `turn/${this.turn}/model`;
    return this.#steps === 1 ? first : `${first}/${this.#steps}`;
  }
}
