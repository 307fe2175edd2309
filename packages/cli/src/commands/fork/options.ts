import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ALLOW_CHANGED, withWorkOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withWorkOptions(
    command,
    "sluice fork r7k2m9x4ab --from review#1",
    "sluice fork r7k2m9x4ab --from execute#2 --model anthropic/<model>",
    "sluice fork r7k2m9x4ab --from plan#1 --allow-changed --mode ask",
  )
    .description(
      "Creates a new run with the record of another run up to just before an execution, and continues from there with models and tools. The original run can be finished, cancelled, suspended or running, and does not change. File changes are not rolled back: the new run finds the files as they are now, and the changes that the original made since are listed. Grants of the original do not apply; its cost up to that point counts.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .option("--from <execution>", "fork just before this execution, such as review#1 (sluice show lists them)")
    .option(...ALLOW_CHANGED)
    .action(context.acts(async () => (await import("./action.ts")).fork));
}
