/** US dollars as text: with cents from a dollar on, with more digits below. */
export function usdText(usd: number): string {
  if (usd >= 1) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(usd >= 0.01 ? 4 : 9).replace(/\.?0+$/, "")}`;
}
