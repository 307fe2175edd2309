// Every walk of a small machine, found by asking `transition` for all that may happen. Slow and plain: proofs are compared with it.

import type { Guard, PipelineSpec, RowSpec } from "@sluice/core";
import { matchesName } from "@sluice/core/gate";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import {
  apply,
  type Child,
  type ChildEnd,
  type Effect,
  initialState,
  type MachineInput,
  type MachineState,
  transition,
} from "@sluice/core/machine";

/** What happened, in words: the id of a state, `tool Bash`, `approved`. */
export type Trace = readonly string[];
export interface Walked {
  readonly trace: Trace;
  /** Steps taken, the start included. */
  readonly steps: number;
  readonly completed: boolean;
}

/** One run: the root's or a child's. */
interface Line {
  readonly machine: MachineState;
  readonly begun: boolean;
  readonly sibling: boolean;
  readonly fork?: { readonly children: readonly (readonly [Child, Line | ChildEnd])[] };
}
interface Node {
  readonly line: Line;
  readonly trace: Trace;
  readonly steps: number;
}
type Next = { readonly words: Trace } & ({ readonly line: Line } | { readonly end: "completed" | "failed" });

/** Guards that hold as the walk wants it. */
export interface Oracle {
  readonly holds: Set<string>;
  guard(name: string): Guard;
}
export function oracle(): Oracle {
  const holds = new Set<string>();
  return { holds, guard: (name) => ({ text: name, evaluate: () => ({ fires: holds.has(name), why: "no" }) }) };
}

export function specOf(definition: PipelineDefinition): PipelineSpec {
  return compilePipeline(definition).spec;
}

/**
 * All walks, shortest first, until `isFound` is true of one or there are more than `most` different ones. Two walks are the same if
 * they lead to the same place with the same `facts` about what happened.
 */
export async function findWalk(
  spec: PipelineSpec,
  { holds }: Oracle,
  tools: readonly string[],
  { facts, isFound, most }: { facts(trace: Trace): string; isFound(walked: Walked): boolean; readonly most: number },
): Promise<{ readonly found?: Walked; readonly isWhole: boolean; readonly depth: number }> {
  const machine = initialState(spec, { input: null });
  apply(machine, (await transition(spec, machine, { kind: "start" })).patch);
  const first: Node = { line: { machine, begun: true, sibling: false }, trace: [spec.initial], steps: 1 };
  if (isFound({ ...first, completed: false }))
    return { found: { ...first, completed: false }, isWhole: true, depth: 1 };
  const waiting: Node[] = [first];
  const seen = new Set<string>();
  for (const node of waiting) {
    if (waiting.length > most) return { isWhole: false, depth: node.steps };
    for (const next of await nextOf({ spec, holds, tools }, node.line, true)) {
      const trace = [...node.trace, ...next.words];
      const walked = { trace, steps: node.steps + 1, completed: "end" in next && next.end === "completed" };
      if (isFound(walked)) return { found: walked, isWhole: true, depth: walked.steps };
      if ("end" in next) continue;
      const key = `${keyOf(next.line)} ${facts(trace)}`;
      if (seen.has(key)) continue;
      seen.add(key);
      waiting.push({ line: next.line, trace, steps: node.steps + 1 });
    }
  }
  return { isWhole: true, depth: Number.POSITIVE_INFINITY };
}

function keyOf({ machine, begun, fork }: Line): string {
  const { at, suspended, terminal, counts, hops } = machine;
  const { join, onFail, onFailure } = (fork && machine.pending?.choice) ?? {};
  const children = (fork?.children ?? []).map(([child, line]) => [
    child.key,
    "machine" in line ? keyOf(line) : line.status,
  ]);
  const places = [
    at?.state,
    suspended.map((one) => [one.at.state, one.interrupt]),
    terminal,
    [join, onFail, onFailure],
  ];
  return JSON.stringify([
    places,
    begun,
    children,
    [...counts].map(([state, { visits }]) => `${state} ${visits}`).toSorted(),
    hops,
  ]);
}

interface World {
  readonly spec: PipelineSpec;
  readonly holds: Set<string>;
  readonly tools: readonly string[];
}

async function nextOf(world: World, line: Line, isRoot: boolean): Promise<readonly Next[]> {
  const { spec, tools } = world;
  const state = line.machine.at?.state ?? "";
  if (!line.begun) return [{ words: [state], line: { ...line, begun: true } }];
  if (line.fork !== undefined) return await nextOfFork(world, line, line.fork.children, isRoot);
  const found: Next[] = [];
  for (const tool of tools)
    if (spec.states.get(state)?.patterns?.some((pattern) => matchesName(pattern, tool)) === true)
      found.push({ words: [`tool ${tool}`], line });
  const isHandler = line.machine.suspended.length > 0;
  for (const input of inputsOf(spec, state, line.machine)) {
    if (line.sibling && !isHandler && input.kind !== "interrupt") continue;
    for (const guards of subsets(guardsOf(spec, state))) {
      world.holds.clear();
      for (const guard of guards) world.holds.add(guard);
      found.push(...(await moved(world, line, input, isRoot)));
    }
  }
  if (line.sibling && !isHandler) found.push({ words: [], end: "completed" });
  if (!isRoot) found.push({ words: [], end: "failed" });
  return found;
}

function inputsOf(spec: PipelineSpec, state: string, machine: MachineState): readonly MachineInput[] {
  const handled = machine.suspended.map(({ interrupt }) => interrupt);
  const usage = { inputTokens: 0, outputTokens: 0 };
  const base = { executionId: `${state}#1`, attempts: 1, turns: 0, usage, ms: 0 };
  const failed = { ...base, status: "failed", code: "tool", message: "no" } as const;
  const completed = { ...base, status: "completed", output: null } as const;
  return [
    ...["E", "F", "OTHER"].map((event) => ({ kind: "event", event, data: {} }) as const),
    { kind: "result", result: failed },
    ...(spec.states.get(state)?.completesByEvents === true ? [] : [{ kind: "result", result: completed } as const]),
    ...spec.interrupts.flatMap(({ name }) =>
      handled.includes(name) ? [] : [{ kind: "interrupt", name, path: "x" } as const],
    ),
  ];
}

function guardsOf({ routes }: PipelineSpec, state: string): readonly string[] {
  const rows: readonly RowSpec[] = routes.kind === "table" ? routes.rows : [];
  const own = rows.filter(({ from }) => from === state || from === "*");
  return [...new Set(own.flatMap(({ when }) => when?.text ?? []))];
}

function subsets(names: readonly string[]): readonly (readonly string[])[] {
  const [first, ...rest] = names;
  if (first === undefined) return [[]];
  return subsets(rest).flatMap((one) => [one, [first, ...one]]);
}

/** What follows an input, an approval of it included. */
async function moved(world: World, line: Line, input: MachineInput, isRoot: boolean): Promise<readonly Next[]> {
  const { spec } = world;
  const machine = copyOf(line.machine);
  const { effect, patch } = await transition(spec, machine, input);
  if (effect.kind !== "approve") return performed(line, machine, effect, patch, [], isRoot, input);
  if (input.kind !== "event" && input.kind !== "result" && input.kind !== "children") return [];
  const answer = { kind: "answer", of: input, decision: effect.decision, approved: true } as const;
  const approved = await transition(spec, machine, answer);
  return performed(line, machine, approved.effect, approved.patch, ["approved"], isRoot, input);
}

function performed(
  line: Line,
  machine: MachineState,
  effect: Effect,
  patch: Parameters<typeof apply>[1],
  before: Trace,
  isRoot: boolean,
  input: MachineInput,
): readonly Next[] {
  // The handler of a sibling has no way on but back.
  if (line.sibling && effect.kind !== "return" && input.kind !== "interrupt") return [];
  if (effect.kind === "stay" || effect.kind === "approve") return [];
  apply(machine, patch);
  switch (effect.kind) {
    case "enter":
      return [{ words: [...before, effect.state], line: { ...line, machine } }];
    case "return":
      return [{ words: before, line: { ...line, machine } }];
    case "end": {
      const { status, state } = effect.end;
      // A cap ends the run instead of the move.
      if (effect.end.status === "failed" && effect.end.limit !== undefined)
        return isRoot ? [] : [{ words: [], end: "failed" }];
      const words = state === undefined ? before : [...before, state];
      if (status === "completed") return [{ words, end: "completed" }];
      return isRoot && words.length === 0 ? [] : [{ words, end: "failed" }];
    }
    case "fanOut": {
      const children = effect.children.map((child) => [child, childLine(machine, child)] as const);
      return [{ words: before, line: { ...line, machine, fork: { children } } }];
    }
  }
}

function childLine(parent: MachineState, child: Child): Line {
  if (child.kind === "invoke") throw new Error("there are no other pipelines here");
  const { state } = child;
  const isBranch = child.kind === "branch";
  const machine: MachineState = {
    ...copyOf(parent),
    hops: isBranch ? parent.hops : 0,
    counts: new Map([
      ...(isBranch ? parent.counts : []),
      [state, { visits: parent.counts.get(state)?.visits ?? 1, turns: 0 }],
    ]),
    at: { state, input: null, visit: 1 },
    pending: undefined,
    suspended: [],
    terminal: isBranch ? child.terminal : undefined,
  };
  return { machine, begun: false, sibling: child.kind === "sibling" };
}

async function nextOfFork(
  world: World,
  line: Line,
  children: readonly (readonly [Child, Line | ChildEnd])[],
  isRoot: boolean,
): Promise<readonly Next[]> {
  const policy = line.machine.pending?.choice.onFailure ?? "cancel";
  const ends = children.map(([, at]) => ("machine" in at ? undefined : at));
  const isCut =
    (policy === "cancel" && ends.some((end) => end?.status === "failed")) ||
    (policy === "any" && ends.some((end) => end?.status === "completed"));
  if (isCut || ends.every((end) => end !== undefined)) {
    const { fork: _joined, ...rest } = line;
    const ended = ends.map((end, index): ChildEnd => {
      const key = children[index]?.[0].key ?? "";
      return end ?? { key, turns: 0, status: "cancelled", code: "cancelled", message: "too late" };
    });
    const found: Next[] = [];
    for (const guards of subsets(guardsOf(world.spec, line.machine.at?.state ?? ""))) {
      world.holds.clear();
      for (const guard of guards) world.holds.add(guard);
      found.push(...(await moved(world, rest, { kind: "children", ended }, isRoot)));
    }
    return found;
  }
  const found: Next[] = [];
  for (const [index, [child, at]] of children.entries()) {
    if (!("machine" in at)) continue;
    for (const next of await nextOf(world, at, false)) {
      const { key } = child;
      const failed: ChildEnd = { key, turns: 0, status: "failed", code: "failed", message: "no" };
      const completed: ChildEnd = { key, turns: 0, status: "completed", output: null };
      const now = "line" in next ? next.line : next.end === "completed" ? completed : failed;
      found.push({ words: next.words, line: { ...line, fork: { children: children.with(index, [child, now]) } } });
    }
  }
  return found;
}

function copyOf(machine: MachineState): MachineState {
  return { ...machine, counts: new Map(machine.counts) };
}
