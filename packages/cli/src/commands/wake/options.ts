import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { wholeNumber, withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice wake",
    "sluice wake --store /var/lib/sluice --max-parallel 4",
    "* * * * * cd /srv/project && sluice wake   (a line of crontab -e)",
  )
    .description(
      "Continues every run of the store that is due: its time to wake has come, an answer or a message arrived, or its process died after it had slept. Each run is followed until it ends, sleeps again or waits for a person, and then gets one line. Requests stay open; the line names the command that answers. A run whose folder, pipeline or trust is missing is reported and skipped. Exit code 0 if every due run was continued, 1 if one failed or was cancelled, 4 if one could not be continued.",
    )
    .option("--max-parallel <n>", "maximum number of runs that are awake at once (default: 16)", wholeNumber(1))
    .action(context.acts(async () => (await import("./action.ts")).wake));
}
