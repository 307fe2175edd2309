import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import { nanoUsd, usdOf, usdText } from "../../base/money.ts";
import type { Usage } from "../../definition/result.ts";
import type { RunLimits, StateLimits } from "../../definition/state-rules.ts";

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
  readonly ledger: Ledger | undefined;
  readonly work: Stopwatch;
}

export function createRunMeter(
  limits: RunLimits,
  clock: Clock,
  spent: Spending & { readonly workedMs: number },
): RunMeter {
  return { limits, ledger: createLedger(limits, spent), work: new Stopwatch(clock, spent.workedMs) };
}

/** Undefined where no cap would be compared with it. */
function createLedger({ maxTokens, maxCostUsd }: StateLimits, { tokens, costUsd = 0 }: Spending): Ledger | undefined {
  if (maxTokens === undefined && maxCostUsd === undefined) return undefined;
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

/** A cap that was reached. Plain JSON: it is recorded. */
export type LimitHit = {
  readonly code: "budget" | "timeout";
  readonly message: string;
  /** `state.maxTokens`, `run.maxCostUsd`, … */
  readonly limit: string;
  /** The cap and what stands against it, in its own unit: tokens, US dollars or milliseconds. Absent for time. */
  readonly detail?: {
    readonly max: number;
    readonly used: number;
    readonly reserved: number;
    readonly requested: number;
  };
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
  worked(): Elapsed;
  atLeast(worked: Elapsed): void;
  /** What a step of this execution spent, by its record; call after the step, replayed or not. */
  spent(spending: Spending): void;
}
export type Elapsed = {
  readonly stateMs: number;
  readonly runMs: number;
};

/** The limits of one execution; `own` counts its time. */
export class ExecutionLimits implements Limits {
  readonly #clock: Clock;
  readonly #run: RunMeter;
  readonly #own: Stopwatch;
  /** The state's own. */
  readonly #ledger: Ledger | undefined;
  readonly #caps: readonly Cap[];
  readonly #clocks: readonly TimeCap[];
  /** What the state had worked by the records of an earlier process. */
  #earlierMs = 0;
  /** Timers may fire a moment before the clock says so; what a timer has ended stays ended. */
  #rung: LimitHit | undefined;

  constructor(state: StateLimits, run: RunMeter, clock: Clock, own: Stopwatch) {
    this.#clock = clock;
    this.#run = run;
    this.#own = own;
    this.#ledger = createLedger(state, NOTHING);
    this.#caps = together(capsOf("state", state, this.#ledger), capsOf("run", run.limits, run.ledger));
    this.#clocks = together(
      timeCap("state", state.timeoutMs, () => this.#stateMs()),
      timeCap("run", run.limits.timeoutMs, () => run.work.ms()),
    );
  }

  get capped(): boolean {
    return this.#caps.length > 0;
  }

  reserve(asked: Spending): ReturnType<Limits["reserve"]> {
    const hit = noAmount(asked) ?? this.#refusal(asked);
    if (hit !== undefined) return { ok: false, ...hit };
    const { tokens } = asked;
    const money = nanoUsd(asked.costUsd ?? 0);
    const run = this.#run.ledger;
    const ledgers = [this.#ledger, run].filter((ledger) => ledger !== undefined);
    for (const ledger of ledgers) {
      ledger.tokens.reserved += tokens;
      ledger.money.reserved += money;
    }
    let settled = false;
    return {
      ok: true,
      settle: (used = asked) => {
        if (settled) return;
        settled = true;
        for (const ledger of ledgers) {
          ledger.tokens.reserved -= tokens;
          ledger.money.reserved -= money;
        }
        // The state's own account is kept by `spent`, which is told on replay too.
        if (run !== undefined) spend(run, used);
      },
    };
  }

  late(): LimitHit | undefined {
    return this.#rung ?? this.#clocks.find(({ left }) => left() <= 0)?.hit;
  }

  overspent(): LimitHit | undefined {
    const cap = this.#caps.find(({ account, max }) => account.spent > max);
    return cap?.hit(`${cap.text(cap.account.spent)} used`, 0);
  }

  timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const [first, ...others] = this.#clocks;
    if (first === undefined) return work(signal);
    const next = others.reduce((nearest, cap) => (cap.left() < nearest.left() ? cap : nearest), first);
    return this.#inTime(next, signal, work);
  }

  worked(): Elapsed {
    return { stateMs: this.#stateMs(), runMs: this.#run.work.ms() };
  }

  atLeast({ stateMs }: Elapsed): void {
    this.#earlierMs += Math.max(0, stateMs - this.#stateMs());
  }

  spent(spending: Spending): void {
    if (this.#ledger !== undefined) spend(this.#ledger, spending);
  }

  #stateMs(): number {
    return this.#earlierMs + this.#own.ms();
  }

  #refusal(asked: Spending): LimitHit | undefined {
    for (const cap of this.#caps) {
      const amount = cap.of(asked);
      const { spent, reserved, unknown } = cap.account;
      if (unknown) return cap.hit(cap.blind, 0);
      if (amount === undefined) return cap.hit("the price of the next call is not known", 0);
      if (spent + reserved + amount > cap.max)
        return cap.hit(`${cap.text(spent)} used, ${cap.text(reserved + amount)} more could be`, amount);
    }
    return undefined;
  }

  async #inTime<T>(cap: TimeCap, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const both = new AbortController();
    const onAbort = (): void => both.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const disarm = this.#clock.after(Math.max(0, cap.left()), () => {
      this.#rung ??= cap.hit;
      both.abort(new SluiceError("Cancellation", "timeout", cap.hit.message));
    });
    try {
      return await work(both.signal);
    } finally {
      disarm();
      signal.removeEventListener("abort", onAbort);
    }
  }
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
const NOTHING: Spending = { tokens: 0 };
type Whose = "state" | "run";
const WHO: Readonly<Record<Whose, string>> = { state: "this state", run: "the run" };

/** Most states and runs have no cap: then nothing is made. */
function together<T>(some: readonly T[], more: readonly T[]): readonly T[] {
  return some.length === 0 ? more : more.length === 0 ? some : [...some, ...more];
}

function capsOf(whose: Whose, { maxTokens, maxCostUsd }: StateLimits, ledger: Ledger | undefined): readonly Cap[] {
  if (ledger === undefined) return NONE;
  return together(tokenCap(whose, maxTokens, ledger.tokens), moneyCap(whose, maxCostUsd, ledger.money));
}

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
      requested: shown(asked),
    },
  });
}

interface TimeCap {
  readonly hit: LimitHit;
  /** Milliseconds; not positive once it is passed. */
  left(): number;
}

function timeCap(whose: Whose, ms: number | undefined, worked: () => number): readonly TimeCap[] {
  if (ms === undefined) return NONE;
  const message = `${WHO[whose]} may work ${ms} ms`;
  return [{ hit: { code: "timeout", message, limit: `${whose}.timeoutMs` }, left: () => ms - worked() }];
}

export const NO_USAGE: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0 });

export function addUsage(a: Usage, b: Usage): Usage {
  const costUsd = sum(a.costUsd, b.costUsd, (x, y) => usdOf(nanoUsd(x) + nanoUsd(y)));
  const unpricedCalls = sum(a.unpricedCalls, b.unpricedCalls, (x, y) => x + y);
  const unmeteredCalls = sum(a.unmeteredCalls, b.unmeteredCalls, (x, y) => x + y);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(unpricedCalls === undefined ? {} : { unpricedCalls }),
    ...(unmeteredCalls === undefined ? {} : { unmeteredCalls }),
  };
}

function sum(a: number | undefined, b: number | undefined, add: (a: number, b: number) => number): number | undefined {
  return a === undefined ? b : b === undefined ? a : add(a, b);
}

/** Counts time while at least one user holds it running: a run's clock stops when all of it waits. */
export class Stopwatch {
  readonly #clock: Clock;
  #total: number;
  #running = 0;
  #since = 0;

  constructor(clock: Clock, already = 0) {
    this.#clock = clock;
    this.#total = already;
  }

  ms(): number {
    return this.#running > 0 ? this.#total + this.#clock.now() - this.#since : this.#total;
  }

  start(): void {
    if (this.#running === 0) this.#since = this.#clock.now();
    this.#running += 1;
  }

  stop(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#total += this.#clock.now() - this.#since;
  }
}

/**
 * Why the run was cancelled; undefined while it was not. Throws when the run only has to stop here, suspended or taken over:
 * it goes on elsewhere, so that nothing may be decided or recorded as its end.
 */
export function cancelReason(signal: AbortSignal): string | undefined {
  if (!signal.aborted) return undefined;
  const reason: unknown = signal.reason;
  if (!isSluiceError(reason)) throw new SluiceError("Host", "run_stopped", messageOf(reason), { cause: reason });
  if (reason.class === "Cancellation") return reason.message;
  throw reason;
}

/** What comes first: the end of the work, or the abort (undefined). Work that lost is left to itself, however it ends. */
export function raceAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<{ readonly value: T } | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(
      (value) => {
        signal.removeEventListener("abort", onAbort);
        resolve({ value });
      },
      (thrown: unknown) => {
        signal.removeEventListener("abort", onAbort);
        reject(thrown);
      },
    );
  });
}
