/** A figure of a walk that has a limit. */
export interface Budget {
  /** Files in which something ran more often than in the baseline, or all files in which anything ran. */
  readonly of: "more" | "all";
  readonly atMost: number;
  /** The most calls of functions beyond the baseline. A grant makes a few more or less, by the letters of its random code. */
  readonly calls?: number;
}

/** The most source files, and calls, that each walk may take. */
export const BUDGETS = {
  // Its input is checked by code of ours, which is counted; a schema library is not.
  "read-call": { of: "more", atMost: 32, calls: 350 },
  grant: { of: "more", atMost: 27, calls: 415 },
  "fan-out": { of: "more", atMost: 20 },
  resume: { of: "more", atMost: 20 },
  run: { of: "all", atMost: 140 },
  key: { of: "all", atMost: 30 },
} as const satisfies Readonly<Record<string, Budget>>;
