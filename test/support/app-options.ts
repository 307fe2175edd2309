import { resolve } from "node:path";
import type { AppFlags } from "@sluice/tui";
import type { CommandContext } from "../../packages/cli/src/command-context.ts";
import { createEngine } from "../../packages/cli/src/commands/app/engine.ts";
import type { RunFlags } from "../../packages/cli/src/runs/run-flags.ts";
import type { AppOptions } from "../../packages/tui/src/app/app-state.ts";
import { COMMANDS, PLAIN_COMMANDS } from "../../packages/tui/src/commands/registry.ts";

/** The app as the command opens it: with an engine that works like `sluice run`. */
export function appOptions(
  flags: AppFlags & RunFlags,
  context: CommandContext,
): Pick<AppOptions, "commands" | "flags" | "context" | "createEngine"> {
  return {
    commands: flags.screenReader === true ? PLAIN_COMMANDS : COMMANDS,
    flags,
    context: { ...context, workspace: resolve(context.here, flags.cwd ?? "."), version: "0.0.0-test" },
    createEngine: (hooks) => createEngine({ flags, context, ...hooks }),
  };
}
