import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { collect, examples, optionalNumber, withCodeOptions, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCodeOptions(withCommonOptions(command))
    .description(
      "Checks workflow files without running them: every mistake with its file, line and column, and how to fix it. Without a file, checks all workflows of this folder. A pipeline in TypeScript is checked by its name or file, which loads its code. Nothing is written and no model is called.",
    )
    .argument("[file...]", "a workflow's file, folder, or name in .sluice/workflows/; or a pipeline")
    .option("--sarif", "print SARIF 2.1.0, which code hosts show beside the lines")
    .option(
      "--property <property>",
      "prove over all paths, such as 'never: Bash before approved' or 'always: review after execute'; can be repeated",
      collect,
    )
    .option(
      "--simulate <file>",
      "walk the workflow with the outcomes in a JSON file, and print every decision with its rows",
    )
    .option(
      "--against-runs [n]",
      "try the workflow on the newest runs of the store: calls and routes that would differ (default: 20 runs)",
      optionalNumber,
    )
    .addHelpText(
      "after",
      `${examples(
        "sluice check",
        "sluice check .sluice/workflows/deploy.yaml",
        "sluice check deploy.json --sarif > check.sarif",
        "sluice check deploy --property 'never: Bash before approved'",
        "sluice check deploy --simulate outcomes.json",
        "sluice check deploy --against-runs=50",
      )}
Exit codes:
  0  no errors; there may be warnings         2  usage, no such workflow, or a
  1  errors, a property that is not proven,      pipeline that is not trusted
     or an outcome that does not fit          4  no store, for --against-runs
`,
    )
    .action(context.acts(async () => (await import("./action.ts")).check));
}
