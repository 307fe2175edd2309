import { resolve } from "node:path";
import type { AppFlags } from "@sluice/tui";
import type { Command } from "commander";
import type { CommandContext, CommandRun } from "../../command-context.ts";
import { ADOPT_STORE, modeOption, ownVersion, sandboxOption, wholeNumber } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import type { RunFlags } from "../../runs/run-flags.ts";

/** `sluice` without a subcommand opens the app. */
export function configure(program: Command, context: CommandRun): void {
  program
    .option("--fullscreen", "app: use a separate screen; by default the terminal's scrollback keeps everything")
    .option("--screen-reader", "app: print plain lines; nothing is redrawn or animated")
    .option("--model <provider/model>", "app: the model for later runs")
    .addOption(modeOption("app: what is allowed in stages without an envelope"))
    .addOption(sandboxOption("app: sandbox for commands (default: try)"))
    .option("--max-parallel <n>", "app: maximum number of stages that run in parallel (default: 4)", wholeNumber(1))
    .option("--store <dir>", "app: the folder that holds the journals")
    .option("--cwd <dir>", "app: the workspace")
    .option(ADOPT_STORE[0], `app: ${ADOPT_STORE[1]}`)
    .option("--trust", "app: trust the current config, pipelines and workflows of this folder")
    .option("--no-config", "app: ignore sluice.config.* of this folder")
    .allowExcessArguments(true)
    .action(context.acts(async () => open));
}

async function open(context: CommandContext, flags: AppFlags & RunFlags, program: Command): Promise<number> {
  const [unknown] = program.args;
  if (unknown !== undefined) throw await unknownCommand(unknown, program);
  const { terminal } = context;
  if (!terminal.interactive) {
    terminal.err(`${program.helpInformation()}\nsluice: name a command; the app needs a terminal\n`);
    return EXIT.usage;
  }
  const [{ openApp }, { createEngine }] = await Promise.all([import("@sluice/tui"), import("./engine.ts")]);
  const workspace = resolve(context.here, flags.cwd ?? ".");
  return await openApp(flags, { ...context, workspace, version: ownVersion() }, (hooks) =>
    createEngine({ flags, context, ...hooks }),
  );
}

async function unknownCommand(word: string, program: Command): Promise<Error> {
  const [{ SluiceError }, { didYouMean }] = await Promise.all([import("@sluice/core"), import("@sluice/core/runtime")]);
  const close = didYouMean(
    word,
    program.commands.map((command) => command.name()),
  );
  const hint = close === undefined ? "" : `; Did you mean ${close}?`;
  return new SluiceError("Validation", "usage", `unknown command '${word}'${hint}\nSee sluice --help.`);
}
