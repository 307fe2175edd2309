// What may happen inside a state while it works.

import type { PipelineSpec, StateSpec } from "@sluice/core";
import { matchesName } from "@sluice/core/gate";
import { pipelinesWithin } from "@sluice/core/runtime";
import { stepsOf } from "@sluice/stages/runtime";

/** Whether a tool may run in a state without a grant: it lists the tool, has no envelope, or runs a pipeline with such a state. */
export function mayUse(spec: PipelineSpec, state: string, tool: string): boolean {
  const of = spec.states.get(state);
  if (of === undefined || of.final !== undefined) return false;
  if (of.allowedTools === undefined || (of.patterns ?? []).some((pattern) => matchesName(pattern, tool))) return true;
  return pipelinesOf(spec, state).some((name) => pipelineMayUse(spec, name, tool));
}

/** Whether a tool may run in a pipeline that this one invokes. */
export function pipelineMayUse(spec: PipelineSpec, name: string, tool: string): boolean {
  return within(spec, name).some((inner) => [...inner.states.keys()].some((state) => mayUse(inner, state, tool)));
}

/** Whether a person may approve a transition inside a state, in a pipeline that it runs. */
export function mayApprove(spec: PipelineSpec, state: string): boolean {
  return pipelinesOf(spec, state).some((name) => pipelineMayApprove(spec, name));
}

/** Whether a person may approve a transition in a pipeline that this one invokes. */
export function pipelineMayApprove(spec: PipelineSpec, name: string): boolean {
  return within(spec, name).some(
    ({ routes }) => routes.kind === "table" && routes.rows.some(({ approval }) => approval !== undefined),
  );
}

function within(spec: PipelineSpec, name: string): readonly PipelineSpec[] {
  const invoked = spec.pipelines.get(name);
  return invoked === undefined ? [] : pipelinesWithin(invoked);
}

/** A state, and the states of the pipelines that it runs itself. */
export function statesAt(spec: PipelineSpec, state: string): readonly StateSpec[] {
  const own = spec.states.get(state);
  const inner = pipelinesOf(spec, state).flatMap((name) => statesInside(spec, name));
  return own === undefined ? inner : [own, ...inner];
}

/** The states of a pipeline that this one invokes, and of those that it invokes in turn. */
export function statesInside(spec: PipelineSpec, name: string): readonly StateSpec[] {
  return within(spec, name).flatMap(({ states }) => [...states.values()]);
}

/** The kinds of states that run no pipeline. */
const ALONE: ReadonlySet<string> = new Set(["agent", "script", "poll", "timer", "human", "router", "orchestrator"]);

/** The pipelines that a state runs itself. A state of an unknown kind may run any. */
function pipelinesOf(spec: PipelineSpec, state: string): readonly string[] {
  const of = spec.states.get(state);
  if (of === undefined || ALONE.has(of.kind) || of.final !== undefined) return [];
  if (of.runs !== undefined) return of.runs.map(({ pipeline }) => pipeline);
  const steps = stepsOf(of.options)?.steps;
  if (steps === undefined) return [...spec.pipelines.keys()];
  return steps.flatMap((step) => (step.kind === "run" ? [step.pipeline] : []));
}

/** The names of the tools that states list without a `*`. */
export function listedTools(spec: PipelineSpec): readonly string[] {
  const patterns = pipelinesWithin(spec).flatMap(({ states }) =>
    [...states.values()].flatMap((state) => state.patterns ?? []),
  );
  return [...new Set(patterns.filter(({ literal }) => literal).map(({ text }) => text.replace(/\(.*$/su, "")))];
}
