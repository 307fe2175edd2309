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
  /** Loads an action and runs it with what was parsed; its result is the exit code of the process. */
  acts<Given extends readonly unknown[]>(
    load: () => Promise<(context: CommandContext, ...given: Given) => Promise<number>>,
  ): (...given: Given) => Promise<void>;
}
