import type { RunHost } from "@sluice/core";
import type { Points } from "./points.ts";

export interface WorldOptions {
  readonly folder: string;
  readonly points: Points;
  /** How long its one sleep is. */
  readonly napMs?: number;
  /** Brings a program that is another than the one the run was started with. */
  readonly changed?: boolean;
}

/** What a process does with a run. */
export interface OpenedWorld {
  readonly host: RunHost;
  /** Works on a new run until it ends; its status. */
  start(): Promise<string>;
  resume(runId: string): Promise<string>;
  close(): Promise<void>;
}
