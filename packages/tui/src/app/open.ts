import { systemClock } from "@sluice/core";
import { readSettings, refuseInsideRun } from "../project/environment.ts";
import type { CommandContext } from "../work/context.ts";
import type { AppFlags } from "./flags.ts";
import { firstFrame } from "./screen/first-frame.ts";

/** `sluice`: opens the app and stays until somebody quits. Returns the exit code. */
export async function openApp(flags: AppFlags, context: CommandContext): Promise<number> {
  refuseInsideRun(readSettings(context.env), "without a command");
  const around = { clock: systemClock, stdin: process.stdin, stdout: process.stdout };
  const first = flags.screenReader === true ? undefined : await firstFrame(flags, context, around);
  try {
    // What tools inherit is the user's own setting; React reads this once, while it is loaded.
    const env = { ...context.env };
    const before = process.env.NODE_ENV;
    process.env.NODE_ENV = "production";
    const { showApp } = await import("./screen/show.tsx");
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
    return await showApp(flags, { ...context, env }, around, first);
  } finally {
    first?.stream.restore();
  }
}
