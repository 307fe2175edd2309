import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";
import { withCalls } from "../model.ts";
import { tapStream } from "../tap-stream.ts";

/** Longer than providers take for reasoning and arguments that they send only when complete. */
export const LONGEST_SILENCE_MS = 10 * 60_000;

/**
 * Ends a model's stream with ProviderTransient `timeout` if it makes no progress for too long after the request or the last
 * progress. Keep-alive parts are not progress, because they could hold a call forever.
 */
export function withSilenceLimit(model: LanguageModelV4, clock: Clock): LanguageModelV4 {
  return withCalls(model, {
    doGenerate: (call) => model.doGenerate(call),
    doStream: (call) => openStream(model, call, clock),
  });
}

type Opened = Awaited<ReturnType<LanguageModelV4["doStream"]>>;

async function openStream(model: LanguageModelV4, call: LanguageModelV4CallOptions, clock: Clock): Promise<Opened> {
  const stop = new AbortController();
  const { abortSignal } = call;
  const onAbort = (): void => stop.abort(abortSignal?.reason);
  abortSignal?.addEventListener("abort", onAbort, { once: true });
  if (abortSignal?.aborted === true) onAbort();
  /** The time of the last progress, and what happens when the silence is too long. */
  const silence = { since: clock.now(), onLate: (): void => undefined };
  const end = (): void => {
    disarm();
    abortSignal?.removeEventListener("abort", onAbort);
  };
  /** One timer per stream, which is set again if it fires too early. */
  const check = (): void => {
    const left = silence.since + LONGEST_SILENCE_MS - clock.now();
    if (left > 0) {
      disarm = clock.after(left, check);
      return;
    }
    // First, so that the provider's abort error does not become the reason.
    silence.onLate();
    stop.abort();
  };
  let disarm = clock.after(LONGEST_SILENCE_MS, check);
  try {
    const opening = Promise.resolve(model.doStream({ ...call, abortSignal: stop.signal }));
    const opened = await new Promise<Opened>((resolve, reject) => {
      silence.onLate = () => {
        reject(timedOut());
        // A provider that ignores the signal may still respond.
        opening.then(({ stream }) => stream.cancel()).catch(() => undefined);
      };
      opening.then(resolve, reject);
    });
    const stream = tapStream(opened.stream, {
      start: (fail) => {
        silence.onLate = () => {
          end();
          fail(timedOut());
        };
      },
      part: (part) => {
        if (isProgress(part)) silence.since = clock.now();
      },
      failed: end,
      done: end,
      left: end,
    });
    return { ...opened, stream };
  } catch (thrown) {
    end();
    throw thrown;
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
