import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Usage } from "../../definition/result.ts";
import type { Caps, RunLimits } from "../../definition/state-rules.ts";
import type { StepCost } from "../../journal/seam.ts";
import {
  type Account,
  createLedger,
  type ExecutionCost,
  isAmount,
  type Ledger,
  NO_RECORDED_COSTS,
  nanoUsd,
  type RecordedCosts,
  spend,
  usdOf,
  usdText,
} from "./ledger.ts";

/** The spending and the running time of a root run, all its states and children included. */
export interface RunMeter {
  readonly recorded: RecordedCosts;
  /** Of the run and, if it is that of another pipeline, of the runs around it and of the executions that started them; its own first. */
  readonly works: readonly Stopwatch[];
  /** As far as these have caps. The caps of all of them apply. */
  readonly ledgers: readonly Ledger[];
  readonly caps: readonly Cap[];
  readonly timeCaps: readonly TimeCap[];
}

export function createRunMeter(limits: RunLimits, clock: Clock, recorded: RecordedCosts = NO_RECORDED_COSTS): RunMeter {
  const ledger = isSpendingCapped(limits) ? createLedger(recorded.spent) : undefined;
  return meterOf("run", limits, ledger, new Stopwatch(clock, recorded.runMs), recorded, undefined);
}

/** The meter of another pipeline's run inside a run, or inside the execution that started it. */
export function childMeter(parent: RunMeter, limits: RunLimits, clock: Clock, runId: string): RunMeter {
  const { recorded } = parent;
  const { spent, ms } = recorded.tree(runId, parent.works.length);
  const ledger = isSpendingCapped(limits) ? createLedger(spent) : undefined;
  return meterOf("run", limits, ledger, new Stopwatch(clock, ms), recorded, parent);
}

function meterOf(
  owner: Owner,
  limits: Caps,
  ledger: Ledger | undefined,
  work: Stopwatch,
  recorded: RecordedCosts,
  parent: RunMeter | undefined,
): RunMeter {
  const { works = [], ledgers = [], caps = [], timeCaps = [] } = parent ?? {};
  return {
    recorded,
    works: [work, ...works],
    ledgers: ledger === undefined ? ledgers : [ledger, ...ledgers],
    caps: [...capsOf(owner, limits, ledger), ...caps],
    timeCaps: [...timeCap(owner, limits.timeoutMs, () => work.ms()), ...timeCaps],
  };
}

function isSpendingCapped({ maxTokens, maxCostUsd }: Caps): boolean {
  return maxTokens !== undefined || maxCostUsd !== undefined;
}

/** A cap that was reached. Plain JSON: it is recorded. */
export type LimitHit = {
  readonly code: "budget" | "timeout";
  readonly message: string;
  /** `state.maxTokens`, `run.maxCostUsd`, `caller.timeoutMs`, … */
  readonly limit: string;
  /** The cap and the amounts counted against it, in tokens or US dollars. Absent for time. */
  readonly detail?: {
    readonly max: number;
    readonly used: number;
    readonly reserved: number;
    readonly requested: number;
  };
};

/** The caps on tokens and money that apply to an execution: its own, and those of its run. */
export interface Budget {
  /** Whether there is any. */
  readonly capped: boolean;
  /**
   * Reserves the most that a step can use, inside that step and before it spends anything, so that siblings cannot exceed a cap
   * together. Returns the cap that it does not fit under. Refuses what is not an amount, and an unknown price under a cap on
   * money. The reservation ends with the step, whose `cost` counts instead; without one, the reservation counts as used.
   */
  reserve(most: Usage): LimitHit | undefined;
}

/** The time caps that apply to an execution. Use them inside steps only: they are not replayed. */
export interface Deadline {
  /** The time cap that has passed, if any. */
  exceeded(): LimitHit | undefined;
  /** Runs work under the time caps: its signal aborts when one passes. Without caps it gets the given signal. */
  timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Milliseconds that the run has been running, waits excluded. */
  runMs(): number;
  /** The time, in epoch milliseconds. */
  now(): number;
}

/** The caps of one execution. They start with what its records, and those of its whole run, say was used before. */
export class ExecutionLimits implements Budget, Deadline {
  readonly #clock: Clock;
  readonly #state: Caps;
  readonly #run: RunMeter;
  readonly #watch: Stopwatch;
  readonly #ledger: Ledger | undefined;
  /** Of the execution and of the run, as far as they have caps. */
  readonly #ledgers: readonly Ledger[];
  readonly #caps: readonly Cap[];
  readonly #timeCaps: readonly TimeCap[];
  /** What the current step has reserved. */
  #reserved: Usage | undefined;
  #recordedMs: number;
  /** A timer may fire slightly before the clock reaches its cap; the cap counts as passed from then on. */
  #firedTimer: LimitHit | undefined;

  /** `watch` measures the time of this execution, and starts with the recorded one. */
  constructor(state: Caps, run: RunMeter, clock: Clock, watch: Stopwatch, recorded?: ExecutionCost) {
    this.#clock = clock;
    this.#state = state;
    this.#watch = watch;
    this.#recordedMs = recorded?.stateMs ?? 0;
    this.#run = run;
    const { ledgers, caps, timeCaps } = run;
    const ledger = isSpendingCapped(state) ? createLedger(recorded?.spent) : undefined;
    this.#ledger = ledger;
    this.#ledgers = ledger === undefined ? ledgers : [ledger, ...ledgers];
    this.#caps = ledger === undefined ? caps : [...capsOf("state", state, ledger), ...caps];
    const own = timeCap("state", state.timeoutMs, () => watch.ms());
    this.#timeCaps = own.length === 0 ? timeCaps : [...own, ...timeCaps];
  }

  /** For the runs that this execution starts, which its caps cover. */
  meter(): RunMeter {
    return meterOf("caller", this.#state, this.#ledger, this.#watch, this.#run.recorded, this.#run);
  }

  get capped(): boolean {
    return this.#caps.length > 0;
  }

  reserve(most: Usage): LimitHit | undefined {
    const hit = invalidAmount(most) ?? this.#refusal(most);
    if (hit !== undefined) return hit;
    this.#hold(most, 1);
    this.#reserved = addUsage(this.#reserved ?? NO_USAGE, most);
    return undefined;
  }

  /** Counts what a step used in place of what it reserved. Returns what its record says about it. */
  settle(used: StepCost | undefined): StepCost | undefined {
    const spent = used ?? this.#reserved;
    if (this.#reserved !== undefined) this.#hold(this.#reserved, -1);
    this.#reserved = undefined;
    if (spent !== undefined) for (const ledger of this.#ledgers) spend(ledger, spent);
    const stateMs = this.#watch.ms();
    if (stateMs === this.#recordedMs) return spent;
    this.#recordedMs = stateMs;
    const { works } = this.#run;
    const times = { stateMs, runMs: this.runMs() };
    if (works.length === 1) return { ...spent, ...times };
    const [, ...around] = works.toReversed();
    return { ...spent, ...times, aroundMs: around.map((work) => work.ms()) };
  }

  exceeded(): LimitHit | undefined {
    return this.#firedTimer ?? this.#timeCaps.find(({ left }) => left() <= 0)?.hit;
  }

  /** The cap on tokens or money that was exceeded because a step used more than it had reserved. */
  overspent(): LimitHit | undefined {
    const cap = this.#caps.find(({ account, max }) => account.spent > max);
    return cap && limitHit(cap, `${cap.text(cap.account.spent)} used`, 0);
  }

  /** Once the `attempt` is closed, a cap that passes in work that it did not await no longer counts. */
  timed<T>(
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    attempt?: { readonly closed: boolean },
  ): Promise<T> {
    if (this.#timeCaps.length === 0) return work(signal);
    const [cap] = this.#timeCaps.toSorted((a, b) => a.left() - b.left());
    return cap === undefined ? work(signal) : this.#within(cap, signal, work, attempt);
  }

  runMs(): number {
    // The last one is that of the root.
    return this.#run.works.at(-1)?.ms() ?? 0;
  }

  now(): number {
    return this.#clock.now();
  }

  async #within<T>(
    cap: TimeCap,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    attempt: { readonly closed: boolean } | undefined,
  ): Promise<T> {
    const both = new AbortController();
    const onAbort = (): void => both.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const disarm = this.#clock.after(Math.max(0, cap.left()), () => {
      if (attempt?.closed !== true) this.#firedTimer ??= cap.hit;
      both.abort(new SluiceError("Cancellation", "timeout", cap.hit.message));
    });
    try {
      return await work(both.signal);
    } finally {
      disarm();
      signal.removeEventListener("abort", onAbort);
    }
  }

  #hold({ inputTokens, outputTokens, costUsd = 0 }: Usage, sign: 1 | -1): void {
    for (const { tokens, money } of this.#ledgers) {
      tokens.reserved += sign * (inputTokens + outputTokens);
      money.reserved += sign * nanoUsd(costUsd);
    }
  }

  #refusal(most: Usage): LimitHit | undefined {
    for (const cap of this.#caps) {
      const { spent, reserved, unknown } = cap.account;
      if (unknown) return limitHit(cap, cap.unknownReason, 0);
      const amount = cap.amountOf(most);
      if (amount === undefined) return limitHit(cap, "the price of the next call is not known", 0);
      if (spent + reserved + amount > cap.max) {
        const why = `${cap.text(spent)} used, and calls in flight and the next one may use ${cap.text(reserved + amount)} more`;
        return limitHit(cap, why, amount);
      }
    }
    return undefined;
  }
}

type Owner = "state" | "caller" | "run";
const OWNER: Readonly<Record<Owner, string>> = {
  state: "this state",
  caller: "the state that runs this pipeline",
  run: "the run",
};

/** A cap on tokens or money, in the unit of its account. */
interface Cap {
  /** `state.maxTokens` */
  readonly limit: string;
  readonly rule: string;
  readonly account: Account;
  readonly max: number;
  /** Undefined when the amount is unknown. */
  amountOf(usage: Usage): number | undefined;
  text(amount: number): string;
  /** An amount in the unit that people read. */
  shown(amount: number): number;
  /** Why nothing more may be spent after an unknown amount was. */
  readonly unknownReason: string;
}

function capsOf(owner: Owner, { maxTokens, maxCostUsd }: Caps, ledger: Ledger | undefined): readonly Cap[] {
  const caps: Cap[] = [];
  if (ledger !== undefined && maxTokens !== undefined) {
    caps.push({
      limit: `${owner}.maxTokens`,
      rule: `${OWNER[owner]} may use ${maxTokens} tokens`,
      account: ledger.tokens,
      max: maxTokens,
      amountOf: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
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

function invalidAmount({ inputTokens, outputTokens, costUsd = 0 }: Usage): LimitHit | undefined {
  if (isAmount(inputTokens) && isAmount(outputTokens) && isAmount(costUsd)) return undefined;
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
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
  };
  const costUsd = sumOf(a.costUsd, b.costUsd, plusUsd);
  if (costUsd !== undefined) sum.costUsd = costUsd;
  const unpricedCalls = sumOf(a.unpricedCalls, b.unpricedCalls, plus);
  if (unpricedCalls !== undefined) sum.unpricedCalls = unpricedCalls;
  const unmeteredCalls = sumOf(a.unmeteredCalls, b.unmeteredCalls, plus);
  if (unmeteredCalls !== undefined) sum.unmeteredCalls = unmeteredCalls;
  return sum;
}

function sumOf(a: number | undefined, b: number | undefined, add: typeof plus): number | undefined {
  return a === undefined ? b : b === undefined ? a : add(a, b);
}

function plus(a: number, b: number): number {
  return a + b;
}

/** In billionths of a dollar, whose sums are exact. */
function plusUsd(a: number, b: number): number {
  return usdOf(nanoUsd(a) + nanoUsd(b));
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
    return this.#running > 0 ? this.#total + this.#sinceStart() : this.#total;
  }

  start(): void {
    if (this.#running === 0) this.#since = this.#clock.now();
    this.#running += 1;
  }

  stop(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#total += this.#sinceStart();
  }

  /** Not below 0, although a clock may be set back. */
  #sinceStart(): number {
    return Math.max(0, this.#clock.now() - this.#since);
  }
}

/** Milliseconds after which an executor or a tool that ignores its abort signal is abandoned. */
export const ABORT_GRACE_MS = 50;

/**
 * Why the run was cancelled; undefined if it was not. Throws when the run only has to stop in this process, because it was
 * suspended or resumed elsewhere: then nothing may be recorded as its end.
 */
export function cancelReason(signal: AbortSignal): string | undefined {
  // Not its own members, which a kind could have given to it.
  if (!Reflect.get(AbortSignal.prototype, "aborted", signal)) return undefined;
  const reason: unknown = Reflect.get(AbortSignal.prototype, "reason", signal);
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
