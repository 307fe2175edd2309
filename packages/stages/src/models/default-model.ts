import { type Clock, field, type Json, parseJson } from "@sluice/core";
import { pause } from "./pause.ts";
import { type ModelOptions, setting } from "./providers/settings.ts";

/** A model that was chosen because none was given, and a short reason. */
export interface ChosenModel {
  readonly id: string;
  readonly why: string;
}

export interface ModelChoice {
  /** For SLUICE_MODEL, keys and OLLAMA_HOST. */
  readonly env: ModelOptions["env"];
  /** The model of the project's config. */
  readonly configured?: string | undefined;
  /** Model ids to use instead of `DEFAULT_MODELS`, by provider. */
  readonly defaultModels?: Readonly<Record<string, string>>;
  readonly baseUrls?: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** For the local Ollama; default the platform's. */
  readonly fetch?: typeof fetch;
}

/** A provider's model if only its key is set. */
export interface DefaultModel {
  readonly provider: string;
  /** The variable that holds its key. */
  readonly variable: string;
  readonly id: string;
}

/** On this day the provider packages listed `DEFAULT_MODELS` as current and used them in their examples. */
export const DEFAULT_MODELS_DATE = "2026-11-21";

/** In the order in which the keys are checked. */
export const DEFAULT_MODELS: readonly DefaultModel[] = [
  { provider: "anthropic", variable: "ANTHROPIC_API_KEY", id: "anthropic/claude-sonnet-5-5" },
  { provider: "openai", variable: "OPENAI_API_KEY", id: "openai/gpt-6-astra" },
  { provider: "google", variable: "GOOGLE_GENERATIVE_AI_API_KEY", id: "google/gemini-4-argon" },
  { provider: "gateway", variable: "AI_GATEWAY_API_KEY", id: "gateway/anthropic/claude-sonnet-5.5" },
];

/** Short, because the server is usually local and the user waits. */
const PROBE_MS = 290;
const MAX_PROBE_BYTES = 1024 * 1024;

/**
 * The model to use if none is given: SLUICE_MODEL, else the config's, else the default of the first provider whose key is set,
 * else the first model of an Ollama server that responds within 290 ms; undefined if there is none. Throws Validation
 * `invalid_base_url` for an invalid OLLAMA_HOST.
 */
export async function chooseModel(choice: ModelChoice): Promise<ChosenModel | undefined> {
  const { env, configured, defaultModels = {} } = choice;
  const named = setting(env, "SLUICE_MODEL");
  if (named !== undefined) return { id: named, why: "SLUICE_MODEL" };
  if (configured !== undefined) return { id: configured, why: "the project's configuration" };
  const keyed = DEFAULT_MODELS.find(({ variable }) => setting(env, variable) !== undefined);
  if (keyed === undefined) return await localModel(choice);
  const own = Object.hasOwn(defaultModels, keyed.provider) ? defaultModels[keyed.provider] : undefined;
  return { id: own ?? keyed.id, why: `${keyed.variable} is set` };
}

/** Ollama is optional, so any failure means that there is none. */
async function localModel(choice: ModelChoice): Promise<ChosenModel | undefined> {
  const { clock, fetch: send = fetch } = choice;
  const { ollamaAddress } = await import("./providers/ollama.ts");
  const address = ollamaAddress(choice);
  const stop = new AbortController();
  const key = setting(choice.env, "OLLAMA_API_KEY");
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const body = send(`${address}/api/tags`, { signal: stop.signal, redirect: "error", headers })
    .then((response) => (response.ok ? readSome(response) : undefined))
    .catch(() => undefined);
  // Armed after the request was sent, because loading the platform's client takes time too.
  const timeout = pause(clock, PROBE_MS, stop.signal).catch(() => undefined);
  try {
    const name = firstModel((await Promise.race([body, timeout])) ?? undefined);
    return name === undefined ? undefined : { id: `ollama/${name}`, why: `the first model of Ollama at ${address}` };
  } finally {
    stop.abort();
  }
}

/** The body, or undefined if it is too long. */
async function readSome(response: Response): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_PROBE_BYTES) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** The first model that is not for embeddings. Names are shown and used in ids, so unusual ones are skipped. */
function firstModel(body: string | undefined): string | undefined {
  const list = body === undefined ? undefined : parseJson(body);
  const models = list?.ok === true ? field(list.value, "models") : undefined;
  if (!Array.isArray(models)) return undefined;
  for (const model of models) {
    const name = textAt(model, "name");
    const family = textAt(field(model, "details"), "family");
    if (/^\w[\w.:/-]{0,199}$/.test(name) && !/bert|embed/i.test(`${name} ${family}`)) return name;
  }
  return undefined;
}

function textAt(value: Json | undefined, key: string): string {
  const found = value === undefined ? undefined : field(value, key);
  return typeof found === "string" ? found : "";
}
