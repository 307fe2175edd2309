import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, outputFormatOption, withCodeOptions } from "../../options.ts";

/** The names of `HOST_NAMES`, which is loaded with the command only. */
const HOSTS = ["claude", "codex", "gemini", "qwen", "copilot", "opencode"];

export function configure(command: Command, context: CommandRun): void {
  command.addHelpText(
    "after",
    examples("sluice hook install claude --workflow plan-first", "sluice hook doctor claude"),
  );
  command.description(
    "Guards your own sessions of another agent: its hooks then ask the gateway of the folder before each call. sluice gateway run <host> is stronger and leaves your settings alone.",
  );
  withCodeOptions(
    withScope(
      command.command("install").summary("add hooks to an agent's settings"),
      "sluice hook install claude --workflow plan-first",
      "sluice hook install gemini --when-idle allow --yes",
    )
      .description(
        "Adds hooks to the settings of an agent's program, shows the changes first and asks. Everything else in the files stays as it is. With --workflow, the agent also starts the gateway of the workflow by itself. Without a gateway, the hooks refuse every call unless you choose --when-idle allow.",
      )
      .option("--workflow <name>", "the workflow whose gateway the agent starts: a name or a file")
      .addOption(
        new Option("--when-idle <answer>", "what the hooks answer while no gateway was started for the folder")
          .choices(["deny", "allow"])
          .default("deny"),
      )
      .option("--yes", "do not ask"),
  ).action(context.acts(async () => (await import("./install.ts")).install));
  withScope(
    command.command("remove").summary("remove the hooks again"),
    "sluice hook remove claude",
    "sluice hook remove codex --scope user --yes",
  )
    .description(
      "Removes what install added. A file that is unchanged since becomes exactly what it was before, or is deleted if there was none.",
    )
    .option("--yes", "do not ask")
    .action(context.acts(async () => (await import("./install.ts")).remove));
  withHost(
    command.command("doctor").summary("prove what reaches the gate"),
    "sluice hook doctor claude",
    "sluice hook doctor gemini --class guarded --json",
  )
    .description(
      "Starts the agent's program with a scripted model in place of its provider, in a folder of its own, and makes canary calls: the main agent, a subagent, a background shell, a patch tool, an MCP tool, in a hostile repository and without a gateway. Shows what ran, and the class that this version proved, which gateway run then uses. No request leaves the machine. Exit code 0 if the class is proven, 1 if not, 4 if the program is not installed.",
    )
    .addOption(new Option("--class <class>", "the class to prove").choices(["hard", "guarded"]).default("hard"))
    .option("--native", "class hard with the host's own tools (Claude Code)")
    .option("--json", "short for --output-format json")
    .addOption(outputFormatOption())
    .action(context.acts(async () => (await import("./doctor.ts")).doctorHost));
}

function withHost(command: Command, ...lines: readonly string[]): Command {
  return command
    .addHelpText("after", examples(...lines))
    .addArgument(command.createArgument("<host>", "the agent's program").choices(HOSTS));
}

function withScope(command: Command, ...lines: readonly string[]): Command {
  return withHost(command, ...lines)
    .addOption(
      new Option(
        "--scope <scope>",
        "project: the settings of this folder; user: yours, for all folders (default: project, user for codex)",
      ).choices(["project", "user"]),
    )
    .addOption(outputFormatOption())
    .option("--cwd <dir>", "the folder (default: the current folder)");
}
