import { systemClock } from "@sluice/core";
import type { AppContext, AppFlags, Engine, EngineHooks } from "../app/engine.ts";
import { readSettings, refuseInsideRun } from "../user/environment.ts";
import { firstFrame } from "./first-frame.ts";

/** Runs the app until the user quits. Returns the exit code. */
export async function openApp(
  flags: AppFlags,
  context: AppContext,
  createEngine: (hooks: EngineHooks) => Engine,
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "without a command");
  const around = { clock: systemClock, stdin: process.stdin, stdout: process.stdout };
  const first = flags.screenReader === true ? undefined : await firstFrame(flags, context, around);
  try {
    // React reads NODE_ENV once, on import; tools inherit the user's own value.
    const env = { ...context.env };
    const before = process.env.NODE_ENV;
    process.env.NODE_ENV = "production";
    const { showApp } = await import("./show.tsx");
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
    return await showApp(flags, { ...context, env }, createEngine, around, first);
  } finally {
    first?.stream.restore();
  }
}
