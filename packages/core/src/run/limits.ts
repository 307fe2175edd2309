import type { Clock } from "../base/clock.ts";
import { SluiceError } from "../base/errors.ts";
import type { RunLimits, StateLimits, Usage } from "../definition/types.ts";

/** What a run has spent, over all its states and children: shared by everything below one root. */
export interface RunMeter {
  readonly limits: RunLimits;
  /** Input plus output tokens of finished model calls. */
  tokens: number;
  /** Set aside for model calls under way, at their maximum. */
  reserved: number;
  readonly work: Stopwatch;
}

export function createRunMeter(
  limits: RunLimits,
  clock: Clock,
  spent: { readonly tokens: number; readonly workedMs: number },
): RunMeter {
  return { limits, tokens: spent.tokens, reserved: 0, work: createStopwatch(clock, spent.workedMs) };
}

/** Counts time while at least one user holds it running: a run's clock stops when all of it waits. */
export interface Stopwatch {
  readonly ms: () => number;
  start(): void;
  stop(): void;
}

export function createStopwatch(clock: Clock, already = 0): Stopwatch {
  let total = already;
  let running = 0;
  let since = 0;
  return {
    ms: () => (running > 0 ? total + clock.now() - since : total),
    start: () => {
      if (running === 0) since = clock.now();
      running += 1;
    },
    stop: () => {
      running -= 1;
      if (running === 0) total += clock.now() - since;
    },
  };
}

export type LimitHit = { readonly code: "budget" | "timeout"; readonly message: string; readonly limit: string };

/** The caps of one execution and of the run around it, as executors use them. Call these inside steps: they are not replayed. */
export interface Limits {
  /** Whether any token cap holds. */
  readonly capped: boolean;
  /** Sets tokens aside before a model call, so that siblings cannot together pass a cap. */
  reserve(
    tokens: number,
  ): { readonly ok: true; settle(usage: Usage | undefined): void } | ({ readonly ok: false } & LimitHit);
  /** A time cap that has been passed, if any. */
  late(): LimitHit | undefined;
  /** Runs work under the time caps: its signal aborts when one passes. Without caps the given signal is passed through. */
  timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Milliseconds this execution and this run have worked; record them, and hand them back through `atLeast` after a step. */
  worked(): Worked;
  atLeast(worked: Worked): void;
  /** Tokens of earlier steps of this execution; call after a step, replayed or not. */
  spent(usage: Usage): void;
}
export type Worked = {
  readonly stateMs: number;
  readonly runMs: number;
};

export function createLimits(state: StateLimits, run: RunMeter, clock: Clock, own: Stopwatch): Limits {
  let tokens = 0;
  let reserved = 0;
  let earlierMs = 0;
  const stateMs = (): number => earlierMs + own.ms();

  const over = (asked: number): LimitHit | undefined => {
    if (state.maxTokens !== undefined && tokens + reserved + asked > state.maxTokens) {
      return budget(
        `this state may use ${state.maxTokens} tokens: ${tokens} are used, ${reserved + asked} more could be`,
        "state.maxTokens",
      );
    }
    const { maxTokens } = run.limits;
    if (maxTokens !== undefined && run.tokens + run.reserved + asked > maxTokens) {
      return budget(
        `the run may use ${maxTokens} tokens: ${run.tokens} are used, ${run.reserved + asked} more could be`,
        "run.maxTokens",
      );
    }
    return undefined;
  };
  const clocks: readonly TimeCap[] = [
    ...timeCap(state.timeoutMs, stateMs, (ms) => `this state may work ${ms} ms`, "state.timeoutMs"),
    ...timeCap(run.limits.timeoutMs, run.work.ms, (ms) => `the run may work ${ms} ms`, "run.timeoutMs"),
  ];
  // Timers may fire a moment before the clock says so; what a timer has ended stays ended.
  let rung: LimitHit | undefined;

  return {
    capped: state.maxTokens !== undefined || run.limits.maxTokens !== undefined,
    reserve(asked) {
      const hit = over(asked);
      if (hit !== undefined) return { ok: false, ...hit };
      reserved += asked;
      run.reserved += asked;
      return {
        ok: true,
        settle: (usage) => {
          reserved -= asked;
          run.reserved -= asked;
          if (usage !== undefined) run.tokens += usage.inputTokens + usage.outputTokens;
        },
      };
    },
    late: () => rung ?? clocks.find(({ left }) => left() <= 0)?.hit,
    async timed(signal, work) {
      const [first, ...others] = clocks;
      if (first === undefined) return await work(signal);
      const next = others.reduce((nearest, cap) => (cap.left() < nearest.left() ? cap : nearest), first);
      const both = new AbortController();
      const onAbort = (): void => both.abort(signal.reason);
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
      const disarm = clock.after(Math.max(0, next.left()), () => {
        rung ??= next.hit;
        both.abort(new SluiceError("Cancellation", "timeout", next.hit.message));
      });
      try {
        return await work(both.signal);
      } finally {
        disarm();
        signal.removeEventListener("abort", onAbort);
      }
    },
    worked: () => ({ stateMs: stateMs(), runMs: run.work.ms() }),
    atLeast: ({ stateMs: recorded }) => {
      earlierMs += Math.max(0, recorded - stateMs());
    },
    spent: (usage) => {
      tokens += usage.inputTokens + usage.outputTokens;
    },
  };
}

interface TimeCap {
  readonly hit: LimitHit;
  /** Milliseconds; not positive once it is passed. */
  left(): number;
}

function timeCap(
  ms: number | undefined,
  worked: () => number,
  say: (ms: number) => string,
  limit: string,
): readonly TimeCap[] {
  if (ms === undefined) return [];
  return [{ hit: { code: "timeout", message: say(ms), limit }, left: () => ms - worked() }];
}

function budget(message: string, limit: string): LimitHit {
  return { code: "budget", message, limit };
}
