import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { ActOutcome } from "./executor.ts";
import { cancelReason } from "./over.ts";
import type { OpenScope } from "./scope.ts";

/** An executor that ignores the end of its run has this long to end by itself. */
const DEAF_MS = 50;

/**
 * Waits for an executor's outcome. One that is deaf is given up, but never while something it asked for is at work: undefined
 * when the run was cancelled, a rejection when it has to stop here.
 */
export function untilGivenUp(
  act: Promise<ActOutcome>,
  { busy, onBusy }: OpenScope,
  signal: AbortSignal,
  clock: Clock,
): Promise<ActOutcome | undefined> {
  return new Promise((resolve, reject) => {
    let over = false;
    let disarm: (() => void) | undefined;
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      disarm?.();
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const look = (): void => {
      disarm?.();
      if (over || busy()) return;
      try {
        // Throws when the run goes on elsewhere: then nothing can be recorded here, and there is nothing to wait for.
        cancelReason(signal);
        disarm = clock.after(DEAF_MS, () => end(() => resolve(undefined)));
      } catch (stopped) {
        end(() => reject(asError(stopped)));
      }
    };
    const onAbort = (): void => {
      onBusy(look);
      look();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    act.then(
      (outcome) => end(() => resolve(outcome)),
      (thrown: unknown) => end(() => reject(asError(thrown))),
    );
  });
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(messageOf(thrown));
}
