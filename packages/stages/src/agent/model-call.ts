import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { type Clock, systemClock } from "@sluice/core";
import type { SecretFilter } from "@sluice/core/runtime";
import { ABORTED, failureOf } from "../models/reply/failure.ts";
import { NO_SECRETS } from "../models/reply/provider-values.ts";
import type { ModelFailure, ModelReply } from "../models/reply/reply.ts";
import { ReplyBuilder } from "../models/reply/reply-builder.ts";
import { limitSilence } from "./silence-limit.ts";

export interface ModelRequest {
  readonly model: LanguageModelV4;
  /** The transcript in the provider's format, passed by reference: copying it would make each turn slower than the last. */
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly toolChoice?: LanguageModelV4ToolChoice;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly providerOptions?: SharedV4ProviderOptions;
  /** Ids of the calls already in the transcript, which new calls must not reuse. */
  readonly callIds?: ReadonlySet<string>;
  /** Applied before a text is cut or rewritten: the remainder of a secret could not be recognized afterwards. */
  readonly secrets?: SecretFilter;
  readonly signal: AbortSignal;
  /** Receives text as it streams. `callModel` throws what it throws. */
  readonly onText?: (delta: string, kind: "text" | "reasoning") => void;
}

/** The result of a call; a failure also reports whether the answer had begun, because it may be billed then. */
export type ModelOutcome =
  | Extract<ModelReply, { readonly ok: true }>
  | (Extract<ModelReply, { readonly ok: false }> & { readonly begun: boolean });

/** Identifies a model call for telemetry. */
export interface ModelPlace {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly turn: number;
  /** From 1, over all attempts of the turn. */
  readonly try: number;
  readonly model: string;
  /** Masks known secrets in texts of the provider. */
  readonly clean: (text: string) => string;
}
/** Wraps `callModel` for telemetry and returns its result. */
export type ModelCaller = (request: ModelRequest, place: ModelPlace) => Promise<ModelOutcome>;

/**
 * Makes one model call, without retries; failures are returned as values. Returns as soon as the signal aborts or the silence limit
 * is reached, even if the provider ignores it.
 */
export async function callModel(request: ModelRequest, clock: Clock = systemClock): Promise<ModelOutcome> {
  const { signal } = request;
  const secrets = request.secrets ?? NO_SECRETS;
  /** The model's own signal. */
  const stop = new AbortController();
  let reader: StreamReader | undefined;
  let ended = false;
  let abandon: ((opened: undefined) => void) | undefined;
  const end = (reason: unknown): void => {
    stop.abort(reason);
    // Cancelling a reader settles its pending read at once, whatever the source behind it does.
    if (reader !== undefined) cancel(reader);
    else abandon?.(undefined);
  };
  const failed = (error: ModelFailure, begun: boolean): ModelOutcome => {
    if (signal.aborted) return { ok: false, error: ABORTED, begun };
    // The provider's own error may only report that it was aborted.
    return { ok: false, error: stop.signal.aborted ? failureOf(stop.signal.reason, begun, secrets) : error, begun };
  };
  if (signal.aborted) return failed(ABORTED, false);

  const onAbort = (): void => end(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const silence = limitSilence(clock, end);
  try {
    try {
      const opening = open(request, stop.signal);
      const opened = await new Promise<Opened | undefined>((resolve, reject) => {
        abandon = resolve;
        opening.then(resolve, reject);
      });
      if (opened === undefined) {
        opening.then(({ stream }) => cancel(stream)).catch(ignore); // the call ended while it opened
        return failed(ABORTED, false);
      }
      reader = opened.stream.getReader();
    } catch (thrown) {
      return failed(failureOf(thrown, false, secrets), false);
    }
    // Ended while it opened: `end` had no reader to cancel.
    if (stop.signal.aborted) return failed(ABORTED, true);
    const reply = new ReplyBuilder({ ...request, secrets });
    while (!ended) {
      let chunk: Awaited<ReturnType<StreamReader["read"]>>;
      try {
        chunk = await reader.read();
      } catch (thrown) {
        ended = true;
        // The reply is already complete, so a broken connection does not matter.
        if (reply.finished) break;
        return failed(failureOf(thrown, true, secrets), true);
      }
      if (chunk.done) ended = true;
      else {
        silence.heard(chunk.value);
        const failure = reply.take(chunk.value);
        if (failure !== undefined) return failed(failure, true);
      }
    }
    if (signal.aborted || (stop.signal.aborted && !reply.finished)) return failed(ABORTED, true);
    const built = reply.build();
    return built.ok ? built : failed(built.error, true);
  } finally {
    silence.end();
    signal.removeEventListener("abort", onAbort);
    if (reader !== undefined && !ended) cancel(reader);
  }
}

type Opened = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
type StreamReader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

function open(request: ModelRequest, abortSignal: AbortSignal): Promise<Opened> {
  const { toolChoice, maxOutputTokens, temperature, providerOptions } = request;
  const { prompt, tools } = request;
  const options: LanguageModelV4CallOptions = { prompt, abortSignal };
  if (tools.length > 0) {
    options.tools = [...tools];
    if (toolChoice !== undefined) options.toolChoice = toolChoice;
  }
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens;
  if (temperature !== undefined) options.temperature = temperature;
  if (providerOptions !== undefined) options.providerOptions = providerOptions;
  return Promise.resolve(request.model.doStream(options));
}

function cancel(stream: { cancel(): Promise<void> }): void {
  const abandon = async (): Promise<void> => stream.cancel();
  abandon().catch(ignore); // the stream's result is not needed
}

function ignore(): void {
  return;
}
