import type { SecurityMode } from "@sluice/core";
import type { PlaceOptions } from "../project/place.ts";
import type { OutputFormat } from "./format.ts";

/** What every command takes. */
export interface CommonFlags extends PlaceOptions {
  readonly outputFormat: OutputFormat;
}

/** What `run` and `resume` share: how a run works here. */
export interface WorkFlags extends CommonFlags {
  readonly model?: string;
  /** The file that all models' answers are written to. */
  readonly record?: string;
  readonly headless?: boolean;
  /** True keeps requests open, a number of milliseconds until the run is suspended. */
  readonly wait?: true | number;
  readonly mode?: SecurityMode;
  readonly allow?: readonly string[];
  readonly maxParallel?: number;
  readonly adoptStore?: boolean;
  readonly failOnDenied?: boolean;
  readonly trust?: boolean;
  /** False leaves the project's config alone. */
  readonly config?: boolean;
}
