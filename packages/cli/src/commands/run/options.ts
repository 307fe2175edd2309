import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { collect, withWorkOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withWorkOptions(
    command,
    'sluice run codeReview "parseDuration drops the minutes" --model anthropic/<model>',
    "sluice run fixTests make the tests pass --output-format json > result.json",
    'sluice run bugfix.yaml "the parser drops the last line"',
    "sluice run ./pipelines/release.ts#notes --input version=1.4.0 --input dryRun:=true",
    'sluice run codeReview "rename the option" --wait=30m --fail-on-denied',
    "sluice run codeReview fix the typo --model scripted:turns.json",
    'sluice run codeReview "the login form" --from review --input diff="$(git diff)"',
  )
    .description(
      "Runs a pipeline in this folder and prints a line for every step. The pipeline is a name from sluice.config.ts, .sluice/pipelines/ or .sluice/workflows/ of this folder, a bundled pipeline (codeReview, fixTests, auto), or a path: of a file in TypeScript, with #export if it exports several, of a workflow in YAML or JSON, or of a folder of stages. Without a terminal, or with --headless, calls outside a stage's envelope are denied, and the run continues.",
    )
    .argument("[pipeline]", "the name or the file of a pipeline; default: the project's default pipeline")
    .argument("[task...]", "the task; words are joined by spaces")
    .option(
      "--input <key=value>",
      "input of the pipeline, or with --from, of the state: key=text, key:=json, a JSON object, or - for one on stdin; can be repeated",
      collect,
    )
    .option("--from <state>", "start in this state instead of the initial one; no earlier state has run")
    .option("--run-input <key=value>", "with --from: input of the pipeline, besides the task; as --input", collect)
    .addOption(
      new Option(
        "--answers <which>",
        "accept answers from any process without a code, for machines with neither a sandbox nor a terminal",
      ).choices(["any"]),
    )
    .action(context.acts(async () => (await import("./action.ts")).run));
}
