import type { ActOutcome, ActScope, AnyState, Json, State, StateExecutor, StepCall } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import {
  type CommandFields,
  type CommandOptions,
  type CommandSpec,
  commandOf,
  commandState,
  durationAt,
  exitCodesAt,
  type ScriptOutput,
} from "./commands/command.ts";
import { cancelledBy, failedBefore, failedWith, outcomeOf, renderedIn, streamsOf } from "./commands/outcome.ts";
import {
  type CommandEnd,
  type CommandStart,
  type CommandWorld,
  renderCommand,
  runCommand,
  startEvents,
  wasLost,
} from "./commands/run-command.ts";
import { NO_STREAMS, parsedObject, type Streams } from "./commands/streams.ts";
import { type Duration, durationText } from "./duration.ts";

/** The kind of states that run a command until it succeeds. */
const POLL = "poll";

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

interface PollSpec {
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
      if (given.every === undefined) report.add("every", "is the time between attempts, such as 30s");
      else if (every !== undefined && every < SHORTEST_MS) report.add("every", "is at least 1s");
      const notYetCodes = exitCodesAt(report, "notYetCodes", given.notYetCodes) ?? [1].filter(isNoSuccess);
      const both = notYetCodes.find((code) => !isNoSuccess(code));
      if (both !== undefined) report.add("notYetCodes", `${both} is also a code of success`);
      const totalTimeoutMs = durationAt(report, "totalTimeoutMs", given.totalTimeoutMs);
      const { maxAttempts } = given;
      if (maxAttempts !== undefined && !(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1))
        report.add("maxAttempts", "is a whole number from 1", "omit it for no limit");
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

/** The executor of states that run a command until it succeeds. */
export function pollExecutor(world: CommandWorld): StateExecutor {
  return {
    kind: POLL,
    init: ({ options }, ctx) => renderCommand(commandOf(options), ctx),
    act: async (init, scope) => {
      const { options } = scope.state;
      const command = commandOf(options);
      const rendered = renderedIn(init);
      if (command === undefined || !isPollSpec(options) || "fault" in rendered) return failedBefore(POLL, rendered);
      const startedAt = await scope.steps.now("started");
      const deadline = startedAt + (options.totalTimeoutMs ?? Number.POSITIVE_INFINITY);
      const attempt = attemptsOf(scope, world, { command, rendered, options, deadline });
      let last: LastAttempt = { exitCode: null, ...NO_STREAMS };
      for (let number = 1; ; number += 1) {
        if (scope.signal.aborted) return cancelledBy(scope.signal);
        const end = await attempt(number);
        const isLate = end.kind === "late";
        const spent = { attempts: isLate ? number - 1 : number, elapsedMs: Math.max(0, end.endedAt - startedAt) };
        if (!isLate && !isNotYet(end, options)) return outcomeOf(POLL, command, end, scope, spent);
        if (!isLate) last = { exitCode: end.exitCode, ...streamsOf(end) };
        const next = end.endedAt + options.every;
        if (isLate || next >= deadline) return notReady("total", command, options, { ...last, ...spent });
        if (number === options.maxAttempts) return notReady("attempts", command, options, { ...last, ...spent });
        await scope.sleep(`sleep/${number}`, next, { attempt: number, exitCode: end.exitCode });
      }
    },
  };
}

type LastAttempt = Streams & { readonly exitCode: number | null };

interface Attempts extends Pick<CommandStart, "command" | "rendered"> {
  readonly options: PollSpec;
  /** When the poll has to be over. */
  readonly deadline: number;
}

/** How an attempt ended. Late: the poll was over before it could start. */
type AttemptEnd = CommandEnd | { readonly kind: "late"; readonly endedAt: number };

/** Runs attempts by their numbers, each in a step. */
function attemptsOf(
  scope: ActScope,
  world: CommandWorld,
  { command, rendered, options, deadline }: Attempts,
): (number: number) => Promise<AttemptEnd> {
  const { clock } = world;
  return (number) => {
    const step = `attempt/${number}`;
    const run = async ({ opened, signal }: StepCall): Promise<AttemptEnd> => {
      // An attempt only asks, so one that was lost is made again.
      await wasLost(scope, step, opened, clock);
      const left = deadline - clock.now();
      if (left <= 0) return { kind: "late", endedAt: clock.now() };
      const isLast = left <= command.timeoutMs;
      const start: CommandStart = {
        ...{ command, rendered, step },
        timeoutMs: isLast ? left : command.timeoutMs,
        parse: parsedObject,
        counts: (exitCode) => !options.notYetCodes.includes(exitCode),
      };
      const end = await runCommand(scope, world, start, signal);
      return isLast && end.kind === "broken" && end.cause === "timeout" ? { ...end, cause: "total" } : end;
    };
    return scope.steps.run(step, run, { open: { events: startEvents(scope, world, command) } });
  };
}

function isNotYet(end: CommandEnd, { notYetCodes }: PollSpec): end is Extract<CommandEnd, { readonly kind: "exited" }> {
  return end.kind === "exited" && notYetCodes.includes(end.exitCode);
}

/** The outcome of a poll that is over before anything was ready. */
function notReady(
  cause: "total" | "attempts",
  { title }: CommandSpec,
  { totalTimeoutMs = 0 }: PollSpec,
  detail: LastAttempt & { readonly attempts: number; readonly elapsedMs: number },
): ActOutcome {
  const { attempts } = detail;
  const times = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  const message = cause === "total" ? `within ${durationText(totalTimeoutMs)} (${times})` : `after ${times}`;
  return failedWith(POLL, `${title} was not ready ${message}`, { ...detail, cause });
}

function isPollSpec(options: unknown): options is PollSpec {
  return isObject(options) && typeof options.every === "number" && Array.isArray(options.notYetCodes);
}
