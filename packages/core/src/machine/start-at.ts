// Where a run starts, if not in the initial state of its pipeline.
import type { Problem } from "../base/errors.ts";
import { field, type Json } from "../base/json.ts";
import { suggestOneOf } from "../base/problems.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { hasPath, pathText, type TemplateReference } from "../definition/template.ts";

/** The state in which a run starts. */
export interface StartAt {
  readonly state: string;
  /** The input of that state. Without it, the initial state has the run's input, and any other state `null`. */
  readonly input?: Json;
}

/** The input that the state would check. Undefined for a state that gets none. */
export function inputAt(spec: PipelineSpec, runInput: Json, { state, input }: StartAt): Json | undefined {
  return input === undefined && state === spec.initial ? runInput : input;
}

/** Why a run cannot start there: an unknown or final state, or templates that read what no earlier state has left. */
export function startProblems(spec: PipelineSpec, runInput: Json, at: StartAt): readonly Problem[] {
  const { state } = at;
  const found = spec.states.get(state);
  if (found === undefined) {
    const suggestion = suggestOneOf(state, spec.states.keys());
    const message = `there is no state ${JSON.stringify(state)}`;
    return [{ path: "from.state", message, ...(suggestion === undefined ? {} : { suggestion }) }];
  }
  if (found.final !== undefined) {
    const suggestion = "start in a state that does something";
    return [{ path: "from.state", message: `${state} is a final state, which ends a run`, suggestion }];
  }
  const known = contextAt(spec, runInput, at);
  return Object.entries(found.templates ?? {}).flatMap(([option, references]) =>
    unresolved(known, references).map((path) => ({
      path: `${state}.${option}`,
      message: `{{${path}}} leads nowhere in a run that starts in ${state}`,
      suggestion: "start in the state that it comes from, or give the input that it reads",
    })),
  );
}

/** What is known of the context before the run. Setup, the project and the run's own facts are not. */
function contextAt(spec: PipelineSpec, runInput: Json, at: StartAt): Readonly<Record<string, unknown>> {
  const input = inputAt(spec, runInput, at) ?? null;
  return { task: field(runInput, "task") ?? "", run: { input: runInput }, input, context: spec.context, upstream: {} };
}

/** Roots of which a start knows the value, or knows that there is none. */
const KNOWN: ReadonlySet<unknown> = new Set(["run", "input", "upstream", "context", "fork", "items"]);

function unresolved(
  known: Readonly<Record<string, unknown>>,
  references: readonly TemplateReference[],
): readonly string[] {
  const lost = references.filter(({ path }) => KNOWN.has(path[0]) && !hasPath(known, path));
  return [...new Set(lost.map(({ path }) => pathText(path)))];
}
