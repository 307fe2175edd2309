import type { CommandContext } from "../work/context.ts";

/** What a subcommand does when it is called: its exit code is the process's. */
export interface CommandRun extends CommandContext {
  /** Takes what an action came to. */
  exitWith(code: Promise<number>): Promise<void>;
}
