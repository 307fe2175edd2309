// What the conditions of a machine's rows read, and the types of what they read.

import { field, type GuardScope, type Json, type JsonObject } from "@sluice/core";
import { type CelRead, type CelTypes, celVariable, lastStep } from "../expressions/variables.ts";
import { idFor } from "../read/names.ts";
import { type KnownStep, outputOf } from "./step-kinds.ts";

/** The steps of a state, as its conditions know them. */
export interface StateSteps {
  readonly id: string;
  readonly steps: readonly KnownStep[];
  /** Its one step is the state itself: its output is upstream by the name of the state. */
  readonly isStage: boolean;
}

/** Reads the variables of a machine's conditions. */
export function variablesOf(states: readonly StateSteps[]): CelRead {
  const byId = new Map(states.map((state) => [state.id, state]));
  /** The steps whose output is upstream by the name of their state. */
  const stages = states.flatMap(({ id, steps: [only], isStage }) =>
    isStage && only !== undefined ? [[only.step.name, id] as const] : [],
  );
  return (name, scope) => {
    const { result } = scope;
    switch (name) {
      case "output":
      case "last_output":
      case "previous_step":
        return result.status === "paused"
          ? (field(asJson(result.request), "answer") ?? null)
          : celVariable(name, scope);
      case "steps":
        return stepsOf(scope, stages, byId.get(stateOf(scope)));
      case "last_step":
        return lastStep(byId.get(stateOf(scope))?.steps.at(-1)?.step.name ?? stateOf(scope), result);
      default:
        return celVariable(name, scope);
    }
  };
}

function asJson(value: Json | undefined): Json {
  return value ?? null;
}

function stateOf({ result }: GuardScope): string {
  return result.executionId.replace(/#\d+$/u, "");
}

/** The outputs of all steps so far, those of the state that ended included. */
function stepsOf(
  { result, ctx }: GuardScope,
  stages: readonly (readonly [step: string, state: string])[],
  ended: StateSteps | undefined,
): unknown {
  const outputs: Record<string, unknown> = { ...ctx.upstream };
  for (const [step, state] of stages) if (Object.hasOwn(outputs, state)) outputs[step] = outputs[state];
  if (result.status !== "completed") return outputs;
  for (const [step, output] of Object.entries(result.adds?.upstream ?? {})) outputs[step] = output;
  const last = ended?.steps.at(-1)?.step.name;
  if (last !== undefined) outputs[last] = result.output;
  return outputs;
}

/** The types that conditions of a row can rely on. `from` is the state that it is for, if it is one. */
export function typesOf(
  states: readonly StateSteps[],
  row: { readonly on: "success" | "failure" | "pause"; readonly from: StateSteps | undefined },
  context: JsonObject | undefined,
): CelTypes {
  const last = row.on === "success" ? row.from?.steps.at(-1) : undefined;
  const output = last === undefined ? undefined : outputOf(last);
  const known = output === undefined ? {} : { output, last_output: output, previous_step: output };
  const steps: Record<string, Json> = {};
  for (const state of states)
    for (const step of state.steps) {
      // A name that two steps have is the output of either.
      const { name } = step.step;
      steps[name] = Object.hasOwn(steps, name) ? {} : embedded(outputOf(step));
    }
  const upstream: Record<string, Json> = {};
  for (const { id, steps: own } of states) {
    for (const step of own) upstream[idFor(step.step.name)] = steps[step.step.name] ?? {};
    const end = own.at(-1);
    upstream[id] = end === undefined ? {} : embedded(outputOf(end));
  }
  return {
    ...known,
    ...(context === undefined ? {} : { context }),
    steps: closed({ ...upstream, ...steps }),
    upstream: closed(upstream),
  };
}

function closed(properties: JsonObject): JsonObject {
  return { type: "object", properties, additionalProperties: false };
}

/** A schema inside another one, where its references would lead elsewhere. */
function embedded(schema: JsonObject | undefined): Json {
  return schema === undefined || JSON.stringify(schema).includes('"$ref"') ? {} : schema;
}
