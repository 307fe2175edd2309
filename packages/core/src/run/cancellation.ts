import { isSluiceError, messageOf, SluiceError } from "../base/errors.ts";

/**
 * Why the run was cancelled; undefined while it was not. Throws when the run only has to stop here, suspended or taken over:
 * it goes on elsewhere, so that nothing may be decided or recorded as its end.
 */
export function cancelReason(signal: AbortSignal): string | undefined {
  if (!signal.aborted) return undefined;
  const reason: unknown = signal.reason;
  if (!isSluiceError(reason)) throw new SluiceError("Host", "run_stopped", messageOf(reason), { cause: reason });
  if (reason.class === "Cancellation") return reason.message;
  throw reason;
}

/** What comes first: the end of the work, or the abort (undefined). Work that lost is left to itself, however it ends. */
export function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<{ readonly value: T } | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(
      (value) => {
        signal.removeEventListener("abort", onAbort);
        resolve({ value });
      },
      (thrown: unknown) => {
        signal.removeEventListener("abort", onAbort);
        reject(thrown);
      },
    );
  });
}
