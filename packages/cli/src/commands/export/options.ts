import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice export r7k2m9x4ab -o r7k2m9x4ab.jsonl",
    "sluice audit r7k2m9x4ab.jsonl --verify",
    "sluice export r7k2m9x4ab --values -o run.jsonl",
    "sluice export --all -o ../backup",
  )
    .description(
      "Writes the journal of a run and its child runs as JSON lines: every event, and the SHA-256 of every value. sluice audit reads and verifies the file without the store. With --values it also holds model output and tool results, and sluice replay can read it. With --all it copies the whole store into a new folder, also while runs are active. This backup opens with --store and holds the values of all runs: do not share it.",
    )
    .argument("[run]", "the run's id, or a unique beginning of it")
    .option(
      "-o, --output <path>",
      "the output file, - for stdout (default: <run>.jsonl); with --all, the output folder",
    )
    .option(
      "--values",
      "include values: model output and tool results, for sluice replay; the file is as private as the store",
    )
    .option("--all", "back up the whole store")
    .option("--force", "replace an existing file; with --all, an earlier backup")
    .action(context.acts(async () => (await import("./action.ts")).exportRun));
}
