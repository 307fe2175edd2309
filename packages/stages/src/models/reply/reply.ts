import type { Json, JsonObject } from "@sluice/core";

// What one model call leaves. Every type here is plain JSON, since a reply is journaled and sent again after a restart,
// and every content part fits the provider's prompt format as it stands, so that it is sent again without conversion.

/** Data a provider wants back with a part (signatures, cache marks), by provider name. */
export type ProviderData = { readonly [provider: string]: JsonObject };

type TextPart = { readonly type: "text"; readonly text: string; readonly providerOptions?: ProviderData };
type ReasoningPart = {
  readonly type: "reasoning";
  readonly text: string;
  readonly providerOptions?: ProviderData;
};
type ToolCallPart = {
  readonly type: "tool-call";
  readonly toolCallId: string;
  readonly toolName: string;
  /** `{}` where the model sent something that is not a JSON object: providers accept only objects here. */
  readonly input: Json;
  readonly providerExecuted?: true;
  readonly providerOptions?: ProviderData;
};
/** The result of a call the provider ran itself. Results of our own calls are messages of their own. */
type ProviderResultPart = {
  readonly type: "tool-result";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly output:
    | { readonly type: "json" | "error-json"; readonly value: Json }
    | { readonly type: "text"; readonly value: string };
  readonly providerOptions?: ProviderData;
};
type CustomPart = {
  readonly type: "custom";
  readonly kind: `${string}.${string}`;
  readonly providerOptions?: ProviderData;
};
export type FilePart = {
  readonly type: "file" | "reasoning-file";
  /** Base64. */
  readonly data: { readonly type: "data"; readonly data: string };
  readonly mediaType: string;
  readonly providerOptions?: ProviderData;
};
export type AssistantPart = TextPart | ReasoningPart | ToolCallPart | ProviderResultPart | CustomPart | FilePart;

type InputFault =
  | "not_json" // the arguments do not parse
  | "too_large" // more than 10 MiB of arguments
  | "too_deep" // nested so deep that a journal could not hold them
  | "truncated"; // the output limit, or a content filter, ended the answer inside this call

/** One tool call the model asks for, in the order it was made. */
export type ModelToolCall = {
  /** Position among the calls of this turn, from 0. Results are keyed by it. */
  readonly index: number;
  /** The id in the transcript; unique in it, whatever the provider sent. */
  readonly id: string;
  /** The name as the model wrote it: any string. */
  readonly tool: string;
  /** The name in the transcript where `tool` is not one that providers accept there. */
  readonly wireName?: string;
  /** The arguments. Absent when there is an `inputError`. */
  readonly input?: Json;
  /** The arguments as sent; the first 1024 characters when they are `too_large`. */
  readonly rawInput: string;
  readonly inputError?: { readonly code: InputFault; readonly message: string };
};

export type ModelUsage = {
  /** All input tokens, cached ones included. */
  readonly inputTokens: number;
  /** All output tokens, reasoning included. */
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** False when the provider did not say how many tokens went in or came out; the numbers are then 0. */
  readonly known: boolean;
};

export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "other";

export type FailureKind =
  | "transient" // the same call may work in a moment
  | "permanent" // the same call fails again
  | "context_overflow" // the transcript does not fit the model
  | "cut_stream" // the answer ended in the middle: repeat the whole turn
  | "aborted"; // our own signal

/** Why a model call gave no reply. A value: it is recorded and decides what comes next. */
export type ModelFailure = {
  readonly kind: FailureKind;
  /** Stable, snake_case: `rate_limited`, `overloaded`, `unauthorized`, … */
  readonly code: string;
  /** For people: no key, no header, no stack, at most 500 characters. */
  readonly message: string;
  /** HTTP status, where there was one. */
  readonly status?: number;
  /** How long the provider asks to wait, in milliseconds, as it said it. */
  readonly retryAfterMs?: number;
};

export type ModelReply =
  | {
      readonly ok: true;
      /** The assistant message to append. Empty when the model said nothing, or only thought: then append none, providers refuse it. */
      readonly content: AssistantPart[];
      /** Calls for us to judge, in order; never those the provider ran itself. */
      readonly calls: readonly ModelToolCall[];
      /** All text parts, joined. */
      readonly text: string;
      readonly finishReason: FinishReason;
      /** The provider's own word for it. */
      readonly rawFinishReason?: string;
      readonly usage: ModelUsage;
      /** What the provider warned of, and what of its stream was ignored. At most 20. */
      readonly warnings: readonly string[];
      /** Which response and which model, as the provider names them. */
      readonly response?: { readonly id?: string; readonly model?: string };
      readonly providerMetadata?: ProviderData;
    }
  | { readonly ok: false; readonly error: ModelFailure };
