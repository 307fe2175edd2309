import type { Clock } from "@sluice/core";

/** The outcome of work with a deadline; `late` if the deadline passed. */
export type Timed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly thrown: unknown; readonly late: boolean };

/** Runs work whose signal aborts at the deadline, or with one of these signals. */
export async function timed<T>(
  clock: Clock,
  ms: number,
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Timed<T>> {
  const deadline = new AbortController();
  const disarm = clock.after(ms, () => deadline.abort());
  try {
    return { ok: true, value: await work(AbortSignal.any([...signals, deadline.signal])) };
  } catch (thrown) {
    return { ok: false, thrown, late: deadline.signal.aborted };
  } finally {
    disarm();
  }
}

/** The result of the work, or a rejection if the signal aborts first; the work itself continues. */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const abort = Promise.withResolvers<never>();
  const onAbort = (): void => abort.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, abort.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
