import { setImmediate } from "node:timers/promises";
import { checkAborted } from "./files/results.ts";

/** Steps between two turns of others: some milliseconds of work. */
const STEPS = 1_000_000;

/** Counts work that hostile text can make long, so that aborts, timers and other runs get their turn in between. */
export interface Turns {
  /** To be awaited when it is not undefined; then it throws once the signal is aborted. */
  spend(steps: number): Promise<void> | undefined;
}

export function takeTurns(signal: AbortSignal): Turns {
  let spent = 0;
  const pause = async (): Promise<void> => {
    await setImmediate();
    checkAborted(signal);
  };
  return {
    spend: (steps) => {
      spent += steps;
      if (spent < STEPS) return undefined;
      spent = 0;
      return pause();
    },
  };
}
