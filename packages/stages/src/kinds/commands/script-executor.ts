import type { StateExecutor } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import { SCRIPT } from "../script.ts";
import { commandOf } from "./command.ts";
import { failedBefore, outcomeOf, renderedIn } from "./outcome.ts";
import { type CommandWorld, lostCommand, renderCommand, runCommand, startEvents, wasLost } from "./run-command.ts";
import { parsedOutput } from "./streams.ts";

/** The name of its only step. */
const STEP = "command";
/** A command that may not be repeated gets this long to end when its run is suspended. */
const GRACE_MS = 5_000;

/** The executor of states that run a command. */
export function scriptExecutor(world: CommandWorld): StateExecutor {
  return {
    kind: SCRIPT,
    startsProcesses: true,
    init: ({ options }, ctx) => renderCommand(commandOf(options), ctx),
    act: async (init, scope) => {
      const { options } = scope.state;
      const command = commandOf(options);
      const rendered = renderedIn(init);
      if (command === undefined || "fault" in rendered) return failedBefore(SCRIPT, rendered);
      const mayRepeat = isObject(options) && options.repeat === true;
      const { timeoutMs } = command;
      const end = await scope.steps.run(
        STEP,
        async ({ opened, signal }) => {
          const isLost = await wasLost(scope, STEP, opened, world.clock);
          if (isLost && !mayRepeat) return lostCommand(command, world.clock);
          const start = { command, rendered, step: STEP, timeoutMs, parse: parsedOutput, counts: () => true };
          return await runCommand(scope, world, start, signal);
        },
        { open: { events: startEvents(scope, world, command) }, graceMs: mayRepeat ? 0 : GRACE_MS },
      );
      return outcomeOf(SCRIPT, command, end, scope);
    },
  };
}
