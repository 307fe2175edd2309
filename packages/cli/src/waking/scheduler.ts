import type { Clock, RunHost } from "@sluice/core";

export interface SchedulerOptions {
  readonly due: RunHost["due"];
  /** Continues a run; resolves once it no longer runs here, with what to do about it next. Never rejects. */
  readonly wake: (runId: string) => Promise<WakeVerdict>;
  /** Calls the listener when the store may have changed. Returns the unsubscriber. */
  readonly onChange: (listener: () => void) => () => void;
  readonly clock: Clock;
  /** How many runs may be awake at once. */
  readonly maxParallel: number;
  /** The longest time without a look at the store and the clock, in milliseconds. */
  readonly pollMs: number;
  /** The store could not be read; it is read again later. */
  readonly onFault: (thrown: unknown) => void;
}

/**
 * `done`: look at it whenever it is due. `retry`: it failed; leave it for a while, and longer each time. `elsewhere`: another process
 * has it; leave it as long as it seems due.
 */
export type WakeVerdict = "done" | "retry" | "elsewhere";

export interface Scheduler {
  /** How many runs are awake, and how many are left for a while. */
  counts(): { readonly active: number; readonly heldBack: number };
  /** Wakes no more runs. Resolves once those that are awake have stopped running here. */
  stop(): Promise<void>;
}

interface HeldBack {
  /** Failures in a row; 0 if another process had it. */
  readonly tries: number;
  readonly until: number;
}

/** Between two looks at a store that changes all the time. */
const LEAST_PAUSE_MS = 25;
/** A clock that is set during a look must not make the pause long. */
const MOST_PAUSE_MS = 1_000;
/** How many times the duration of a look to pause after it, since many due runs that are held back make each look longer. */
const PAUSE = 9;
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 10 * 60_000;

/**
 * Wakes runs at their time: after each look at the store it sleeps until the next run is due, at most `pollMs`, because a timer is
 * wrong after the machine slept or its clock was set. It keeps nothing about runs that sleep.
 */
export function startScheduler(options: SchedulerOptions): Scheduler {
  const { due, wake, onChange, clock, maxParallel, pollMs, onFault } = options;
  const active = new Map<string, Promise<void>>();
  const heldBack = new Map<string, HeldBack>();
  let disarm = (): void => undefined;
  /** When the timer is due. */
  let armedFor = Infinity;
  let looking: Promise<void> | undefined;
  /** Whether something changed since the last look began. */
  let changed = false;
  /** Before this, a change does not lead to a look. */
  let pausedUntil = 0;
  let stopped = false;

  const arm = (at: number): void => {
    disarm();
    const now = clock.now();
    const ms = Math.min(Math.max(0, at - now), pollMs);
    armedFor = now + ms;
    if (!stopped) disarm = clock.after(ms, request);
  };
  const request = (): void => {
    if (stopped) return;
    changed = true;
    looking ??= look().finally(() => {
      looking = undefined;
      if (changed) onChanged();
    });
  };
  const onChanged = (): void => {
    changed = true;
    if (looking !== undefined) return;
    if (pausedUntil <= clock.now()) request();
    else if (pausedUntil < armedFor) arm(pausedUntil);
  };

  const look = async (): Promise<void> => {
    changed = false;
    const from = clock.now();
    try {
      const most = maxParallel + heldBack.size;
      const { runs, next } = await due(most);
      const now = clock.now();
      pausedUntil = now + Math.min(Math.max(LEAST_PAUSE_MS, PAUSE * (now - from)), MOST_PAUSE_MS);
      if (runs.length < most) forget(runs, now);
      for (const runId of runs) if (active.size < maxParallel && mayWake(runId, now)) begin(runId);
      // What is due and has no place yet gets it when a run that is awake ends.
      const retries = [...heldBack.values()].flatMap(({ until }) => (until > now ? until : []));
      arm(Math.min(next ?? Infinity, ...retries));
    } catch (thrown) {
      onFault(thrown);
      pausedUntil = clock.now() + FIRST_RETRY_MS;
      arm(pausedUntil);
    }
  };
  const mayWake = (runId: string, now: number): boolean => {
    const until = heldBack.get(runId)?.until ?? 0;
    // Further away than any retry: the clock was set back.
    return !stopped && !active.has(runId) && (until <= now || until > now + LONGEST_RETRY_MS);
  };
  /** Drops what is known about runs that are no longer due. */
  const forget = (runs: readonly string[], now: number): void => {
    if (heldBack.size === 0) return;
    const due = new Set(runs);
    for (const [runId, { tries, until }] of heldBack)
      if (!due.has(runId) && !active.has(runId) && (tries === 0 || until <= now)) heldBack.delete(runId);
  };
  const begin = (runId: string): void => {
    active.set(runId, follow(runId));
  };
  const follow = async (runId: string): Promise<void> => {
    const verdict = await wake(runId);
    active.delete(runId);
    const before = heldBack.get(runId)?.tries ?? 0;
    heldBack.delete(runId);
    if (verdict !== "done") {
      const tries = verdict === "retry" ? before + 1 : 0;
      const pause = Math.min(FIRST_RETRY_MS * 2 ** Math.max(0, tries - 1), LONGEST_RETRY_MS);
      heldBack.set(runId, { tries, until: clock.now() + pause });
    }
    onChanged();
  };

  const unsubscribe = onChange(onChanged);
  request();
  return {
    counts: () => ({ active: active.size, heldBack: heldBack.size }),
    stop: async () => {
      stopped = true;
      unsubscribe();
      disarm();
      await looking;
      await Promise.all(active.values());
    },
  };
}
