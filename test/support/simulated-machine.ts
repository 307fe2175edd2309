import type { Json, PipelineSpec, StageResult } from "@sluice/core";
import { machinePipeline, newPlay } from "./machine-runs.ts";
import { type Asked, type End, type Machine, type Outcome, outcomeOf, type StateNode } from "./reference-machine.ts";
import { interpret } from "./reference-run.ts";

// The machine as a value: a walk by `transition` and `apply` alone, with no journal, host or model.

/** What `@sluice/core/machine` offers for it. */
export interface PureMachine<State, Patch> {
  initialState(spec: PipelineSpec, run: { readonly input: Json }): State;
  transition(
    spec: PipelineSpec,
    view: State,
    input: Happened,
  ): Promise<{ readonly effect: Effect; readonly patch: Patch }>;
  apply(state: State, patch: Patch): void;
}
type Happened =
  | { readonly kind: "start" }
  | { readonly kind: "result"; readonly result: StageResult<Json> }
  | { readonly kind: "children"; readonly ended: readonly ChildEnd[] };
type ChildEnd = { readonly key: string; readonly turns: number } & (
  | { readonly status: "completed"; readonly output: Json }
  | { readonly status: "skipped" }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string }
);
interface Target {
  readonly state: string;
  readonly input: Json;
}
type Sibling = Target & { readonly kind: "sibling"; readonly key: string };
type Effect =
  | ({ readonly kind: "enter" } & Target)
  | { readonly kind: "fanOut"; readonly children: readonly (Sibling | { readonly kind: "branch" | "invoke" })[] }
  | { readonly kind: "stay" | "approve" | "return" }
  | {
      readonly kind: "end";
      readonly end:
        | { readonly status: "completed"; readonly output: Json }
        | { readonly status: "failed"; readonly code: string; readonly message: string }
        | { readonly status: "cancelled"; readonly reason: string };
    };

/** Where a walk went, with what, and what its routes read. */
export interface Walk {
  readonly entered: readonly { readonly execution: string; readonly input: Json }[];
  readonly children: readonly { readonly key: string; readonly execution: string; readonly input: Json }[];
  readonly asked: readonly Omit<Asked, "raced">[];
  readonly end: End;
}

/** The walk that the reference expects. Nothing races here: each child ends as its state says. */
export function expectedWalk(machine: Machine): Walk {
  const { runs, end } = interpret(machine);
  const root = runs.get("");
  if (root === undefined) throw new Error("a machine has a root run");
  return {
    entered: root.entered.map(({ execution, sight }) => ({ execution, input: sight.input })),
    children: [...runs].flatMap(([run, { entered }]) =>
      run === ""
        ? []
        : entered.map(({ execution, sight }) => ({ key: run.split("/")[2] ?? "", execution, input: sight.input })),
    ),
    asked: root.asked.map(({ raced: _raced, ...asked }) => asked),
    end,
  };
}

export async function simulate<State, Patch>(machine: Machine, pure: PureMachine<State, Patch>): Promise<Walk> {
  const play = newPlay(machine);
  const { spec } = machinePipeline(machine, () => play);
  const state = pure.initialState(spec, { input: machine.input });
  const visits = new Map<string, number>();
  const enter = (id: string): number => {
    const visit = (visits.get(id) ?? 0) + 1;
    visits.set(id, visit);
    return visit;
  };
  const entered: { execution: string; input: Json }[] = [];
  const children: { key: string; execution: string; input: Json }[] = [];
  let happened: Happened = { kind: "start" };
  for (;;) {
    const { effect, patch } = await pure.transition(spec, state, happened);
    pure.apply(state, patch);
    if (effect.kind === "end") {
      const asked = [...play.asked.values()].map(({ run: _run, ...one }) => one);
      return { entered, children, asked, end: endOf(effect.end) };
    }
    if (effect.kind === "enter") {
      const visit = enter(effect.state);
      const execution = `${effect.state}#${visit}`;
      entered.push({ execution, input: effect.input });
      happened = {
        kind: "result",
        result: resultOf(execution, outcomeOf(nodeOf(machine, effect.state), visit, effect.input)),
      };
      continue;
    }
    if (effect.kind !== "fanOut") throw new Error(`a random machine cannot lead to ${effect.kind}`);
    const siblings = effect.children.filter((child) => child.kind === "sibling");
    // A list is one visit of its state, and names it once or many times.
    for (const id of new Set(siblings.map((child) => child.state))) enter(id);
    const ended = siblings.map(({ key, state: id, input }): ChildEnd => {
      const visit = visits.get(id) ?? 0;
      children.push({ key, execution: `${id}#${visit}`, input });
      return { key, turns: 0, ...endedOf(outcomeOf(nodeOf(machine, id), visit, input)) };
    });
    happened = { kind: "children", ended };
  }
}

function nodeOf({ states }: Machine, id: string): StateNode {
  const node = states.find((one) => one.id === id);
  if (node === undefined) throw new Error(`the machine has no state ${id}`);
  return node;
}

function resultOf(executionId: string, outcome: Outcome): StageResult<Json> {
  const base = { executionId, attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
  return { ...base, ...outcome };
}

type ChildOutcome = ChildEnd extends infer E ? (E extends unknown ? Omit<E, "key" | "turns"> : never) : never;
function endedOf(outcome: Outcome): ChildOutcome {
  if (outcome.status === "cancelled") return { status: "cancelled", code: "cancelled", message: outcome.reason };
  return outcome.status === "paused" ? { status: "failed", code: "failed", message: "" } : outcome;
}

function endOf(end: Extract<Effect, { kind: "end" }>["end"]): End {
  return end.status === "cancelled" ? { status: "cancelled", code: "cancelled", message: end.reason } : end;
}
