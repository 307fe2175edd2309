import type { RunFlags } from "../work/run-flags.ts";

/** What `sluice` takes when it opens the app. */
export interface AppFlags extends RunFlags {
  readonly fullscreen?: boolean;
  readonly screenReader?: boolean;
}
