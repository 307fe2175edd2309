import type { Environment } from "../project/environment.ts";
import type { Terminal } from "../terminal.ts";

/** What a command has of the process it runs in. */
export interface CommandContext {
  readonly env: Environment;
  /** Where the user stands. */
  readonly here: string;
  readonly terminal: Terminal;
}
