import type { PlaceOptions } from "../project/place.ts";
import type { RunFlags } from "../work/run-flags.ts";
import type { OutputFormat } from "./format.ts";

/** What every command takes. */
export interface CommonFlags extends PlaceOptions {
  readonly outputFormat: OutputFormat;
}

/** What `run` and `resume` share. */
export interface WorkFlags extends CommonFlags, RunFlags {
  readonly headless?: boolean;
  /** True keeps requests open, a number of milliseconds until the run is suspended. */
  readonly wait?: true | number;
  readonly failOnDenied?: boolean;
}
