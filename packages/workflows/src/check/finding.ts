import type { PipelineSpec } from "@sluice/core";

/** A doubtful part of a pipeline, or one that cannot run. */
export interface CheckFinding {
  /** `error`: it cannot run. `warning`: it runs, but perhaps not as meant. */
  readonly severity: "error" | "warning";
  /** The stable id of the rule. */
  readonly rule: string;
  /** Where in the definition, such as `stages.plan` or `transitions[2].when`. */
  readonly path: string;
  /** What is doubtful, in sentences. */
  readonly message: string;
  /** What to change. */
  readonly suggestion?: string;
}

/** A state as its author calls it. */
export function nameOf({ states }: Pick<PipelineSpec, "states">, state: string): string {
  const label = states.get(state)?.shape?.label;
  return typeof label === "string" ? label : state;
}

/** Names in a sentence: `a`, `a and b`, `a, b and c`. */
export function listed(names: readonly string[], word = "and"): string {
  const [last = "", ...before] = names.toReversed();
  return before.length === 0 ? last : `${before.toReversed().join(", ")} ${word} ${last}`;
}
