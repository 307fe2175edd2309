import { field, type Json, type Spending, type Usage } from "@sluice/core";
import type { ModelFacts } from "../models/pricing/model-facts.ts";
import { costOf, mostOf } from "../models/pricing/prices.ts";
import type { ModelFailure, ModelUsage } from "../models/reply/reply.ts";

/** Asked of the provider where a cap needs a maximum to set aside and the stage names none. */
const DEFAULT_MAX_OUTPUT_TOKENS = 8_192;
/** Few for English, about right for code, Chinese and Japanese: what is set aside should not be too little. */
const BYTES_PER_TOKEN = 3;
/** Where the transcript is said to fill the model's context window. */
const NEAR = 0.8;

/** The most a call can use, as it is set aside. Plain JSON: it is the intent of the model's step. */
export type Reservation = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd?: number;
};

/** A model step's intent; undefined where no cap held. */
export function readReservation(intent: Json | undefined): Reservation | undefined {
  const [inputTokens, outputTokens, costUsd] = [
    field(intent, "inputTokens"),
    field(intent, "outputTokens"),
    field(intent, "costUsd"),
  ];
  if (typeof inputTokens !== "number" || typeof outputTokens !== "number") return undefined;
  return { inputTokens, outputTokens, ...(typeof costUsd === "number" ? { costUsd } : {}) };
}

/** What a call counts for, as its step records it. */
export type CallUsage = {
  /** US dollars; absent when the model has no known price, or when there is nothing to count. */
  readonly costUsd?: number;
  /** The tokens it counts for where it did not say what it used. */
  readonly counted?: { readonly inputTokens: number; readonly outputTokens: number };
};

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0 };

/** Nothing was asked of the model, or it refused. */
const NOTHING_SPENT: CallUsage = {};

/** The output tokens to ask for; undefined leaves them to the provider. */
export function maxOutput(own: number | undefined, capped: boolean, facts: ModelFacts): number | undefined {
  if (own !== undefined || !capped) return own;
  return Math.min(DEFAULT_MAX_OUTPUT_TOKENS, facts.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS);
}

export function reservationFor(facts: ModelFacts, promptTokens: number, outputTokens: number): Reservation {
  const { costUsd } = mostOf(facts.price, promptTokens, outputTokens);
  return { inputTokens: promptTokens, outputTokens, ...(costUsd === undefined ? {} : { costUsd }) };
}

/** What a reply counts for. One that did not say what it used counts with all that was set aside, if anything was. */
export function spentOn(usage: ModelUsage, facts: ModelFacts, reserve: Reservation | undefined): CallUsage {
  if (!isMetered(usage)) return spentUnmetered(reserve ?? usage, facts, reserve);
  return facts.price === undefined ? NOTHING_SPENT : { costUsd: costOf(facts.price, usage) };
}

/** What a call without a reply counts for: nothing when it was refused, else what was set aside for it. */
export function spentOnFailure(
  error: ModelFailure,
  begun: boolean,
  facts: ModelFacts,
  reserve: Reservation | undefined,
): CallUsage {
  return !begun && isRefusal(error) ? NOTHING_SPENT : spentUnmetered(reserve ?? NO_USAGE, facts, reserve);
}

function spentUnmetered(
  { inputTokens, outputTokens }: Usage,
  facts: ModelFacts,
  reserve: Reservation | undefined,
): CallUsage {
  const costUsd = reserve === undefined && facts.price !== undefined ? 0 : reserve?.costUsd;
  return { counted: { inputTokens, outputTokens }, ...(costUsd === undefined ? {} : { costUsd }) };
}

/** A prompt is never empty: a provider that counts none of it did not count. */
function isMetered({ known, inputTokens }: ModelUsage): boolean {
  return known && inputTokens > 0;
}

/** A gateway that gave up waiting does not know what the model behind it did. */
const GAVE_UP: ReadonlySet<number> = new Set([408, 499, 502, 504, 524]);

/** Whether the provider said no, or was never asked: nothing of that is billed. */
function isRefusal({ kind, status }: ModelFailure): boolean {
  if (status !== undefined) return !GAVE_UP.has(status);
  return kind === "permanent" || kind === "context_overflow";
}

/** What a recorded call adds to the usage of its stage; `reply` is undefined where there was none. */
export function usageOfCall({ costUsd, counted }: CallUsage, reply: Usage | undefined): Usage {
  const tokens = counted ?? reply;
  if (tokens === undefined) return NO_USAGE;
  return {
    inputTokens: tokens.inputTokens,
    outputTokens: tokens.outputTokens,
    ...(costUsd === undefined ? { unpricedCalls: 1 } : { costUsd }),
    ...(counted === undefined ? {} : { unmeteredCalls: 1 }),
  };
}

/** As the meter takes it. */
export function spendingOf({ inputTokens, outputTokens, costUsd }: Usage): Spending {
  return { tokens: inputTokens + outputTokens, ...(costUsd === undefined ? {} : { costUsd }) };
}

/** How long the prompt of an attempt is, in tokens: what the provider counted, and an estimate of what came after. */
export class PromptMeter {
  #tokens = 0;
  #size: number;

  /** `fixed` is the size of what goes with every prompt of the attempt. */
  constructor(fixed: number) {
    this.#size = -fixed;
  }

  /** Tokens the next prompt may have. `size` is in the unit of all others. */
  next(size: number): number {
    return this.#tokens + Math.ceil((size - this.#size) / BYTES_PER_TOKEN);
  }

  /** A reply was appended, after which the transcript has this size. */
  replied(usage: ModelUsage, size: number): void {
    if (!isMetered(usage)) return;
    this.#tokens = usage.inputTokens + usage.outputTokens;
    this.#size = size;
  }
}

/** What is said when the transcript nears the model's context window; undefined while it does not. */
export function nearWindow(tokens: number, window: number | undefined) {
  if (window === undefined || tokens < NEAR * window) return undefined;
  const message = `the transcript fills ${Math.floor((100 * tokens) / window)} % of the model's context window of ${window} tokens`;
  return { limit: "contextWindow", message, used: tokens, max: window };
}
