import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCodeOptions, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCodeOptions(
    withCommonOptions(
      command,
      "sluice graph .sluice/workflows/deploy.yaml",
      "sluice graph codeReview --format mermaid",
      "sluice graph deploy -o deploy.svg",
    ),
  )
    .description(
      "Draws a workflow or a pipeline: its states with their tools, its transitions with their conditions, approvals, ends, interrupts and branches. With --output-format json, prints nodes, edges and groups.",
    )
    .argument("<pipeline>", "a workflow's file, folder, or name in .sluice/workflows/; or a pipeline")
    .addOption(
      new Option(
        "--format <format>",
        "ascii, mermaid or svg (default: by the name of the output file, else ascii)",
      ).choices(["ascii", "mermaid", "svg"]),
    )
    .option("-o, --output <file>", "the output file, - for stdout (default: -)")
    .option("--force", "replace an existing file")
    .action(context.acts(async () => (await import("./action.ts")).graph));
}
