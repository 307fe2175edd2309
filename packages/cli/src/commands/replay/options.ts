import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";
import type { ReplayCommand } from "./action.ts";

export function addReplay(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("replay"))
    .summary("run a pipeline again over what a run recorded")
    .description(
      "Runs today's pipeline over a recorded run: prompts, gate, hooks, schemas, asserts and routes decide anew, over the recorded answers of models, tools and people and the recorded clock. No model is asked, no tool runs, and nothing is written. Says the first place where what comes out is not what was recorded, and what that usually means.",
    )
    .argument(
      "<run|file>",
      "the run's id, or an export with values: a path that ends in .jsonl, or begins with /, ./ or ../",
    )
    .option(
      "--pipeline <name|file>",
      "replay it with this pipeline instead of looking for the run's own: a name, or a file's path with #export where it has several",
    )
    .option("--trust", "trust the config and the pipelines of this folder as they are now, and load a changed file")
    .option("--no-config", "leave sluice.config.* of this folder alone")
    // Where one looks for it first; a replay begins no run, and says what does.
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
  0  as it was recorded   2  usage, a file that cannot be read or has no values,
                             or a pipeline that is not found or not trusted
  1  something is other   4  no such run, or a record or store that is damaged
`,
    )
    .action((of: string, flags: ReplayCommand["flags"]) =>
      context.exitWith(import("./action.ts").then(({ replay }) => replay({ of, flags }, context))),
    );
}
