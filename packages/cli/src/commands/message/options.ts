import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ADOPT_STORE, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    'sluice message r7k2m9x4ab "leave the changelog alone"',
    "sluice message r7k2m9x4ab --follow-up run the slow tests too",
    'sluice message r7k2m9x4ab/fan-1/style "ignore the generated files"',
  )
    .description(
      "Sends a message to a run of any process. The agent that works now reads it before its next turn; with --follow-up, the next state that an agent runs reads it. A run that is suspended or sleeps gets it when it continues; a message neither resumes a run nor moves the time at which it wakes. A message approves nothing.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it; or the whole id of a child run")
    .argument("<text...>", "the message; words are joined by spaces")
    .option("--follow-up", "keep it for the next state that an agent runs")
    .option(...ADOPT_STORE)
    .action(context.acts(async () => (await import("./action.ts")).message));
}
