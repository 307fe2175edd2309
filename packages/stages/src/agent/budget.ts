import { field, type Json, type Usage } from "@sluice/core";
import { NO_USAGE } from "@sluice/core/runtime";
import type { ModelFacts } from "../models/pricing/price-table.ts";
import { costOf } from "../models/pricing/prices.ts";
import type { ModelFailure, ModelUsage } from "../models/reply/reply.ts";

/** Used if a cap needs a reservation and the stage sets no maximum. */
const DEFAULT_MAX_OUTPUT_TOKENS = 8_192;
/** The share of the context window from which `limit.near` is reported. */
const NEAR = 0.8;

/** The most that a call can use, as model steps of earlier versions kept it in their intent; undefined where no cap held. */
export function readReservation(intent: Json | undefined): Usage | undefined {
  const [inputTokens, outputTokens, costUsd] = [
    field(intent, "inputTokens"),
    field(intent, "outputTokens"),
    field(intent, "costUsd"),
  ];
  if (typeof inputTokens !== "number" || typeof outputTokens !== "number") return undefined;
  return { inputTokens, outputTokens, ...(typeof costUsd === "number" ? { costUsd } : {}) };
}

/** What a call is charged with, as its step records it. */
export type CallUsage = {
  /** US dollars; absent without a known price or usage. */
  readonly costUsd?: number;
  /** The tokens charged if the provider reported no usage. */
  readonly counted?: { readonly inputTokens: number; readonly outputTokens: number };
};

const NOTHING_SPENT: CallUsage = {};

/** The maximum of output tokens to request; undefined leaves it to the provider. */
export function maxOutput(own: number | undefined, capped: boolean, facts: ModelFacts): number | undefined {
  if (own !== undefined || !capped) return own;
  return Math.min(DEFAULT_MAX_OUTPUT_TOKENS, facts.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS);
}

/** The usage of a reply; without reported usage, its whole reservation. */
export function spentOn(usage: ModelUsage, facts: ModelFacts, reserve: Usage | undefined): CallUsage {
  if (!isMetered(usage)) return spentUnmetered(reserve ?? usage, facts, reserve);
  return facts.price === undefined ? NOTHING_SPENT : { costUsd: costOf(facts.price, usage) };
}

/** The usage of a call without a reply: nothing if the provider rejected it, else its whole reservation. */
export function spentOnFailure(
  error: ModelFailure,
  begun: boolean,
  facts: ModelFacts,
  reserve: Usage | undefined,
): CallUsage {
  return !begun && isRefusal(error) ? NOTHING_SPENT : spentUnmetered(reserve ?? NO_USAGE, facts, reserve);
}

function spentUnmetered(
  { inputTokens, outputTokens }: Usage,
  facts: ModelFacts,
  reserve: Usage | undefined,
): CallUsage {
  const costUsd = reserve === undefined && facts.price !== undefined ? 0 : reserve?.costUsd;
  return { counted: { inputTokens, outputTokens }, ...(costUsd === undefined ? {} : { costUsd }) };
}

/** A prompt is never empty, so zero input tokens mean that the provider did not count. */
export function isMetered({ known, inputTokens }: ModelUsage): boolean {
  return known && inputTokens > 0;
}

/** Statuses of gateways that stopped waiting: the model behind them may have replied. */
const GATEWAY_TIMEOUTS: ReadonlySet<number> = new Set([408, 499, 502, 504, 524]);

/** Whether the provider rejected the request or was never called, so that nothing is billed. */
function isRefusal({ kind, status }: ModelFailure): boolean {
  if (status !== undefined) return !GATEWAY_TIMEOUTS.has(status);
  return kind === "permanent" || kind === "context_overflow";
}

/** The usage of a recorded call; `reply` is the usage that its reply reports. */
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

/** The data of `limit.near`; undefined while the transcript is smaller. */
export function nearWindow(tokens: number, window: number | undefined) {
  if (window === undefined || tokens < NEAR * window) return undefined;
  const message = `the transcript fills ${Math.floor((100 * tokens) / window)} % of the model's context window of ${window} tokens`;
  return { limit: "contextWindow", message, used: tokens, max: window };
}
