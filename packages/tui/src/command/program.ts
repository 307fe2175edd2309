import { Command, CommanderError } from "commander";
import { formatIn } from "../headless/format.ts";
import { ownVersion } from "../version.ts";
import type { CommandContext } from "../work/context.ts";
import { addAnswer } from "./answer.ts";
import { withApp } from "./app.ts";
import { addAudit } from "./audit.ts";
import { addCancel } from "./cancel.ts";
import { addDemo } from "./demo.ts";
import { addDoctor } from "./doctor.ts";
import { addExport } from "./export.ts";
import { addFork } from "./fork.ts";
import { EXIT_CODES, examples, withBareWait } from "./options.ts";
import { addPrune } from "./prune.ts";
import { addReplay } from "./replay.ts";
import { addReport } from "./report.ts";
import { addResume } from "./resume.ts";
import { addRun } from "./run.ts";
import { addRuns } from "./runs.ts";
import { addShow } from "./show.ts";

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
    const { reportFailure } = await import("../headless/failure.ts");
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
