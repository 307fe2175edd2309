import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ALLOW_CHANGED, ALLOW_CHANGED_HELP, EXIT_CODES, examples, withWorkOptions } from "../../options.ts";
import type { ForkCommand } from "./action.ts";

export function addFork(program: Command, context: CommandRun): void {
  withWorkOptions(program.command("fork"))
    .summary("go on in a new run from an earlier point of a run")
    .description(
      "Makes a new run whose record begins with the past of another, up to just before an execution, and really goes on from there, with models and tools. The other run may be finished, cancelled, suspended or at work, and stays as it is. Files are not taken back: the new run finds them as they are now, and what the other one changed since is listed. What was granted there is asked again here; what was spent before that point counts.",
    )
    .argument("<run>", "the run's id")
    .option("--from <execution>", "the execution to go on before, such as review#1, as sluice show lists them")
    .option(ALLOW_CHANGED, ALLOW_CHANGED_HELP)
    .addHelpText(
      "after",
      examples(
        "sluice fork r7k2m9x4ab --from review#1",
        "sluice fork r7k2m9x4ab --from execute#2 --model anthropic/<model>",
        "sluice fork r7k2m9x4ab --from plan#1 --allow-changed --mode ask",
      ) + EXIT_CODES,
    )
    .action((runId: string, flags: ForkCommand["flags"]) =>
      context.exitWith(import("./action.ts").then(({ fork }) => fork({ runId, flags }, context))),
    );
}
