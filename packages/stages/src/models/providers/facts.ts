import type { LanguageModelV4Usage, SharedV4Warning } from "@ai-sdk/provider";
import type { ModelUsage } from "../reply/reply.ts";

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
