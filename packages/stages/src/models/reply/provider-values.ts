import type { LanguageModelV4Usage, SharedV4Warning } from "@ai-sdk/provider";
import { createSecretFilter, isJsonObject, type Json, jsonFault, parseJson, type SecretFilter } from "@sluice/core";
import type { ModelToolCall, ModelUsage, ProviderData } from "./reply.ts";

/** Deeper values are refused: the journal's own limit is 256, and a reply wraps what it holds in a few levels. */
export const MAX_DEPTH = 128;

/** How deep `jsonFault` believes it starts, so that it stops after MAX_DEPTH levels. */
const START_DEPTH = 256 - MAX_DEPTH;

/** Why a parsed value cannot be journaled (too deep, a number beyond all bounds), or undefined. */
export function depthFault(value: unknown): string | undefined {
  return jsonFault(value, "$", START_DEPTH);
}

/** A provider's value as plain JSON: bytes become base64, dates and URLs strings. Undefined when it cannot be. */
export function toJson(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value, plain);
  } catch {
    return undefined; // a cycle or bottomless nesting: the caller says that the value was left out
  }
  if (text === undefined) return undefined;
  const json: Json = JSON.parse(text);
  return depthFault(json) === undefined ? json : undefined;
}

function plain(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value);
  return typeof value === "bigint" ? value.toString() : value;
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Provider metadata as data to send back, or undefined when there is none that could be. */
export function providerData(metadata: unknown): ProviderData | undefined {
  if (metadata === undefined || metadata === null) return undefined;
  const json = toJson(metadata);
  if (!isJsonObject(json)) return undefined;
  // fromEntries defines members, so that a provider called `__proto__` stays data.
  const entries = Object.entries(json).flatMap(([provider, data]) =>
    isJsonObject(data) ? [[provider, data] as const] : [],
  );
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Finds nothing: for whoever has no secrets. */
export const NO_SECRETS: SecretFilter = createSecretFilter(new Map());

/** At most so many characters of a text, without secrets and without the beginning of one that the cut would leave. */
export function cutText(text: string, longest: number, secrets: SecretFilter): string {
  if (text.length <= longest) return secrets.text(text);
  const cut = text.slice(0, longest);
  return secrets.text(cut.slice(0, cut.length - secrets.begun(cut)));
}

/** An id or a name as it may stand in a transcript: of one that held a secret, only characters that providers accept there. */
export function cleanWord(word: string, secrets: SecretFilter): string {
  const clean = secrets.text(word);
  return clean === word ? word : clean.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
}

/** Token counts as a provider gave them. Providers leave out what they like, and some send nonsense. */
export function usageOf(usage: LanguageModelV4Usage | undefined): ModelUsage {
  const input = tokens(usage?.inputTokens?.total);
  const output = tokens(usage?.outputTokens?.total);
  return {
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cacheReadTokens: tokens(usage?.inputTokens?.cacheRead) ?? 0,
    cacheWriteTokens: tokens(usage?.inputTokens?.cacheWrite) ?? 0,
    reasoningTokens: tokens(usage?.outputTokens?.reasoning) ?? 0,
    known: input !== undefined && output !== undefined,
  };
}

/** Capped, so that sums over a run stay numbers that a journal can hold. */
function tokens(count: unknown): number | undefined {
  return typeof count === "number" && Number.isFinite(count) && count >= 0
    ? Math.min(count, Number.MAX_SAFE_INTEGER)
    : undefined;
}

export function warningText(warning: SharedV4Warning): string {
  switch (warning?.type) {
    case "unsupported":
    case "compatibility": {
      const details = word(warning.details);
      return `${warning.type}: ${word(warning.feature)}${details === "" ? "" : ` (${details})`}`;
    }
    case "deprecated":
      return `deprecated: ${word(warning.setting)} (${word(warning.message)})`;
    case "other":
      return word(warning.message);
    default:
      return "a warning of an unknown type";
  }
}

/** What should be a string, as one. */
export function word(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Arguments longer than this are an input error: 10 MiB of characters. */
const MAX_INPUT_CHARS = 10 * 1024 * 1024;
const KEPT_OF_TOO_LARGE = 1024;
const LONGEST_ID = 256;

/** Names that Anthropic, OpenAI and Google all accept in a transcript. */
const WIRE_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

export type ParsedInput = Pick<ModelToolCall, "input" | "rawInput" | "inputError">;

/** Arguments as the model wrote them -> a value, or why there is none. No arguments at all mean `{}`. */
export function parseToolInput(raw: string, secrets: SecretFilter): ParsedInput {
  if (raw.length > MAX_INPUT_CHARS) {
    const message = `the arguments have ${raw.length} characters; at most ${MAX_INPUT_CHARS} are taken`;
    return { rawInput: cutText(raw, KEPT_OF_TOO_LARGE, secrets), inputError: { code: "too_large", message } };
  }
  if (raw.trim() === "") return { rawInput: raw, input: {} };
  const parsed = parseJson(raw);
  if (!parsed.ok) {
    return {
      rawInput: raw,
      inputError: { code: "not_json", message: `the arguments are not JSON: ${clip(parsed.fault)}` },
    };
  }
  const fault = depthFault(parsed.value);
  if (fault === undefined) return { rawInput: raw, input: parsed.value };
  return fault.includes("nested deeper")
    ? {
        rawInput: raw,
        inputError: { code: "too_deep", message: `the arguments are nested deeper than ${MAX_DEPTH} levels` },
      }
    : { rawInput: raw, inputError: { code: "not_json", message: `the arguments are not JSON: ${clip(fault)}` } };
}

/** What the transcript holds as arguments: only objects survive being sent again to every provider. */
export function wireInput(input: Json | undefined): Json {
  return isJsonObject(input) ? input : {};
}

/** A tool name that may stand in a transcript: one bad name would make every later request of the stage invalid. */
export function wireNameOf(name: string, offered: readonly { readonly name: string }[]): string {
  if (WIRE_NAME.test(name) || offered.some((tool) => tool.name === name)) return name;
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (safe === "") return "unnamed";
  return (/^[A-Za-z_]/.test(safe) ? safe : `_${safe}`).slice(0, 64);
}

/** The provider's call id where it is usable and new, else one made from it and the position: the same on every replay. */
export function uniqueCallId(sent: unknown, position: number, taken: (id: string) => boolean): string {
  const base = typeof sent === "string" && sent.trim() !== "" && sent.length <= LONGEST_ID ? sent : "call";
  if (base === sent && !taken(base)) return base;
  let id = `${base}_c${position}`;
  for (let again = 2; taken(id); again += 1) id = `${base}_c${position}_${again}`;
  return id;
}

function clip(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
