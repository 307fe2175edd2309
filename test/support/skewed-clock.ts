import { type Clock, systemClock } from "@sluice/core";

/** Real timers; the time it tells can be put on. */
export function skewedClock(): Clock & { skip(ms: number): void } {
  let skew = 0;
  return {
    now: () => systemClock.now() + skew,
    after: (ms, fn) => systemClock.after(ms, fn),
    skip: (ms) => {
      skew += ms;
    },
  };
}
