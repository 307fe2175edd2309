import type { AnyState, Json, State } from "@sluice/core";
import { type CommandFields, type CommandOptions, commandState, type ScriptOutput } from "./commands/command.ts";

/** The kind of states that run a command. */
export const SCRIPT = "script";

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
      if (typeof repeat !== "boolean") report.add("repeat", "must be true or false");
      return { options: { repeat }, parts: repeat ? { repeat: "yes" } : {} };
    },
  });
  return { kind: SCRIPT, spec };
}
