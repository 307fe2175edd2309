import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice doctor",
    "sluice doctor --output-format json",
    "sluice doctor --cwd ../other-project",
  )
    .description(
      "Checks what a run would find in this folder: Node, programs, providers and their keys (never printing a key's value), the model it would use and why, the store, the project's config and pipelines and whether you trust them, MCP servers, and the terminal. It changes nothing, but moves away what a command of a killed process left. It connects only to the local Ollama and to the MCP servers of a trusted config, which it starts. Exit code 0 if a run can start, 4 if not.",
    )
    .action(context.acts(async () => (await import("./action.ts")).doctor));
}
