import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ALLOW_CHANGED, withWorkOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withWorkOptions(
    command,
    "sluice resume r7k2m9x4ab",
    "sluice resume r7k2m9x4ab --wait",
    "sluice resume r7k2m9x4ab --trust --allow-changed",
    "sluice resume r7k2m9x4ab --store /backup/store --output-format json",
  )
    .description(
      "Resumes a run that no process executes. Finished model calls and tool calls are read from the journal and never repeated. The run keeps its workspace and mode, and its model unless --model sets another. If the pipeline's file has changed, it is loaded only with --trust. A changed pipeline (states, routes, envelopes, schemas, prompts, hooks) is refused with a list of the differences, unless --allow-changed is given: then the record stays as it is, and the run continues with the new pipeline. A run that a program started must be resumed by that program.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .option(...ALLOW_CHANGED)
    .action(context.acts(async () => (await import("./action.ts")).resume));
}
