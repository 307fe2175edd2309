// What may happen next in a run, step by step. Conditions may hold or not, states may fail, and files may change at any time.

import type { ChoiceShape, InterruptSpec, PipelineSpec } from "@sluice/core";
import { invokeKey, MAX_VISITS, maxHopsOf } from "@sluice/core/runtime";
import { nameOf } from "../finding.ts";
import { type Flow, flowOf } from "../flow.ts";
import { functionsOf, type Move, moveWords } from "../moves.ts";
import { mayApprove, mayUse, pipelineMayApprove, pipelineMayUse } from "./capabilities.ts";
import type { Word } from "./property.ts";
import {
  COMPLETED,
  type Counts,
  FAILED,
  type Forked,
  type Inside,
  isEnded,
  type NamedThread,
  type Ready,
  type Thread,
  type Working,
} from "./thread.ts";

/** One step of a counterexample. */
export interface PathStep {
  /** The child of a fan-out that it happens in, outermost first; empty in the run itself. */
  readonly branch: readonly string[];
  /** The state that it starts in; absent at the start of the run or of a child. */
  readonly from?: string;
  /** The event, the result or the interrupt that leads on, in words. */
  readonly on: string;
  /** The row of the table. */
  readonly row?: number;
  /** A person approved it. */
  readonly approved?: true;
  /** Where it leads, in words. */
  readonly to: string;
}

/** A step with what follows from it. */
export interface Step {
  readonly path: PathStep;
  /** What happens, in order. */
  readonly words: readonly Word[];
  readonly next: Thread;
  /** The states that it enters, for the cap of visits. */
  readonly visits?: readonly string[];
  /** Whether it is a route, for the cap of hops. */
  readonly isHop?: true;
  /** It may happen as far as the definition says, but a function decides. */
  readonly assumed?: true;
}

export interface Scene {
  readonly spec: PipelineSpec;
  readonly flow: Flow;
  /** The words that matter. */
  readonly words: readonly Word[];
  /** Whether caps are counted. Otherwise there are fewer situations, and steps that caps do not allow. */
  readonly counted: boolean;
  /** The interrupts that may matter. */
  readonly interrupts: readonly InterruptSpec[];
  /** What is known of children: whether something that the property names may happen in them. */
  readonly mattering: Map<string, boolean>;
}

/** What a search for these words needs to know. */
export function sceneOf(spec: PipelineSpec, words: readonly Word[]): Scene {
  const flow = flowOf(spec);
  const scene: Scene = { spec, flow, words, counted: false, interrupts: [], mattering: new Map() };
  return { ...scene, interrupts: spec.interrupts.filter(({ target }) => changesSomething(scene, target)) };
}

/** Whether the handler of an interrupt does anything but return or fail, and whether something that the property names happens there. */
function changesSomething(scene: Scene, target: string): boolean {
  const { spec, flow, words } = scene;
  if (functionsOf(spec, target) !== undefined || words.some((word) => mayHappenIn(scene, new Set([target]), word)))
    return true;
  return flow.moves(target).some(({ shape }) => {
    if (shape.kind === "return" || shape.kind === "fail" || shape.kind === "cancel") return false;
    const outcome = shape.kind === "to" ? spec.states.get(shape.state)?.final?.outcome : undefined;
    const isNamed = words.some((word) => word.kind === "state" && shape.kind === "to" && word.id === shape.state);
    return isNamed || outcome === undefined || outcome === "completed";
  });
}

/** How a run begins. */
export function firstStep({ spec, counted: isCounted }: Scene): Step {
  const { initial } = spec;
  const counts = isCounted ? { counts: { visits: { [initial]: 1 }, hops: 0 } } : {};
  const next: Working = { is: "working", state: initial, suspended: [], ...counts };
  return {
    path: { branch: [], on: "start", to: nameOf(spec, initial) },
    words: [entered(initial)],
    next,
    visits: [initial],
  };
}

export function stepsFrom(scene: Scene, thread: Thread, branch: readonly string[] = []): readonly Step[] {
  switch (thread.is) {
    case "ready":
      return [startOf(scene, thread, branch)];
    case "working":
      return counted(scene, thread.counts, workingSteps(scene, thread, branch));
    case "forked":
      return forkedSteps(scene, thread, branch);
    case "inside":
      return insideSteps(scene, thread, branch);
    case "completed":
    case "failed":
      return [];
  }
}

function entered(id: string): Word {
  return { kind: "state", id };
}

/** The steps that the caps allow, with what is counted after them. Without a step, a child can still fail. */
function counted({ spec }: Scene, before: Counts | undefined, steps: readonly Step[]): readonly Step[] {
  if (before === undefined) return steps;
  return steps.flatMap((step): readonly Step[] => {
    // A step that ends the run is not held to its caps.
    if (isEnded(step.next)) return [step];
    const counts = countsAfter(before, step);
    return isWithinCaps(spec, step, counts) ? [{ ...step, next: withCounts(step.next, counts) }] : [];
  });
}

export function countsAfter(before: Counts, { visits = [], isHop }: Pick<Step, "visits" | "isHop">): Counts {
  const after = { ...before.visits };
  for (const state of visits) after[state] = (after[state] ?? 0) + 1;
  return { visits: after, hops: before.hops + (isHop === true ? 1 : 0) };
}

export function isWithinCaps(spec: PipelineSpec, { visits = [] }: Pick<Step, "visits">, counts: Counts): boolean {
  const { maxVisits = MAX_VISITS } = spec.limits;
  return counts.hops <= maxHopsOf(spec) && visits.every((state) => (counts.visits[state] ?? 0) <= maxVisits);
}

/** A branch continues the counts of its parent; any other child counts from the visit that its parent has counted. */
function withCounts(thread: Thread, counts: Counts): Thread {
  if (thread.is === "working") return { ...thread, counts };
  if (thread.is !== "forked") return thread;
  const children = thread.children.map(({ key, thread: child }): NamedThread => {
    if (child.is !== "ready") return { key, thread: child };
    if (child.terminal !== undefined) return { key, thread: { ...child, counts } };
    return {
      key,
      thread: { ...child, counts: { visits: { [child.state]: counts.visits[child.state] ?? 1 }, hops: 0 } },
    };
  });
  return { ...thread, children, counts };
}

function startOf({ spec }: Scene, at: Ready, branch: readonly string[]): Step {
  const { state, counts } = at;
  const next: Working = {
    ...place(at),
    is: "working",
    state,
    suspended: [],
    ...(counts === undefined ? {} : { counts }),
  };
  return { path: { branch, on: "start", to: nameOf(spec, state) }, words: [entered(state)], next };
}

function place(of: {
  readonly terminal?: string | undefined;
  readonly isSibling?: true | undefined;
}): Pick<Working, "terminal" | "isSibling"> {
  const { terminal, isSibling } = of;
  return { ...(terminal === undefined ? {} : { terminal }), ...(isSibling === undefined ? {} : { isSibling }) };
}

function workingSteps(scene: Scene, at: Working, branch: readonly string[]): readonly Step[] {
  const { spec, flow } = scene;
  const { state, suspended, isSibling } = at;
  const from = nameOf(spec, state);
  const steps: Step[] = usesIn(scene, at, branch);
  for (const move of flow.moves(state)) {
    const isReturn = move.shape.kind === "return";
    // A sibling has no routes, and its handlers have no other way on than back.
    if (isReturn ? suspended.length === 0 : isSibling === true) continue;
    if (move.row.on === "skipped" && spec.states.get(state)?.precondition === undefined) continue;
    steps.push(...moved(scene, at, move, branch));
  }
  steps.push(...functionSteps(scene, at, branch));
  for (const { name, target } of scene.interrupts) {
    if (suspended.some(({ interrupt }) => interrupt === name)) continue;
    const next: Working = { ...at, state: target, suspended: [...suspended, { state, interrupt: name }] };
    const path: PathStep = { branch, from, on: `interrupt ${name}`, to: nameOf(spec, target) };
    steps.push({ path, words: [entered(target)], next, visits: [target] });
  }
  if (branch.length > 0) {
    const isDone = isSibling === true && suspended.length === 0;
    if (isDone) steps.push({ path: { branch, from, on: "success", to: "its end" }, words: [], next: COMPLETED });
    steps.push({ path: { branch, from, on: "failure", to: "a failed end" }, words: [], next: FAILED });
  }
  return steps;
}

/** What may happen inside a state while it works. */
function usesIn({ spec, words }: Scene, at: Working, branch: readonly string[]): Step[] {
  const from = nameOf(spec, at.state);
  return words.flatMap((word): readonly Step[] => {
    if (word.kind === "tool" && mayUse(spec, at.state, word.name))
      return [{ path: { branch, from, on: `use of ${word.name}`, to: from }, words: [word], next: at }];
    if (word.kind === "approved" && mayApprove(spec, at.state))
      return [{ path: { branch, from, on: "approval in its pipeline", to: from }, words: [word], next: at }];
    return [];
  });
}

function mayHappenInside(spec: PipelineSpec, pipeline: string, word: Word): boolean {
  if (word.kind === "tool") return pipelineMayUse(spec, pipeline, word.name);
  return word.kind === "approved" && pipelineMayApprove(spec, pipeline);
}

function insideSteps({ spec, words }: Scene, at: Inside, branch: readonly string[]): readonly Step[] {
  const from = `pipeline ${at.pipeline}`;
  const happening = words.filter((word) => mayHappenInside(spec, at.pipeline, word));
  const uses = happening.map((word): Step => {
    const on = word.kind === "tool" ? `use of ${word.name}` : "approval";
    return { path: { branch, from, on, to: from }, words: [word], next: at };
  });
  return [
    ...uses,
    { path: { branch, from, on: "success", to: "its end" }, words: [], next: COMPLETED },
    { path: { branch, from, on: "failure", to: "a failed end" }, words: [], next: FAILED },
  ];
}

function moved(scene: Scene, at: Working, move: Move, branch: readonly string[]): readonly Step[] {
  const { spec } = scene;
  const { row, index, shape } = move;
  const approval = row.approval === undefined ? {} : { approved: true as const };
  const path = {
    branch,
    from: nameOf(spec, at.state),
    on: moveWords(move),
    ...(index < 0 ? {} : { row: index }),
    ...approval,
  };
  const before: readonly Word[] = row.approval === undefined ? [] : [{ kind: "approved" }];
  const event = typeof row.on === "string" || index < 0 ? undefined : row.on.event;
  return led(scene, at, shape, event).map((step) => ({
    ...step,
    path: { ...path, to: step.path.to },
    words: [...before, ...step.words],
    isHop: true,
  }));
}

type Led = Omit<Step, "path"> & { readonly path: Pick<PathStep, "to"> };

/** Where a choice leads; nothing if it cannot be followed. */
function led(scene: Scene, at: Working, shape: ChoiceShape, event: string | undefined): readonly Led[] {
  const { spec } = scene;
  switch (shape.kind) {
    case "to":
      return [arrival(scene, at, shape.state)];
    case "return": {
      const last = at.suspended.at(-1);
      if (last === undefined) return [];
      const next: Working = { ...at, state: last.state, suspended: at.suspended.slice(0, -1) };
      return [{ path: { to: `${nameOf(spec, last.state)}, which continues` }, words: [], next }];
    }
    case "done":
      return [{ path: { to: "a completed end" }, words: [], next: at.terminal === undefined ? COMPLETED : FAILED }];
    case "fail":
    case "cancel":
      return [{ path: { to: `a ${shape.kind === "fail" ? "failed" : "cancelled"} end` }, words: [], next: FAILED }];
    case "fanOut": {
      if (shape.siblings.length === 0) return [arrival(scene, at, shape.join)];
      const copies = shape.list === undefined ? shape.siblings : shape.siblings.slice(0, 2);
      const children = copies.map(
        ({ state, key = state }): NamedThread => ({ key, thread: { is: "ready", state, isSibling: true } }),
      );
      const policy = shape.onFailure === "cancel" ? "all" : "settle";
      return [forking(scene, at, children, { policy, join: shape.join })];
    }
    case "fork": {
      const children = shape.branches.map(
        ({ key, initial, terminal }): NamedThread => ({ key, thread: { is: "ready", state: initial, terminal } }),
      );
      return [forking(scene, at, children, { policy: shape.join, join: shape.onComplete, ...onFailOf(shape) })];
    }
    case "invoke": {
      const { pipeline, key = invokeKey(event, pipeline) } = shape;
      const children = [{ key, thread: { is: "inside", pipeline } as const }];
      return [forking(scene, at, children, { policy: "all", join: shape.onComplete, ...onFailOf(shape) })];
    }
  }
}

function onFailOf({ onFail }: { readonly onFail?: string }): { readonly onFail?: string } {
  return onFail === undefined ? {} : { onFail };
}

/** The state that is entered, unless it ends the run or the branch. */
function arrival({ spec }: Scene, { terminal }: Pick<Working, "terminal">, state: string): Led {
  const path = { to: nameOf(spec, state) };
  const words = [entered(state)];
  if (state === terminal) return { path, words, next: COMPLETED };
  const outcome = spec.states.get(state)?.final?.outcome;
  if (outcome !== undefined)
    return { path, words, next: outcome === "completed" && terminal === undefined ? COMPLETED : FAILED };
  const next: Working = { is: "working", state, suspended: [], ...place({ terminal }) };
  return { path, words, next, visits: [state] };
}

function forking(
  scene: Scene,
  { state, terminal }: Working,
  all: readonly NamedThread[],
  rest: Pick<Forked, "policy" | "join" | "onFail">,
): Led {
  const children = all.filter(({ thread }) => mayMatter(scene, thread));
  const next: Forked = {
    is: "forked",
    state,
    ...place({ terminal }),
    children,
    others: children.length < all.length,
    ...rest,
  };
  const visits = [...new Set(all.flatMap(({ thread }) => (thread.is === "ready" ? [thread.state] : [])))];
  return {
    path: {
      to: all.map(({ key, thread }) => (thread.is === "inside" ? `pipeline ${thread.pipeline}` : key)).join(" and "),
    },
    words: [],
    next,
    visits,
  };
}

/** Whether something that the property names may happen in a child, or whether it cannot complete. */
function mayMatter(scene: Scene, child: Thread): boolean {
  const key = JSON.stringify(child);
  const known = scene.mattering.get(key) ?? matters(scene, child);
  scene.mattering.set(key, known);
  return known;
}

function matters(scene: Scene, child: Thread): boolean {
  const { spec, flow, words } = scene;
  if (child.is === "inside") return words.some((word) => mayHappenInside(spec, child.pipeline, word));
  if (child.is !== "ready") return true;
  const states = new Set([child.state, ...scene.interrupts.map(({ target }) => target)]);
  let completes = child.isSibling === true;
  for (const state of states) {
    if (state === child.terminal) continue;
    if (child.isSibling === true) continue;
    if (functionsOf(spec, state) !== undefined) return true;
    for (const { shape } of flow.moves(state)) {
      // A fork inside a branch is followed, whatever is in it.
      if (shape.kind === "fanOut" || shape.kind === "fork" || shape.kind === "invoke") return true;
      if (shape.kind !== "to") continue;
      states.add(shape.state);
      if (shape.state === child.terminal) completes = true;
    }
  }
  return !completes || words.some((word) => mayHappenIn(scene, states, word));
}

function mayHappenIn({ spec, flow }: Scene, states: ReadonlySet<string>, word: Word): boolean {
  if (word.kind === "state") return states.has(word.id);
  return [...states].some((state) => {
    if (word.kind === "tool") return mayUse(spec, state, word.name);
    return mayApprove(spec, state) || flow.moves(state).some(({ row }) => row.approval !== undefined);
  });
}

function forkedSteps(scene: Scene, at: Forked, branch: readonly string[]): readonly Step[] {
  const { children, policy, others } = at;
  const failed = children.some(({ thread }) => thread.is === "failed");
  const completed = children.some(({ thread }) => thread.is === "completed");
  const areEnded = children.every(({ thread }) => isEnded(thread));
  const steps: Step[] = [];
  const mayJoin = policy === "any" ? completed || others : areEnded && (policy === "settle" || !failed);
  const mayFail = policy === "all" ? failed || others : policy === "any" && areEnded && !completed;
  if (mayJoin) steps.push(...counted(scene, at.counts, [joined(scene, at, branch)]));
  if (mayFail) steps.push(...counted(scene, at.counts, failedFork(scene, at, branch)));
  // What has ended a fan-out ends its other children.
  if ((policy === "all" && failed) || (policy === "any" && completed)) return steps;
  for (const [index, { key, thread }] of children.entries())
    for (const step of stepsFrom(scene, thread, [...branch, key]))
      steps.push({ ...step, next: { ...at, children: children.with(index, { key, thread: step.next }) } });
  return steps;
}

function joined(scene: Scene, at: Forked, branch: readonly string[]): Step {
  const step = arrival(scene, at, at.join);
  return { ...step, path: { branch, from: nameOf(scene.spec, at.state), on: "join", ...step.path } };
}

function failedFork(scene: Scene, at: Forked, branch: readonly string[]): readonly Step[] {
  const { spec, flow } = scene;
  const path = { branch, from: nameOf(spec, at.state), on: "a failed child" };
  if (at.onFail !== undefined) {
    const step = arrival(scene, at, at.onFail);
    return [{ ...step, path: { ...path, ...step.path } }];
  }
  const failing: Step = { path: { ...path, to: "a failed end" }, words: [], next: FAILED };
  const as: Working = { is: "working", state: at.state, suspended: [], ...place(at) };
  const rows = flow.moves(at.state).filter(({ row }) => row.on === "failure");
  return [failing, ...rows.flatMap((move) => moved(scene, as, move, branch))];
}

/** The steps of routes that are functions, as far as they declare where they lead. */
function functionSteps(scene: Scene, at: Working, branch: readonly string[]): readonly Step[] {
  const { spec } = scene;
  const functions = at.isSibling === true && at.suspended.length === 0 ? undefined : functionsOf(spec, at.state);
  if (functions?.targets === undefined) return [];
  const { targets } = functions;
  const from = nameOf(spec, at.state);
  const base = { branch, from, on: "its route" };
  // A function does not declare that it returns.
  const back = led(scene, at, { kind: "return" }, undefined).map(
    (step): Step => ({ ...step, path: { ...base, ...step.path }, isHop: true, assumed: true }),
  );
  if (at.isSibling === true) return back;
  const moves = targets.map((target): Step => {
    const step = arrival(scene, at, target);
    return { ...step, path: { ...base, ...step.path }, isHop: true };
  });
  const ends: Step = {
    path: { ...base, to: "a completed end" },
    words: [],
    next: at.terminal === undefined ? COMPLETED : FAILED,
    isHop: true,
    ...(targets.length === 0 ? {} : { assumed: true as const }),
  };
  return [...back, ...moves, ends, ...assumedForks(scene, at, targets, branch)];
}

/** A function with several targets may run some of them side by side, in any way, before it continues with one. */
function assumedForks(
  scene: Scene,
  at: Working,
  targets: readonly string[],
  branch: readonly string[],
): readonly Step[] {
  const { spec, words } = scene;
  const path = { branch, from: nameOf(spec, at.state), on: "its route", to: "several states side by side" };
  const states = new Set(targets.length < 2 ? [] : targets);
  for (const state of states) for (const target of functionsOf(spec, state)?.targets ?? []) states.add(target);
  const mayHappen = (word: Word): boolean =>
    mayHappenIn(scene, states, word) || [...spec.pipelines.keys()].some((name) => mayHappenInside(spec, name, word));
  return words.filter(mayHappen).map((word): Step => ({ path, words: [word], next: at, assumed: true }));
}
