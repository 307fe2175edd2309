import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command, "sluice init", "sluice init --name release --no-ci", "sluice init --workflow release")
    .description(
      "Writes what a project starts with: a commented config, a pipeline in TypeScript with a tool of its own, a script with which it runs without a model, a line for .gitignore, and a workflow for GitHub Actions. With --workflow, a pipeline in YAML instead. It asks nothing, and existing files stay as they are.",
    )
    .option("--name <name>", "the name of the pipeline (default: first)")
    .option("--workflow [name]", "write only a workflow file of this name (default: first)")
    .option("--no-ci", "write no workflow for GitHub Actions")
    .option("--dry-run", "write nothing; list what would be written")
    .action(context.acts(async () => (await import("./action.ts")).init));
}
