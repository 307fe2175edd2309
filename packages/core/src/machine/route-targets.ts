import type { PipelineSpec, RouteChooser } from "../definition/spec.ts";
import type { CompiledSchema } from "../schema/schema.ts";
import { countOf, MAX_VISITS, type MachineView, maxHopsOf } from "./machine-state.ts";

/** A state that a choosing state may name. */
export interface RouteTarget {
  readonly state: string;
  /** Of its input; any input fits without one. */
  readonly inputSchema?: CompiledSchema<unknown>;
  /** How often it may still be entered; 0 for a target that is not offered. Absent for a final state, which counts no visits. */
  readonly visitsLeft?: number;
  /** Whether a choice may replace its prompt. */
  readonly takesPrompt?: true;
}

/** A target that a choice did not lead to, or that was not offered, and why. A type, since it is recorded. */
export type RefusedTarget = { readonly to: string; readonly why: string };

/** The targets of a state that chooses what follows, in declared order. */
export function routeTargets(spec: PipelineSpec, view: MachineView, { targets }: RouteChooser): readonly RouteTarget[] {
  return targets.map((state): RouteTarget => {
    const { inputSchema, final, takesPrompt } = spec.states.get(state) ?? {};
    return {
      state,
      ...(inputSchema === undefined ? {} : { inputSchema }),
      ...(takesPrompt === undefined ? {} : { takesPrompt }),
      ...(final === undefined ? { visitsLeft: visitsLeft(spec, view, state) } : {}),
    };
  });
}

/** Why a target is not offered; undefined if it is. */
export function cappedTarget({ visitsLeft }: RouteTarget): string | undefined {
  return visitsLeft === 0 ? "it was entered as often as it may be, or the run has taken all its routes" : undefined;
}

function visitsLeft(spec: PipelineSpec, view: MachineView, target: string): number {
  if (view.hops >= maxHopsOf(spec)) return 0;
  return Math.max(0, (spec.limits.maxVisits ?? MAX_VISITS) - countOf(view, target).visits);
}
