import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { type ResolvedModel, withCalls } from "../model.ts";
import { immutable, type ModelKnown, type ModelOptions } from "./settings.ts";

/** Anthropic's mark for a prefix that lives for five minutes. */
export const ANTHROPIC_MARK: SharedV4ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };

/**
 * Marks four places up to which the provider may cache the prompt: the tools, the system message, and the last two turns. A prefix that
 * one request writes at its end is what the next one reads, also where a turn has more blocks than the provider looks back.
 */
function withCacheMarks(model: LanguageModelV4, mark: SharedV4ProviderOptions): LanguageModelV4 {
  const marked = (call: LanguageModelV4CallOptions): LanguageModelV4CallOptions => {
    const { prompt, tools = [] } = call;
    const ends = new Set([0, endBeforeLastReply(prompt), prompt.length - 1]);
    return {
      ...call,
      prompt: prompt.map((message, index) => (ends.has(index) ? withMark(message, mark) : message)),
      ...(tools.length === 0
        ? {}
        : { tools: tools.map((tool, index) => (index === tools.length - 1 ? withMark(tool, mark) : tool)) }),
    };
  };
  return withCalls(model, {
    doGenerate: (call) => model.doGenerate(marked(call)),
    doStream: (call) => model.doStream(marked(call)),
  });
}

/** The index of the message that the last reply answered; -1 before the first reply. */
function endBeforeLastReply(prompt: readonly LanguageModelV4Message[]): number {
  return prompt.findLastIndex(({ role }) => role === "assistant") - 1;
}

function withMark<T extends object>(
  value: T & { readonly providerOptions?: SharedV4ProviderOptions },
  mark: SharedV4ProviderOptions,
): T {
  return { ...value, providerOptions: { ...value.providerOptions, ...mark } };
}

/** A model whose prompts the provider caches, unless the session or a state does not want it. */
export function cachedModel(
  id: string,
  model: LanguageModelV4,
  mark: SharedV4ProviderOptions,
  { promptCache }: Pick<ModelOptions, "promptCache">,
  known: ModelKnown,
): ResolvedModel {
  const cached = promptCache === false ? model : withCacheMarks(model, mark);
  return immutable(id, cached, { ...known, uncached: model });
}
