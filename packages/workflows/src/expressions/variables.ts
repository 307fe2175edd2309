import type { GuardScope, Json, JsonObject } from "@sluice/core";
import { isObject, parseExecutionId } from "@sluice/core/runtime";

/** What a condition reads. Its own names are those that `names` lists. */
export interface CelVariables {
  /** The run's shared context, with what the state that ended adds. */
  readonly context: unknown;
  /** The output of the state that ended; null if it did not complete. */
  readonly output: unknown;
  /** `success`, `failure`, `skipped` or `pause`; for an event its name. */
  readonly event: unknown;
  /** The last output of each completed state. */
  readonly upstream: unknown;
  /** How many attempts the state took. */
  readonly attempt: unknown;
  /** Outputs by step. */
  readonly steps: unknown;
  /** The output of the step before. */
  readonly previous_step: unknown;
  /** `output.last_output`. */
  readonly last_output: unknown;
  /** `output.last_step`: `{ name, success, feedback }`. */
  readonly last_step: unknown;
}
export type CelVariable = keyof CelVariables;
/** Reads a variable: JSON, or null where there is none. */
export type CelRead = (name: CelVariable, scope: GuardScope) => unknown;
/** JSON Schemas of the variables whose types are known. */
export type CelTypes = { readonly [name in CelVariable]?: JsonObject };

/** The names that an expression may use. */
export const VARIABLES: readonly CelVariable[] = [
  "context",
  "output",
  "event",
  "upstream",
  "attempt",
  "steps",
  "previous_step",
];
/** Fields of `output` that are variables of their own: they hold the last step, whatever the output is. */
export const LAST_STEP: ReadonlyMap<string, CelVariable> = new Map([
  ["last_output", "last_output"],
  ["last_step", "last_step"],
]);

export const LAST_STEP_TYPE: JsonObject = {
  type: "object",
  properties: { name: { type: "string" }, success: { type: "boolean" }, feedback: {} },
  additionalProperties: false,
};

const EVENTS = {
  completed: "success",
  failed: "failure",
  skipped: "skipped",
  paused: "pause",
  cancelled: "cancelled",
} as const;

/** The variables of a state that is one step, for a row that is not for an event. */
export function celVariable(name: CelVariable, { result, ctx }: GuardScope): unknown {
  switch (name) {
    case "context": {
      const added = result.status === "completed" ? result.adds?.context : undefined;
      return added === undefined ? ctx.context : { ...ctx.context, ...added };
    }
    case "upstream":
    case "steps":
      return ctx.upstream;
    case "attempt":
      return result.attempts;
    case "event":
      return EVENTS[result.status];
    case "output":
    case "last_output":
    case "previous_step":
      return result.status === "completed" ? (result.output ?? null) : null;
    case "last_step":
      return lastStep(parseExecutionId(result.executionId).state, result);
  }
}

/** The variables of a row for an event, whose output is `{ event, data }`. */
export const eventVariable: CelRead = (name, scope) => {
  const { result } = scope;
  if (name !== "event" || result.status !== "completed" || !isObject(result.output)) return celVariable(name, scope);
  return result.output.event;
};

/** `output.last_step` for a result. */
export function lastStep(name: string, result: GuardScope["result"]): Json {
  const feedback = result.status === "failed" ? result.message : null;
  return { name, success: result.status === "completed", feedback };
}
