import type { ActOutcome, ActScope, StateExecutor, StepCall } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import { durationText } from "../duration.ts";
import { cancelled, failed } from "../kind-common.ts";
import { POLL, type PollSpec } from "../poll.ts";
import { type CommandSpec, commandOf } from "./command.ts";
import { failedBefore, outcomeOf, renderedIn, streamsOf } from "./outcome.ts";
import {
  type CommandEnd,
  type CommandStart,
  type CommandWorld,
  renderCommand,
  runCommand,
  startEvents,
  wasLost,
} from "./run-command.ts";
import { NO_STREAMS, parsedObject, type Streams } from "./streams.ts";

/** The executor of states that run a command until it succeeds. */
export function pollExecutor(world: CommandWorld): StateExecutor {
  return {
    kind: POLL,
    startsProcesses: true,
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
        if (scope.signal.aborted) return cancelled(scope);
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
  return failed(POLL, `${title} was not ready ${message}`, { ...detail, cause });
}

function isPollSpec(options: unknown): options is PollSpec {
  return isObject(options) && typeof options.every === "number" && Array.isArray(options.notYetCodes);
}
