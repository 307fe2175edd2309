/** Money is added up in billionths of a dollar: whole numbers, so that a sum is exact and a cap means what it says. */
const NANO = 1_000_000_000;

export function nanoUsd(usd: number): number {
  return Math.round(usd * NANO);
}

export function usdOf(nano: number): number {
  return nano / NANO;
}

/** US dollars for people: cents from a dollar on, below it what tells amounts apart. */
export function usdText(usd: number): string {
  if (usd >= 1) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(usd >= 0.01 ? 4 : 9).replace(/\.?0+$/, "")}`;
}
