import { visible } from "@sluice/core/runtime";
import { readSettings } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import { type AskTrust, createProjects, type Projects } from "../project/projects.ts";
import type { RunFlags } from "./run-flags.ts";

type Flags = RunFlags & { readonly headless?: boolean };

/** The project folders of a command; a user at the terminal is asked for trust. */
export function projectsHere(flags: Flags, context: CommandContext): Projects {
  return createProjects(flags, context, askerOf(flags, context));
}

/** Undefined in a process that a run started, even on a terminal: its user is not a person. */
function askerOf({ headless }: Flags, { terminal, env }: CommandContext): AskTrust | undefined {
  if (!terminal.interactive || headless === true || readSettings(env).insideRun !== undefined) return undefined;
  return async (question) => {
    const { linePromptOf } = await import("./line-prompt.ts");
    const answer = await linePromptOf(terminal).ask(visible(`${question}\nType yes to trust the current files: `));
    return answer?.trim() === "yes";
  };
}
