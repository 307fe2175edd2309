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
  const stop = new AbortController();
  let late = false;
  const onAbort = (): void => stop.abort();
  for (const signal of signals) signal.addEventListener("abort", onAbort, { once: true });
  if (signals.some((signal) => signal.aborted)) stop.abort();
  const disarm = clock.after(ms, () => {
    late = true;
    stop.abort();
  });
  try {
    return { ok: true, value: await work(stop.signal) };
  } catch (thrown) {
    return { ok: false, thrown, late };
  } finally {
    disarm();
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
  }
}

/** The result of the work, or a rejection if the signal aborts first; the work itself continues. */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal, aborted: () => Error): Promise<T> {
  const abort = Promise.withResolvers<never>();
  const onAbort = (): void => abort.reject(aborted());
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, abort.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
