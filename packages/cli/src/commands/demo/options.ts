import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, outputFormatOption } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  command
    .description(
      "Runs codeReview on a copy of a small sample repository in a temporary folder. It needs no key and no network: the model is a script that always gives the same answers. The permission gate, tools, files and journal are real.",
    )
    .addOption(outputFormatOption())
    .option("--keep", "keep the folder; later demos do not delete it")
    .addHelpText("after", examples("sluice demo", "sluice demo --keep", "sluice demo --output-format stream-json"))
    .action(context.acts(async () => (await import("./action.ts")).demo));
}
