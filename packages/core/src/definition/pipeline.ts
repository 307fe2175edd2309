import { type Problem, problemsError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { checkPipeline } from "./check/check.ts";
import { type PipelineDefinition, readDefinition } from "./read.ts";
import type { PipelineSpec } from "./spec.ts";
import type { AnyState, NextMap, OutputOf, Pipeline, PipelineCommon, TargetsWithin, Transitions } from "./types.ts";

/**
 * Defines a pipeline: states, an initial state, and transitions by functions (`next`), by a table (`transitions`) or by a model
 * (`orchestrator`). A function in `next` is the success route; `{ completed, failed, skipped }` also routes other results. An unhandled failure or skip fails
 * the run. Throws Validation `definition_invalid` with all problems.
 */
export function pipeline<R, const S extends Record<string, AnyState>, const N extends NextMap<S, R>>(
  definition: PipelineCommon<R, S> & Transitions<R, S, N> & { readonly stages: TargetsWithin<NoInfer<S>> },
): Pipeline<R, NextMap<S, R> extends N ? Json : OutputOf<N>>;
export function pipeline(definition: PipelineDefinition): Pipeline<unknown, unknown> {
  const { spec, problems } = compilePipeline(definition);
  if (problems.length > 0)
    throw problemsError("definition_invalid", `Pipeline ${String(definition.id)} cannot run:`, problems);
  return { id: spec.id, spec };
}

/** What `pipeline()` does without throwing: the compiled definition, which can run only if there are no problems. */
export function compilePipeline(definition: PipelineDefinition): {
  readonly spec: PipelineSpec;
  /** Their paths are those of the definition, such as `stages.plan.prompt` or `transitions[3].to`. */
  readonly problems: readonly Problem[];
} {
  const { spec, problems } = readDefinition(definition);
  return { spec, problems: [...problems, ...checkPipeline(spec)] };
}
