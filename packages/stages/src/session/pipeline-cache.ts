import {
  checkSession,
  type PipelineParts,
  type PipelineShape,
  type PipelineSpec,
  type PreparedStates,
  pipelineShape,
  prepareStates,
  problemsError,
  type RunDeps,
  type StateExecutor,
} from "@sluice/core";
import { partsInEvents } from "../history/pipeline-changes.ts";

type LiveTools = RunDeps["tools"];

/** What a session worked out of the pipelines it has run: the next run of one has it again. */
export interface KnownPipelines {
  /** A pipeline's states in this session; what keeps it from running here is the same every time, and told the first. */
  statesOf(spec: PipelineSpec, live: LiveTools): PreparedStates;
  shapeOf(spec: PipelineSpec): PipelineShape;
  partsOf(spec: PipelineSpec): PipelineParts;
}

export function knownPipelines(executors: ReadonlyMap<string, StateExecutor>): KnownPipelines {
  const prepared = new WeakMap<PipelineSpec, { readonly live: LiveTools; readonly states: PreparedStates }>();
  const shapes = new WeakMap<PipelineSpec, PipelineShape>();
  const parts = new WeakMap<PipelineSpec, PipelineParts>();
  return {
    statesOf(spec, live) {
      const before = prepared.get(spec);
      if (before?.live === live) return before.states;
      const problems = checkSession(spec, { tools: [...live.keys()], kinds: [...executors.keys()] });
      if (problems.length > 0)
        throw problemsError("session_invalid", `Pipeline ${spec.id} cannot run in this session:`, problems);
      const states = prepareStates(spec, live);
      prepared.set(spec, { live, states });
      return states;
    },
    shapeOf(spec) {
      const shape = shapes.get(spec) ?? pipelineShape(spec);
      shapes.set(spec, shape);
      return shape;
    },
    partsOf(spec) {
      const own = parts.get(spec) ?? partsInEvents(spec);
      parts.set(spec, own);
      return own;
    },
  };
}
