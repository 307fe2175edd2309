import type { AnyState, Json, State } from "@sluice/core";
import {
  type CommandFields,
  type CommandOptions,
  commandState,
  durationAt,
  exitCodesAt,
  type ScriptOutput,
} from "./commands/command.ts";
import { type Duration, durationText } from "./duration.ts";

/** The kind of states that run a command until it succeeds. */
export const POLL = "poll";

/** The result of a poll: that of its last attempt. */
export type PollOutput<P = Json> = ScriptOutput<P> & {
  readonly attempts: number;
  /** From the start of the first attempt to the end of the last, with all waits. */
  readonly elapsedMs: number;
};

export interface PollOptions<A extends Record<string, AnyState>, P, I> extends CommandOptions<A, P, I, PollOutput<P>> {
  /** From the end of an attempt to the start of the next; at least one second. */
  readonly every: Duration;
  /** Exit codes that mean "not yet". Default: 1. Any other code that is not one of success fails the state. */
  readonly notYetCodes?: readonly number[];
  /** How long the poll may last. It bounds an attempt that is running, too. Default: no limit. */
  readonly totalTimeoutMs?: Duration;
  /** Default: no limit. */
  readonly maxAttempts?: number;
}

export interface PollSpec {
  readonly every: number;
  readonly notYetCodes: readonly number[];
  readonly totalTimeoutMs?: number;
  readonly maxAttempts?: number;
}

const SHORTEST_MS = 1_000;

/**
 * Defines a state that runs a command until it succeeds, and sleeps between attempts; the process may end meanwhile. It fails with
 * code `poll` if an attempt ends in another way than with a code of success or "not yet", or if none succeeded in time; `detail` has
 * what the last attempt printed. Attempts may be repeated after a crash. Never throws: `pipeline()` reports its problems with all others.
 */
export function poll<const A extends Record<string, AnyState> = Record<never, never>, P = Json, I = undefined>(
  options: PollOptions<A, P, I>,
): State<PollOutput<P>, NoInfer<I>>;
export function poll(given: CommandFields & Pick<PollOptions<never, unknown, unknown>, keyof PollSpec>): State {
  const spec = commandState(given, {
    kind: POLL,
    keys: ["every", "notYetCodes", "totalTimeoutMs", "maxAttempts"],
    adds: { attempts: { type: "integer" }, elapsedMs: { type: "integer" } },
    own: (report, { successCodes }) => {
      const every = durationAt(report, "every", given.every);
      if (given.every === undefined) report.add("every", "is missing: it is the time between attempts, such as 30s");
      else if (every !== undefined && every < SHORTEST_MS) report.add("every", "must be at least 1s");
      const notYetCodes = exitCodesAt(report, "notYetCodes", given.notYetCodes) ?? [1].filter(isNoSuccess);
      const both = notYetCodes.find((code) => !isNoSuccess(code));
      if (both !== undefined) report.add("notYetCodes", `${both} is also a code of success`);
      const totalTimeoutMs = durationAt(report, "totalTimeoutMs", given.totalTimeoutMs);
      const { maxAttempts } = given;
      if (maxAttempts !== undefined && !(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1))
        report.add("maxAttempts", "must be a whole number from 1", "omit it for no limit");
      const options: PollSpec = {
        every: every ?? SHORTEST_MS,
        notYetCodes,
        ...(totalTimeoutMs === undefined ? {} : { totalTimeoutMs }),
        ...(maxAttempts === undefined ? {} : { maxAttempts }),
      };
      const parts = {
        every: durationText(options.every),
        "not yet codes": { data: [...notYetCodes] },
        ...(totalTimeoutMs === undefined ? {} : { "total timeout": durationText(totalTimeoutMs) }),
        ...(maxAttempts === undefined ? {} : { maxAttempts }),
      };
      return { options, parts };

      function isNoSuccess(code: number): boolean {
        return !successCodes.includes(code);
      }
    },
  });
  return { kind: POLL, spec };
}
