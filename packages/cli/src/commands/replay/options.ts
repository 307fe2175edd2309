import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCodeOptions, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command)
    .description(
      "Runs the current pipeline over a recorded run. Prompts, gate, hooks, schemas, asserts and routes are evaluated again, with the recorded answers of models, tools and people and the recorded clock. No model is called, no tool runs, and nothing is written. Reports the first divergence from the record and its usual cause.",
    )
    .argument(
      "<run|file>",
      "the run's id or a unique beginning of it, or an export with values: a path that ends in .jsonl, or begins with /, ./ or ../",
    )
    .option(
      "--pipeline <name|file>",
      "use this pipeline instead of the run's own: a name, or a file's path with #export if it has several",
    );
  withCodeOptions(command)
    // Users look for it here first; the action refuses it with the `sluice fork` line to use.
    .addOption(new Option("--from <execution>").hideHelp())
    .addHelpText(
      "after",
      `${examples(
        "sluice replay r7k2m9x4ab",
        "sluice replay r7k2m9x4ab --trust --output-format json",
        "sluice export r7k2m9x4ab --values -o run.jsonl && sluice replay run.jsonl",
        "sluice replay from-ci.jsonl --pipeline ./release.ts",
      )}
Exit codes:
  0  no divergence         2  usage, a file that cannot be read or has no values,
                              or a pipeline that is not found or not trusted
  1  the replay diverged   4  no such run, or a record or store that is damaged
`,
    )
    .action(context.acts(async () => (await import("./action.ts")).replay));
}
