import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { objects, word } from "./sse-server.ts";

/** What a request said, without the protocol it was said in. */
export interface WireRequest {
  readonly system: string;
  readonly messages: readonly WireMessage[];
  readonly tools: readonly string[];
  /** The tool that has to be called, where one is named. */
  readonly forcedTool?: string;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
}

export interface WireMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  /** Reasoning as it is sent back, in the clear. */
  readonly reasoning: string;
  /** What the service gave for itself and wants back: signatures, encrypted reasoning. */
  readonly proofs: readonly string[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: Json }[];
  /** The value where it is JSON, else the text. */
  readonly results: readonly { readonly id: string; readonly value: Json }[];
}

/** A message of which only some is said. */
export function wireMessage(role: WireMessage["role"], said: Partial<WireMessage> = {}): WireMessage {
  return { role, text: "", reasoning: "", proofs: [], calls: [], results: [], ...said };
}

/** Puts what belongs to one message together where a protocol parts it. */
export function joined(messages: readonly WireMessage[]): readonly WireMessage[] {
  const whole: WireMessage[] = [];
  for (const next of messages) {
    const last = whole.at(-1);
    if (last === undefined || last.role !== next.role || next.role === "user") whole.push(next);
    else {
      whole[whole.length - 1] = {
        role: next.role,
        text: last.text + next.text,
        reasoning: last.reasoning + next.reasoning,
        proofs: [...last.proofs, ...next.proofs],
        calls: [...last.calls, ...next.calls],
        results: [...last.results, ...next.results],
      };
    }
  }
  return whole;
}

/** Members of a request that are left out where they are not of their type. */
export function limits(maxOutputTokens: Json | undefined, temperature: Json | undefined, forced: Json | undefined) {
  return {
    ...(typeof maxOutputTokens === "number" ? { maxOutputTokens } : {}),
    ...(typeof temperature === "number" ? { temperature } : {}),
    ...(typeof forced === "string" ? { forcedTool: forced } : {}),
  };
}

/** The text of the text blocks in a list, or the text itself. */
export function textOf(content: Json | undefined, type = "text"): string {
  if (typeof content === "string") return content;
  return objects(content)
    .filter((block) => block.type === type)
    .map(({ text }) => word(text))
    .join("");
}

export function jsonOf(content: Json | undefined): Json {
  const text = textOf(content);
  const parsed = parseJson(text);
  return parsed.ok ? parsed.value : text;
}

/** The result of a tool as OpenAI is sent it: errors are wrapped so that they differ from other results. */
export function unwrapped(content: Json | undefined): Json {
  const value = jsonOf(content);
  const wrapped = isJsonObject(value) && Object.keys(value).length === 1 ? value.error : undefined;
  return wrapped ?? value;
}

/** The results that a request shows for its latest turn. */
export function latestResults(request: WireRequest | undefined): readonly Json[] {
  return request?.messages.at(-1)?.results.map(({ value }) => value) ?? [];
}

export type ReadRequest = (body: JsonObject) => WireRequest;
