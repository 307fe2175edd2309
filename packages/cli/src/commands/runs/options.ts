import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, positiveInteger, withCommonOptions } from "../../options.ts";
import type { RunsRequest } from "./action.ts";

export function addRuns(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("runs"))
    .summary("list the runs of this folder")
    .description(
      'Lists the runs in the store, newest first. A run without an end is "running" while a process works on it, else "suspended": it waits for an answer or was stopped in between, and sluice resume goes on with it.',
    )
    .option("--limit <n>", "how many to list", positiveInteger, 30)
    .addHelpText(
      "after",
      examples("sluice runs", "sluice runs --limit 5 --output-format json", "sluice runs --cwd ../other-project"),
    )
    .action((flags: RunsRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ runs }) => runs({ flags }, context))),
    );
}
