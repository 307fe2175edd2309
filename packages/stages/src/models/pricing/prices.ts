import { type Problem, problemsError, type Spending } from "@sluice/core";
import type { ModelUsage } from "../reply/reply.ts";
import type { ModelFacts, ModelPrice, TokenPrices } from "./model-facts.ts";
import { PRICE_TABLES } from "./price-table.ts";

/** What a session says about a model, in place of what is built in: prices whole, or none of them. */
export type PriceOption = Partial<ModelPrice> & Pick<ModelFacts, "contextWindow" | "maxOutputTokens">;

/** A dollar a token: beyond it, what a call costs would not be a number that can be added up. */
const DEAREST = 1_000_000;
const FREE: ModelPrice = { input: 0, output: 0 };
const PRICE_KEYS = ["input", "output", "cacheRead", "cacheWrite"] as const;
const TOKEN_KEYS = ["contextWindow", "maxOutputTokens"] as const;
const KEYS: readonly string[] = [...PRICE_KEYS, ...TOKEN_KEYS, "longPrompt"];

/**
 * Facts by model id: what the session says, by the id or by the longest beginning it gave with a `*`; else what is built in.
 * Scripted and Ollama models cost nothing. Throws Validation `invalid_prices`.
 */
export function modelFacts(options: Readonly<Record<string, PriceOption>> = {}): (modelId: string) => ModelFacts {
  checkPrices(options);
  const beginnings = Object.keys(options)
    .filter((key) => key.endsWith("*"))
    .toSorted((a, b) => b.length - a.length);
  return (modelId) => {
    const key = Object.hasOwn(options, modelId)
      ? modelId
      : beginnings.find((beginning) => modelId.startsWith(beginning.slice(0, -1)));
    const known = builtInFacts(modelId);
    const said = key === undefined ? undefined : options[key];
    if (said === undefined) return known;
    const { input, output, contextWindow = known.contextWindow, maxOutputTokens = known.maxOutputTokens } = said;
    const price = input === undefined || output === undefined ? known.price : { ...said, input, output };
    return {
      ...(price === undefined ? {} : { price }),
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    };
  };
}

/** A date at the end of a model's name says which of its versions: the price is the model's. Nothing else may be left out. */
const VERSION = /-(?:20\d{6}|20\d\d-\d\d-\d\d|001)$/;

function builtInFacts(modelId: string): ModelFacts {
  const [, whole = "", name = ""] = /^([^/:]*)[/:]?(.*)$/su.exec(modelId) ?? [];
  // Model objects of the AI SDK name their interface too: `openai.responses`.
  const [provider = ""] = whole.split(".", 1);
  if (provider === "scripted" || provider === "ollama") return { price: FREE };
  const models = PRICE_TABLES[provider === "openai-chat" ? "openai" : provider]?.models ?? {};
  const known = [name, name.replace(VERSION, "")].find((each) => Object.hasOwn(models, each));
  return (known === undefined ? undefined : models[known]) ?? {};
}

/** What a call cost, in US dollars, rounded up to a billionth. */
export function costOf(price: ModelPrice, usage: ModelUsage): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const { input, output, cacheRead = input, cacheWrite = input } = pricesFor(price, inputTokens);
  const fresh = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  return dollars(fresh * input + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite + outputTokens * output);
}

/** What a call uses at most: nobody knows beforehand what of a prompt is read from a cache or written to it. */
export function mostOf(price: ModelPrice | undefined, promptTokens: number, outputTokens: number): Spending {
  const tokens = promptTokens + outputTokens;
  if (price === undefined) return { tokens };
  const { input, output, cacheRead = input, cacheWrite = input } = pricesFor(price, promptTokens);
  const dearest = Math.max(input, cacheRead, cacheWrite);
  return { tokens, costUsd: dollars(promptTokens * dearest + outputTokens * output) };
}

function pricesFor(price: ModelPrice, promptTokens: number): TokenPrices {
  const { longPrompt } = price;
  return longPrompt !== undefined && promptTokens > longPrompt.over ? longPrompt : price;
}

/** Tokens times dollars a million. The small part taken off is what multiplying adds to whole billionths. */
function dollars(millionths: number): number {
  return Math.max(0, Math.ceil(millionths * 1_000 - 1e-6)) / 1e9;
}

function checkPrices(options: Readonly<Record<string, PriceOption>>): void {
  const problems: Problem[] = [];
  for (const [id, option] of Object.entries(options)) {
    const path = `prices[${JSON.stringify(id)}]`;
    if (typeof option !== "object" || option === null) {
      problems.push({ path, message: "is an object of prices" });
      continue;
    }
    for (const key of Object.keys(option)) {
      if (!KEYS.includes(key)) problems.push({ path: `${path}.${key}`, message: "is not a known option" });
    }
    const { longPrompt, ...own } = option;
    checkTokenPrices(problems, path, own);
    if (longPrompt !== undefined) {
      checkTokenPrices(problems, `${path}.longPrompt`, longPrompt);
      checkTokens(problems, `${path}.longPrompt.over`, longPrompt.over);
      if (longPrompt.input === undefined)
        problems.push({ path: `${path}.longPrompt`, message: "has prices of its own, input and output" });
    }
    for (const key of TOKEN_KEYS) if (own[key] !== undefined) checkTokens(problems, `${path}.${key}`, own[key]);
    const more = longPrompt !== undefined || own.cacheRead !== undefined || own.cacheWrite !== undefined;
    if (more && own.input === undefined)
      problems.push({ path, message: "has prices for some tokens only", suggestion: "give input and output too" });
  }
  if (problems.length > 0) throw problemsError("invalid_prices", "The session's prices cannot be used:", problems);
}

function checkTokenPrices(problems: Problem[], path: string, prices: Partial<TokenPrices>): void {
  for (const key of PRICE_KEYS) {
    const price: unknown = prices[key];
    if (price === undefined || (typeof price === "number" && price >= 0 && price <= DEAREST)) continue;
    problems.push({ path: `${path}.${key}`, message: `is US dollars for a million tokens: from 0 to ${DEAREST}` });
  }
  if ((prices.input === undefined) !== (prices.output === undefined))
    problems.push({ path, message: "has a price for input and one for output, or neither" });
}

function checkTokens(problems: Problem[], path: string, tokens: unknown): void {
  if (typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 1) return;
  problems.push({ path, message: "is a number of tokens: a whole number from 1" });
}
