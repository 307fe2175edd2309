import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { collect, EXIT_CODES, examples, withWorkOptions } from "../../options.ts";
import type { RunRequest } from "./action.ts";

export function addRun(program: Command, context: CommandRun): void {
  withWorkOptions(program.command("run"))
    .summary("run a pipeline")
    .description(
      "Runs a pipeline in this folder and shows what happens at each boundary. The pipeline is named by what it is called (in sluice.config.ts or .sluice/pipelines/ of this folder, else bundled: codeReview, fixTests), or by the path of its file, with #export where the file exports several. Without a terminal, or with --headless, nobody is asked: a call outside its stage's envelope is denied, and the run goes on.",
    )
    .argument("[pipeline]", "a pipeline's name, or its file; the project's default when omitted")
    .argument("[task...]", "what is to be done; words are joined by spaces")
    .option(
      "--input <key=value>",
      "input of the pipeline: key=text, key:=json, or - for a JSON object on stdin; may be repeated",
      collect,
    )
    .addOption(
      new Option(
        "--answers <which>",
        "let answers of any process count, without a code: for places with neither a wall nor a terminal",
      ).choices(["any"]),
    )
    .addHelpText(
      "after",
      examples(
        'sluice run codeReview "parseDuration drops the minutes" --model anthropic/<model>',
        "sluice run fixTests make the tests pass --output-format json > result.json",
        "sluice run ./pipelines/release.ts#notes --input version=1.4.0 --input dryRun:=true",
        'sluice run codeReview "rename the option" --wait=30m --fail-on-denied',
        "sluice run codeReview fix the typo --model scripted:turns.json",
      ) + EXIT_CODES,
    )
    .action((pipeline: string | undefined, task: readonly string[], flags: RunRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ run }) => run({ pipeline, task, flags }, context))),
    );
}
