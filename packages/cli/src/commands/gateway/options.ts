import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import {
  ADOPT_STORE,
  ALLOW_CHANGED,
  collect,
  EXIT_CODES,
  examples,
  modeOption,
  sandboxOption,
  waitTime,
  wholeNumber,
  withCodeOptions,
} from "../../options.ts";

/** The names of `HOST_NAMES`, which is loaded with the command only. */
const HOSTS = ["claude", "codex", "gemini", "qwen", "copilot", "opencode"];

export function configure(command: Command, context: CommandRun): void {
  withAgentOptions(
    command,
    "sluice gateway --workflow plan-first.yaml",
    'sluice gateway --workflow plan-first.yaml --task "rename the option" --http',
    "sluice gateway run claude --workflow plan-first.yaml",
    "sluice gateway --resume r7k2m9x4ab",
  )
    .description(
      "Puts the permission gate in front of an agent of another program. It serves one run over the Model Context Protocol, on stdin and stdout or with --http: the agent works on its states with the tools of the gateway, and every call is decided and recorded as in any run. The run starts with the agent's first call and is suspended when the agent leaves. gateway run starts a host such as Claude Code with its own tools removed, which is the documented way: beside an agent's own tools, the gateway is advisory.",
    )
    .addOption(
      new Option(
        "--elicitation <what>",
        "what the answer to a form of the client may do: deny-only (default), approve, or off for no forms; a host's hook can answer a form without a person",
      ).choices(["deny-only", "approve", "off"]),
    )
    .option("--http [port]", "serve over HTTP on the loopback interface, and print the URL and the run's token", port)
    .addOption(
      new Option("--hooks <host>", "judge the host's own tools too, for hooks of sluice hook install").choices(HOSTS),
    )
    .action(context.acts(async () => (await import("./action.ts")).gateway));
  withAgentOptions(
    command.command("run").summary("start a host behind the gate"),
    "sluice gateway run claude --workflow plan-first.yaml",
    'sluice gateway run gemini --workflow plan-first.yaml --task "rename the option" -- --model gemini-2.5-pro',
    "sluice gateway run codex --workflow plan-first.yaml --class guarded",
  )
    .description(
      "Starts an agent's program behind the gate, in the hardest class that it supports, with a configuration of its own: its settings, hooks and MCP servers do not apply. Arguments after -- are passed to it, except those that would lift the class. The run records the host, its version and the class.",
    )
    .addArgument(command.createArgument("<host>", "the agent's program").choices(HOSTS))
    .argument("[args...]", "arguments of the host, after --")
    .addOption(
      new Option(
        "--class <class>",
        "hard: the agent has the gateway's tools only; guarded: it keeps its own, and hooks ask the gateway",
      )
        .choices(["hard", "guarded"])
        .default("hard"),
    )
    .option("--native", "class hard with the host's own tools (Claude Code)")
    .action(context.acts(async () => (await import("./run-host.ts")).runHost));
}

function withAgentOptions(command: Command, ...lines: readonly string[]): Command {
  command.addHelpText("after", examples(...lines) + EXIT_CODES);
  return withCodeOptions(
    command
      .option(
        "--workflow <name>",
        "the name or the file of a pipeline or a workflow; default: the project's default pipeline",
      )
      .option("--task <text>", "the task; without it, the first prompt of the agent's user, where the host reports it")
      .option(
        "--input <key=value>",
        "further input of the pipeline: key=text, key:=json or a JSON object; can be repeated",
        collect,
      )
      .option("--resume <run>", "continue a run that an agent left")
      .option(...ALLOW_CHANGED)
      .option(
        "--wait [duration]",
        "keep requests open for sluice answer (default); with a duration, suspend the run after that time without an answer",
        waitTime,
      )
      .option("--no-wait", "deny calls outside of a phase's envelope at once")
      .addOption(modeOption("what is allowed in stages without an envelope (default: ask)"))
      .option("--allow <pattern>", "a tool pattern for --mode allowlist; can be repeated", collect)
      .addOption(sandboxOption("sandbox for commands (default: try)"))
      .option("--store <dir>", "the folder that holds the journals (default: .sluice/store in the workspace)")
      .option("--cwd <dir>", "the workspace (default: the current folder)")
      .option(...ADOPT_STORE),
  );
}

function port(text: string): number {
  return text === "" ? 0 : wholeNumber(0)(text);
}
