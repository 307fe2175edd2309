import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ADOPT_STORE, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command, "sluice interrupt r7k2m9x4ab", 'sluice interrupt r7k2m9x4ab --reason "the wrong branch"')
    .description(
      "Interrupts what a run does now: calls and commands are stopped, what they have done so far is recorded, and the run is suspended. sluice resume enters the interrupted states again, and their agents read what was interrupted and why. A run that sleeps or waits is interrupted when it continues. To stop a run in the middle of a stage and continue there, send it SIGINT instead.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .option("--reason <text>", "the reason, kept in the journal; the agent reads it when the run resumes")
    .option(...ADOPT_STORE)
    .action(context.acts(async () => (await import("./action.ts")).interrupt));
}
