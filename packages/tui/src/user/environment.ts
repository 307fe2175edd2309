import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { SluiceError } from "@sluice/core";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a user of the command sets in the environment; blank counts as not set. */
export interface Settings {
  /** SLUICE_STORE: the folder that holds the journals when none is named. */
  readonly store: string | undefined;
  /** SLUICE_RUN: the run whose tool call started this process. */
  readonly insideRun: string | undefined;
}

export function readSettings(env: Environment): Settings {
  const setting = (name: string): string | undefined => env[name]?.trim() || undefined;
  return { store: setting("SLUICE_STORE"), insideRun: setting("SLUICE_RUN") };
}

/** Nobody approves himself. Throws Validation `inside_run` in a process that a run started. */
export function refuseInsideRun(settings: Settings, command: string): void {
  if (settings.insideRun === undefined) return;
  throw new SluiceError(
    "Validation",
    "inside_run",
    `sluice ${command} is for people, and no run may use it: this process was started by a tool call of run ${settings.insideRun} (SLUICE_RUN is set)`,
  );
}

/** Where a user's own state is kept, outside of all projects. Throws Session `trust_unreadable` where nothing says where. */
export function stateFolder(env: Environment): string {
  return join(absolute(env.XDG_STATE_HOME) ?? join(homeOf(env), ".local", "state"), "sluice");
}

function homeOf(env: Environment): string {
  const home = absolute(env.HOME) ?? absolute(homedir());
  if (home !== undefined) return home;
  throw new SluiceError(
    "Session",
    "trust_unreadable",
    "HOME is no absolute path, so what you trusted cannot be looked up; set it, or XDG_STATE_HOME",
  );
}

/** A relative path would lead into the folder somebody stands in, which may hold a trust of its own making. */
function absolute(path: string | undefined): string | undefined {
  const trimmed = path?.trim() ?? "";
  return isAbsolute(trimmed) ? trimmed : undefined;
}
