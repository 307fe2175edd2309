import type { Clock } from "@sluice/core";

/** How work ended: with a value, or not, and then whether its time was over. */
export type Timed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly thrown: unknown; readonly late: boolean };

/** Work whose signal aborts when its time is over or one of these signals aborts. */
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

/** The end of work that goes on without us when the signal aborts first; then it rejects with what `aborted` makes. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal, aborted: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(aborted());
    const over = (): void => signal.removeEventListener("abort", onAbort);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(
      (value) => {
        over();
        resolve(value);
      },
      (thrown: unknown) => {
        over();
        reject(thrown);
      },
    );
  });
}
