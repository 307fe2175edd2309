import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Content,
  type LanguageModelV4FinishReason,
  type LanguageModelV4Message,
  type LanguageModelV4Prompt,
  type LanguageModelV4StreamPart,
  type LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { type Clock, SluiceError, systemClock } from "@sluice/core";
import type { ResolvedModel, TurnPosition } from "./model.ts";
import { pause } from "./pause.ts";
import type { Script, ScriptedError, ScriptedTurn } from "./script.ts";

const CHARS_PER_TOKEN = 4;
/** The maximum number of deltas per text: more than one, to exercise streaming. */
const CHUNKS = 4;

export interface ScriptedOptions {
  /** Recorded by runs, such as `scripted:<file>`. */
  readonly id?: string;
  /** For delays; default the system's. */
  readonly clock?: Clock;
}

/**
 * A model that replies from a script. It is stateless: the caller's recorded position selects the entry, so a resumed run continues
 * at the right one. Calls after the last entry fail with ProviderCapability `script_exhausted`.
 */
export function scriptedModel(script: Script, options: ScriptedOptions = {}): ResolvedModel {
  const { id = "scripted", clock = systemClock } = options;
  /** Messages do not change, so each is measured once. */
  const measured = new WeakMap<LanguageModelV4Message, number>();
  const promptChars = (prompt: LanguageModelV4Prompt): number =>
    prompt.reduce((sum, message) => {
      const size = measured.get(message) ?? JSON.stringify(message.content).length;
      measured.set(message, size);
      return sum + size;
    }, 0);
  const at = ({ stage, turn, attempt, key }: TurnPosition): LanguageModelV4 => {
    const reply = async (call: LanguageModelV4CallOptions): Promise<Answer> => {
      const entry = entryOf(script, { stage, turn, key });
      if (entry.delayMs !== undefined) await pause(clock, entry.delayMs, call.abortSignal);
      const error = entry.errors?.[attempt - 1];
      if (error !== undefined && "status" in error) throw providerError(error);
      const content = contentOf(entry, `${stage}_${turn}`);
      return {
        content,
        cut: error !== undefined,
        finishReason: finishOf(entry),
        usage: usageOf(promptChars(call.prompt), content),
      };
    };
    return {
      specificationVersion: "v4",
      provider: "scripted",
      modelId: id,
      supportedUrls: {},
      async doGenerate(call) {
        const { content, cut, finishReason, usage } = await reply(call);
        if (cut) throw providerError({ status: 500, message: "the scripted answer is cut" });
        return { content, finishReason, usage, warnings: [] };
      },
      async doStream(call) {
        return { stream: streamOf(await reply(call)) };
      },
    };
  };
  return { id, secrets: [], at };
}

interface Answer {
  readonly content: LanguageModelV4Content[];
  readonly cut: boolean;
  readonly finishReason: LanguageModelV4FinishReason;
  readonly usage: LanguageModelV4Usage;
}

interface EntryPlace {
  readonly stage: string;
  readonly turn: number;
  readonly key: string | undefined;
}

function entryOf(script: Script, { stage, turn, key }: EntryPlace): ScriptedTurn {
  const ofItem = key === undefined ? undefined : own(own(script.items, stage), key);
  const entries = ofItem ?? (Object.hasOwn(script.stages, stage) ? script.stages[stage] : undefined);
  const entry = entries?.[turn];
  if (entry !== undefined) return entry;
  const name =
    ofItem === undefined ? `the stage "${stage}"` : `the item ${JSON.stringify(key)} of the stage "${stage}"`;
  const has =
    entries === undefined
      ? `has no turns for ${name} (it has: ${Object.keys(script.stages).join(", ") || "none"})`
      : `has ${entries.length} turns for ${name}, and the run requests turn ${turn + 1}`;
  throw new SluiceError("ProviderCapability", "script_exhausted", `the script ${has}; add the missing turn`);
}

/** A key may be called as a member of every object is. */
function own<T>(values: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;
}

function contentOf(entry: ScriptedTurn, position: string): LanguageModelV4Content[] {
  const content: LanguageModelV4Content[] = [];
  if (entry.reasoning !== undefined) content.push({ type: "reasoning", text: entry.reasoning });
  if (entry.text !== undefined) content.push({ type: "text", text: entry.text });
  for (const [index, call] of (entry.calls ?? []).entries()) {
    content.push({
      type: "tool-call",
      toolCallId: `call_${position}_${index}`,
      toolName: call.tool,
      input: call.rawInput ?? JSON.stringify(call.input ?? {}),
    });
  }
  return content;
}

function finishOf(entry: ScriptedTurn): LanguageModelV4FinishReason {
  const unified = entry.finish ?? ((entry.calls?.length ?? 0) > 0 ? "tool-calls" : "stop");
  return { unified, raw: unified };
}

function streamOf(answer: Answer): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: "stream-start", warnings: [] });
      for (const [index, part] of answer.content.entries()) {
        if (part.type === "text" || part.type === "reasoning") {
          const id = String(index);
          controller.enqueue({ type: `${part.type}-start`, id });
          for (const delta of chunks(part.text)) controller.enqueue({ type: `${part.type}-delta`, id, delta });
          controller.enqueue({ type: `${part.type}-end`, id });
        } else if (part.type === "tool-call") controller.enqueue(part);
      }
      if (!answer.cut) {
        controller.enqueue({ type: "finish", finishReason: answer.finishReason, usage: answer.usage });
      }
      controller.close();
    },
  });
}

/** By code point, so that no delta ends inside a character. */
function chunks(text: string): string[] {
  const size = Math.max(1, Math.ceil(Array.from(text).length / CHUNKS));
  return text.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];
}

function usageOf(promptChars: number, content: readonly LanguageModelV4Content[]): LanguageModelV4Usage {
  const input = Math.ceil(promptChars / CHARS_PER_TOKEN);
  let reasoningChars = 0;
  let otherChars = 0;
  for (const part of content) {
    if (part.type === "reasoning") reasoningChars += part.text.length;
    else if (part.type === "text") otherChars += part.text.length;
    else if (part.type === "tool-call") otherChars += part.toolName.length + part.input.length;
  }
  const reasoning = Math.ceil(reasoningChars / CHARS_PER_TOKEN);
  const text = Math.ceil(otherChars / CHARS_PER_TOKEN);
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: text + reasoning, text, reasoning },
  };
}

/** The error that a provider package would throw. */
function providerError(error: Extract<ScriptedError, { status: number }>): APICallError {
  return new APICallError({
    message: error.message ?? `the script replies with status ${error.status}`,
    url: "scripted:",
    requestBodyValues: {},
    statusCode: error.status,
    ...(error.retryAfterMs === undefined ? {} : { responseHeaders: { "retry-after-ms": String(error.retryAfterMs) } }),
  });
}
