import { timeLeft } from "@sluice/view";
import { moment } from "@sluice/view/words";

/** A time, with how far away it is: `2027-01-31 09:00:00Z (in 3d04h)`. */
export function timeWithCountdown(epochMs: number, now: number): string {
  return `${moment(epochMs)} (${epochMs <= now ? "due" : `in ${timeLeft(epochMs, now)}`})`;
}
