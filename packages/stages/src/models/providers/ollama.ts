import { isIP } from "node:net";
import type { ResolvedModel } from "../model.ts";
import { compatibleModel } from "./openai-compatible.ts";
import { configuredUrl, invalidUrl, type ModelOptions, parseUrl, setting, trimmedUrl } from "./settings.ts";

const PORT = "11434";

/** `ollama/<name>`: the OpenAI-compatible API of an Ollama server. Reads OLLAMA_HOST and OLLAMA_API_KEY. */
export async function resolveOllama(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const baseURL = `${ollamaAddress(options)}/v1`;
  const variables = { addressVariable: "OLLAMA_HOST", keyVariable: "OLLAMA_API_KEY" };
  const server = { provider: "ollama", baseURL, ...variables, messages: withReasoning };
  return await compatibleModel(id, name, options, server);
}

/** Ollama sends reasoning as `reasoning` and accepts it only under that name. */
function withReasoning(messages: unknown): unknown {
  if (!Array.isArray(messages)) return messages;
  return messages.map((message: unknown) => {
    if (typeof message !== "object" || message === null || !("reasoning_content" in message)) return message;
    const { reasoning_content: reasoning, ...rest } = message;
    return { ...rest, reasoning };
  });
}

/**
 * Ollama's address without a trailing slash or `/v1`: the configured base URL, else OLLAMA_HOST as Ollama's own tools read it,
 * else this machine. Throws Validation `invalid_base_url`.
 */
export function ollamaAddress(options: Pick<ModelOptions, "env" | "baseUrls">): string {
  const url = configuredUrl(options, "ollama") ?? hostUrl(setting(options.env, "OLLAMA_HOST") ?? "");
  return trimmedUrl(url).replace(/\/v1$/, "");
}

/** Without a scheme: http and port 11434. With one: the scheme's port. Without a host: this machine. */
function hostUrl(variable: string): URL {
  const value = variable.replaceAll(/^["'\s]+|["'\s]+$/g, "");
  // Ollama's hosted service uses https.
  if (value === "ollama.com") return new URL("https://ollama.com");
  if (value.includes("://")) return parseUrl(value, "OLLAMA_HOST");
  const [host = "", ...path] = value.split("/");
  const url = parseUrl(`http://${withPort(host)}/${path.join("/")}`, "OLLAMA_HOST");
  // Wildcard addresses are for listening only.
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url;
}

function withPort(host: string): string {
  if (host === "") return `127.0.0.1:${PORT}`;
  if (isIP(host) === 6) return `[${host}]:${PORT}`;
  const [, name = "", port = ""] = /^(.*?)(?::([^:\]]*))?$/s.exec(host) ?? [];
  // The URL class would treat an empty port as the scheme's default.
  if (port === "" && host.endsWith(":")) throw invalidUrl("OLLAMA_HOST has no port after its colon");
  return `${name === "" ? "127.0.0.1" : name}:${port === "" ? PORT : port}`;
}
