import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";
import type { CancelRequest } from "./action.ts";

export function addCancel(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("cancel"))
    .summary("end a run as cancelled")
    .description(
      "Ends a run and its children as cancelled, for good. A process that works on it is asked to; without one it is done here, and none of the run's code runs. To stop a run that is to go on later, send it SIGINT instead.",
    )
    .argument("<run>", "the run's id")
    .option("--reason <text>", "why; kept in the journal")
    .option("--adopt-store", "take over a store that was moved here from another machine")
    .addHelpText("after", examples("sluice cancel r7k2m9x4ab", 'sluice cancel r7k2m9x4ab --reason "wrong branch"'))
    .action((runId: string, flags: CancelRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ cancel }) => cancel({ runId, flags }, context))),
    );
}
