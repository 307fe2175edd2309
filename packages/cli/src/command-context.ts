import type { Environment } from "@sluice/tui/user";
import type { Terminal } from "./output/terminal.ts";

/** What a subcommand does when it is called: its exit code is the process's. */
export interface CommandRun extends CommandContext {
  /** Takes what an action came to. */
  exitWith(code: Promise<number>): Promise<void>;
}

/** What a command has of the process it runs in. */
export interface CommandContext {
  readonly env: Environment;
  /** Where the user stands. */
  readonly here: string;
  readonly terminal: Terminal;
}
