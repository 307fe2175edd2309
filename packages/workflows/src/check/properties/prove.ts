// Proofs of properties over all paths of a pipeline.

import type { PipelineSpec } from "@sluice/core";
import { nameOf } from "../finding.ts";
import { functionsOf } from "../moves.ts";
import type { Property } from "./property.ts";
import {
  countsAfter,
  firstStep,
  isWithinCaps,
  type PathStep,
  type Scene,
  type Step,
  sceneOf,
  stepsFrom,
} from "./steps.ts";
import { COMPLETED, type Counts, isEnded, type Thread } from "./thread.ts";
import { type Watch, type Watched, watchOf } from "./watch.ts";

/** `situations` were looked at. */
export type PropertyVerdict = { readonly situations: number } & (
  | /** It holds on every path. */
  { readonly verdict: "proven" }
  /** A shortest path that breaks it. */
  | { readonly verdict: "violated"; readonly path: readonly PathStep[] }
  /** Neither is certain. */
  | { readonly verdict: "unknown"; readonly why: string }
);

export interface ProofOptions {
  /** How many different situations of a run are looked at. Default: 50,000. */
  readonly maxSituations?: number;
}
const MOST_SITUATIONS = 50_000;
/** Steps that are looked at, on average. */
const STEPS_A_SITUATION = 10;

/**
 * Proves that a property holds on all paths of a pipeline, or shows a shortest path that breaks it. Conditions may hold or not,
 * unless nothing can have set what they read; any state may fail; and an interrupt may come in any state. `always` is about runs
 * that complete. A state counts where it is entered, ends the run or ends a branch. A tool counts wherever a state lets it run
 * without a grant, and nothing counts on its use. Where a function decides what comes next, only its declared targets are known.
 */
export function proveProperty(spec: PipelineSpec, property: Property, options: ProofOptions = {}): PropertyVerdict {
  const watch = watchOf(property);
  const most = options.maxSituations ?? MOST_SITUATIONS;
  const scene = sceneOf(spec, watch.words);
  let search: Search = { scene, watch, most };
  const found = [searched(search, false)];
  // A cap may cut the shortest path, and not another one.
  if (found[0]?.kind === "broken" && !surelyFitsCaps(spec, found[0].steps)) {
    search = { ...search, scene: { ...scene, counted: true } };
    found.push(searched(search, false));
  }
  const certain = found.at(-1);
  if (certain?.kind === "holds") found.push(searched(search, true));
  const situations = found.reduce((sum, one) => sum + one.situations, 0);
  const last = found.at(-1);
  if (last === undefined || last.kind === "tooMany")
    return { situations, verdict: "unknown", why: `the pipeline has more than ${most} different situations` };
  if (last === certain && last.kind === "broken")
    return { situations, verdict: "violated", path: last.steps.map(({ path }) => path) };
  const bare = [...last.states].filter((state) => isBare(spec, state)).map((state) => nameOf(spec, state));
  if (bare.length > 0) {
    const why = `a function decides what follows ${bare.join(", ")}; declare its targets with route()`;
    return { situations, verdict: "unknown", why };
  }
  if (last.kind === "holds") return { situations, verdict: "proven" };
  const { from = "", to = "any state" } = last.steps.find(({ assumed }) => assumed === true)?.path ?? {};
  return { situations, verdict: "unknown", why: `the function that routes ${from} may lead to ${to}` };
}

function isBare(spec: PipelineSpec, state: string): boolean {
  const functions = functionsOf(spec, state);
  return functions !== undefined && functions.targets === undefined;
}

interface Search {
  readonly scene: Scene;
  readonly watch: Watch;
  readonly most: number;
}
interface Situation {
  readonly thread: Thread;
  readonly at: Watched;
  readonly step: Step;
  readonly before: Situation | undefined;
}
type Found = { readonly states: ReadonlySet<string>; readonly situations: number } & (
  | { readonly kind: "broken"; readonly steps: readonly Step[] }
  | { readonly kind: "holds" }
  | { readonly kind: "tooMany" }
);

/** Looks at the situations of a run in the order of their distance from the start. */
function searched({ scene, watch, most }: Search, assumed: boolean): Found {
  const states = new Set<string>();
  let steps = 0;
  const seen = new Set<string>();
  const waiting: Situation[] = [];
  const add = (step: Step, before: Situation | undefined): Situation | undefined => {
    const at = step.words.reduce((now, word) => watch.next(now, word), before?.at ?? watch.start);
    const situation: Situation = { thread: step.next, at, step, before };
    if (at === "broken" || (step.next === COMPLETED && watch.isOwed(at))) return situation;
    // Nothing can break it after this.
    if (at === "held") return undefined;
    const key = `${at} ${JSON.stringify(step.next)}`;
    if (seen.has(key)) return undefined;
    seen.add(key);
    for (const state of statesIn(step.next)) states.add(state);
    waiting.push(situation);
    return undefined;
  };
  const first = add(firstStep(scene), undefined);
  if (first !== undefined) return { kind: "broken", steps: stepsOf(first), states, situations: 1 };
  for (const situation of waiting) {
    if (seen.size > most) return { kind: "tooMany", states, situations: seen.size };
    for (const step of stepsFrom(scene, situation.thread)) {
      if (step.assumed === true && !assumed) continue;
      steps += 1;
      if (steps > most * STEPS_A_SITUATION) return { kind: "tooMany", states, situations: most };
      const broken = add(step, situation);
      if (broken !== undefined) return { kind: "broken", steps: stepsOf(broken), states, situations: seen.size };
    }
  }
  return { kind: "holds", states, situations: seen.size };
}

function stepsOf(last: Situation): readonly Step[] {
  const steps: Step[] = [];
  for (let at: Situation | undefined = last; at !== undefined; at = at.before) steps.unshift(at.step);
  return steps;
}

/** The states in which a thread works and whose routes decide what follows. */
function statesIn(thread: Thread): readonly string[] {
  if (thread.is === "working") return thread.isSibling === true ? [] : [thread.state];
  return thread.is === "forked" ? thread.children.flatMap((child) => statesIn(child.thread)) : [];
}

/** Whether no cap can cut a path, in whichever run of it states are entered. */
function surelyFitsCaps(spec: PipelineSpec, steps: readonly Step[]): boolean {
  let counts: Counts = { visits: {}, hops: 0 };
  for (const step of steps) {
    counts = countsAfter(counts, step);
    if (!isEnded(step.next) && !isWithinCaps(spec, step, counts)) return false;
  }
  return true;
}
