import { field, type Json, type JsonObject } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import type { SandboxMode } from "@sluice/stages";
import type { OutputFormat } from "../output/formats.ts";
import type { ProjectPathOptions } from "../project/project-paths.ts";

/** The options of a run in the command and in the app. */
export interface RunFlags extends ProjectPathOptions {
  readonly model?: string;
  /** The file to record model traffic to. */
  readonly record?: string;
  readonly mode?: SecurityMode;
  readonly allow?: readonly string[];
  readonly maxParallel?: number;
  readonly sandbox?: SandboxMode;
  /** What follows a provider's fault where neither the stage nor the pipeline says it. */
  readonly onProviderFault?: "suspend" | "fail";
  readonly adoptStore?: boolean;
  readonly trust?: boolean;
  /** Accept answers of any process in the new run. */
  readonly answers?: "any";
  /** False ignores the project's config. */
  readonly config?: boolean;
}

/** The options of every subcommand except `demo`. */
export interface CommonFlags extends ProjectPathOptions {
  readonly outputFormat: OutputFormat;
}

/** The options of subcommands that execute runs. */
export interface ExecuteFlags extends CommonFlags, RunFlags {
  readonly headless?: boolean;
  /** Keep requests open: without a limit, or for this many milliseconds until the run is suspended. `false`: deny them. */
  readonly wait?: boolean | number;
  readonly failOnDenied?: boolean;
  /** Suspend the run as soon as it only sleeps. */
  readonly suspendSleeps?: boolean;
}

/** Flags that a resumed run keeps, besides what its session records: the model, the mode, the sandbox and how long requests wait. */
export type KeptFlags = Pick<ExecuteFlags, "maxParallel" | "failOnDenied" | "suspendSleeps" | "onProviderFault">;

/** What a new run records of its flags; undefined if there is nothing to keep. */
export function settingsOf({ maxParallel, failOnDenied, suspendSleeps, onProviderFault }: KeptFlags): {
  readonly settings?: JsonObject;
} {
  const settings: JsonObject = {
    ...(maxParallel === undefined ? {} : { maxParallel }),
    ...(failOnDenied === true ? { failOnDenied } : {}),
    ...(suspendSleeps === true ? { suspendSleeps } : {}),
    ...(onProviderFault === undefined ? {} : { onProviderFault }),
  };
  return Object.keys(settings).length === 0 ? {} : { settings };
}

/** The same, from the data of `run.started`. A store may hold anything, so that other values are left out. */
export function keptFlags(started: Json): KeptFlags {
  const settings = field(started, "settings");
  const maxParallel = field(settings, "maxParallel");
  const fault = field(settings, "onProviderFault");
  return {
    ...(typeof maxParallel === "number" && Number.isSafeInteger(maxParallel) && maxParallel > 0 ? { maxParallel } : {}),
    ...(field(settings, "failOnDenied") === true ? { failOnDenied: true } : {}),
    ...(field(settings, "suspendSleeps") === true ? { suspendSleeps: true } : {}),
    ...(fault === "suspend" || fault === "fail" ? { onProviderFault: fault } : {}),
  };
}
