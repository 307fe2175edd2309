import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command, "sluice init --workflow", "sluice init --workflow release")
    .description(
      "Writes a commented workflow to .sluice/workflows/ of this folder, and a script with which it runs without a model. Nothing is overwritten.",
    )
    .option("--workflow [name]", "write a workflow of this name (default: first)")
    .action(context.acts(async () => (await import("./action.ts")).init));
}
