import type { Clock } from "@sluice/core";

/** A clock that stands still until it is turned. */
export interface HandClock extends Clock {
  turn(ms: number): void;
  /** Timers that are armed. */
  waiting(): number;
}

export function handClock(start = 1_000): HandClock {
  const timers = new Set<{ readonly at: number; readonly fn: () => void }>();
  let now = start;
  return {
    now: () => now,
    after: (ms, fn) => {
      const timer = { at: now + ms, fn };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    turn: (ms) => {
      now += ms;
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        if (timer.at <= now && timers.delete(timer)) timer.fn();
      }
    },
    waiting: () => timers.size,
  };
}
