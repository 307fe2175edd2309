import type { Command } from "commander";
import type { RunsRequest } from "../headless/runs.ts";
import type { CommandRun } from "./context.ts";
import { examples, positiveInteger, withCommonOptions } from "./options.ts";

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
      context.exitWith(import("../headless/runs.ts").then(({ runs }) => runs({ flags }, context))),
    );
}
