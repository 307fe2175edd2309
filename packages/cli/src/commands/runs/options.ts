import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { wholeNumber, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice runs",
    "sluice runs --limit 5 --output-format json",
    "sluice runs --sleeping",
    "sluice runs --cwd ../other-project",
  )
    .description(
      'Lists the runs in the store, newest first. An unfinished run is "running" while a process executes it, else "suspended": it waits for an answer or was stopped, and sluice resume continues it, or it sleeps until a time, and sluice serve or sluice wake continues it.',
    )
    .option("--limit <n>", "the number of runs to list", wholeNumber(1), 30)
    .option("--sleeping", "only the runs that sleep or are due, the first to wake first")
    .action(context.acts(async () => (await import("./action.ts")).runs));
}
