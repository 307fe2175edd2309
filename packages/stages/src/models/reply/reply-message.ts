import type { AssistantPart, ProviderData } from "./reply.ts";

export type BlockKind = "text" | "reasoning";
/** A text or reasoning block that is still being streamed. */
export interface Block {
  readonly type: BlockKind;
  text: string;
  metadata: ProviderData | undefined;
}

/** A part of an answer as it grows. */
export type Draft = Block | Exclude<AssistantPart, { type: "text" | "reasoning" }>;

/**
 * The message that goes into the transcript. Reasoning leads to something and notes belong to something: services refuse a
 * message that is nothing else, or that ends with reasoning.
 */
export function messageOf(drafts: readonly Draft[]): AssistantPart[] {
  const parts = drafts.map(sealed).filter((part) => part !== undefined);
  const end = parts.findLastIndex(({ type }) => type !== "reasoning" && type !== "reasoning-file" && type !== "custom");
  return end < 0 ? [] : parts.filter(({ type }, at) => at <= end || type === "custom");
}

/** Blank text says nothing and some providers refuse it; with metadata it may carry a signature. */
function sealed(part: Draft): AssistantPart | undefined {
  if (part.type !== "text" && part.type !== "reasoning") return part;
  const { type, text, metadata } = part;
  if (metadata !== undefined) return { type, text, providerOptions: metadata };
  return text.trim() === "" ? undefined : { type, text };
}
