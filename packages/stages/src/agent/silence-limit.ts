import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";

/** Longer than providers take for reasoning and arguments that they send only when complete. */
export const LONGEST_SILENCE_MS = 10 * 60_000;

/** Measures how long a model has made no progress. */
export interface SilenceLimit {
  /** Keep-alive parts are not progress, because they could hold a call forever. */
  heard(part: LanguageModelV4StreamPart): void;
  end(): void;
}

/** Calls `onLate` once, with ProviderTransient `timeout`, if there is no progress for too long. */
export function limitSilence(clock: Clock, onLate: (error: SluiceError) => void): SilenceLimit {
  let since = clock.now();
  /** One timer per call, which is set again if it fires too early. */
  const check = (): void => {
    const left = since + LONGEST_SILENCE_MS - clock.now();
    if (left > 0) disarm = clock.after(left, check);
    else onLate(timedOut());
  };
  let disarm = clock.after(LONGEST_SILENCE_MS, check);
  return {
    heard: (part) => {
      try {
        if (isProgress(part)) since = clock.now();
      } catch {
        return; // reading a part may run foreign code; what cannot be read is not progress
      }
    },
    end: () => disarm(),
  };
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
