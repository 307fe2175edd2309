/** The value of the work, or undefined if the signal aborts first; the work's later end is then ignored. */
export function raceAbort<T>(
  signal: AbortSignal | undefined,
  work: Promise<T>,
): Promise<{ readonly value: T } | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    work.then(
      (value) => {
        signal?.removeEventListener("abort", onAbort);
        resolve({ value });
      },
      (thrown: unknown) => {
        signal?.removeEventListener("abort", onAbort);
        reject(thrown);
      },
    );
  });
}
