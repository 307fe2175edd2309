import type { Clock } from "../base/clock.ts";

/** A clock that moves only when a test advances it. */
export interface HandClock extends Clock {
  /** Advances the time and fires the timers that become due, in order. */
  advance(ms: number): void;
  /** The number of armed timers. */
  armed(): number;
  /** Resolves when at least `count` timers are armed, so the code under test has reached its waits. */
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
        const check = (): void => {
          if (timers.size < count) return;
          watchers.delete(check);
          resolve();
        };
        watchers.add(check);
        check();
      }),
  };
}
