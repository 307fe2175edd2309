import type { Problem, Usage } from "@sluice/core";
import { problemsError, shape } from "@sluice/core/runtime";
import type { ModelUsage } from "../reply/reply.ts";
import {
  type Longer,
  type ModelFacts,
  type ModelPrice,
  type ModelRow,
  PRICE_TABLES,
  type TokenPrices,
} from "./price-table.ts";

/** A session's facts of a model. Prices replace the built-in ones as a whole. */
export type PriceOption = Partial<ModelPrice> & Pick<ModelFacts, "contextWindow" | "maxOutputTokens">;

/** One dollar per token; larger prices would make sums inexact. */
const DEAREST = 1_000_000;
const FREE: ModelPrice = { input: 0, output: 0 };

/**
 * Facts by model id: the session's for the id or its longest prefix with a `*`, else the built-in ones. Scripted and Ollama models,
 * and agents of other programs, are free. Throws Validation `invalid_prices`.
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

/** A model of Anthropic at Bedrock's global endpoint, which has Anthropic's prices; regional endpoints cost more. */
const GLOBAL_CLAUDE = /^bedrock\/global\.anthropic\.(claude-.+?)(?:-v\d+(?::\d+)?)?$/;

/** The version suffix of a model's name, which does not affect its price. */
const VERSION = /-(?:20\d{6}|20\d\d-\d\d-\d\d|001)$/;

function builtInFacts(given: string): ModelFacts {
  const modelId = given.replace(GLOBAL_CLAUDE, "anthropic/$1");
  const [, whole = "", name = ""] = /^([^/:]*)[/:]?(.*)$/su.exec(modelId) ?? [];
  // Model objects of the AI SDK include the interface: `openai.responses`.
  const [provider = ""] = whole.split(".", 1);
  // What an agent of another program spends is not this run's.
  if (provider === "scripted" || provider === "ollama" || provider === "agent") return { price: FREE };
  const models = PRICE_TABLES[provider === "openai-chat" ? "openai" : provider]?.models ?? {};
  const known = [name, name.replace(VERSION, "")].find((each) => Object.hasOwn(models, each));
  const row = known === undefined ? undefined : models[known];
  return row === undefined ? {} : factsOf(row);
}

function factsOf([prices, contextWindow, maxOutputTokens, longer]: ModelRow): ModelFacts {
  const longPrompt = longer && { over: longer.over, ...tokenPrices(prices, longer) };
  return {
    price: { ...tokenPrices(prices), ...(longPrompt === undefined ? {} : { longPrompt }) },
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
}

function tokenPrices(
  [input, output, cacheRead, cacheWrite]: ModelRow[0],
  by: Pick<Longer, "input" | "output"> = { input: 1, output: 1 },
): TokenPrices {
  return {
    input: input * by.input,
    output: output * by.output,
    ...(cacheRead === undefined ? {} : { cacheRead: cacheRead * by.input }),
    ...(cacheWrite === undefined ? {} : { cacheWrite: cacheWrite * by.input }),
  };
}

/** The cost of a call in US dollars, rounded up to a billionth. */
export function costOf(price: ModelPrice, usage: ModelUsage): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const { input, output, cacheRead = input, cacheWrite = input } = pricesFor(price, inputTokens);
  const fresh = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  return dollars(fresh * input + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite + outputTokens * output);
}

/** The most that a call can use: how much of the prompt is cached is unknown beforehand. */
export function mostOf(price: ModelPrice | undefined, inputTokens: number, outputTokens: number): Usage {
  if (price === undefined) return { inputTokens, outputTokens };
  const { input, output, cacheRead = input, cacheWrite = input } = pricesFor(price, inputTokens);
  const dearest = Math.max(input, cacheRead, cacheWrite);
  return { inputTokens, outputTokens, costUsd: dollars(inputTokens * dearest + outputTokens * output) };
}

function pricesFor(price: ModelPrice, promptTokens: number): TokenPrices {
  const { longPrompt } = price;
  return longPrompt !== undefined && promptTokens > longPrompt.over ? longPrompt : price;
}

/** Converts millionths of a dollar. The subtrahend removes floating-point noise above whole billionths. */
function dollars(millionths: number): number {
  return Math.max(0, Math.ceil(millionths * 1_000 - 1e-6)) / 1e9;
}

const PRICE = `must be US dollars per million tokens, from 0 to ${DEAREST}`;
const perMillion = shape.decimal({ min: 0, max: DEAREST, message: PRICE });
const tokens = shape.integer({ min: 1, message: "must be a number of tokens: an integer from 1" });
const cachePrices = { cacheRead: shape.optional(perMillion), cacheWrite: shape.optional(perMillion) };
const isPrices = { message: "must be an object of prices" };

const priceOption = shape.object(
  {
    input: shape.optional(perMillion),
    output: shape.optional(perMillion),
    ...cachePrices,
    longPrompt: shape.optional(
      shape.object({ input: perMillion, output: perMillion, ...cachePrices, over: tokens }, isPrices),
    ),
    contextWindow: shape.optional(tokens),
    maxOutputTokens: shape.optional(tokens),
  },
  isPrices,
);

function checkPrices(options: Readonly<Record<string, unknown>>): void {
  const problems = Object.entries(options).flatMap(([id, option]) => {
    const issues: shape.ShapeIssue[] = [];
    const path = `prices[${JSON.stringify(id)}]`;
    return priceOption.fits(option, issues)
      ? missingPrices(path, option)
      : issues.flatMap((one) => problemsOf(path, one));
  });
  if (problems.length > 0) throw problemsError("invalid_prices", "The session's prices are invalid:", problems);
}

/** Prices that need others. */
function missingPrices(path: string, option: shape.ShapeOf<typeof priceOption>): readonly Problem[] {
  const { input, output, longPrompt, cacheRead, cacheWrite } = option;
  const problems: Problem[] = [];
  if ((input === undefined) !== (output === undefined))
    problems.push({ path, message: "needs prices for both input and output, or for neither" });
  if (input === undefined && (longPrompt ?? cacheRead ?? cacheWrite) !== undefined)
    problems.push({ path, message: "has no prices for input and output", suggestion: "add input and output" });
  return problems;
}

function problemsOf(path: string, { path: inside, message, unknownKeys }: shape.ShapeIssue): readonly Problem[] {
  const where = [path, ...inside].join(".");
  return (
    unknownKeys?.map((key) => ({ path: `${where}.${key}`, message: "is not a known option" })) ?? [
      { path: where, message },
    ]
  );
}
