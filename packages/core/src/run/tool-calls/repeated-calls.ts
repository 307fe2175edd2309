/** Counts identical calls in a row, by tool and digest. */
export interface Repeats {
  /** How often this call has now come in a row. */
  count(tool: string, argsDigest: string): number;
}

/** From this many on a call does not run; at the last it fails its state. */
export const REPEATED = 3;
export const STUCK = 6;

export function createRepeats(): Repeats {
  let last = "";
  let times = 0;
  return {
    count(tool, argsDigest) {
      const key = JSON.stringify([tool, argsDigest]);
      times = key === last ? times + 1 : 1;
      last = key;
      return times;
    },
  };
}
