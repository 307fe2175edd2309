import { type AnyState, type Clock, done, type Json, type JsonObject, pipeline, systemClock } from "@sluice/core";
import { createSession, type PollOptions, type ScriptOptions, type Session, type SessionOptions } from "@sluice/stages";
import { onTestFinished } from "vitest";
import { json } from "./run-kit.ts";
import { type TestWorkspace, tempFolder } from "./tools.ts";

export type AnyScript = ScriptOptions<Record<never, never>, unknown, unknown>;
export type AnyPoll = PollOptions<Record<never, never>, unknown, unknown>;

/** A program of node, as a command with arguments. */
export function node(program: string, ...args: readonly string[]): readonly string[] {
  return [process.execPath, "-e", program, "--", ...args];
}
/** Prints its arguments as JSON. */
export const PRINT_ARGUMENTS = "process.stdout.write(JSON.stringify(process.argv.slice(1)))";

/** A pipeline of one state. A failure completes it too, with what the failure says. */
export function only(run: AnyState) {
  return pipeline({
    id: "only",
    input: { type: "object" },
    stages: { run },
    initial: "run",
    next: {
      run: {
        completed: ({ output }) => done(json(output)),
        failed: ({ code, message, detail }) => done({ code, message, detail: detail ?? null }),
      },
    },
  });
}

export interface CommandSession extends Session {
  readonly workspace: TestWorkspace;
}
export type CommandSessionOptions = Omit<Partial<SessionOptions>, "cwd"> & {
  readonly clock?: Clock;
  readonly workspace?: TestWorkspace;
};

/** A session without a model, in a folder of its own, whose processes find node and the programs of this system. */
export function commandSession({
  env,
  workspace = tempFolder(),
  ...options
}: CommandSessionOptions = {}): CommandSession {
  const own = { PATH: process.env.PATH, HOME: workspace.root, ...env };
  const made = createSession({ sandbox: "off", clock: systemClock, ...options, env: own, cwd: workspace.root });
  onTestFinished(() => made.close());
  return Object.defineProperties({ ...made, workspace }, { host: { get: () => made.host } });
}

/** Runs a state, and returns its output or what its failure says. */
export async function play(
  state: AnyState,
  input: JsonObject = {},
  options: CommandSessionOptions = {},
): Promise<{ readonly output: Json; readonly session: CommandSession; readonly runId: string }> {
  const session = commandSession(options);
  const result = await session.run(only(state), input);
  if (result.status !== "completed") throw new Error(JSON.stringify(result));
  return { output: json(result.output), session, runId: result.runId };
}
