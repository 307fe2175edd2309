const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Milliseconds in a duration such as "250ms", "1.5h" or "1h 30m". Throws a RangeError for anything else. */
export function parseDuration(text) {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)/.exec(text);
  if (match === null) throw new RangeError(`not a duration: ${JSON.stringify(text)}`);
  const [, amount, unit] = match;
  return Number(amount) * UNITS[unit];
}

/** A duration in whole units, largest first: "1h 30m", "2d", "0ms". */
export function formatDuration(milliseconds) {
  const parts = [];
  let rest = Math.round(milliseconds);
  for (const [unit, size] of Object.entries(UNITS)) {
    const amount = Math.floor(rest / size);
    if (amount > 0) parts.push(`${amount}${unit}`);
    rest -= amount * size;
  }
  return parts.join(" ") || "0ms";
}
