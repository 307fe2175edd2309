import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(command, "sluice report r7k2m9x4ab -o run.html", "sluice report r7k2m9x4ab -o - > run.html")
    .description(
      "Writes a run as one self-contained page without scripts: the path of the run, a timeline, every stage with its transcript, tool calls and changes, grants and denials, tokens and cost, and the head of its journal. Text that looks like a secret is replaced; long text is cut and marked. If the journal was changed, the exit code is 1 and the page says so.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .option("-o, --output <file>", "the output file, - for stdout (default: <run>.html)")
    .option("--force", "replace an existing file")
    .action(context.acts(async () => (await import("./action.ts")).report));
}
