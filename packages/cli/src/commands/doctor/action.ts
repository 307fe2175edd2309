import type { JsonObject } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { readSettings, secretMask } from "@sluice/tui/user";
import type { Tone } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, STOPPED } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import type { Terminal } from "../../output/terminal.ts";
import { choiceOf } from "../../project/model.ts";
import { projectPathsOf, workspaceOf } from "../../project/project-paths.ts";
import { createProjects } from "../../project/projects.ts";
import { createTrust } from "../../project/trust.ts";
import { onStopSignal } from "../../runs/follow-run.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import type { Check } from "./checks/check.ts";
import { checkMachine, checkSandbox } from "./checks/machine.ts";
import { checkMcpServers } from "./checks/mcp.ts";
import { checkModels } from "./checks/models.ts";
import { checkProject } from "./checks/project.ts";
import { checkStore } from "./checks/store.ts";
import { checkTerminal } from "./checks/terminal.ts";

/** `sluice doctor`: checks what a run would find here. Connects only to the local Ollama and to trusted MCP servers. */
export async function doctor(context: CommandContext, flags: CommonFlags): Promise<number> {
  // Exiting through process.exit also ends the processes of MCP servers.
  const ignoreSignals = onStopSignal((signal) => process.exit(STOPPED[signal]));
  try {
    return await examine(context, flags);
  } finally {
    ignoreSignals();
  }
}

async function examine(context: CommandContext, flags: CommonFlags): Promise<number> {
  const { terminal, env, here } = context;
  const workspace = workspaceOf(flags, here);
  const project = await checkProject(workspace, createTrust(env), createProjects(flags, context, undefined));
  const store = flags.store ?? readSettings(env).store;
  const place = projectPathsOf({ ...flags, store }, here, project.config?.settings.store);
  const found = [
    ...(await checkMachine(workspace, env)),
    await checkSandbox(workspace, place),
    ...(await checkModels(choiceOf(project.config, env), workspace)),
    ...(await checkStore(place)),
    ...project.checks,
    ...(await checkMcpServers(project.config, place, context)),
    ...checkTerminal(terminal.facts(), env),
  ];
  // A message may contain a key.
  const clean = secretMask(env).text;
  const checks = found.map((check) => ({
    ...check,
    message: clean(check.message),
    ...(check.fix === undefined ? {} : { fix: clean(check.fix) }),
  }));
  const blocked = checks.filter(({ blocks }) => blocks === true).map(({ name }) => name);
  write(flags.outputFormat, terminal, {
    json: { ready: blocked.length === 0, blockedBy: blocked, workspace, store: place.store },
    items: { key: "checks", each: checks.map((check): JsonObject => ({ ...check })) },
    text: () => [...linesOf(checks, terminal), "", verdict(blocked, terminal)],
  });
  return blocked.length === 0 ? EXIT.completed : EXIT.environment;
}

const STATUS = 7;
const TONES: Readonly<Record<Check["status"], Tone>> = { ok: "good", warning: "notice", missing: "faint" };

function linesOf(checks: readonly Check[], terminal: Terminal): readonly string[] {
  const width = Math.max(...checks.map(({ name }) => visible(name).length));
  const indent = " ".repeat(width + STATUS + 4);
  return checks.flatMap(({ name, status, message, fix, blocks }) => {
    const [first = "", ...rest] = visible(message).split("\n");
    const about = terminal.paint("out", "name", visible(name).padEnd(width));
    const found = terminal.paint("out", blocks === true ? "bad" : TONES[status], status.padEnd(STATUS));
    const further = [...rest, ...(fix === undefined ? [] : [`-> ${visible(fix)}`])];
    return [`${about}  ${found}  ${first}`, ...further.map((line) => `${indent}${line}`)];
  });
}

function verdict(blocked: readonly string[], terminal: Terminal): string {
  if (blocked.length === 0) return terminal.paint("out", "good", "A run can start here.");
  return terminal.paint("out", "bad", `No run can start here. Fix ${[...new Set(blocked)].join(", ")}.`);
}
