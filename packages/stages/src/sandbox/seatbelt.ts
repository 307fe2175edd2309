import type { BubblewrapFacts } from "./bubblewrap.ts";
export function seatbeltProfile(_facts: BubblewrapFacts): string {
  return "";
}
