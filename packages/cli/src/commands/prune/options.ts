import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { duration, wholeNumber, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice prune --older-than 30d --dry-run",
    "sluice prune --older-than 30d",
    "sluice prune --keep 100",
  )
    .description(
      "Removes finished runs and their child runs permanently: records, answers and stored texts that no other run refers to. Active and suspended runs are kept, whatever their age. With both options, a run is kept if either option keeps it. Use sluice export for records that you want to keep.",
    )
    .option("--older-than <age>", "remove runs that ended longer ago, such as 30d or 12h", duration)
    .option("--keep <n>", "keep the newest n finished runs", wholeNumber(0))
    .option("--dry-run", "remove nothing; list what would be removed")
    .action(context.acts(async () => (await import("./action.ts")).prune));
}
