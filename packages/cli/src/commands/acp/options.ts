import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ADOPT_STORE, examples, modeOption, sandboxOption, wholeNumber } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  command
    .description(
      "Serves editors and other clients of the Agent Client Protocol on stdin and stdout, until the client disconnects. A prompt /<pipeline> <task> starts a run in the folder of the session, and /resume continues the latest one. States are entries of the plan, and calls that need approval ask in the client, each for one call. The folder's code has to be trusted already: sluice check --trust. Runs of a client that disconnects are suspended.",
    )
    .argument("[pipeline]", "the pipeline of prompts that name none; default: the project's default pipeline")
    .option(
      "--model <provider/model>",
      "the model of all stages that set none (default: SLUICE_MODEL, else the project's, else by the keys that are set)",
    )
    .addOption(modeOption("what is allowed in stages without an envelope (default: ask)"))
    .addOption(sandboxOption("sandbox for commands (default: try)"))
    .option("--max-parallel <n>", "maximum number of stages that run in parallel (default: 4)", wholeNumber(1))
    .option("--store <dir>", "the folder that holds the journals (default: .sluice/store in the workspace)")
    .option("--no-config", "ignore sluice.config.* of the folders")
    .option(...ADOPT_STORE)
    .addHelpText("after", examples("sluice acp", "sluice acp codeReview --model anthropic/<model>"))
    .action(context.acts(async () => (await import("./action.ts")).acp));
}
