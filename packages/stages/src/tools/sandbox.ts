import type { Clock } from "@sluice/core";
import type { ProcessEnd, ProcessOptions } from "./bash/process.ts";

/** `require`: nothing runs without a sandbox. `try`: a sandbox where one can be created. `off`: none. Only people set it. */
export type SandboxMode = "require" | "try" | "off";

/** Settings of a session's sandbox. */
export interface SandboxSettings {
  /** `try` when omitted. */
  readonly mode?: SandboxMode;
  /** Whether the commands of all stages reach the network. Default: false. */
  readonly network?: boolean;
  /** Folders of the workspace that commands of read-only stages may fill; emptied after each command. */
  readonly scratch?: readonly string[];
  /** Absolute paths that commands cannot see, in addition to the run store. */
  readonly hidden?: readonly string[];
  /** Variables that a command line may set, in addition to `CI`, `NO_COLOR`, `FORCE_COLOR`, `LC_*`, `LANG`, `TZ` and `NODE_ENV`. */
  readonly variables?: readonly string[];
}

/** What a program may see and change. Relative paths start at `root`; "" is all of it. */
export interface SandboxPlan {
  /** The workspace: absolute, links resolved. */
  readonly root: string;
  /** Readable paths; absolute ones may lie outside the workspace. */
  readonly reads: readonly string[];
  /** Writable paths, like `reads`; empty for a read-only stage. Missing ones are not created. */
  readonly writes: readonly string[];
  /** Folders that commands may fill and that are emptied afterwards, such as `node_modules/.vite-temp`. */
  readonly scratch: readonly string[];
  /** Whether it shares the machine's network, and with it abstract Unix sockets such as those of a desktop. */
  readonly network: boolean;
  /** Absolute paths that are hidden: the run store, Sluice's own folders. */
  readonly absent: readonly string[];
  /** Absolute paths that are read-only even inside writable ones. Listing a path here does not make it readable. */
  readonly readOnly: readonly string[];
}

/** What the command of a state may do in the sandbox. */
export type CommandReach = Pick<SandboxPlan, "writes" | "scratch" | "network" | "readOnly">;

export interface SandboxOptions {
  readonly mode: SandboxMode;
  readonly root: string;
  /** Hidden paths that the canary must not see, evaluated when it runs. */
  readonly absent: () => readonly string[];
  /** The folder of the run store, which no command sees; undefined without one on disk. */
  readonly store?: () => string | undefined;
  /** Absolute paths of the sandbox program; the usual ones when omitted. */
  readonly programs?: readonly string[];
  readonly clock?: Clock;
}

/**
 * Reported once in mode `try` if there is no sandbox, by the first run that could start a process; and when a run starts, about what
 * commands of killed processes left.
 */
export interface SandboxFault {
  readonly by: "sandbox";
  readonly message: string;
}

/** The OS sandbox of a session. */
export interface Sandbox {
  readonly mode: SandboxMode;
  /** The kind of sandbox that was proven; undefined before `prove`, without a sandbox, and after it was lost. */
  readonly wall: "bubblewrap" | "seatbelt" | undefined;
  /** Whether a proven sandbox can no longer be created. Its commands are not run without it. */
  readonly isLost: boolean;
  /** Why there is no sandbox, and how to get one. */
  readonly missing: { readonly reason: string; readonly fix: string } | undefined;
  /** Finds a sandbox and runs the canary in it, once. Throws Environment `sandbox_missing` in mode `require`. */
  prove(): Promise<void>;
  /** Runs a program in the sandbox. Throws `sandbox_failed` if it could not be created; nothing ran then. */
  run(program: ProcessOptions, plan: SandboxPlan): Promise<SandboxedExit>;
  /**
   * Does work of a program that runs in the sandbox already, such as a call of a server, and moves away what appeared meanwhile,
   * also if the work fails. Throws `sandbox_failed` if something could not be moved. Then nothing runs while that is there.
   */
  watched<T>(env: ProcessOptions["env"], plan: SandboxPlan, work: () => Promise<T>): Promise<WatchedWork<T>>;
  /**
   * The command that starts a long-lived program, such as a server, in the sandbox. It ends with its parent. Obeyed files
   * that it creates are moved away only by `watched`. Throws `sandbox_failed` without a sandbox.
   */
  wrap(program: Pick<ProcessOptions, "file" | "args" | "cwd" | "env">, plan: SandboxPlan): Promise<SandboxedProgram>;
}

/** The command that starts a program in the sandbox. */
export interface SandboxedProgram {
  readonly file: string;
  readonly args: readonly string[];
  /**
   * Whether all that it must not see or change is still what it was: a file that was replaced from outside is not protected any
   * more, and one that was made since never was. Throws `sandbox_failed` if something in the workspace cannot be protected.
   */
  isIntact(): Promise<boolean>;
}

/** What work returned, and what was moved away after it. */
export interface WatchedWork<T> extends Pick<SandboxedExit, "movedAway"> {
  readonly end: T;
}

/** How a program in the sandbox ended. */
export interface SandboxedExit extends ProcessEnd {
  /** New paths that a later command of the host would obey, and where each was moved. */
  readonly movedAway: readonly { readonly path: string; readonly to: string }[];
}
