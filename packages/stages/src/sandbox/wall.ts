import type { Clock } from "@sluice/core";
import type { ProcessEnd, ProcessOptions } from "../tools/process.ts";

/** `require`: nothing runs without a wall. `try`: a wall where one can be built. `off`: none. Set by people only. */
export type SandboxMode = "require" | "try" | "off";

/** What one program may see and change. Paths that are relative are relative to `root`, "" is all of it. */
export interface WallPlan {
  /** The workspace: absolute, links resolved. */
  readonly root: string;
  /** Folders and files of the workspace that can be read. */
  readonly reads: readonly string[];
  /** Folders and files of it that can be written; empty for a stage that only reads. */
  readonly writes: readonly string[];
  /** Folders that commands may fill and that are gone afterwards, such as `node_modules/.vite-temp`. */
  readonly scratch: readonly string[];
  readonly network: boolean;
  /** Absolute paths that are not to be seen: the run store, Sluice's own folders. */
  readonly absent: readonly string[];
  /** Absolute paths that can be read and never written. */
  readonly readOnly: readonly string[];
}

export interface SandboxOptions {
  readonly mode: SandboxMode;
  readonly root: string;
  readonly absent: readonly string[];
  readonly clock?: Clock;
}

/** The OS sandbox of a session. */
export interface Sandbox {
  readonly mode: SandboxMode;
  /** Which wall was proven here; undefined before `prove`, where there is none, and once it was lost. */
  readonly wall: "bubblewrap" | "seatbelt" | undefined;
  /** Why there is none, and how to get one. */
  readonly missing: { readonly reason: string; readonly fix: string } | undefined;
  /** Finds a wall and runs the canary behind it, once. Throws Environment `sandbox_missing` where the mode is `require`. */
  prove(): Promise<void>;
  /** Runs a program behind the wall. Throws `wall_failed` when it was not built; nothing ran then. */
  run(program: ProcessOptions, plan: WallPlan): Promise<WalledEnd>;
}

export interface WalledEnd extends ProcessEnd {
  /** Paths that a later command of the host would have obeyed, and where each was moved to. */
  readonly movedAway: readonly { readonly path: string; readonly to: string }[];
}
