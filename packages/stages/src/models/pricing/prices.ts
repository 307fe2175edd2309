import type { Problem } from "@sluice/core";
import { problemsError, type Spending } from "@sluice/core/runtime";
import type { ModelUsage } from "../reply/reply.ts";
import { type ModelFacts, type ModelPrice, PRICE_TABLES, type TokenPrices } from "./price-table.ts";

/** A session's facts of a model. Prices replace the built-in ones as a whole. */
export type PriceOption = Partial<ModelPrice> & Pick<ModelFacts, "contextWindow" | "maxOutputTokens">;

/** One dollar per token; larger prices would make sums inexact. */
const DEAREST = 1_000_000;
const FREE: ModelPrice = { input: 0, output: 0 };
const PRICE_KEYS = ["input", "output", "cacheRead", "cacheWrite"] as const;
const TOKEN_KEYS = ["contextWindow", "maxOutputTokens"] as const;
const KEYS: readonly string[] = [...PRICE_KEYS, ...TOKEN_KEYS, "longPrompt"];

/**
 * Facts by model id: the session's for the id or its longest prefix with a `*`, else the built-in ones. Scripted and Ollama models
 * are free. Throws Validation `invalid_prices`.
 */
export function modelFacts(options: Readonly<Record<string, PriceOption>> = {}): (modelId: string) => ModelFacts {
  checkPrices(options);
  const prefixes = Object.keys(options)
    .filter((key) => key.endsWith("*"))
    .toSorted((a, b) => b.length - a.length);
  return (modelId) => {
    const key = Object.hasOwn(options, modelId)
      ? modelId
      : prefixes.find((prefix) => modelId.startsWith(prefix.slice(0, -1)));
    const known = builtInFacts(modelId);
    const option = key === undefined ? undefined : options[key];
    if (option === undefined) return known;
    const { input, output, contextWindow = known.contextWindow, maxOutputTokens = known.maxOutputTokens } = option;
    const price = input === undefined || output === undefined ? known.price : { ...option, input, output };
    return {
      ...(price === undefined ? {} : { price }),
      ...(contextWindow === undefined ? {} : { contextWindow }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    };
  };
}

/** The version suffix of a model's name, which does not affect its price. */
const VERSION = /-(?:20\d{6}|20\d\d-\d\d-\d\d|001)$/;

function builtInFacts(modelId: string): ModelFacts {
  const [, whole = "", name = ""] = /^([^/:]*)[/:]?(.*)$/su.exec(modelId) ?? [];
  // Model objects of the AI SDK include the interface: `openai.responses`.
  const [provider = ""] = whole.split(".", 1);
  if (provider === "scripted" || provider === "ollama") return { price: FREE };
  const models = PRICE_TABLES[provider === "openai-chat" ? "openai" : provider]?.models ?? {};
  const known = [name, name.replace(VERSION, "")].find((each) => Object.hasOwn(models, each));
  return (known === undefined ? undefined : models[known]) ?? {};
}

/** The cost of a call in US dollars, rounded up to a billionth. */
export function costOf(price: ModelPrice, usage: ModelUsage): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const { input, output, cacheRead = input, cacheWrite = input } = pricesFor(price, inputTokens);
  const fresh = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  return dollars(fresh * input + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite + outputTokens * output);
}

/** The most that a call can use: how much of the prompt is cached is unknown beforehand. */
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

/** Converts millionths of a dollar. The subtrahend removes floating-point noise above whole billionths. */
function dollars(millionths: number): number {
  return Math.max(0, Math.ceil(millionths * 1_000 - 1e-6)) / 1e9;
}

function checkPrices(options: Readonly<Record<string, PriceOption>>): void {
  const problems: Problem[] = [];
  for (const [id, option] of Object.entries(options)) {
    const path = `prices[${JSON.stringify(id)}]`;
    if (typeof option !== "object" || option === null) {
      problems.push({ path, message: "must be an object of prices" });
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
        problems.push({ path: `${path}.longPrompt`, message: "needs input and output" });
    }
    for (const key of TOKEN_KEYS) if (own[key] !== undefined) checkTokens(problems, `${path}.${key}`, own[key]);
    const more = longPrompt !== undefined || own.cacheRead !== undefined || own.cacheWrite !== undefined;
    if (more && own.input === undefined)
      problems.push({ path, message: "has no prices for input and output", suggestion: "add input and output" });
  }
  if (problems.length > 0) throw problemsError("invalid_prices", "The session's prices are invalid:", problems);
}

function checkTokenPrices(problems: Problem[], path: string, prices: Partial<TokenPrices>): void {
  for (const key of PRICE_KEYS) {
    const price: unknown = prices[key];
    if (price === undefined || (typeof price === "number" && price >= 0 && price <= DEAREST)) continue;
    problems.push({ path: `${path}.${key}`, message: `must be US dollars per million tokens, from 0 to ${DEAREST}` });
  }
  if ((prices.input === undefined) !== (prices.output === undefined))
    problems.push({ path, message: "needs prices for both input and output, or for neither" });
}

function checkTokens(problems: Problem[], path: string, tokens: unknown): void {
  if (typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 1) return;
  problems.push({ path, message: "must be a number of tokens: an integer from 1" });
}
