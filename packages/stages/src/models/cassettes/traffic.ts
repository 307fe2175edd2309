import type { Clock } from "@sluice/core";
import type { ResolvedModel } from "../model.ts";

/** The session that model traffic belongs to. */
export interface TrafficScope {
  /** The workspace's real path. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Secret values and their names. Complete when the first model is called. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly clock: Clock;
  /** The paths that no process of the session sees: the run store, and `hidden` of its sandbox. Complete when the first model is called. */
  readonly absent?: () => readonly string[];
}

/** The model that a session would call. */
export interface WantedModel {
  /** The first state that uses it. */
  readonly stage: string;
  /** Its id, if it was given by id. */
  readonly named?: string | undefined;
  /** Resolves the model, which needs its package and key. */
  readonly load: () => Promise<ResolvedModel>;
}

/** Replaces all models of a session, including those that stages name: `recordTraffic`, `playbackTraffic`. */
export interface ModelTraffic {
  /** The model to call instead of the wanted one. */
  model(wanted: WantedModel, scope: TrafficScope): Promise<ResolvedModel>;
  /** Absolute paths of files that runs must not write. */
  readonly files: readonly string[];
}
