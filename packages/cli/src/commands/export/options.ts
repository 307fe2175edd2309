import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";
import type { ExportRequest } from "./action.ts";

export function addExport(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("export"))
    .summary("write a run's record to a file, or back up the store")
    .description(
      "Writes the journal of a run and its children as JSON lines: every event, and of every value its SHA-256 alone. sluice audit reads and verifies the file on a machine that has nothing else. With --values it holds real output too, and sluice replay reads it. With --all the whole store is copied into a new folder, also while runs are at work: a backup, which opens with --store and holds real output of tools. It is for you, not for others.",
    )
    .argument("[run]", "the run's id")
    .option("-o, --output <path>", "the file, - for stdout (default: <run>.jsonl); with --all the folder")
    .option(
      "--values",
      "with the values: what models said and tools returned, for sluice replay; as private as the store",
    )
    .option("--all", "back up the whole store")
    .option("--force", "replace what is there: a file, or with --all an earlier backup")
    .addHelpText(
      "after",
      examples(
        "sluice export r7k2m9x4ab -o r7k2m9x4ab.jsonl",
        "sluice audit r7k2m9x4ab.jsonl --verify",
        "sluice export r7k2m9x4ab --values -o run.jsonl",
        "sluice export --all -o ../backup",
      ),
    )
    .action((runId: string | undefined, flags: ExportRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ exportRun }) => exportRun({ runId, flags }, context))),
    );
}
