import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { SecretFilter } from "@sluice/core";
import { ABORTED, failureOf } from "../models/reply/failure.ts";
import { NO_SECRETS } from "../models/reply/provider-values.ts";
import type { ModelFailure, ModelReply } from "../models/reply/reply.ts";
import { ReplyBuilder } from "../models/reply/reply-builder.ts";

export interface ModelRequest {
  readonly model: LanguageModelV4;
  /** The transcript in the provider's format. Passed by reference and never copied, so that a turn costs the same at any length. */
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly toolChoice?: LanguageModelV4ToolChoice;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly providerOptions?: SharedV4ProviderOptions;
  /** Ids of the calls already in the transcript: a new call never gets one of them. */
  readonly callIds?: ReadonlySet<string>;
  /** Takes secrets out of what is cut or rewritten on the way: a rest of one could not be found afterwards. */
  readonly secrets?: SecretFilter;
  readonly signal: AbortSignal;
  /** Hears text as it comes, for a screen. What it throws is thrown by `callModel`. */
  readonly onText?: (delta: string, kind: "text" | "reasoning") => void;
}

/** What came of a call; of one that failed also whether its answer had begun, since then it may be billed. */
export type ModelOutcome =
  | Extract<ModelReply, { readonly ok: true }>
  | (Extract<ModelReply, { readonly ok: false }> & { readonly begun: boolean });

/** Which call of which run this is, for whoever follows runs. */
export interface ModelPlace {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly turn: number;
  /** Counted from 1 over the tries of the turn. */
  readonly try: number;
  /** As records call it. */
  readonly model: string;
  /** Takes known secrets out of what the provider said. */
  readonly clean: (text: string) => string;
}
/** Makes a model call in somebody's context; it comes to what `callModel` comes to. */
export type ModelCaller = (request: ModelRequest, place: ModelPlace) => Promise<ModelOutcome>;

/**
 * Makes one model call and returns one value, failures included. Nothing is retried here. When the signal aborts it
 * returns at once, even if the provider ignores it.
 */
export async function callModel(request: ModelRequest): Promise<ModelOutcome> {
  const { signal } = request;
  const secrets = request.secrets ?? NO_SECRETS;
  let reader: StreamReader | undefined;
  if (signal.aborted) return failed(ABORTED, signal, false);

  let ended = false;
  let abandon: ((opened: undefined) => void) | undefined;
  const stop = (): void => {
    // Cancelling a reader settles its pending read at once, whatever the source behind it does.
    if (reader !== undefined) cancel(reader);
    else abandon?.(undefined);
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    try {
      const opening = open(request);
      const opened = await new Promise<Opened | undefined>((resolve, reject) => {
        abandon = resolve;
        opening.then(resolve, reject);
      });
      if (opened === undefined) {
        opening.then(({ stream }) => cancel(stream)).catch(ignore); // nobody waits for it any more
        return failed(ABORTED, signal, false);
      }
      reader = opened.stream.getReader();
    } catch (thrown) {
      return failed(failureOf(thrown, false, secrets), signal, false);
    }
    // Aborted while it opened: `stop` had no reader yet, and nobody else would end a read.
    if (signal.aborted) return failed(ABORTED, signal, true);
    const reply = new ReplyBuilder({ ...request, secrets });
    while (!ended) {
      let chunk: Awaited<ReturnType<StreamReader["read"]>>;
      try {
        chunk = await reader.read();
      } catch (thrown) {
        ended = true;
        // Once the model has finished, a connection that breaks takes nothing away.
        if (reply.finished) break;
        return failed(failureOf(thrown, true, secrets), signal, true);
      }
      if (chunk.done) ended = true;
      else {
        const failure = reply.take(chunk.value);
        if (failure !== undefined) return failed(failure, signal, true);
      }
    }
    if (signal.aborted) return failed(ABORTED, signal, true);
    const built = reply.build();
    return built.ok ? built : failed(built.error, signal, true);
  } finally {
    signal.removeEventListener("abort", stop);
    if (reader !== undefined && !ended) cancel(reader);
  }
}

function failed(error: ModelFailure, { aborted }: AbortSignal, begun: boolean): ModelOutcome {
  return { ok: false, error: aborted ? ABORTED : error, begun };
}

type Opened = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
type StreamReader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

function open(request: ModelRequest): Promise<Opened> {
  const { toolChoice, maxOutputTokens, temperature, providerOptions } = request;
  const { prompt, tools, signal: abortSignal } = request;
  const some = tools.length > 0;
  const options: LanguageModelV4CallOptions = some
    ? { prompt, abortSignal, tools: [...tools] }
    : { prompt, abortSignal };
  if (some && toolChoice !== undefined) options.toolChoice = toolChoice;
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens;
  if (temperature !== undefined) options.temperature = temperature;
  if (providerOptions !== undefined) options.providerOptions = providerOptions;
  return Promise.resolve(request.model.doStream(options));
}

function cancel(stream: { cancel(): Promise<void> }): void {
  const giveUp = async (): Promise<void> => stream.cancel();
  giveUp().catch(ignore); // the stream is given up; how it ends tells nobody anything
}

function ignore(): void {
  return;
}
