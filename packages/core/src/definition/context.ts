import type { Json, JsonObject } from "../base/json.ts";

/** How one sibling of a fan-out ended; `ctx.fork` of the state that joins under `onFailure: "settle"`. */
export type SiblingOutcome =
  | { readonly status: "completed" | "skipped" }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string };

/** What a state, a hook or a route may read: frozen data. */
export interface StageContext<Up = Readonly<Record<string, unknown>>, I = unknown, R = unknown> {
  readonly runId: string;
  /** The folder the run works in: absolute, links resolved. */
  readonly workspace: string;
  /** The run input's `task`, or ''. */
  readonly task: string;
  readonly run: { readonly input: R };
  /** This state's own input, from whoever routed here. */
  readonly input: I;
  /** The last accepted output of each state passed on the way, and of joined siblings. Outputs, never transcripts. */
  readonly upstream: Up;
  /** The run's shared object; only a route changes it. */
  readonly context: JsonObject;
  /** What the `setup` hook returned. */
  readonly setup: Json;
  /** From 1. */
  readonly attempt: number;
  /** How often this state was entered in this run, from 1. */
  readonly visit: number;
  /** What `assert` said of the last attempt. */
  readonly feedback?: string;
  /** At a join: how each sibling ended. */
  readonly fork?: Readonly<Record<string, SiblingOutcome>>;
}
