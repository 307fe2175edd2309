import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { type Clock, isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import {
  type ChosenModel,
  chooseModel,
  MODEL_PROVIDERS,
  type ProviderInfo,
  readHttpAddress,
  resolveModel,
} from "@sluice/stages";
import type { Environment } from "@sluice/tui/user";
import type { ProjectSettings } from "../../../project/load-config.ts";
import { blocking, type Check, missing, ok, warning } from "./check.ts";

interface ModelContext {
  readonly env: Environment;
  /** Undefined if no config was loaded. */
  readonly settings: ProjectSettings | undefined;
  readonly workspace: string;
  readonly clock: Clock;
}

/** Checks each provider, the local Ollama, and the model that a run would use. Connects only to Ollama. */
export async function checkModels(context: ModelContext): Promise<readonly Check[]> {
  const providers = MODEL_PROVIDERS.filter((one) => one.package !== undefined && one.name !== "ollama");
  const ollama = await checkOllama(context);
  return [...grouped(providers).map((one) => checkProvider(one, context)), ollama, await checkModel(context)];
}

/** Combines providers with the same package and variables. */
function grouped(providers: readonly ProviderInfo[]): readonly ProviderInfo[] {
  const byNeeds = new Map<string, ProviderInfo>();
  for (const one of providers) {
    const needs = JSON.stringify([one.package, one.variables]);
    const known = byNeeds.get(needs);
    byNeeds.set(needs, known === undefined ? one : { ...known, name: `${known.name}, ${one.name}` });
  }
  return [...byNeeds.values()];
}

function checkProvider(info: ProviderInfo, { env, settings }: ModelContext): Check {
  const { name, variables } = info;
  const version = info.package === undefined ? "" : installedVersion(info.package);
  if (version === undefined)
    return missing(name, `the package ${info.package} is not installed`, `npm install ${info.package}`);
  const address = addressOf(info, env, settings?.baseUrls ?? {});
  if (address?.url === undefined && address !== undefined)
    return warning(name, `${address.from} is not a usable http(s) address`, "use an address such as https://host/v1");
  const unset = variables.filter((one) => one.required && !isSet(env, one.name) && !isConfigured(one.name, address));
  if (unset.length > 0) {
    const names = unset.map((one) => one.name);
    return missing(
      name,
      `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} not set`,
      names.map((one) => `export ${one}=…`).join(" "),
    );
  }
  const keys = variables
    .filter((one) => one.name.endsWith("KEY") && isSet(env, one.name))
    .map((one) => `${one.name} is set`);
  const at = address?.url === undefined ? [] : [`at ${address.url} (${address.from})`];
  const parts = [...keys, ...at, ...(info.package === undefined ? [] : [`${info.package} ${version}`])];
  return ok(name, parts.join(", "));
}

interface Address {
  readonly from: string;
  /** Without the query, which may contain a key; undefined if unusable. */
  readonly url: string | undefined;
}

function addressOf(
  { name, variables }: ProviderInfo,
  env: Environment,
  baseUrls: Readonly<Record<string, string>>,
): Address | undefined {
  const configured = name.split(", ").find((one) => Object.hasOwn(baseUrls, one));
  if (configured !== undefined) return { from: "the config's baseUrls", url: shown(baseUrls[configured] ?? "") };
  const variable = variables.find((one) => one.name.endsWith("URL") && isSet(env, one.name));
  return variable === undefined ? undefined : { from: variable.name, url: shown(env[variable.name]?.trim() ?? "") };
}

function shown(value: string): string | undefined {
  const address = readHttpAddress(value);
  return address.ok ? `${address.url.origin}${address.url.pathname}` : undefined;
}

/** Whether the config sets a required base URL. */
function isConfigured(variable: string, address: Address | undefined): boolean {
  return variable.endsWith("URL") && address !== undefined;
}

function isSet(env: Environment, name: string): boolean {
  return (env[name]?.trim() ?? "") !== "";
}

/** The version that a session would load; undefined if it is not installed. */
function installedVersion(name: string): string | undefined {
  try {
    const manifest = findPackageJSON(name, import.meta.resolve("@sluice/stages"));
    if (manifest === undefined) return undefined;
    const { version }: { readonly version?: unknown } = JSON.parse(readFileSync(manifest, "utf8"));
    return typeof version === "string" ? version : "";
  } catch (thrown) {
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
}

async function checkOllama({ env, settings, clock }: ModelContext): Promise<Check> {
  const { OLLAMA_HOST, OLLAMA_API_KEY } = env;
  try {
    const alone = { env: { OLLAMA_HOST, OLLAMA_API_KEY }, baseUrls: settings?.baseUrls ?? {}, clock };
    const found = await chooseModel(alone);
    if (found !== undefined) return ok("ollama", `${found.why} is ${found.id}`);
    return missing("ollama", "no local Ollama with a model answers", "start it and run ollama pull <model>");
  } catch (thrown) {
    return warning("ollama", messageOf(thrown));
  }
}

async function checkModel({ env, settings, workspace, clock }: ModelContext): Promise<Check> {
  const baseUrls = settings?.baseUrls ?? {};
  const { model: configured, defaultModels = {} } = settings ?? {};
  let chosen: ChosenModel | undefined;
  try {
    chosen = await chooseModel({ env, configured, defaultModels, baseUrls, clock });
    if (chosen === undefined)
      return blocking(
        "model",
        "no model is set, no provider's key is set, and no Ollama answers",
        "export SLUICE_MODEL=provider/model, or set the key of a provider above",
      );
    await resolveModel(chosen.id, { env, cwd: workspace, baseUrls, clock });
    return ok("model", `${chosen.id} (${chosen.why})`);
  } catch (thrown) {
    if (!isSluiceError(thrown)) throw thrown;
    return blocking(
      "model",
      `${chosen === undefined ? "" : `${chosen.id} (${chosen.why}): `}${thrown.message}`,
      "set another with --model or SLUICE_MODEL",
    );
  }
}
