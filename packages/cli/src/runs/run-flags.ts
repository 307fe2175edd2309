import type { SecurityMode } from "@sluice/core";
import type { SandboxMode } from "@sluice/stages";
import type { OutputFormat } from "../output/formats.ts";
import type { ProjectPathOptions } from "../project/project-paths.ts";

/** How a run works here, whoever shows it. */
export interface RunFlags extends ProjectPathOptions {
  readonly model?: string;
  /** The file that all models' answers are written to. */
  readonly record?: string;
  readonly mode?: SecurityMode;
  readonly allow?: readonly string[];
  readonly maxParallel?: number;
  /** What commands run behind. */
  readonly sandbox?: SandboxMode;
  readonly adoptStore?: boolean;
  readonly trust?: boolean;
  /** Answers of any process count in the run that is started. */
  readonly answers?: "any";
  /** False leaves the project's config alone. */
  readonly config?: boolean;
}

/** What every command takes. */
export interface CommonFlags extends ProjectPathOptions {
  readonly outputFormat: OutputFormat;
}

/** What `run` and `resume` share. */
export interface ExecuteFlags extends CommonFlags, RunFlags {
  readonly headless?: boolean;
  /** True keeps requests open, a number of milliseconds until the run is suspended. */
  readonly wait?: true | number;
  readonly failOnDenied?: boolean;
}
