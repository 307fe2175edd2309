import {
  type EventOutput,
  type Guard,
  type GuardScope,
  type Json,
  type JsonObject,
  type Stage,
  type StageResult,
  stage,
} from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import {
  apply,
  type Effect,
  initialState,
  type MachineInput,
  type MachineState,
  type Transition,
  transition,
} from "@sluice/core/machine";
import { problemLines } from "./definition.ts";

/** A stage that completes by an event of its rows. */
export function byEvents(): Stage<EventOutput, undefined> {
  return stage({ prompt: "Work.", allowedTools: [], turnCap: 3 });
}

/** A guard with a fixed answer, which keeps what it was asked about. */
export function guard(fires: boolean, why = "no", seen: GuardScope[] = []): Guard {
  return {
    text: `always ${fires}`,
    evaluate: (scope) => {
      seen.push(scope);
      return { fires, why };
    },
  };
}

const BASE = { executionId: "x#1", attempts: 1, turns: 2, usage: { inputTokens: 1, outputTokens: 1 }, ms: 1 };

export function event(name: string, data: JsonObject = {}): MachineInput & { readonly kind: "event" } {
  return { kind: "event", event: name, data };
}
export function result(outcome: Outcome): MachineInput & { readonly kind: "result" } {
  return { kind: "result", result: { ...BASE, ...outcome } };
}
type Outcome = StageResult<Json> extends infer R ? (R extends unknown ? Omit<R, keyof typeof BASE> : never) : never;
export function completed(output: Json): MachineInput & { readonly kind: "result" } {
  return result({ status: "completed", output });
}
export function failed(message: string): MachineInput & { readonly kind: "result" } {
  return result({ status: "failed", code: "tool", message });
}

export type Definition = Omit<PipelineDefinition, "id" | "input" | "initial"> &
  Partial<Pick<PipelineDefinition, "id" | "input" | "initial">>;

/** The problems of a definition whose initial state is `a`, as `path | message | suggestion`. */
export function problemsIn(definition: Definition): readonly string[] {
  return problemLines(compiled(definition).problems);
}

export function compiled(definition: Definition): ReturnType<typeof compilePipeline> {
  return compilePipeline({ id: "p", input: { type: "object" }, initial: "a", ...definition });
}

export interface Walk {
  readonly spec: ReturnType<typeof compilePipeline>["spec"];
  readonly state: MachineState;
  /** Gives the machine what has happened, and applies what follows. */
  step(input: MachineInput): Promise<Transition>;
}

/** A run of a pipeline that nothing runs, in its initial state `a`. */
export async function started(definition: Definition, input: Json = {}): Promise<Walk> {
  const { spec, problems } = compiled(definition);
  if (problems.length > 0) throw new Error(problemLines(problems).join("\n"));
  const state = initialState(spec, { input });
  return await walkOf(spec, state);
}

export async function walkOf(spec: Walk["spec"], state: MachineState): Promise<Walk> {
  const step = async (happened: MachineInput): Promise<Transition> => {
    const next = await transition(spec, state, happened);
    apply(state, next.patch);
    return next;
  };
  if (state.at === undefined) await step({ kind: "start" });
  return { spec, state, step };
}

type Of<K extends Effect["kind"]> = Extract<Effect, { readonly kind: K }>;
/** The effect, which has to be of this kind. */
export function effectOf<K extends Effect["kind"]>({ effect }: Transition, kind: K): Of<K> {
  if (isOf(effect, kind)) return effect;
  throw new Error(`the effect is ${JSON.stringify(effect)}, not ${kind}`);
}
function isOf<K extends Effect["kind"]>(effect: Effect, kind: K): effect is Of<K> {
  return effect.kind === kind;
}
export function enteredBy(next: Transition): string {
  return effectOf(next, "enter").state;
}
