import { systemClock, visible } from "@sluice/core";
import { readSettings } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import { type AskTrust, createProjects, type Projects } from "../project/projects.ts";
import { createLinePrompt } from "./line-prompt.ts";
import type { RunFlags } from "./run-flags.ts";

type Flags = RunFlags & { readonly headless?: boolean };

/** The folders a command works with; whoever sits at the terminal is asked whether their code may be loaded. */
export function projectsHere(flags: Flags, context: CommandContext): Projects {
  return createProjects(flags, context, askerOf(flags, context));
}

/** A terminal of its own does not make a run's tool call a person. */
function askerOf({ headless }: Flags, { terminal, env }: CommandContext): AskTrust | undefined {
  if (!terminal.interactive || headless === true || readSettings(env).insideRun !== undefined) return undefined;
  const prompt = createLinePrompt({ input: terminal.input, output: terminal.prompts, clock: systemClock });
  return async (question) =>
    (await prompt.ask(visible(`${question}\nType yes to trust these files as they are now: `)))?.trim() === "yes";
}
