import type { AppFlags } from "@sluice/tui";
import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { positiveInteger } from "../../options.ts";
import type { RunFlags } from "../../runs/run-flags.ts";

const USAGE_EXIT = 2;

/** `sluice` without a subcommand: the app, where somebody sits at a terminal. */
export function withApp(program: Command, context: CommandRun): Command {
  return program
    .enablePositionalOptions()
    .option("--fullscreen", "the app on a screen of its own; without it the terminal's scrollback keeps everything")
    .option("--screen-reader", "the app in plain lines: nothing is drawn twice, nothing moves")
    .option("--model <provider/model>", "in the app: the model of later runs")
    .addOption(
      new Option("--mode <mode>", "in the app: what decides in stages that have no envelope").choices([
        "ask",
        "allowlist",
        "yolo",
      ]),
    )
    .addOption(
      new Option("--sandbox <mode>", "in the app: what commands run behind (default: try)").choices([
        "require",
        "try",
        "off",
      ]),
    )
    .option("--max-parallel <n>", "in the app: stages of a run at work at once (default: 4)", positiveInteger)
    .option("--store <dir>", "in the app: the folder that holds the journals")
    .option("--cwd <dir>", "in the app: the workspace")
    .option("--adopt-store", "in the app: take over a store that was moved here from another machine")
    .option("--trust", "in the app: trust the config and the pipelines of this folder as they are now")
    .option("--no-config", "in the app: leave sluice.config.* of this folder alone")
    .allowExcessArguments(true)
    .action(async (flags: AppFlags & RunFlags, command: Command) => {
      const [unknown] = command.args;
      if (unknown !== undefined) throw await unknownCommand(unknown, program);
      await context.exitWith(open(flags, program, context));
    });
}

async function open(flags: AppFlags & RunFlags, program: Command, context: CommandRun): Promise<number> {
  const { terminal } = context;
  if (!terminal.interactive) {
    terminal.err(`${program.helpInformation()}\nsluice: name a command; the app needs a terminal\n`);
    return USAGE_EXIT;
  }
  const [{ openApp }, { createEngine }, { ownVersion }] = await Promise.all([
    import("@sluice/tui"),
    import("./engine.ts"),
    import("../../output/version.ts"),
  ]);
  return await openApp(flags, { ...context, version: ownVersion() }, (hooks) =>
    createEngine({ flags, context, ...hooks }),
  );
}

async function unknownCommand(word: string, program: Command): Promise<Error> {
  const { didYouMean, SluiceError } = await import("@sluice/core");
  const close = didYouMean(
    word,
    program.commands.map((command) => command.name()),
  );
  const hint = close === undefined ? "" : `; Did you mean ${close}?`;
  return new SluiceError("Validation", "usage", `unknown command '${word}'${hint}\nsluice --help says what there is`);
}
