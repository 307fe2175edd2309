import { isFilledTexts, isJson, isJsonObject, type JsonObject } from "../../base/json.ts";
import type { Report } from "../../base/problems.ts";
import type { Part } from "../spec.ts";
import { isCount } from "../state-rules.ts";
import { type ModelSettings, REASONING_EFFORTS, TOOL_CHOICES } from "../types.ts";

/** The names of the options that `readModelSettings` reads. */
export const MODEL_SETTINGS = [
  "model",
  "fallbackModels",
  "temperature",
  "topP",
  "seed",
  "stopSequences",
  "maxOutputTokens",
  "reasoning",
  "toolChoice",
  "providerOptions",
  "cache",
] as const satisfies readonly (keyof ModelSettings)[];

/** The model settings of a state: as its executor reads them, and as parts of the fingerprint. */
export interface ReadSettings {
  readonly options: ModelSettings;
  readonly parts: Readonly<Record<string, Part>>;
}

type GivenSettings = { readonly [K in keyof ModelSettings]?: ModelSettings[K] | undefined };

/** Reads the model settings of a state that calls a model, and reports what is wrong with them. The rest are its other options. */
export function readModelSettings<G extends GivenSettings>(
  report: Report,
  given: G,
): ReadSettings & { readonly rest: Omit<G, keyof ModelSettings> } {
  const {
    model,
    fallbackModels,
    temperature,
    topP,
    seed,
    stopSequences,
    maxOutputTokens,
    reasoning,
    toolChoice,
    providerOptions,
    cache,
    ...rest
  } = given;
  if (model !== undefined && (typeof model !== "string" || model === ""))
    report.add("model", "must be the id of a model");
  if (fallbackModels !== undefined && !isFilledTexts(fallbackModels))
    report.add("fallbackModels", "must be a list of ids of models", '["openai/gpt-5.6"]');
  const fallbacks = isFilledTexts(fallbackModels) ? [...fallbackModels] : [];
  if (temperature !== undefined && !(Number.isFinite(temperature) && temperature >= 0))
    report.add("temperature", "must be a number from 0");
  if (topP !== undefined && !(Number.isFinite(topP) && topP > 0 && topP <= 1))
    report.add("topP", "must be a number above 0 and up to 1");
  if (seed !== undefined && !Number.isSafeInteger(seed)) report.add("seed", "must be a whole number");
  if (stopSequences !== undefined && !isFilledTexts(stopSequences))
    report.add("stopSequences", "must be a list of texts", '["END"]');
  if (maxOutputTokens !== undefined && !isCount(maxOutputTokens))
    report.add("maxOutputTokens", "must be a whole number from 1");
  if (reasoning !== undefined && !REASONING_EFFORTS.includes(reasoning))
    report.add("reasoning", `must be one of ${quoted(REASONING_EFFORTS)}`);
  if (toolChoice !== undefined && !TOOL_CHOICES.includes(toolChoice))
    report.add("toolChoice", `must be one of ${quoted(TOOL_CHOICES)}`);
  const provided = readProviderOptions(report, providerOptions);
  if (cache !== undefined && typeof cache !== "boolean") report.add("cache", "must be true or false");
  const options = {
    ...(model === undefined ? {} : { model }),
    ...(fallbacks.length === 0 ? {} : { fallbackModels: fallbacks }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(isFilledTexts(stopSequences) && stopSequences.length > 0 ? { stopSequences: [...stopSequences] } : {}),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(provided === undefined ? {} : { providerOptions: provided }),
    ...(cache === undefined ? {} : { cache }),
  };
  const { providerOptions: data, cache: isCached, fallbackModels: _listed, stopSequences: stops, ...plain } = options;
  return {
    rest,
    options,
    parts: {
      ...plain,
      ...(fallbacks.length === 0 ? {} : { fallbackModels: fallbacks.join(", ") }),
      ...(stops === undefined ? {} : { stopSequences: { data: stops } }),
      ...(data === undefined ? {} : { providerOptions: { data } }),
      ...(isCached === false ? { cache: "off" } : {}),
    },
  };
}

/** A copy, because the caller may change its object after the definition was checked. */
function readProviderOptions(
  report: Report,
  given: ModelSettings["providerOptions"],
): ModelSettings["providerOptions"] {
  if (given === undefined) return undefined;
  if (!isJson(given) || !isJsonObject(given) || !Object.values(given).every(isJsonObject)) {
    report.add(
      "providerOptions",
      "must be an object of JSON objects by provider",
      '{ openai: { serviceTier: "flex" } }',
    );
    return undefined;
  }
  const copy: Record<string, JsonObject> = structuredClone(given);
  return copy;
}

function quoted(words: readonly string[]): string {
  return words.map((word) => JSON.stringify(word)).join(", ");
}
