import type { Environment } from "@sluice/tui/user";
import type { Terminal } from "./output/terminal.ts";

/** The process as a subcommand sees it. */
export interface CommandContext {
  readonly env: Environment;
  /** The current folder. */
  readonly here: string;
  readonly terminal: Terminal;
}

export interface CommandRun extends CommandContext {
  /** Makes the exit code of an action the exit code of the process. */
  exitWith(code: Promise<number>): Promise<void>;
}
