import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { duration, examples, wholeNumber, withCommonOptions } from "../../options.ts";
import type { PruneRequest } from "./action.ts";

export function addPrune(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("prune"))
    .summary("remove finished runs")
    .description(
      "Removes finished runs with their children, for good: records, answers and stored texts that no other run holds. A run that is at work or suspended stays, however old. With both options a run goes only when it is old enough and not among those to be kept. sluice export writes down what is to outlive it.",
    )
    .option("--older-than <age>", "those that ended longer ago, such as 30d or 12h", duration)
    .option("--keep <n>", "all but the newest n finished runs", wholeNumber)
    .option("--dry-run", "remove nothing, and say what would go")
    .addHelpText(
      "after",
      examples("sluice prune --older-than 30d --dry-run", "sluice prune --older-than 30d", "sluice prune --keep 100"),
    )
    .action((flags: PruneRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ prune }) => prune({ flags }, context))),
    );
}
