import type { Clock } from "@sluice/core";
import type { ResolvedModel } from "../model.ts";

/** What a session tells about itself to what stands between it and its models. */
export interface TrafficScope {
  /** The workspace's real path. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Secret values, and what each is called. Complete when the first model is called. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly clock: Clock;
}

/** Which model a session asks for. */
export interface WantedModel {
  /** The first state that works with it. */
  readonly stage: string;
  /** Its id, where it was named by one. */
  readonly named?: string | undefined;
  /** Resolves it, which needs its package and its key. */
  readonly load: () => Promise<ResolvedModel>;
}

/** Stands between a session and all of its models, those that stages name included: `recordTraffic`, `playbackTraffic`. */
export interface ModelTraffic {
  /** The model to call in the place of the wanted one. */
  model(wanted: WantedModel, place: TrafficScope): Promise<ResolvedModel>;
  /** Absolute paths of files that no run may write. */
  readonly files: readonly string[];
}
