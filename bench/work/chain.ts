import { type Done, done, pipeline, type Stage, type StageContext, type To, to } from "@sluice/core";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { PROMPT, type Review, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";
import { reviewStage, wholeReviewModel } from "./stages.ts";

/** How many states a loop visits in turn. */
const FEW = 3;

/** One run of `stages` one-turn stages over that many different states, each followed by the next, and the last by the first. */
function chainOf(states: number, stages: number, reads: boolean) {
  const names = Array.from({ length: states }, (_, at) => `state-${at}`);
  const reviews: Record<string, Stage<Review, undefined>> = {};
  for (const [at, name] of names.entries()) {
    reviews[name] = reads ? reviewStage(promptAfter(names.at(at - 1) ?? name)) : reviewStage();
  }
  const routes: Record<string, (result: { readonly output: Review }, ctx: StageContext) => To<string> | Done<Review>> =
    {};
  for (const [at, name] of names.entries()) {
    const next = names[(at + 1) % states] ?? name;
    routes[name] = ({ output }, { visit }) => ((visit - 1) * states + at + 1 < stages ? to(next) : done(output));
  }
  return pipeline({
    id: "chain",
    input: z.object({ task: z.string() }),
    stages: reviews,
    initial: "state-0",
    limits: { maxVisits: stages, maxHops: stages },
    next: routes,
  });
}

/** A prompt with what the state before reported. */
function promptAfter(state: string): (ctx: StageContext) => string {
  return ({ upstream }) => {
    const earlier = upstream[state];
    return earlier === undefined ? PROMPT : `${PROMPT}\n\nThe review before yours: ${JSON.stringify(earlier)}`;
  };
}

/** A thousand stages, each of another state, or a thousand visits of a few states. */
function chained(one: "chain" | "loop", reads: boolean): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const units = quick ? 100 : 1000;
    const states = one === "chain" ? units : FEW;
    const chain = chainOf(states, units, reads);
    const session = benchSession(scratch(), { model: wholeReviewModel(), host: shortMemory() });
    return {
      warmUps: quick ? 1 : 20,
      slice: async () => {
        completed(await session.run(chain, { task: TASK }));
        return { units, facts: {} };
      },
      close: session.close,
    };
  };
}

export const chainOfStates = chained("chain", false);
export const loopOfStates = chained("loop", false);
export const chainOfReaders = chained("chain", true);
export const loopOfReaders = chained("loop", true);
