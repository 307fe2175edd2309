import type { Json } from "@sluice/core";
import type { Turns } from "./script.ts";

/** What a recorded case holds and how it ends, written by hand: recording it again changes none of this. */
export interface Expected {
  readonly pipeline:
    | "inTurn"
    | "asking"
    | "sideBySide"
    | "release"
    | "directed"
    | "routed"
    | "sleeping"
    | "asked"
    | "nested"
    | "written";
  /** Its key events in the order of the audit, each as its type, its execution, and its main fields. */
  readonly events: readonly string[];
  /** What else `sluice audit` says. */
  readonly audit: readonly string[];
  /** What `sluice show` says. */
  readonly show: readonly string[];
  /** What the page of `sluice report` says. */
  readonly report: readonly string[];
  /** The files of its workspace, beside the pipeline's. */
  readonly files: Files;
  /** What resuming it gives; a run that has ended is refused. */
  readonly resumed: Resumed | "ended";
}

export interface Resumed {
  /** Words of `sluice answer` for the one open request, before it is resumed. */
  readonly answer?: readonly string[];
  /** What its model says from now on. */
  readonly script: Turns;
  readonly output: Json;
  /** The key events that are added. */
  readonly events: readonly string[];
  readonly files: Files;
}

export type Files = Readonly<Record<string, string>>;
