// Where a run starts, if not in the initial state of its pipeline.
import type { Problem } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { createReport, suggestOneOf } from "../base/problems.ts";
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
  const report = createReport();
  if (found === undefined) {
    const names = spec.states.keys();
    report.add("from.state", `there is no state ${JSON.stringify(state)}`, suggestOneOf(state, names));
  } else if (found.final !== undefined) {
    const suggestion = "start in a state that does something";
    report.add("from.state", `${state} is a final state, which ends a run`, suggestion);
  } else {
    const known = contextAt(spec, runInput, at);
    const suggestion = "start in the state that it comes from, or give the input that it reads";
    for (const [option, references] of Object.entries(found.templates ?? {}))
      for (const path of unresolved(known, references))
        report.add(`${state}.${option}`, `{{${path}}} leads nowhere in a run that starts in ${state}`, suggestion);
  }
  return report.problems;
}

/** The context before the run, as far as its paths can be checked. Setup, the project and the run's own facts are not known. */
function contextAt(spec: PipelineSpec, runInput: Json, at: StartAt): Readonly<Record<string, unknown>> {
  const input = inputAt(spec, runInput, at) ?? null;
  return { run: { input: runInput }, input, context: spec.context, upstream: {} };
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
