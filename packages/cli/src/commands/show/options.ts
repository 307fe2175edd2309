import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command, "sluice show r7k2m9x4ab", "sluice show r7k2m9x4ab --output-format json")
    .description(
      "Shows one run: its status, its stages with attempts, turns and usage, denied calls, open requests with the line that answers each, its result, and the head of its journal.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .action(context.acts(async () => (await import("./action.ts")).show));
}
