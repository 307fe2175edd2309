import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";

/** Longer than providers take for reasoning and arguments that they send only when complete. */
export const LONGEST_SILENCE_MS = 10 * 60_000;

/** Measures how long a model has made no progress. Calls `onLate` once, with ProviderTransient `timeout`, if that is too long. */
export class SilenceLimit {
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
