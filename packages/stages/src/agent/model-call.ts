import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { type Clock, SluiceError, systemClock } from "@sluice/core";
import type { SecretFilter } from "@sluice/core/runtime";
import { ABORTED, failureOf } from "../models/reply/failure.ts";
import { NO_SECRETS } from "../models/reply/provider-values.ts";
import type { ModelFailure, ModelReply } from "../models/reply/reply.ts";
import { ReplyBuilder } from "../models/reply/reply-builder.ts";

export interface ModelRequest {
  readonly model: LanguageModelV4;
  /** The transcript in the provider's format, passed by reference: copying it would make each turn slower than the last. */
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly toolChoice?: LanguageModelV4ToolChoice;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly stopSequences?: readonly string[];
  readonly reasoning?: LanguageModelV4CallOptions["reasoning"];
  readonly providerOptions?: SharedV4ProviderOptions;
  /** Ids of the calls already in the transcript, which new calls must not reuse. */
  readonly callIds?: ReadonlySet<string>;
  /** Applied before a text is cut or rewritten: the remainder of a secret could not be recognized afterwards. */
  readonly secrets?: SecretFilter;
  /** Its silence has no limit. */
  readonly patient?: true;
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
export function callModel(request: ModelRequest, clock: Clock = systemClock): Promise<ModelOutcome> {
  return new ModelCall(request).outcome(clock);
}

/** One call and its stream. */
class ModelCall {
  readonly #request: ModelRequest;
  readonly #secrets: SecretFilter;
  /** The model's own signal. */
  readonly #stop = new AbortController();
  #reader: StreamReader | undefined;
  #opening: Opening | undefined;
  #ended = false;

  constructor(request: ModelRequest) {
    this.#request = request;
    this.#secrets = request.secrets ?? NO_SECRETS;
  }

  async outcome(clock: Clock): Promise<ModelOutcome> {
    const { signal } = this.#request;
    if (signal.aborted) return this.#failed(ABORTED, false);
    // A function: an object that listens would be kept, with all that it reaches, longer than the call.
    const onAbort = (): void => this.#end(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const { patient } = this.#request;
    const silence = patient === true ? undefined : new SilenceLimit(clock, (late) => this.#end(late));
    try {
      try {
        const opened = await this.#opened();
        if (opened === undefined) return this.#failed(ABORTED, false);
        this.#reader = opened.stream.getReader();
      } catch (thrown) {
        return this.#failed(failureOf(thrown, false, this.#secrets, clock.now()), false);
      }
      // Ended while it opened: `#end` had no reader to cancel.
      if (this.#stop.signal.aborted) return this.#failed(ABORTED, true);
      return await this.#read(this.#reader, silence, clock);
    } finally {
      silence?.end();
      signal.removeEventListener("abort", onAbort);
      if (this.#reader !== undefined && !this.#ended) cancel(this.#reader);
    }
  }

  /** The open stream; undefined if the call ends while it opens. */
  #opened(): Promise<Opened | undefined> {
    const opening = open(this.#request, this.#stop.signal);
    const { promise, resolve, reject } = Promise.withResolvers<Opened | undefined>();
    opening.then(resolve, reject);
    this.#opening = { opening, resolve };
    return promise;
  }

  async #read(reader: StreamReader, silence: SilenceLimit | undefined, clock: Clock): Promise<ModelOutcome> {
    const { tools, callIds = NO_IDS, onText = ignore } = this.#request;
    const reply = new ReplyBuilder({ tools, callIds, onText, secrets: this.#secrets });
    while (!this.#ended) {
      let chunk: Awaited<ReturnType<StreamReader["read"]>>;
      try {
        chunk = await reader.read();
      } catch (thrown) {
        this.#ended = true;
        // The reply is already complete, so a broken connection does not matter.
        if (reply.finished) break;
        return this.#failed(failureOf(thrown, true, this.#secrets, clock.now()), true);
      }
      if (chunk.done) this.#ended = true;
      else {
        silence?.heard(chunk.value);
        const failure = reply.take(chunk.value);
        if (failure !== undefined) return this.#failed(failure, true);
      }
    }
    if (this.#request.signal.aborted || (this.#stop.signal.aborted && !reply.finished)) {
      return this.#failed(ABORTED, true);
    }
    const built = reply.build();
    return built.ok ? built : this.#failed(built.error, true);
  }

  #end(reason: unknown): void {
    this.#stop.abort(reason);
    // Cancelling a reader settles its pending read at once, whatever the source behind it does.
    if (this.#reader !== undefined) cancel(this.#reader);
    else if (this.#opening !== undefined) abandon(this.#opening);
  }

  #failed(error: ModelFailure, begun: boolean): ModelOutcome {
    if (this.#request.signal.aborted) return { ok: false, error: ABORTED, begun };
    const { aborted, reason } = this.#stop.signal;
    // The provider's own error may only report that it was aborted.
    return { ok: false, error: aborted ? failureOf(reason, begun, this.#secrets) : error, begun };
  }
}

const NO_IDS: ReadonlySet<string> = new Set();

type Opened = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
type StreamReader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;
/** A stream that opens, and what ends the wait for it. */
interface Opening {
  readonly opening: Promise<Opened>;
  readonly resolve: (opened: undefined) => void;
}

function open(request: ModelRequest, abortSignal: AbortSignal): Promise<Opened> {
  const { toolChoice, maxOutputTokens, temperature, topP, seed, stopSequences, reasoning, providerOptions } = request;
  const { prompt, tools } = request;
  const options: LanguageModelV4CallOptions = { prompt, abortSignal };
  if (tools.length > 0) {
    options.tools = [...tools];
    if (toolChoice !== undefined) options.toolChoice = toolChoice;
  }
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens;
  if (temperature !== undefined) options.temperature = temperature;
  if (topP !== undefined) options.topP = topP;
  if (seed !== undefined) options.seed = seed;
  if (stopSequences !== undefined) options.stopSequences = [...stopSequences];
  if (reasoning !== undefined) options.reasoning = reasoning;
  if (providerOptions !== undefined) options.providerOptions = providerOptions;
  return Promise.resolve(request.model.doStream(options));
}

function abandon({ opening, resolve }: Opening): void {
  resolve(undefined);
  opening.then(({ stream }) => cancel(stream)).catch(ignore);
}

function cancel(stream: { cancel(): Promise<void> }): void {
  const cancelling = async (): Promise<void> => stream.cancel();
  cancelling().catch(ignore); // the stream's result is not needed
}

function ignore(): void {
  return;
}

/** Longer than providers take for reasoning and arguments that they send only when complete. */
export const LONGEST_SILENCE_MS = 10 * 60_000;

/** Measures how long a model has made no progress. Calls `onLate` once, with ProviderTransient `timeout`, if that is too long. */
class SilenceLimit {
  readonly #clock: Clock;
  readonly #onLate: (error: SluiceError) => void;
  #since: number;
  #disarm: () => void;

  constructor(clock: Clock, onLate: (error: SluiceError) => void) {
    this.#clock = clock;
    this.#onLate = onLate;
    this.#since = clock.now();
    this.#disarm = this.#arm(LONGEST_SILENCE_MS);
  }

  /** Keep-alive parts are not progress, because they could hold a call forever. */
  heard(part: LanguageModelV4StreamPart): void {
    try {
      if (isProgress(part)) this.#since = this.#clock.now();
    } catch {
      return; // reading a part may run foreign code; what cannot be read is not progress
    }
  }

  end(): void {
    this.#disarm();
  }

  /** One timer per call, which is set again if it fires too early. */
  #arm(ms: number): () => void {
    return this.#clock.after(ms, () => {
      const left = this.#since + LONGEST_SILENCE_MS - this.#clock.now();
      if (left > 0) this.#disarm = this.#arm(left);
      else this.#onLate(timedOut());
    });
  }
}

/** Whether a part advances the reply. */
function isProgress(part: LanguageModelV4StreamPart): boolean {
  switch (part?.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta":
      return part.delta !== "";
    case "ping":
    case "raw":
    case "stream-start":
    case "response-metadata":
      return false;
    default:
      return true;
  }
}

function timedOut(): SluiceError {
  const message = `the provider's response made no progress for ${LONGEST_SILENCE_MS / 60_000} minutes`;
  return new SluiceError("ProviderTransient", "timeout", message);
}
