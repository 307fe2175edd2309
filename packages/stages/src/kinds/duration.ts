/** A length of time: milliseconds, or a number with a unit, such as `30s`, `15m`, `3h` or `5d`. */
export type Duration = number | string;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TEXT = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/;
/** A hundred years. */
const LONGEST = 36_525 * 86_400_000;

/** Reads a length of time as whole milliseconds above 0. */
export function parseDuration(
  value: number | string,
): { readonly ok: true; readonly ms: number } | { readonly ok: false; readonly message: string } {
  const wanted = "is a time such as 30s, 15m, 3h or 5d, or a number of milliseconds";
  const [, amount, unit = ""] = typeof value === "string" ? (TEXT.exec(value.trim()) ?? []) : [];
  const ms = typeof value === "number" ? value : Math.round(Number(amount) * (UNITS[unit] ?? Number.NaN));
  if (!Number.isFinite(ms)) return { ok: false, message: wanted };
  if (ms <= 0 || !Number.isInteger(ms)) return { ok: false, message: `${wanted}; it is above 0` };
  return ms > LONGEST ? { ok: false, message: `${wanted}; it is at most 100 years` } : { ok: true, ms };
}
