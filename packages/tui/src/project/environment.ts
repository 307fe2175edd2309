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
