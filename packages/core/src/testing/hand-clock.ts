import type { Clock } from "../base/clock.ts";

/** A clock that stands still until it is turned by hand. */
export interface HandClock extends Clock {
  /** Moves time on and fires what becomes due on the way, in order. */
  advance(ms: number): void;
  /** Timers that are armed. */
  armed(): number;
  /** Resolves when so many timers are armed: whoever was to wait is waiting. */
  untilArmed(count: number): Promise<void>;
}

export function createHandClock(start = 1_700_000_000_000): HandClock {
  const timers = new Set<{ readonly at: number; readonly fn: () => void }>();
  const watchers = new Set<() => void>();
  let now = start;

  return {
    now: () => now,
    after(ms, fn) {
      const timer = { at: now + Math.max(0, ms), fn };
      timers.add(timer);
      for (const watcher of [...watchers]) watcher();
      return () => {
        timers.delete(timer);
      };
    },
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const [next] = [...timers].filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        timers.delete(next);
        now = next.at;
        next.fn();
      }
      now = until;
    },
    armed: () => timers.size,
    untilArmed: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (timers.size < count) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
  };
}
