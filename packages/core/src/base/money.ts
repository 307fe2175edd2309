/** Money is summed in billionths of a dollar, as whole numbers, so that sums and caps are exact. */
const NANO = 1_000_000_000;

export function nanoUsd(usd: number): number {
  return Math.round(usd * NANO);
}

export function usdOf(nano: number): number {
  return nano / NANO;
}

/** US dollars as text: with cents from a dollar on, with more digits below. */
export function usdText(usd: number): string {
  if (usd >= 1) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(usd >= 0.01 ? 4 : 9).replace(/\.?0+$/, "")}`;
}
