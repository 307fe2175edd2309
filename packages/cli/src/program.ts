import { Command, CommanderError, Option } from "commander";
import type { CommandContext, CommandRun } from "./command-context.ts";
import { EXIT_CODES, examples, ownVersion, withBareOptions } from "./options.ts";

interface SubcommandOptions {
  configure(command: Command, context: CommandRun): void;
}

/** The options of a subcommand are loaded when it is called, or when its help is printed. */
const SUBCOMMANDS: Readonly<Record<string, readonly [summary: string, load: () => Promise<SubcommandOptions>]>> = {
  run: ["run a pipeline", () => import("./commands/run/options.ts")],
  demo: ["run codeReview on a sample repository, offline", () => import("./commands/demo/options.ts")],
  init: ["write a config, a pipeline and a tool to start from", () => import("./commands/init/options.ts")],
  check: ["check workflows and pipelines", () => import("./commands/check/options.ts")],
  graph: ["draw a workflow or a pipeline", () => import("./commands/graph/options.ts")],
  hook: ["guard your own sessions of another agent", () => import("./commands/hook/options.ts")],
  gateway: ["put the gate in front of another agent", () => import("./commands/gateway/options.ts")],
  runs: ["list the runs of this folder", () => import("./commands/runs/options.ts")],
  show: ["show one run", () => import("./commands/show/options.ts")],
  resume: ["resume a suspended run", () => import("./commands/resume/options.ts")],
  wake: ["continue the runs that are due", () => import("./commands/wake/options.ts")],
  serve: ["wake sleeping runs at their time", () => import("./commands/serve/options.ts")],
  acp: ["serve editors over the Agent Client Protocol", () => import("./commands/acp/options.ts")],
  fork: ["start a new run from an earlier point of a run", () => import("./commands/fork/options.ts")],
  answer: ["answer a request of a run", () => import("./commands/answer/options.ts")],
  message: ["send a message to a run", () => import("./commands/message/options.ts")],
  interrupt: ["interrupt what a run does now", () => import("./commands/interrupt/options.ts")],
  cancel: ["cancel a run", () => import("./commands/cancel/options.ts")],
  audit: ["show and verify a run's journal, or an export of it", () => import("./commands/audit/options.ts")],
  replay: ["run the current pipeline over a recorded run", () => import("./commands/replay/options.ts")],
  report: ["write a run as one HTML page", () => import("./commands/report/options.ts")],
  export: ["write a run's record to a file, or back up the store", () => import("./commands/export/options.ts")],
  prune: ["remove finished runs", () => import("./commands/prune/options.ts")],
  doctor: ["show what is missing and how to fix it", () => import("./commands/doctor/options.ts")],
};

/** Parses the arguments and runs the subcommand. Never rejects: every failure is reported and has an exit code. */
export async function runCommand(given: readonly string[], context: CommandContext): Promise<number> {
  let exitCode = 0;
  const acts: CommandRun["acts"] =
    (load) =>
    async (...parsed) => {
      const action = await load();
      exitCode = await action(context, ...parsed);
    };
  const args = withHelpFlag(withBareOptions(given));
  const run = { ...context, acts };
  const program = createProgram(run);
  try {
    if (!isSubcommand(args[0])) (await import("./commands/app/options.ts")).configure(program, run);
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
    const { failureOutputIn, reportFailure } = await import("./output/failure.ts");
    const failure = thrown instanceof CommanderError ? await usageError(thrown, args[0]) : thrown;
    return reportFailure(failure, failureOutputIn(args, context), context);
  }
}

function isSubcommand(word: string | undefined): word is string {
  return word !== undefined && Object.hasOwn(SUBCOMMANDS, word);
}

/** `help <command>` is written as `<command> --help`, which loads the command's options before it prints them. */
function withHelpFlag(args: readonly string[]): readonly string[] {
  const [first, ...rest] = args;
  if (first !== "help") return args;
  return rest.length === 0 || isSubcommand(rest[0]) ? [...rest.slice(0, 1), "--help"] : rest;
}

function createProgram(context: CommandRun): Command {
  const program = new Command("sluice")
    .description(
      "Runs LLM agents through pipelines of isolated stages. A permission gate checks every tool call, and a journal records every step.",
    )
    .version(ownVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .option(...DEBUG)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.terminal.out(text),
      // `runCommand` reports errors, in the requested output format.
      writeErr: () => undefined,
      outputError: () => undefined,
    })
    .configureHelp({ optionTerm: ({ flags }) => flags.replace(/^(--wait|--against-runs) \[(\w+)\]$/, "$1[=$2]") })
    .addHelpText(
      "after",
      examples(
        "sluice",
        "sluice demo",
        'sluice run codeReview "refactor the login form" --model anthropic/<model>',
        "sluice runs",
        "sluice audit <run> --verify",
      ) + EXIT_CODES,
    )
    .hook("preSubcommand", async (_program, command) => {
      const options = await SUBCOMMANDS[command.name()]?.[1]();
      options?.configure(command, context);
      withDebug(command);
    });
  for (const [name, [summary]] of Object.entries(SUBCOMMANDS)) program.command(name).summary(summary);
  return program;
}

const DEBUG = ["--debug", "show the stacks and causes of errors (also: SLUICE_DEBUG=1)"] as const;

/** Errors are reported from raw arguments, so the option only has to be accepted. The help of `sluice` has it. */
function withDebug(command: Command): void {
  command.addOption(new Option(...DEBUG).hideHelp());
  for (const inner of command.commands) withDebug(inner);
}

async function usageError({ message }: CommanderError, word: string | undefined): Promise<Error> {
  const { SluiceError } = await import("@sluice/core");
  const help = isSubcommand(word) ? `sluice ${word} --help` : "sluice --help";
  const reason = message.replace(/^error: /, "").replace(/\n\((Did you mean .*)\)$/s, "; $1");
  return new SluiceError("Validation", "usage", `${reason}\nSee ${help}.`);
}
