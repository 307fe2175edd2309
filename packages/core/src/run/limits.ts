import type { Clock } from "../base/clock.ts";
import { SluiceError } from "../base/errors.ts";
import { nanoUsd, usdOf, usdText } from "../base/money.ts";
import type { RunLimits, StateLimits } from "../definition/types.ts";

/** What model calls used, or may use at most. */
export type Spending = {
  /** Input plus output. */
  readonly tokens: number;
  /** US dollars; absent when nobody knows the price. */
  readonly costUsd?: number;
};

/** What was spent and what is set aside for calls under way, at their maximum. Money in billionths of a dollar. */
interface Ledger {
  readonly tokens: Account;
  readonly money: Account;
}
interface Account {
  spent: number;
  reserved: number;
  /** Something was spent of which nobody knows how much: then nothing more may be. */
  unknown: boolean;
}

/** What a run has spent, over all its states and children: shared by everything below one root. */
export interface RunMeter {
  readonly limits: RunLimits;
  readonly ledger: Ledger;
  readonly work: Stopwatch;
}

export function createRunMeter(
  limits: RunLimits,
  clock: Clock,
  spent: Spending & { readonly workedMs: number },
): RunMeter {
  return { limits, ledger: createLedger(spent), work: createStopwatch(clock, spent.workedMs) };
}

function createLedger({ tokens, costUsd = 0 }: Spending): Ledger {
  return {
    tokens: { spent: tokens, reserved: 0, unknown: false },
    money: { spent: nanoUsd(costUsd), reserved: 0, unknown: false },
  };
}

function spend({ tokens, money }: Ledger, used: Spending): void {
  if (isAmount(used.tokens)) tokens.spent += used.tokens;
  else tokens.unknown = true;
  if (isAmount(used.costUsd)) money.spent += nanoUsd(used.costUsd);
  else if (used.costUsd !== undefined || used.tokens !== 0) money.unknown = true;
}

/** A number of tokens or of dollars. What is none would make every comparison with it come out the same, and a cap hold nothing any more. */
export function isAmount(amount: unknown): amount is number {
  return typeof amount === "number" && Number.isFinite(amount) && amount >= 0;
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

/** A cap that was reached. Plain JSON: it is recorded. */
export type LimitHit = {
  readonly code: "budget" | "timeout";
  readonly message: string;
  /** `state.maxTokens`, `run.maxCostUsd`, … */
  readonly limit: string;
  /** The cap and what stands against it, in its own unit: tokens, US dollars or milliseconds. Absent for time. */
  readonly detail?: { readonly max: number; readonly used: number; readonly reserved: number; readonly asked: number };
};

/** The caps of one execution and of the run around it, as executors use them. Call these inside steps: they are not replayed. */
export interface Limits {
  /** Whether any cap on tokens or money holds: then nothing may be spent that was not reserved. */
  readonly capped: boolean;
  /**
   * Sets aside the most a model call can use, before it is made, so that siblings cannot together pass a cap. Refused when it
   * does not fit, without a cost where a cap on money holds, and when it is no amount. `settle` with what was used, the first
   * time counts; without it, all that was set aside counts as used.
   */
  reserve(asked: Spending): { readonly ok: true; settle(used?: Spending): void } | ({ readonly ok: false } & LimitHit);
  /** A time cap that has been passed, if any. */
  late(): LimitHit | undefined;
  /** A cap on tokens or money that was passed all the same, because a call used more than could be known before. */
  overspent(): LimitHit | undefined;
  /** Runs work under the time caps: its signal aborts when one passes. Without caps the given signal is passed through. */
  timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Milliseconds this execution and this run have worked; record them, and hand them back through `atLeast` after a step. */
  worked(): Worked;
  atLeast(worked: Worked): void;
  /** What a step of this execution spent, by its record; call after the step, replayed or not. */
  spent(spending: Spending): void;
}
export type Worked = {
  readonly stateMs: number;
  readonly runMs: number;
};

export function createLimits(state: StateLimits, run: RunMeter, clock: Clock, own: Stopwatch): Limits {
  const ledger = createLedger({ tokens: 0 });
  let earlierMs = 0;
  const stateMs = (): number => earlierMs + own.ms();

  const caps: readonly Cap[] = [
    ...tokenCap("state", state.maxTokens, ledger.tokens),
    ...tokenCap("run", run.limits.maxTokens, run.ledger.tokens),
    ...moneyCap("state", state.maxCostUsd, ledger.money),
    ...moneyCap("run", run.limits.maxCostUsd, run.ledger.money),
  ];
  const clocks: readonly TimeCap[] = [
    ...timeCap(state.timeoutMs, stateMs, (ms) => `this state may work ${ms} ms`, "state.timeoutMs"),
    ...timeCap(run.limits.timeoutMs, run.work.ms, (ms) => `the run may work ${ms} ms`, "run.timeoutMs"),
  ];
  // Timers may fire a moment before the clock says so; what a timer has ended stays ended.
  let rung: LimitHit | undefined;

  const refusal = (asked: Spending): LimitHit | undefined => {
    for (const cap of caps) {
      const amount = cap.of(asked);
      const { spent, reserved, unknown } = cap.account;
      if (unknown) return cap.hit(cap.blind, 0);
      if (amount === undefined) return cap.hit("the price of the next call is not known", 0);
      if (spent + reserved + amount > cap.max)
        return cap.hit(`${cap.text(spent)} used, ${cap.text(reserved + amount)} more could be`, amount);
    }
    return undefined;
  };

  return {
    capped: caps.length > 0,
    reserve(asked) {
      const hit = noAmount(asked) ?? refusal(asked);
      if (hit !== undefined) return { ok: false, ...hit };
      const tokens = asked.tokens;
      const money = nanoUsd(asked.costUsd ?? 0);
      for (const { tokens: t, money: m } of [ledger, run.ledger]) {
        t.reserved += tokens;
        m.reserved += money;
      }
      let settled = false;
      return {
        ok: true,
        settle: (used = asked) => {
          if (settled) return;
          settled = true;
          for (const { tokens: t, money: m } of [ledger, run.ledger]) {
            t.reserved -= tokens;
            m.reserved -= money;
          }
          // The state's own account is kept by `spent`, which is told on replay too.
          spend(run.ledger, used);
        },
      };
    },
    late: () => rung ?? clocks.find(({ left }) => left() <= 0)?.hit,
    overspent: () => {
      const cap = caps.find(({ account, max }) => account.spent > max);
      return cap?.hit(`${cap.text(cap.account.spent)} used`, 0);
    },
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
    spent: (spending) => spend(ledger, spending),
  };
}

/** A cap on tokens or money. */
interface Cap {
  readonly account: Account;
  /** In the account's unit. */
  readonly max: number;
  /** What a spending is in that unit; undefined when it is not known. */
  of(spending: Spending): number | undefined;
  text(amount: number): string;
  /** Why nothing more may be spent once nobody knows what was. */
  readonly blind: string;
  hit(why: string, asked: number): LimitHit;
}
const NONE: readonly never[] = [];
type Whose = "state" | "run";
const WHO: Readonly<Record<Whose, string>> = { state: "this state", run: "the run" };

function tokenCap(whose: Whose, max: number | undefined, account: Account): readonly Cap[] {
  if (max === undefined) return NONE;
  const text = String;
  const start = `${WHO[whose]} may use ${max} tokens`;
  const of = ({ tokens }: Spending): number => tokens;
  const blind = "nobody knows what an earlier call used";
  return [{ account, max, of, text, blind, hit: hits(start, `${whose}.maxTokens`, account, max, (n) => n) }];
}

function moneyCap(whose: Whose, maxUsd: number | undefined, account: Account): readonly Cap[] {
  if (maxUsd === undefined) return NONE;
  const max = nanoUsd(maxUsd);
  const text = (nano: number): string => usdText(usdOf(nano));
  const of = ({ costUsd }: Spending): number | undefined => (costUsd === undefined ? undefined : nanoUsd(costUsd));
  const start = `${WHO[whose]} may cost ${usdText(maxUsd)}`;
  const blind = "the price of an earlier call is not known";
  return [{ account, max, of, text, blind, hit: hits(start, `${whose}.maxCostUsd`, account, max, usdOf) }];
}

function noAmount({ tokens, costUsd = 0 }: Spending): LimitHit | undefined {
  if (isAmount(tokens) && isAmount(costUsd)) return undefined;
  return {
    code: "budget",
    limit: "reserve",
    message: "what a call may use is a number of tokens and of US dollars, from 0",
  };
}

function hits(
  start: string,
  limit: string,
  account: Account,
  max: number,
  shown: (amount: number) => number,
): Cap["hit"] {
  return (why, asked) => ({
    code: "budget",
    message: `${start}: ${why}`,
    limit,
    detail: {
      max: shown(max),
      used: shown(account.spent),
      reserved: shown(account.reserved),
      asked: shown(asked),
    },
  });
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
  if (ms === undefined) return NONE;
  return [{ hit: { code: "timeout", message: say(ms), limit }, left: () => ms - worked() }];
}
