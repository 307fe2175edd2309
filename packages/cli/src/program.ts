import { Command, CommanderError } from "commander";
import type { CommandContext } from "./command-context.ts";
import { addAnswer } from "./commands/answer/options.ts";
import { withApp } from "./commands/app/options.ts";
import { addAudit } from "./commands/audit/options.ts";
import { addCancel } from "./commands/cancel/options.ts";
import { addDemo } from "./commands/demo/options.ts";
import { addDoctor } from "./commands/doctor/options.ts";
import { addExport } from "./commands/export/options.ts";
import { addFork } from "./commands/fork/options.ts";
import { addPrune } from "./commands/prune/options.ts";
import { addReplay } from "./commands/replay/options.ts";
import { addReport } from "./commands/report/options.ts";
import { addResume } from "./commands/resume/options.ts";
import { addRun } from "./commands/run/options.ts";
import { addRuns } from "./commands/runs/options.ts";
import { addShow } from "./commands/show/options.ts";
import { EXIT_CODES, examples, withBareWait } from "./options.ts";
import { formatIn } from "./output/output.ts";
import { ownVersion } from "./output/version.ts";

/** Understands the arguments and does what they say. Never rejects: every failure is told and has an exit code. */
export async function runCommand(args: readonly string[], context: CommandContext): Promise<number> {
  let exitCode = 0;
  const exitWith = async (code: Promise<number>): Promise<void> => {
    exitCode = await code;
  };
  const program = createProgram({ ...context, exitWith });
  try {
    await program.parseAsync([...withBareWait(args)], { from: "user" });
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
    const { reportFailure } = await import("./output/failure.ts");
    const failure = thrown instanceof CommanderError ? await usageError(thrown, program, args) : thrown;
    return reportFailure(failure, formatIn(args), context);
  }
}

function createProgram(context: Parameters<typeof addRun>[1]): Command {
  const program = new Command("sluice")
    .description("Runs LLM pipelines in which every tool call passes a gate and every boundary is written down.")
    .version(ownVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.terminal.out(text),
      // What went wrong is told once, at the end, in the format that was asked for.
      writeErr: () => undefined,
      outputError: () => undefined,
    })
    .configureHelp({ optionTerm: ({ flags }) => flags.replace("--wait [duration]", "--wait[=duration]") })
    .addHelpText(
      "after",
      examples(
        "sluice",
        "sluice demo",
        'sluice run codeReview "refactor the login form" --model anthropic/<model>',
        "sluice runs",
        "sluice audit <run> --verify",
      ) + EXIT_CODES,
    );
  for (const add of [
    addRun,
    addDemo,
    addRuns,
    addShow,
    addResume,
    addFork,
    addAnswer,
    addCancel,
    addAudit,
    addReplay,
    addReport,
    addExport,
    addPrune,
    addDoctor,
  ])
    add(program, context);
  return withApp(program, context);
}

async function usageError({ message }: CommanderError, program: Command, args: readonly string[]): Promise<Error> {
  const { SluiceError } = await import("@sluice/core");
  const called = program.commands.find((command) => command.name() === args[0]);
  const help = called === undefined ? "sluice --help" : `sluice ${called.name()} --help`;
  const said = message.replace(/^error: /, "").replace(/\n\((Did you mean .*)\)$/s, "; $1");
  return new SluiceError("Validation", "usage", `${said}\n${help} says what there is`);
}
