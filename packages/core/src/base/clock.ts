/** Time as a dependency. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Calls `fn` once after `ms`; the returned function cancels it. Longer than 24.8 days is allowed. */
  after(ms: number, fn: () => void): () => void;
}

/** The last moment that a date holds, in epoch milliseconds. */
export const LAST_DATE = 8.64e15;

/** Above 2^31-1 ms setTimeout overflows and fires at once, so longer waits are split. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** The clock of the process. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, fn) => {
    if (ms > LONGEST_TIMER_MS) return afterTimers(ms, fn);
    const timer = setTimeout(fn, Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

function afterTimers(ms: number, fn: () => void): () => void {
  let left = ms;
  let timer: ReturnType<typeof setTimeout>;
  const arm = (): void => {
    const step = Math.min(left, LONGEST_TIMER_MS);
    timer = setTimeout(() => {
      left -= step;
      if (left > 0) arm();
      else fn();
    }, step);
  };
  arm();
  return () => clearTimeout(timer);
}
