import type { Move } from "./random-workflows.ts";
import { type Machine, nodeOf } from "./reference-machine.ts";
import {
  beforeStart,
  type Child,
  type ChildEnded,
  type Happened,
  legalEvents,
  type RunState,
  type Step,
  step,
} from "./reference-step.ts";

// A machine that one thing after the other happens to, as the reference has it.

export interface Walked {
  readonly happened: Happened;
  readonly before: RunState;
  readonly step: Step;
}

/** What the moves come to, until the run ends or they do. */
export function walk(machine: Machine, moves: readonly Move[]): readonly Walked[] {
  const walked: Walked[] = [];
  let before = beforeStart(machine);
  const take = (happened: Happened): boolean => {
    const next = step(machine, before, happened);
    walked.push({ happened, before, step: next });
    before = next.after;
    return next.effect.kind !== "end";
  };
  if (!take({ kind: "start" })) return walked;
  for (const move of moves) if (!take(happening(machine, before, move))) return walked;
  return walked;
}

function happening(machine: Machine, { at, asking, pending, suspended }: RunState, move: Move): Happened {
  if (move.what === "cancel") return { kind: "cancelled", reason: "enough" };
  if (asking !== undefined) return { kind: "answer", approved: move.yes };
  if (pending !== undefined)
    return { kind: "children", ended: pending.children.map((child, at) => endOf(child, move, at)) };
  const { interrupts = [] } = machine;
  const [interrupt] = interrupts.filter(({ name }) => name !== suspended.at(-1)?.interrupt);
  if (move.what === "interrupt" && interrupt !== undefined)
    return { kind: "interrupt", name: interrupt.name, path: move.path };
  if (at === undefined) throw new Error("the run has entered no state");
  const { outcome, event, data } = move;
  const isResult = nodeOf(machine, at.state).events !== true || (move.what === "end" && outcome.status !== "completed");
  if (isResult) return { kind: "result", outcome };
  // A walk that ends at once shows nothing.
  const legal = legalEvents(machine, at.state).map((one) => one.event);
  const some = legal.length > 1 ? legal.filter((one) => one !== "END") : legal;
  return { kind: "event", event: typeof event === "string" ? event : (some[event % some.length] ?? ""), data };
}

function endOf({ key, kind }: Child, { children }: Move, index: number): ChildEnded {
  const outcome = children[index % children.length];
  switch (outcome?.status) {
    case "completed":
      return { key, status: "completed", output: outcome.output };
    case "skipped":
      return kind === "sibling" ? { key, status: "skipped" } : { key, status: "completed", output: null };
    case "failed":
      return { key, status: "failed", code: outcome.code, message: outcome.message };
    case "cancelled":
      return { key, status: "cancelled", code: "cancelled", message: outcome.reason };
    default:
      return { key, status: "failed", code: "failed", message: "it paused" };
  }
}
