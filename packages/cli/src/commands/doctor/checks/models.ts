import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { chooseModel, type ModelChoice, type ProviderInfo } from "@sluice/stages";
import { MODEL_PROVIDERS, readHttpAddress, resolveModel } from "@sluice/stages/runtime";
import type { Environment } from "@sluice/tui/user";
import { blocking, type Check, missing, ok, warning } from "./check.ts";

/** Checks each provider, the local Ollama, and the model that a run would use. Connects only to Ollama. */
export async function checkModels(choice: ModelChoice, workspace: string): Promise<readonly Check[]> {
  // Ollama is asked below, and `openai-chat` is checked with `openai`.
  const apart = ["ollama", "openai-chat"];
  const providers = MODEL_PROVIDERS.filter((one) => one.package !== undefined && !apart.includes(one.name));
  const each = providers.map((one) => checkProvider(one, choice));
  return [...each, await checkOllama(choice), await checkModel(choice, workspace)];
}

function checkProvider(info: ProviderInfo, { env, baseUrls = {} }: ModelChoice): Check {
  const { package: needed = "", variables } = info;
  // Both need the same and share an address.
  const name = info.name === "openai" ? "openai, openai-chat" : info.name;
  const version = installedVersion(needed);
  if (version === undefined) return missing(name, `the package ${needed} is not installed`, `npm install ${needed}`);
  const isSet = (variable: string): boolean => (env[variable]?.trim() ?? "") !== "";
  const address = addressOf(info, env, baseUrls);
  const url = address === undefined ? undefined : withoutQuery(address.value);
  if (address !== undefined && url === undefined)
    return warning(name, `${address.from} is not a usable http(s) address`, "use an address such as https://host/v1");
  const unset = variables
    .filter((one) => one.required && !isSet(one.name) && !isSet(one.unless ?? ""))
    .filter((one) => !(namesAddress(one.name) && url !== undefined))
    .map((one) => one.name);
  if (unset.length > 0) {
    const fix = `export ${unset.map((one) => `${one}=…`).join(" ")}`;
    return missing(name, `${unset.join(" and ")} ${unset.length === 1 ? "is" : "are"} not set`, fix);
  }
  const keys = variables.filter((one) => one.name.endsWith("KEY") && isSet(one.name));
  const at = address === undefined ? [] : [`at ${url} (${address.from})`];
  return ok(name, [...keys.map((one) => `${one.name} is set`), ...at, `${needed} ${version}`].join(", "));
}

/** Variables that hold an address. */
const ADDRESS = /_URL(?:_|$)/;

/** Whether a configured address takes the place of a variable. */
function namesAddress(variable: string): boolean {
  return ADDRESS.test(variable) || variable === "AZURE_RESOURCE_NAME";
}

/** The base URL that replaces the provider's own, and where it is set. */
function addressOf(
  { name, variables }: ProviderInfo,
  env: Environment,
  baseUrls: Readonly<Record<string, string>>,
): { readonly from: string; readonly value: string } | undefined {
  if (Object.hasOwn(baseUrls, name)) return { from: "the config's baseUrls", value: baseUrls[name] ?? "" };
  const variable = variables.find((one) => ADDRESS.test(one.name) && (env[one.name]?.trim() ?? "") !== "");
  return variable === undefined ? undefined : { from: variable.name, value: env[variable.name]?.trim() ?? "" };
}

/** An address without its query, which may contain a key; undefined if it is unusable. */
function withoutQuery(value: string): string | undefined {
  const address = readHttpAddress(value);
  return address.ok ? `${address.url.origin}${address.url.pathname}` : undefined;
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

async function checkOllama({ env, baseUrls = {}, clock }: ModelChoice): Promise<Check> {
  const { OLLAMA_HOST, OLLAMA_API_KEY } = env;
  try {
    const found = await chooseModel({ env: { OLLAMA_HOST, OLLAMA_API_KEY }, baseUrls, clock });
    if (found !== undefined) return ok("ollama", `${found.why} is ${found.id}`);
    return missing("ollama", "no local Ollama with a model answers", "start it and run ollama pull <model>");
  } catch (thrown) {
    return warning("ollama", messageOf(thrown));
  }
}

async function checkModel(choice: ModelChoice, workspace: string): Promise<Check> {
  const { env, baseUrls = {}, clock } = choice;
  let name = "";
  try {
    const chosen = await chooseModel(choice);
    if (chosen === undefined)
      return blocking(
        "model",
        "no model is set, no provider's key is set, and no Ollama answers",
        "export SLUICE_MODEL=provider/model, or set the key of a provider above",
      );
    name = `${chosen.id} (${chosen.why})`;
    await resolveModel(chosen.id, { env, cwd: workspace, baseUrls, clock });
    return ok("model", name);
  } catch (thrown) {
    if (!isSluiceError(thrown)) throw thrown;
    const fault = name === "" ? thrown.message : `${name}: ${thrown.message}`;
    return blocking("model", fault, "set another with --model or SLUICE_MODEL");
  }
}
