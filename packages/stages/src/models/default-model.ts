import { type Clock, field, type Json, parseJson } from "@sluice/core";
import { ollamaAddress } from "./providers/ollama.ts";
import { type ModelOptions, setting } from "./providers/settings.ts";

/** A model nobody named on the command line, and why it is that one: for people, in a few words. */
export interface ChosenModel {
  readonly id: string;
  readonly why: string;
}

export interface ModelChoice {
  /** Where SLUICE_MODEL, keys and OLLAMA_HOST are read. */
  readonly env: ModelOptions["env"];
  /** The model that the project's configuration names. */
  readonly configured?: string | undefined;
  /** Model ids to use instead of `DEFAULT_MODELS`, by provider. */
  readonly defaultModels?: Readonly<Record<string, string>>;
  readonly baseUrls?: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Asks the local Ollama; the platform's when omitted. */
  readonly fetch?: typeof fetch;
}

/** What a provider is used with when only its key is known. */
export interface DefaultModel {
  readonly provider: string;
  /** The variable that holds its key. */
  readonly variable: string;
  readonly id: string;
}

/** The day on which `DEFAULT_MODELS` were the ids that the installed provider packages list as current and use in their own examples. */
export const DEFAULT_MODELS_DATE = "2026-11-21";

/** In the order in which their keys are looked for. */
export const DEFAULT_MODELS: readonly DefaultModel[] = [
  { provider: "anthropic", variable: "ANTHROPIC_API_KEY", id: "anthropic/claude-sonnet-5-5" },
  { provider: "openai", variable: "OPENAI_API_KEY", id: "openai/gpt-6-astra" },
  { provider: "google", variable: "GOOGLE_GENERATIVE_AI_API_KEY", id: "google/gemini-4-argon" },
  { provider: "gateway", variable: "AI_GATEWAY_API_KEY", id: "gateway/anthropic/claude-sonnet-5.5" },
];

/** A server that takes longer is not there: it is on this machine as a rule, and somebody waits. */
const PROBE_MS = 290;
const MAX_PROBE_BYTES = 1024 * 1024;

/**
 * The model to use where none was named: SLUICE_MODEL, else the configuration's, else the default of the first provider whose
 * key is set, else the first model of an Ollama that answers within 290 ms. Undefined when there is none of these. Throws
 * Validation `invalid_base_url` for an OLLAMA_HOST that is none.
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

/** Any failure means that there is no Ollama to use: nobody asked for one. */
async function localModel(choice: ModelChoice): Promise<ChosenModel | undefined> {
  const { clock, fetch: ask = fetch } = choice;
  const address = ollamaAddress(choice);
  const stop = new AbortController();
  const key = setting(choice.env, "OLLAMA_API_KEY");
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const asked = ask(`${address}/api/tags`, { signal: stop.signal, redirect: "error", headers })
    .then((response) => (response.ok ? readSome(response) : undefined))
    .catch(() => undefined);
  let cancelTimer = (): void => undefined;
  // Armed when the question is on its way: loading the platform's client takes its time too.
  const late = new Promise<undefined>((resolve) => {
    cancelTimer = clock.after(PROBE_MS, () => {
      stop.abort();
      resolve(undefined);
    });
  });
  try {
    const name = firstModel(await Promise.race([asked, late]));
    return name === undefined ? undefined : { id: `ollama/${name}`, why: `the first model of Ollama at ${address}` };
  } finally {
    cancelTimer();
    stop.abort();
  }
}

/** The body, or undefined when it is longer than such a list can be. */
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

/** The first that can hold a conversation. What stands there goes to the terminal and into ids, so it has to look like a name. */
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
