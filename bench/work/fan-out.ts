import { setTimeout } from "node:timers/promises";
import { type Clock, done, fanOut, pipeline, type Stage, type StageContext } from "@sluice/core";
import { z } from "zod";
import { bareFan } from "../bare.ts";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { streamingModel } from "../model.ts";
import { REVIEW_ANSWER, type Review, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";
import { reviewStage } from "./stages.ts";

const CAP = 8;
/** Milliseconds of one model call. */
const CALL_MS = 10;

/** A state that fans out into `siblings` one-turn stages, and one that joins them. */
function fork(siblings: number) {
  const keys = Array.from({ length: siblings }, (_, at) => `part-${at}`);
  const stages: Record<string, Stage<Review, undefined>> = { split: reviewStage(), join: reviewStage() };
  for (const key of keys) stages[key] = reviewStage();
  return pipeline({
    id: "fork",
    input: z.object({ task: z.string() }),
    stages,
    initial: "split",
    next: {
      split: () => fanOut(keys, { join: "join" }),
      join: (_result: unknown, ctx: StageContext) => done(Object.keys(ctx.upstream).length),
    },
  });
}

/** A model whose calls take time after the warm-up, which runs the same code faster without waiting. */
function slowModel() {
  let callMs = 0;
  const wait = (): Promise<void> | undefined => (callMs === 0 ? undefined : setTimeout(callMs));
  return {
    model: streamingModel(() => REVIEW_ANSWER, wait),
    slowDown: () => {
      callMs = CALL_MS;
    },
  };
}

/** A thousand siblings of one turn each and their join. */
export async function fanOutOfThousand({ quick }: WorkloadOptions): Promise<Workload> {
  const siblings = quick ? 100 : 1000;
  const forking = fork(siblings);
  const { model, slowDown } = slowModel();
  const session = benchSession(scratch(), { model, maxParallel: CAP, host: shortMemory() });
  const slice = async () => {
    completed(await session.run(forking, { task: TASK }));
    return { units: siblings, facts: {} };
  };
  return { warmUps: quick ? 1 : 20, slice, warmedUp: slowDown, close: session.close };
}

/** The equivalent without Sluice: eight workers that take stages from a queue. */
export async function bareFanOut({ quick }: WorkloadOptions): Promise<Workload> {
  const siblings = quick ? 100 : 1000;
  const { model, slowDown } = slowModel();
  const slice = async () => {
    await bareFan(model, siblings, CAP);
    return { units: siblings, facts: {} };
  };
  return { warmUps: quick ? 1 : 40, slice, warmedUp: slowDown };
}

/** The same with a virtual clock: the maximum in parallel, and the makespan. */
export async function fanOutOnVirtualClock({ quick }: WorkloadOptions): Promise<Workload> {
  const siblings = quick ? 100 : 1000;
  const forking = fork(siblings);
  const cwd = scratch();
  return {
    warmUps: 0,
    slice: async () => {
      const clock = virtualClock();
      let atWork = 0;
      let most = 0;
      const model = streamingModel(
        () => REVIEW_ANSWER,
        async () => {
          atWork += 1;
          most = Math.max(most, atWork);
          await new Promise<void>((resolve) => {
            clock.after(CALL_MS, resolve);
          });
          atWork -= 1;
        },
      );
      const session = benchSession(cwd, { model, maxParallel: CAP, clock });
      let over = false;
      const run = session.run(forking, { task: TASK }).finally(() => {
        over = true;
      });
      while (!over) {
        // Everything that can happen at this virtual time has happened after one turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
        clock.turnToNext();
      }
      completed(await run);
      await session.close();
      const around = 2 * CALL_MS;
      const ideal = Math.ceil(siblings / CAP) * CALL_MS;
      return { units: siblings, facts: { most, makespanMs: clock.now() - around, idealMs: ideal } };
    },
  };
}

interface VirtualClock extends Clock {
  /** Advances to the time of the next timer. */
  turnToNext(): void;
}

function virtualClock(): VirtualClock {
  const timers = new Set<{ readonly at: number; readonly fn: () => void }>();
  let now = 0;
  return {
    now: () => now,
    after: (ms, fn) => {
      const timer = { at: now + ms, fn };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    turnToNext: () => {
      if (timers.size === 0) return;
      now = Math.min(...[...timers].map(({ at }) => at));
      for (const timer of [...timers]) if (timer.at <= now && timers.delete(timer)) timer.fn();
    },
  };
}
