import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import { nanoUsd, usdOf, usdText } from "../../base/money.ts";
import type { Usage } from "../../definition/result.ts";
import type { RunLimits, StateLimits } from "../../definition/state-rules.ts";

/** The usage of model calls, or the most that they can use. */
export type Spending = {
  /** Input plus output. */
  readonly tokens: number;
  /** US dollars; absent when the price is unknown. */
  readonly costUsd?: number;
};

/** What was spent, and what is reserved for calls in flight at their maximum. Money in billionths of a dollar. */
interface Ledger {
  readonly tokens: Account;
  readonly money: Account;
}
interface Account {
  spent: number;
  reserved: number;
  /** An unknown amount was spent, so nothing more may be. */
  unknown: boolean;
}

/** The spending and the running time of a root run, all its states and children included. */
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

/** Undefined without a cap to compare it with. */
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

/** A number of tokens or dollars. With anything else (NaN, for example) every comparison has the same result, and a cap holds nothing. */
export function isAmount(amount: unknown): amount is number {
  return typeof amount === "number" && Number.isFinite(amount) && amount >= 0;
}

/** A cap that was reached. Plain JSON: it is recorded. */
export type LimitHit = {
  readonly code: "budget" | "timeout";
  readonly message: string;
  /** `state.maxTokens`, `run.maxCostUsd`, … */
  readonly limit: string;
  /** The cap and the amounts counted against it, in tokens or US dollars. Absent for time. */
  readonly detail?: {
    readonly max: number;
    readonly used: number;
    readonly reserved: number;
    readonly requested: number;
  };
};

/** The caps of one execution and of its run, for executors. Use them inside steps only: they are not replayed. */
export interface Limits {
  /** Whether there is any cap on tokens or money: then every model call needs a reservation. */
  readonly capped: boolean;
  /**
   * Reserves the most a model call can use, before it is made, so that siblings cannot exceed a cap together. Refused when it
   * does not fit, when it is not an amount, and when it has no cost although money is capped. Call `settle` with the actual
   * usage; only the first call counts, and without an argument the whole reservation counts as used.
   */
  reserve(asked: Spending): { readonly ok: true; settle(used?: Spending): void } | ({ readonly ok: false } & LimitHit);
  /** The time cap that has passed, if any. */
  deadlineExceeded(): LimitHit | undefined;
  /** The cap on tokens or money that was exceeded because a call used more than it had reserved. */
  overspent(): LimitHit | undefined;
  /** Runs work under the time caps: its signal aborts when one passes. Without caps it gets the given signal. */
  timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Running time so far. Record it in each step, and pass it to `restoreElapsed` after the step. */
  elapsed(): Elapsed;
  restoreElapsed(elapsed: Elapsed): void;
  /** Adds the recorded spending of a step of this execution. Call it after the step, replayed or not. */
  record(spending: Spending): void;
}
/** Milliseconds that an execution and its run have been running, waits excluded. */
export type Elapsed = {
  readonly stateMs: number;
  readonly runMs: number;
};

export class ExecutionLimits implements Limits {
  readonly #clock: Clock;
  readonly #run: RunMeter;
  readonly #watch: Stopwatch;
  readonly #ledger: Ledger | undefined;
  readonly #caps: readonly Cap[];
  readonly #timeCaps: readonly TimeCap[];
  /** Running time by the records of an earlier process. */
  #earlierMs = 0;
  /** A timer may fire slightly before the clock reaches its cap; the cap counts as passed from then on. */
  #firedTimer: LimitHit | undefined;

  /** `watch` measures the time of this execution. */
  constructor(state: StateLimits, run: RunMeter, clock: Clock, watch: Stopwatch) {
    this.#clock = clock;
    this.#run = run;
    this.#watch = watch;
    this.#ledger = createLedger(state, { tokens: 0 });
    this.#caps = [...capsOf("state", state, this.#ledger), ...capsOf("run", run.limits, run.ledger)];
    this.#timeCaps = [
      ...timeCap("state", state.timeoutMs, () => this.#stateMs()),
      ...timeCap("run", run.limits.timeoutMs, () => run.work.ms()),
    ];
  }

  get capped(): boolean {
    return this.#caps.length > 0;
  }

  reserve(asked: Spending): ReturnType<Limits["reserve"]> {
    const hit = invalidAmount(asked) ?? this.#refusal(asked);
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
        // The state's ledger is updated by `record`, which also runs on replay.
        if (run !== undefined) spend(run, used);
      },
    };
  }

  deadlineExceeded(): LimitHit | undefined {
    return this.#firedTimer ?? this.#timeCaps.find(({ left }) => left() <= 0)?.hit;
  }

  overspent(): LimitHit | undefined {
    const cap = this.#caps.find(({ account, max }) => account.spent > max);
    return cap && limitHit(cap, `${cap.text(cap.account.spent)} used`, 0);
  }

  async timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const [cap] = this.#timeCaps.toSorted((a, b) => a.left() - b.left());
    if (cap === undefined) return await work(signal);
    const both = new AbortController();
    const onAbort = (): void => both.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const disarm = this.#clock.after(Math.max(0, cap.left()), () => {
      this.#firedTimer ??= cap.hit;
      both.abort(new SluiceError("Cancellation", "timeout", cap.hit.message));
    });
    try {
      return await work(both.signal);
    } finally {
      disarm();
      signal.removeEventListener("abort", onAbort);
    }
  }

  elapsed(): Elapsed {
    return { stateMs: this.#stateMs(), runMs: this.#run.work.ms() };
  }

  restoreElapsed({ stateMs }: Elapsed): void {
    this.#earlierMs += Math.max(0, stateMs - this.#stateMs());
  }

  record(spending: Spending): void {
    if (this.#ledger !== undefined) spend(this.#ledger, spending);
  }

  #stateMs(): number {
    return this.#earlierMs + this.#watch.ms();
  }

  #refusal(asked: Spending): LimitHit | undefined {
    for (const cap of this.#caps) {
      const { spent, reserved, unknown } = cap.account;
      if (unknown) return limitHit(cap, cap.unknownReason, 0);
      const amount = cap.amountOf(asked);
      if (amount === undefined) return limitHit(cap, "the price of the next call is not known", 0);
      if (spent + reserved + amount > cap.max) {
        const why = `${cap.text(spent)} used, and calls in flight and the next one may use ${cap.text(reserved + amount)} more`;
        return limitHit(cap, why, amount);
      }
    }
    return undefined;
  }
}

type Owner = "state" | "run";
const OWNER: Readonly<Record<Owner, string>> = { state: "this state", run: "the run" };

/** A cap on tokens or money, in the unit of its account. */
interface Cap {
  /** `state.maxTokens` */
  readonly limit: string;
  readonly rule: string;
  readonly account: Account;
  readonly max: number;
  /** Undefined when the amount is unknown. */
  amountOf(spending: Spending): number | undefined;
  text(amount: number): string;
  /** An amount in the unit that people read. */
  shown(amount: number): number;
  /** Why nothing more may be spent after an unknown amount was. */
  readonly unknownReason: string;
}

function capsOf(owner: Owner, { maxTokens, maxCostUsd }: StateLimits, ledger: Ledger | undefined): readonly Cap[] {
  const caps: Cap[] = [];
  if (ledger !== undefined && maxTokens !== undefined) {
    caps.push({
      limit: `${owner}.maxTokens`,
      rule: `${OWNER[owner]} may use ${maxTokens} tokens`,
      account: ledger.tokens,
      max: maxTokens,
      amountOf: ({ tokens }) => tokens,
      text: String,
      shown: (tokens) => tokens,
      unknownReason: "the usage of an earlier call is not known",
    });
  }
  if (ledger !== undefined && maxCostUsd !== undefined) {
    caps.push({
      limit: `${owner}.maxCostUsd`,
      rule: `${OWNER[owner]} may cost ${usdText(maxCostUsd)}`,
      account: ledger.money,
      max: nanoUsd(maxCostUsd),
      amountOf: ({ costUsd }) => (costUsd === undefined ? undefined : nanoUsd(costUsd)),
      text: (nano) => usdText(usdOf(nano)),
      shown: usdOf,
      unknownReason: "the price of an earlier call is not known",
    });
  }
  return caps;
}

function invalidAmount({ tokens, costUsd = 0 }: Spending): LimitHit | undefined {
  if (isAmount(tokens) && isAmount(costUsd)) return undefined;
  const message = "a reservation takes a number of tokens and of US dollars, from 0";
  return { code: "budget", limit: "reserve", message };
}

function limitHit({ limit, rule, account, max, shown }: Cap, why: string, asked: number): LimitHit {
  const { spent, reserved } = account;
  const detail = { max: shown(max), used: shown(spent), reserved: shown(reserved), requested: shown(asked) };
  return { code: "budget", message: `${rule}: ${why}`, limit, detail };
}

interface TimeCap {
  readonly hit: LimitHit;
  /** Milliseconds; 0 or less once it has passed. */
  left(): number;
}

function timeCap(owner: Owner, ms: number | undefined, elapsed: () => number): readonly TimeCap[] {
  if (ms === undefined) return [];
  const hit = {
    code: "timeout",
    message: `${OWNER[owner]} may run for ${ms} ms`,
    limit: `${owner}.timeoutMs`,
  } as const;
  return [{ hit, left: () => ms - elapsed() }];
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

/** Counts time while it is started more often than stopped: a run's stopwatch stops when all its states wait. */
export class Stopwatch {
  readonly #clock: Clock;
  #total: number;
  #running = 0;
  #since = 0;

  constructor(clock: Clock, initialMs = 0) {
    this.#clock = clock;
    this.#total = initialMs;
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

/** Milliseconds after which an executor or a tool that ignores its abort signal is abandoned. */
export const ABORT_GRACE_MS = 50;

/**
 * Why the run was cancelled; undefined if it was not. Throws when the run only has to stop in this process, because it was
 * suspended or resumed elsewhere: then nothing may be recorded as its end.
 */
export function cancelReason(signal: AbortSignal): string | undefined {
  if (!signal.aborted) return undefined;
  const reason: unknown = signal.reason;
  if (!isSluiceError(reason)) throw new SluiceError("Host", "run_stopped", messageOf(reason), { cause: reason });
  if (reason.class === "Cancellation") return reason.message;
  throw reason;
}

/** The value of the work, or undefined if the signal aborts first; the work's later end is then ignored. */
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
