import { setImmediate } from "node:timers/promises";
import { checkAborted } from "./files/results.ts";

/** Steps between two pauses: a few milliseconds of work. */
const STEPS = 1_000_000;

/** Pauses work on hostile input regularly, so that aborts, timers and other runs are not blocked. */
export interface Turns {
  /** Await the result unless it is undefined. It rejects once the signal is aborted. */
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
