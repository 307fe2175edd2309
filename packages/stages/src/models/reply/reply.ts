import type { Json, JsonObject } from "@sluice/core";

// The result of a model call. All types are plain JSON, because replies are journaled, and content parts have the provider's
// prompt format, so that they can be sent again without conversion.

/** Data to send back with a part (signatures, cache marks), by provider. */
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
  /** `{}` if the model did not send a JSON object: providers accept only objects here. */
  readonly input: Json;
  readonly providerExecuted?: true;
  readonly providerOptions?: ProviderData;
};
/** The result of a provider-executed call. */
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
type FilePart = {
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
  | "too_deep" // nested too deep for a journal
  | "truncated"; // the output limit or a content filter ended the reply inside this call

/** A tool call that the model requests. */
export type ModelToolCall = {
  /** The position among the calls of this turn, from 0, by which results are assigned. */
  readonly index: number;
  /** Unique in the transcript. */
  readonly id: string;
  /** The name that the model wrote: any string. */
  readonly tool: string;
  /** The name in the transcript, if providers would reject `tool` there. */
  readonly wireName?: string;
  /** The arguments; absent with an `inputError`. */
  readonly input?: Json;
  /** The arguments as sent; the first 1024 characters if they are `too_large`. */
  readonly rawInput: string;
  readonly inputError?: { readonly code: InputFault; readonly message: string };
};

export type ModelUsage = {
  /** All input tokens, including cached ones. */
  readonly inputTokens: number;
  /** All output tokens, including reasoning. */
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** False if the provider did not report the input or output tokens, which are then 0. */
  readonly known: boolean;
};

export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "other";

export type FailureKind =
  | "transient" // the same call may work in a moment
  | "permanent" // the same call fails again
  | "context_overflow" // the transcript does not fit the model
  | "cut_stream" // the reply ended in the middle: repeat the whole turn
  | "aborted"; // by the caller's signal

/** Why a model call failed. A value, because it is recorded and determines what follows. */
export type ModelFailure = {
  readonly kind: FailureKind;
  /** Stable, snake_case: `rate_limited`, `overloaded`, `unauthorized`, … */
  readonly code: string;
  /** For users: at most 500 characters without keys, headers or stacks. */
  readonly message: string;
  /** The HTTP status. */
  readonly status?: number;
  /** The delay that the provider requests, in milliseconds. */
  readonly retryAfterMs?: number;
  /** When the limit that refused the call is whole again, in milliseconds; a call may succeed before. */
  readonly resetAfterMs?: number;
};

export type ModelReply =
  | {
      readonly ok: true;
      /** The assistant message. Do not append an empty one, which providers reject. */
      readonly content: AssistantPart[];
      /** The requested calls in order, without provider-executed ones. */
      readonly calls: readonly ModelToolCall[];
      /** All text parts, joined. */
      readonly text: string;
      readonly finishReason: FinishReason;
      /** The provider's finish reason. */
      readonly rawFinishReason?: string;
      readonly usage: ModelUsage;
      /** At most 20 warnings of the provider and about ignored parts. */
      readonly warnings: readonly string[];
      /** The provider's ids of the response and the model. */
      readonly response?: { readonly id?: string; readonly model?: string };
      readonly providerMetadata?: ProviderData;
    }
  | { readonly ok: false; readonly error: ModelFailure };
