// What the conditions of a machine's rows read, and the types of what they read.

import { field, type GuardScope, type Json, type JsonObject } from "@sluice/core";
import { parseExecutionId } from "@sluice/core/runtime";
import { type CelRead, type CelTypes, celVariable, lastStep } from "../expressions/variables.ts";
import { closed, embedded } from "../kinds/outputs.ts";
import type { Layout, PlacedState } from "./layout.ts";
import { outputOf } from "./step-kinds.ts";

/** Reads the variables of a machine's conditions. */
export function variablesOf({ states }: Layout): CelRead {
  const byId = new Map(states.map((state) => [state.id, state]));
  return (name, scope) => {
    const { result } = scope;
    switch (name) {
      case "output":
      case "last_output":
      case "previous_step":
        return result.status === "paused" ? field(asJson(result.request), "answer") : celVariable(name, scope);
      case "steps":
        return stepsOf(scope, states, byId.get(stateOf(result)));
      case "last_step":
        return lastStep(byId.get(stateOf(result))?.steps.at(-1)?.step.name ?? stateOf(result), result);
      default:
        return celVariable(name, scope);
    }
  };
}

function asJson(value: Json | undefined): Json {
  return value ?? null;
}

/** The state that ended. */
export function stateOf({ executionId }: GuardScope["result"]): string {
  return parseExecutionId(executionId).state;
}

/** The outputs of all steps so far by their names; of two steps of one name, the one of the state that ended. */
function stepsOf(
  { result, ctx }: GuardScope,
  states: readonly PlacedState[],
  ended: PlacedState | undefined,
): Readonly<Record<string, unknown>> {
  const added = result.status === "completed" ? (result.adds?.upstream ?? {}) : {};
  const own = ended?.isStage === true && result.status === "completed" ? { [ended.id]: result.output } : {};
  const outputs: Readonly<Record<string, unknown>> = { ...ctx.upstream, ...added, ...own };
  const named: Record<string, unknown> = {};
  for (const { steps } of ended === undefined ? states : [...states, ended])
    for (const { key, step } of steps) if (Object.hasOwn(outputs, key)) named[step.name] = outputs[key];
  return named;
}

/** The types that conditions of a row can rely on. `from` is the state that it is for, if it is one. */
export function typesOf(
  { states }: Layout,
  row: { readonly on: "success" | "failure" | "pause"; readonly from: PlacedState | undefined },
  context: JsonObject | undefined,
): CelTypes {
  const last = row.on === "success" ? row.from?.steps.at(-1) : undefined;
  const output = last === undefined ? undefined : outputOf(last);
  const known = output === undefined ? {} : { output, last_output: output, previous_step: output };
  const steps: Record<string, Json> = {};
  const upstream: Record<string, Json> = {};
  for (const state of states) {
    for (const step of state.steps) {
      const { name } = step.step;
      const type = embedded(outputOf(step)) ?? {};
      // A name that two steps have is the output of either.
      steps[name] = Object.hasOwn(steps, name) ? {} : type;
      upstream[step.key] = type;
    }
    const end = state.steps.at(-1);
    upstream[state.id] = (end === undefined ? undefined : embedded(outputOf(end))) ?? {};
  }
  return {
    ...known,
    ...(context === undefined ? {} : { context }),
    steps: closed(steps),
    upstream: closed(upstream),
  };
}
