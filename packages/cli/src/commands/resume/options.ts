import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ALLOW_CHANGED, ALLOW_CHANGED_HELP, EXIT_CODES, examples, withWorkOptions } from "../../options.ts";
import type { ResumeRequest } from "./action.ts";

export function addResume(program: Command, context: CommandRun): void {
  withWorkOptions(program.command("resume"))
    .summary("go on with a run that was stopped")
    .description(
      "Goes on with a run that no process works on any more, where it was: model calls and tool calls that are finished are read from the journal, never repeated. Workspace and mode are those the run was started with, and so is the model, unless one is given here. The pipeline is found again by its name or file; a file that changed since is loaded only with --trust. A pipeline that changed (states, routes, envelopes, schemas, prompts, hooks) is refused with a list of what is other, unless --allow-changed: then what is recorded stays as it is, and the run goes on with the new one. A run that a program started is resumed by that program.",
    )
    .argument("<run>", "the run's id")
    .option(ALLOW_CHANGED, ALLOW_CHANGED_HELP)
    .addHelpText(
      "after",
      examples(
        "sluice resume r7k2m9x4ab",
        "sluice resume r7k2m9x4ab --wait",
        "sluice resume r7k2m9x4ab --trust --allow-changed",
        "sluice resume r7k2m9x4ab --store /backup/store --output-format json",
      ) + EXIT_CODES,
    )
    .action((runId: string, flags: ResumeRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ resume }) => resume({ runId, flags }, context))),
    );
}
