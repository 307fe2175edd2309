import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type Json, SluiceError } from "@sluice/core";
import { redactJson, redactText } from "@sluice/core/runtime";
import { environmentSecrets } from "@sluice/stages/environment-secrets";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings from the environment; blank counts as unset. */
export interface Settings {
  /** SLUICE_STORE: the folder of the run store, unless an option names one. */
  readonly store: string | undefined;
  /** SLUICE_RUN: the run whose tool call started this process. */
  readonly insideRun: string | undefined;
}

export function readSettings(env: Environment): Settings {
  const setting = (name: string): string | undefined => env[name]?.trim() || undefined;
  return { store: setting("SLUICE_STORE"), insideRun: setting("SLUICE_RUN") };
}

/** Runs cannot approve their own requests: throws Validation `inside_run` in a process that a run started. */
export function refuseInsideRun(settings: Settings, command: string): void {
  if (settings.insideRun === undefined) return;
  throw new SluiceError(
    "Validation",
    "inside_run",
    `sluice ${command} is for people, and no run may use it: this process was started by a tool call of run ${settings.insideRun} (SLUICE_RUN is set)`,
  );
}

/** The user's state folder, outside of all projects. Throws Session `trust_unreadable` if there is no home folder. */
export function stateFolder(env: Environment): string {
  return join(absolute(env.XDG_STATE_HOME) ?? join(homeOf(env), ".local", "state"), "sluice");
}

function homeOf(env: Environment): string {
  const home = absolute(env.HOME) ?? absolute(homedir());
  if (home !== undefined) return home;
  throw new SluiceError(
    "Session",
    "trust_unreadable",
    "HOME is not an absolute path, so what you trusted cannot be looked up; set it, or XDG_STATE_HOME",
  );
}

/** Relative paths are ignored: a project could place a forged trust file in its own folder. */
function absolute(path: string | undefined): string | undefined {
  const trimmed = path?.trim() ?? "";
  return isAbsolute(trimmed) ? trimmed : undefined;
}

/** Masks secrets in texts that are shown or stored. */
export interface Cleaner {
  text(text: string): string;
  json(value: Json): Json;
}

/** Masks texts that look like a secret; the filter of their run already masked the known ones. */
export const LOOKS: Cleaner = { text: redactText, json: redactJson };

/** Also masks secrets of the environment: for errors, notices and inputs, which pass no run's filter. */
export function secretMask(env: Environment): Cleaner {
  const known = environmentSecrets(env);
  return { text: (text) => redactText(known.text(text)), json: (value) => redactJson(known.json(value)) };
}
