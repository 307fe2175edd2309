// What the machine is given and what it decides, as data.
import type { Json, JsonObject } from "../base/json.ts";
import type { Cancelled, StageContext, StageResult } from "../definition/result.ts";
import type { NextDecision, RejectedRow } from "./decide-next.ts";
import type { LegalEvent } from "./legal-events.ts";
import type { Entered, Patch, PendingFanOut } from "./machine-state.ts";
import type { RefusedTarget } from "./route-targets.ts";
import type { StartAt } from "./start-at.ts";

/** What has happened to a run. */
export type MachineInput =
  /** The run begins in the initial state, or in the state of `at`. */
  | { readonly kind: "start"; readonly at?: StartAt }
  /**
   * The state that was entered last has ended. `ctx` is what its hooks read; without it the view's own context. `refused` is what
   * a state that chooses chose and was refused.
   */
  | {
      readonly kind: "result";
      readonly result: StageResult<Json>;
      readonly ctx?: StageContext;
      readonly refused?: readonly RefusedTarget[];
    }
  /** All children of the pending fan-out have ended, in their declared order. */
  | { readonly kind: "children"; readonly ended: readonly ChildEnd[] }
  | { readonly kind: "cancelled"; readonly reason: string }
  /** A person interrupted the execution of the state that was entered last, which has ended as cancelled. */
  | {
      readonly kind: "interrupted";
      readonly result: Cancelled;
      readonly by: string;
      /** Empty if the person gave none. */
      readonly reason: string;
      /** Interrupts that its calls started before, to be handled in the next visit. */
      readonly missed?: Entered["missed"];
    }
  /** The state that was entered last asks to move. `ctx` is what its hooks read; without it the view's own context. */
  | { readonly kind: "event"; readonly event: string; readonly data: JsonObject; readonly ctx?: StageContext }
  /** A changed file, with its path in the workspace, matched an interrupt. */
  | {
      readonly kind: "interrupt";
      readonly name: string;
      readonly path: string;
      /** Every file that matched; `path` is one of them. Without it, `path` alone. */
      readonly files?: readonly string[];
    }
  /** A message has arrived for the orchestrator of a run, whose last state sleeps until a time in epoch milliseconds. */
  | { readonly kind: "message"; readonly until: number }
  /** A person answered the question of an `approve` effect. */
  | {
      readonly kind: "answer";
      /** What the decision is about. */
      readonly of: Extract<MachineInput, { readonly kind: "event" | "result" | "children" }>;
      /** Of the effect. */
      readonly decision: NextDecision;
      readonly approved: boolean;
      /** Why not. */
      readonly reason?: string;
    };

/** How one child of a fan-out ended. */
export type ChildEnd = { readonly key: string; readonly turns: number } & (
  | { readonly status: "completed"; readonly output: Json }
  | { readonly status: "skipped" }
  | {
      readonly status: "failed" | "cancelled";
      readonly code: string;
      readonly message: string;
      /** Where code of the pipeline threw. */
      readonly at?: string;
    }
);

/** What a run does next. */
export type Effect =
  | { readonly kind: "enter"; readonly state: string; readonly input: Json }
  | { readonly kind: "fanOut"; readonly fanOut: PendingFanOut; readonly children: readonly Child[] }
  | { readonly kind: "end"; readonly end: MachineEnd }
  /** The event was refused, and the state continues. */
  | {
      readonly kind: "stay";
      readonly reason: string;
      /** The rows of the event that did not fire: the first 20. */
      readonly rejected: readonly RejectedRow[];
      readonly legal: readonly LegalEvent[];
    }
  /** Ask a person, then give the machine the answer. Nothing has changed yet. */
  | {
      readonly kind: "approve";
      readonly message: string | undefined;
      /** The state that asks to move. */
      readonly from: string;
      /** Where it would lead, in words. */
      readonly to: string;
      readonly event?: string;
      readonly decision: NextDecision;
    }
  /** The execution that was suspended last continues. */
  | { readonly kind: "return" };

/** A child of a fan-out, as data. `key` is unique in its fan-out. */
export type Child =
  /** One state. The key is the state's id, or that of a list's item. */
  | { readonly kind: "sibling"; readonly key: string; readonly state: string; readonly input: Json }
  /** From `state` along its routes to `terminal`. */
  | {
      readonly kind: "branch";
      readonly key: string;
      readonly state: string;
      readonly terminal: string;
      readonly input: Json;
    }
  /** A run of another pipeline of `pipelines`; `input` is merged into its initial context. */
  | { readonly kind: "invoke"; readonly key: string; readonly pipeline: string; readonly input: JsonObject };

/** A cap that ends a run. `forks` is the nesting of forks, which cannot be set. */
export type MachineLimit = "maxVisits" | "maxHops" | "forks";

/** `state` is the final state that ended the run. */
export type MachineEnd =
  | { readonly status: "completed"; readonly output: Json; readonly state?: string }
  | {
      readonly status: "failed";
      readonly code: string;
      readonly message: string;
      /** Where code of the pipeline threw: `src/pipeline.ts:41:9`. */
      readonly at?: string;
      /** The cap of the run that was reached. */
      readonly limit?: MachineLimit;
      readonly state?: string;
    }
  | { readonly status: "cancelled"; readonly reason: string; readonly state?: string };

export interface Transition {
  readonly effect: Effect;
  /** To be given to `apply` before the effect is performed. */
  readonly patch: Patch;
  /** What decided it and why, as a journal records it. */
  readonly trace: NextDecision;
}
