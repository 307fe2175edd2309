import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples } from "../../options.ts";
import { OUTPUT_FORMATS } from "../../output/output.ts";
import type { DemoRequest } from "./action.ts";

export function addDemo(program: Command, context: CommandRun): void {
  program
    .command("demo")
    .summary("codeReview on a sample repository, offline")
    .description(
      "Runs codeReview on a copy of a small sample repository in a temporary folder. No key and no network are needed: the model is a script that always says the same. Gate, tools, files and journal are the real ones.",
    )
    .addOption(
      new Option("--output-format <format>", "how the result is written").choices(OUTPUT_FORMATS).default("text"),
    )
    .option("--keep", "use a folder that later demos do not remove")
    .addHelpText("after", examples("sluice demo", "sluice demo --keep", "sluice demo --output-format stream-json"))
    .action((flags: DemoRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ demo }) => demo({ flags }, context))),
    );
}
