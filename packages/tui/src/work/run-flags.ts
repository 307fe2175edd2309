import type { SecurityMode } from "@sluice/core";
import type { SandboxMode } from "@sluice/stages";
import type { PlaceOptions } from "../project/place.ts";

/** How a run works here, whoever shows it. */
export interface RunFlags extends PlaceOptions {
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
