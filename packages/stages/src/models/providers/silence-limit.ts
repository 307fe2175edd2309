import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";

/** How long a model may say nothing: longer than the longest thoughts and arguments that providers keep to themselves until they are whole. */
export const LONGEST_SILENCE_MS = 10 * 60_000;

/**
 * The same model, whose stream ends as ProviderTransient `timeout` when nothing of an answer came for too long, from the
 * request on. Signs of life are nothing of an answer: a server that only sends those would hold a call for ever.
 */
export function withSilenceLimit(model: LanguageModelV4, clock: Clock): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (call) => model.doGenerate(call),
    doStream: (call) => openStream(model, call, clock),
  };
}

type Opened = Awaited<ReturnType<LanguageModelV4["doStream"]>>;

async function openStream(model: LanguageModelV4, call: LanguageModelV4CallOptions, clock: Clock): Promise<Opened> {
  const stop = new AbortController();
  const { abortSignal } = call;
  const onAbort = (): void => stop.abort(abortSignal?.reason);
  abortSignal?.addEventListener("abort", onAbort, { once: true });
  if (abortSignal?.aborted === true) onAbort();
  const silence = new Silence(clock, () => stop.abort());
  const over = (): void => {
    silence.over();
    abortSignal?.removeEventListener("abort", onAbort);
  };
  try {
    const opening = Promise.resolve(model.doStream({ ...call, abortSignal: stop.signal }));
    const opened = await new Promise<Opened>((resolve, reject) => {
      silence.onLate = () => {
        reject(silent());
        // One that does not obey its signal may still answer, and nobody reads that.
        opening.then(({ stream }) => stream.cancel()).catch(() => undefined);
      };
      opening.then(resolve, reject);
    });
    return { ...opened, stream: heardStream(opened.stream.getReader(), silence, over) };
  } catch (thrown) {
    over();
    throw thrown;
  }
}

function heardStream(
  reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>,
  silence: Silence,
  over: () => void,
): ReadableStream<LanguageModelV4StreamPart> {
  let late = false;
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      start: (controller) => {
        silence.onLate = () => {
          late = true;
          over();
          controller.error(silent());
          reader.cancel().catch(() => undefined); // it is given up, however it ends
        };
      },
      async pull(controller) {
        try {
          const next = await reader.read();
          if (late) return;
          if (!next.done) {
            if (saysSomething(next.value)) silence.broken();
            controller.enqueue(next.value);
            return;
          }
        } catch (thrown) {
          if (late) return;
          over();
          throw thrown;
        }
        over();
        controller.close();
      },
      async cancel(reason) {
        over();
        await reader.cancel(reason);
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  );
}

/** Whether a part brings an answer forward. */
function saysSomething(part: LanguageModelV4StreamPart): boolean {
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

/** The time since something was said. One timer for a whole stream: it is set again when it rings too early. */
class Silence {
  onLate: () => void = () => undefined;
  readonly #clock: Clock;
  readonly #stop: () => void;
  #since: number;
  #disarm: () => void;

  constructor(clock: Clock, stop: () => void) {
    this.#clock = clock;
    this.#stop = stop;
    this.#since = clock.now();
    this.#disarm = clock.after(LONGEST_SILENCE_MS, this.#ring);
  }

  broken(): void {
    this.#since = this.#clock.now();
  }

  over(): void {
    this.#disarm();
  }

  readonly #ring = (): void => {
    const left = this.#since + LONGEST_SILENCE_MS - this.#clock.now();
    if (left > 0) {
      this.#disarm = this.#clock.after(left, this.#ring);
      return;
    }
    // First, so that what the provider makes of its signal is not taken for the reason.
    this.onLate();
    this.#stop();
  };
}

function silent(): SluiceError {
  const message = `the provider sent nothing of an answer for ${LONGEST_SILENCE_MS / 60_000} minutes`;
  return new SluiceError("ProviderTransient", "timeout", message);
}
