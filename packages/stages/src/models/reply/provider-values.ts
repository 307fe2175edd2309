import type { LanguageModelV4Usage, SharedV4Warning } from "@ai-sdk/provider";
import { isJsonObject, type Json, parseJson } from "@sluice/core";
import { createSecretFilter, jsonFault, type SecretFilter, shortened } from "@sluice/core/runtime";
import { maskedHead } from "../../secrets/cut-text.ts";
import type { ModelToolCall, ModelUsage, ProviderData } from "./reply.ts";

/** Below the journal's limit of 256, because a reply adds a few levels. */
const MAX_DEPTH = 128;

/** Makes `jsonFault` stop after MAX_DEPTH levels: a parsed value that is deeper cannot be journaled. */
const START_DEPTH = 256 - MAX_DEPTH;

/** A provider's value as plain JSON: bytes become base64, dates and URLs strings. Undefined when it cannot be. */
export function toJson(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value, plain);
  } catch {
    return undefined; // a cycle, or nested too deep
  }
  if (text === undefined) return undefined;
  const json: Json = JSON.parse(text);
  return jsonFault(json, "$", START_DEPTH) === undefined ? json : undefined;
}

function plain(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value);
  return typeof value === "bigint" ? value.toString() : value;
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Provider metadata that can be sent back, or undefined. */
export function providerData(metadata: unknown): ProviderData | undefined {
  if (metadata === undefined || metadata === null) return undefined;
  const json = toJson(metadata);
  if (!isJsonObject(json)) return undefined;
  // fromEntries defines members, so a provider named `__proto__` stays data.
  const entries = Object.entries(json).flatMap(([provider, data]) =>
    isJsonObject(data) ? [[provider, data] as const] : [],
  );
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

export const NO_SECRETS: SecretFilter = createSecretFilter(new Map());

/** Masks an id or a name; a masked one keeps only characters that providers accept in a transcript. */
export function cleanWord(word: string, secrets: SecretFilter): string {
  const clean = secrets.text(word);
  return clean === word ? word : clean.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
}

/** A provider's token counts, which may be missing or invalid. */
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

/** Limited, so that sums over a run remain valid in a journal. */
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

/** An untrusted value that should be a string. */
export function word(value: unknown): string {
  return typeof value === "string" ? value : "";
}

const MAX_INPUT_CHARS = 10 * 1024 * 1024;
const KEPT_OF_TOO_LARGE = 1024;
const LONGEST_ID = 256;

/** Names that Anthropic, OpenAI and Google all accept in a transcript. */
const WIRE_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

export type ParsedInput = Pick<ModelToolCall, "input" | "rawInput" | "inputError">;

/** Parses the arguments of a call; empty arguments mean `{}`. */
export function parseToolInput(raw: string, secrets: SecretFilter): ParsedInput {
  if (raw.length > MAX_INPUT_CHARS) {
    const message = `the arguments have ${raw.length} characters; the limit is ${MAX_INPUT_CHARS}`;
    return { rawInput: maskedHead(raw, KEPT_OF_TOO_LARGE, secrets), inputError: { code: "too_large", message } };
  }
  if (raw.trim() === "") return { rawInput: raw, input: {} };
  const parsed = parseJson(raw);
  const fault = parsed.ok ? jsonFault(parsed.value, "$", START_DEPTH) : parsed.fault;
  if (parsed.ok && fault === undefined) return { rawInput: raw, input: parsed.value };
  const isDeep = parsed.ok && fault?.includes("nested deeper") === true;
  return {
    rawInput: raw,
    inputError: isDeep
      ? { code: "too_deep", message: `the arguments are nested deeper than ${MAX_DEPTH} levels` }
      : { code: "not_json", message: `the arguments are not JSON: ${shortened(fault ?? "", 200)}` },
  };
}

/** Arguments for the transcript: not all providers accept values other than objects. */
export function wireInput(input: Json | undefined): Json {
  return isJsonObject(input) ? input : {};
}

/** A tool name for the transcript: one invalid name would make every later request of the stage fail. */
export function wireNameOf(name: string, offered: readonly { readonly name: string }[]): string {
  if (WIRE_NAME.test(name) || offered.some((tool) => tool.name === name)) return name;
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  if (safe === "") return "unnamed";
  return (/^[A-Za-z_]/.test(safe) ? safe : `_${safe}`).slice(0, 64);
}

/** The provider's call id if it is valid and new, else a deterministic one with the position. */
export function uniqueCallId(sent: unknown, position: number, taken: (id: string) => boolean): string {
  const base = typeof sent === "string" && sent.trim() !== "" && sent.length <= LONGEST_ID ? sent : "call";
  if (base === sent && !taken(base)) return base;
  let id = `${base}_c${position}`;
  for (let again = 2; taken(id); again += 1) id = `${base}_c${position}_${again}`;
  return id;
}
