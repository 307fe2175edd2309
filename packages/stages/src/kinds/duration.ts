/** A time span: milliseconds, or a text such as `30s`, `15m`, `3h` or `5d`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const TEXT = /^(?<amount>\d{1,15}(?:\.\d{1,6})?)\s*(?<unit>ms|s|m|h|d)$/;
/** Ten years. Anything longer is a mistake, such as seconds that were meant to be milliseconds of the epoch. */
const LONGEST_MS = 3_650 * UNITS.d;

/**
 * Reads a duration in milliseconds, from a value of any type, since files hold whatever their author wrote. Returns what is wrong
 * with it otherwise. A duration is above 0 and at most ten years; shorter limits are the caller's.
 */
export function parseDuration(
  value: unknown,
): { readonly ok: true; readonly ms: number } | { readonly ok: false; readonly message: string } {
  const ms = typeof value === "number" ? value : typeof value === "string" ? fromText(value.trim()) : undefined;
  if (ms === undefined || !Number.isFinite(ms))
    return {
      ok: false,
      message: "must be a duration: milliseconds, or a number with ms, s, m, h or d, such as 30s, 15m, 3h or 5d",
    };
  const whole = Math.round(ms);
  if (whole < 1) return { ok: false, message: "must be a duration above 0" };
  if (whole > LONGEST_MS) return { ok: false, message: "must be a duration of at most 3650d" };
  return { ok: true, ms: whole };
}

function fromText(text: string): number | undefined {
  const { amount, unit } = TEXT.exec(text)?.groups ?? {};
  if (amount === undefined || !isUnit(unit)) return undefined;
  return Number(amount) * UNITS[unit];
}

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && Object.hasOwn(UNITS, unit);
}

/** A duration for people, in its largest whole unit: `90s`, `15m`. */
export function durationText(ms: number): string {
  const units = Object.entries(UNITS).toReversed();
  const [unit, size] = units.find(([, each]) => ms % each === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
