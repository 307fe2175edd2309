import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command)
    .description(
      "Checks workflow files without running them: every mistake with its file, line and column, and how to fix it. Without a file, checks all workflows of this folder. Nothing is written and no model is called.",
    )
    .argument("[file...]", "a workflow's file, folder, or name in .sluice/workflows/")
    .option("--sarif", "print SARIF 2.1.0, which code hosts show beside the lines")
    .addHelpText(
      "after",
      `${examples(
        "sluice check",
        "sluice check .sluice/workflows/deploy.yaml",
        "sluice check deploy.json --sarif > check.sarif",
      )}
Exit codes:
  0  no errors; there may be warnings   2  usage, or no such workflow
  1  errors
`,
    )
    .action(context.acts(async () => (await import("./action.ts")).check));
}
