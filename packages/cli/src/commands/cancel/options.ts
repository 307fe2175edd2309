import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ADOPT_STORE, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command, "sluice cancel r7k2m9x4ab", 'sluice cancel r7k2m9x4ab --reason "wrong branch"')
    .description(
      "Ends a run and its child runs permanently as cancelled. If a process executes the run, that process ends it. Otherwise this command does, without running any of the run's code. To stop a run and resume it later, send it SIGINT instead.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .option("--reason <text>", "the reason, kept in the journal")
    .option(...ADOPT_STORE)
    .action(context.acts(async () => (await import("./action.ts")).cancel));
}
