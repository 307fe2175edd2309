// What the machine is given comes from any program: what cannot follow is an error, and never a move.
import { isObject } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import { enteredOf, type MachineView, type PendingFanOut } from "./machine-state.ts";
import { childKeyOf } from "./resolve-choice.ts";
import type { ChildEnd, MachineInput } from "./transition-types.ts";

const KINDS: Readonly<Record<MachineInput["kind"], true>> = {
  start: true,
  result: true,
  children: true,
  cancelled: true,
  interrupted: true,
  event: true,
  interrupt: true,
  message: true,
  answer: true,
};
const RESULTS: Readonly<Record<StageResult<unknown>["status"], true>> = {
  completed: true,
  failed: true,
  cancelled: true,
  skipped: true,
  paused: true,
};
const ENDS: Readonly<Record<ChildEnd["status"], true>> = {
  completed: true,
  skipped: true,
  failed: true,
  cancelled: true,
};

/** Throws for an input that cannot follow. */
export function checkInput(view: MachineView, input: MachineInput): void {
  refuseUnknown("the input", input, "kind", KINDS);
  if (input.kind === "cancelled") return;
  if (input.kind === "start") {
    if (view.at !== undefined) throw new Error("the run has started before");
    if (input.at !== undefined && !(isObject(input.at) && typeof input.at.state === "string"))
      throw new Error("a run starts at a state, by its name");
    return;
  }
  enteredOf(view);
  if (input.kind === "answer") checkInput(view, input.of);
  else if (input.kind === "children") checkChildren(view.pending, input.ended);
  else if (view.pending !== undefined)
    throw new Error(`${view.pending.id} is running: give the machine the ends of its children`);
  if (input.kind === "result" || input.kind === "interrupted")
    refuseUnknown("a result", input.result, "status", RESULTS);
  if (input.kind === "event" && typeof input.event !== "string") throw new Error("the name of an event is a text");
}

function checkChildren(pending: PendingFanOut | undefined, ended: readonly ChildEnd[]): void {
  if (pending === undefined) throw new Error("no fan-out is pending");
  const { id, choice } = pending;
  const { length } = choice.siblings;
  if (!Array.isArray(ended) || ended.length !== length)
    throw new Error(`${id} joins when all its ${length} children have ended`);
  for (const [index, sibling] of choice.siblings.entries()) {
    refuseUnknown(`a child of ${id}`, ended[index], "status", ENDS);
    const key = childKeyOf(sibling);
    if (ended[index]?.key !== key)
      throw new Error(`${id} joins its children in their order: number ${index} is ${key}`);
  }
}

function refuseUnknown(what: string, value: unknown, member: string, known: object): void {
  const given = isObject(value) ? value[member] : undefined;
  if (typeof given === "string" && Object.hasOwn(known, given)) return;
  throw new Error(`${what} has none of these as its ${member}: ${Object.keys(known).join(", ")}`);
}
