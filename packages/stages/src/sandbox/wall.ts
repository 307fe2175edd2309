import type { Clock } from "@sluice/core";
import type { ProcessEnd, ProcessOptions } from "../tools/bash/process.ts";

/** `require`: nothing runs without a wall. `try`: a wall where one can be built. `off`: none. Set by people only. */
export type SandboxMode = "require" | "try" | "off";

/** How the commands of a session are held. */
export interface SandboxSettings {
  /** `try` when omitted. */
  readonly mode?: SandboxMode;
  /** Whether commands of all stages reach the network. Default: no. */
  readonly network?: boolean;
  /** Folders of the workspace that commands of stages that may not write files can fill; gone after each command. */
  readonly scratch?: readonly string[];
  /** Absolute paths that no command sees, besides the run store. */
  readonly hidden?: readonly string[];
  /** Variables that a command line may set besides `CI`, `NO_COLOR`, `FORCE_COLOR`, `LC_*`, `LANG`, `TZ` and `NODE_ENV`. */
  readonly variables?: readonly string[];
}

/** What one program may see and change. Paths that are relative are relative to `root`, "" is all of it. */
export interface SandboxPlan {
  /** The workspace: absolute, links resolved. */
  readonly root: string;
  /** Folders and files of the workspace that can be read, or elsewhere when absolute. */
  readonly reads: readonly string[];
  /** Folders and files of it that can be written, or elsewhere when absolute; empty for a stage that only reads. What is not there is not made. */
  readonly writes: readonly string[];
  /** Folders that commands may fill and that are gone afterwards, such as `node_modules/.vite-temp`. */
  readonly scratch: readonly string[];
  /** Whether it shares the machine's network: then abstract Unix sockets can be reached too, such as those of a desktop. */
  readonly network: boolean;
  /** Absolute paths that are not to be seen: the run store, Sluice's own folders. */
  readonly absent: readonly string[];
  /** Absolute paths that are never written. It shows none that is not to be read anyway. */
  readonly readOnly: readonly string[];
}

export interface SandboxOptions {
  readonly mode: SandboxMode;
  readonly root: string;
  /** Paths that the canary must not see; asked when it runs. */
  readonly absent: () => readonly string[];
  /** Where the program that builds the wall is looked for, in full; where systems have it when omitted. */
  readonly programs?: readonly string[];
  readonly clock?: Clock;
}

/** Under `try`, that there is no wall; said once, by the first run that could start a process. */
export interface SandboxFault {
  readonly by: "sandbox";
  readonly message: string;
}

/** The OS sandbox of a session. */
export interface Sandbox {
  readonly mode: SandboxMode;
  /** Which wall was proven here; undefined before `prove`, where there is none, and once it was lost. */
  readonly wall: "bubblewrap" | "seatbelt" | undefined;
  /** Whether there was one that cannot be built any more: what it held is not run without it. */
  readonly isLost: boolean;
  /** Why there is none, and how to get one. */
  readonly missing: { readonly reason: string; readonly fix: string } | undefined;
  /** Finds a wall and runs the canary behind it, once. Throws Environment `sandbox_missing` where the mode is `require`. */
  prove(): Promise<void>;
  /** Runs a program behind the wall. Throws `wall_failed` when it was not built; nothing ran then. */
  run(program: ProcessOptions, plan: SandboxPlan): Promise<SandboxedExit>;
  /**
   * What to start in place of a program that is talked to as long as it lives, such as a server. It ends with its parent. What
   * it leaves in the workspace is not looked at. Throws `wall_failed` where there is no wall.
   */
  wrap(program: Pick<ProcessOptions, "file" | "args" | "cwd" | "env">, plan: SandboxPlan): Promise<SandboxedProgram>;
}

export interface SandboxedProgram {
  readonly file: string;
  readonly args: readonly string[];
}

export interface SandboxedExit extends ProcessEnd {
  /** Paths that a later command of the host would have obeyed, and where each was moved to. */
  readonly movedAway: readonly { readonly path: string; readonly to: string }[];
}
