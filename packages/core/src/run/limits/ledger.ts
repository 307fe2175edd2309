import { nanoUsd } from "../../base/money.ts";
import type { StepCost } from "../../journal/seam.ts";

/** What was used, and what is reserved for calls in flight at their maximum. Money in billionths of a dollar. */
export interface Ledger {
  readonly tokens: Account;
  readonly money: Account;
}
export interface Account {
  spent: number;
  reserved: number;
  /** An unknown amount was spent, so nothing more may be. */
  unknown: boolean;
}

/** A ledger that starts with what is already spent in another. */
export function createLedger(from?: Ledger): Ledger {
  const account = (before?: Account): Account => ({ ...(before ?? { spent: 0, unknown: false }), reserved: 0 });
  return { tokens: account(from?.tokens), money: account(from?.money) };
}

export function spend({ tokens, money }: Ledger, cost: StepCost): void {
  const { inputTokens = 0, outputTokens = 0, costUsd } = cost;
  if (isAmount(inputTokens) && isAmount(outputTokens)) tokens.spent += inputTokens + outputTokens;
  else tokens.unknown = true;
  if (isAmount(costUsd)) money.spent += nanoUsd(costUsd);
  if (isUnpriced(cost)) money.unknown = true;
}

/** Adds what was spent in another ledger. */
export function addLedger(to: Ledger, { tokens, money }: Ledger): void {
  for (const [own, other] of [
    [to.tokens, tokens],
    [to.money, money],
  ] as const) {
    own.spent += other.spent;
    own.unknown ||= other.unknown;
  }
}

/** Whether any of it has no known price. */
export function isUnpriced({ inputTokens = 0, outputTokens = 0, costUsd, unpricedCalls = 0 }: StepCost): boolean {
  if (unpricedCalls !== 0) return true;
  return costUsd === undefined ? inputTokens !== 0 || outputTokens !== 0 : !isAmount(costUsd);
}

/** A number of tokens or dollars. With anything else (NaN, for example) every comparison has the same result, and a cap holds nothing. */
export function isAmount(amount: unknown): amount is number {
  return typeof amount === "number" && Number.isFinite(amount) && amount >= 0;
}
