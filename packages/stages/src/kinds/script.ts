import type { AnyState, Json, State, StateExecutor } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import {
  type CommandFields,
  type CommandOptions,
  commandOf,
  commandState,
  type ScriptOutput,
} from "./commands/command.ts";
import { failedBefore, outcomeOf, renderedIn } from "./commands/outcome.ts";
import {
  type CommandWorld,
  lostCommand,
  renderCommand,
  runCommand,
  startEvents,
  wasLost,
} from "./commands/run-command.ts";
import { parsedOutput } from "./commands/streams.ts";

/** The kind of states that run a command. */
const SCRIPT = "script";

export interface ScriptOptions<A extends Record<string, AnyState>, P, I>
  extends CommandOptions<A, P, I, ScriptOutput<P>> {
  /**
   * Whether the command may run twice. If the process that runs it dies, a resumed run starts it again. Otherwise the state then
   * fails, because the command may have had its effect.
   */
  readonly repeat?: boolean;
}

/**
 * Defines a state that runs a command, without a model. It fails with code `script` if the command cannot be started, does not end in
 * time, or ends with an exit code that is not one of success; `detail` has both of its streams. The author of a pipeline is trusted:
 * the command runs outside of the sandbox. Never throws: `pipeline()` reports its problems with all others.
 */
export function script<const A extends Record<string, AnyState> = Record<never, never>, P = Json, I = undefined>(
  options: ScriptOptions<A, P, I>,
): State<ScriptOutput<P>, NoInfer<I>>;
export function script(given: CommandFields & { readonly repeat?: boolean }): State {
  const { repeat = false } = given;
  const spec = commandState(given, {
    kind: SCRIPT,
    keys: ["repeat"],
    own: (report) => {
      if (typeof repeat !== "boolean") report.add("repeat", "is true or false");
      return { options: { repeat }, parts: repeat ? { repeat: "yes" } : {} };
    },
  });
  return { kind: SCRIPT, spec };
}

/** The name of its only step. */
const STEP = "command";
/** A command that may not be repeated gets this long to end when its run is suspended. */
const GRACE_MS = 5_000;

/** The executor of states that run a command. */
export function scriptExecutor(world: CommandWorld): StateExecutor {
  return {
    kind: SCRIPT,
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
