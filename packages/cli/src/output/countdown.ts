import { moment } from "@sluice/view/words";

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** How far away a time is, in its two largest units: `in 2 d 3 h`, `in 45 s`; `now` once it has come. */
function countdown(epochMs: number, now: number): string {
  let seconds = Math.ceil((epochMs - now) / 1_000);
  if (seconds <= 0) return "now";
  const words: string[] = [];
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const amount = Math.floor(seconds / size);
    seconds -= amount * size;
    if (amount > 0) words.push(`${amount} ${unit}`);
  }
  return `in ${words.join(" ")}`;
}

/** A time, with how far away it is. */
export function timeWithCountdown(epochMs: number, now: number): string {
  return `${moment(epochMs)} (${countdown(epochMs, now)})`;
}
