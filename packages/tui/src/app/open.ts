import { systemClock } from "@sluice/core";
import { readSettings, refuseInsideRun } from "../project/environment.ts";
import type { CommandContext } from "../work/context.ts";
import type { AppFlags } from "./flags.ts";

/** `sluice`: opens the app and stays until somebody quits. Returns the exit code. */
export async function openApp(flags: AppFlags, context: CommandContext): Promise<number> {
  refuseInsideRun(readSettings(context.env), "without a command");
  // What tools inherit is the user's own setting; React reads this once, while it is loaded.
  const env = { ...context.env };
  const before = process.env.NODE_ENV;
  process.env.NODE_ENV = "production";
  const { showApp } = await import("./screen/show.tsx");
  if (before === undefined) delete process.env.NODE_ENV;
  else process.env.NODE_ENV = before;
  return await showApp(
    flags,
    { ...context, env },
    { clock: systemClock, stdin: process.stdin, stdout: process.stdout },
  );
}
