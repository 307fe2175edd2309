import { getEventListeners } from "node:events";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { streamingModel } from "../model.ts";
import { REVIEW_ANSWER, TASK } from "../review.ts";
import { benchSession, completed, scratch } from "../session.ts";
import { loopOf } from "./stages.ts";

/** One run of ten thousand stages: what its second thousand cost, and what its last. */
export async function longRun({ quick }: WorkloadOptions): Promise<Workload> {
  const thousand = quick ? 100 : 1000;
  const looped = loopOf(10 * thousand);
  const cwd = scratch();
  return {
    warmUps: 1,
    slice: async () => {
      const marks = new Map<number, number>();
      const model = streamingModel(
        () => REVIEW_ANSWER,
        (call) => {
          if (call % thousand === 0) marks.set(call / thousand, cpuNow());
          return undefined;
        },
      );
      const session = benchSession(cwd, { model });
      completed(await session.run(looped, { task: TASK }));
      const end = cpuNow();
      await session.close();
      const at = (mark: number): number => marks.get(mark) ?? Number.NaN;
      return { units: 10 * thousand, facts: { earlyMs: at(2) - at(1), lateMs: end - at(9) } };
    },
  };
}

function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Every signal that was made while a run lived, and what still listens to one of them afterwards. */
export async function listenersLeft({ quick }: WorkloadOptions): Promise<Workload> {
  const stages = quick ? 50 : 500;
  const looped = loopOf(stages);
  const cwd = scratch();
  const signals: AbortSignal[] = [];
  const Controller = globalThis.AbortController;
  globalThis.AbortController = class extends Controller {
    constructor() {
      super();
      signals.push(this.signal);
    }
  };
  return {
    warmUps: 1,
    slice: async () => {
      const before = processListeners();
      const handedOut = new Set<AbortSignal>();
      const model = streamingModel(
        () => REVIEW_ANSWER,
        (_call, { abortSignal }) => {
          if (abortSignal !== undefined) handedOut.add(abortSignal);
          return undefined;
        },
      );
      const session = benchSession(cwd, { model });
      completed(await session.run(looped, { task: TASK }));
      const left = [...signals, ...handedOut].reduce(
        (sum, signal) => sum + getEventListeners(signal, "abort").length,
        0,
      );
      const facts = {
        signals: signals.length,
        handedOut: handedOut.size,
        left,
        processLeft: processListeners() - before,
      };
      await session.close();
      signals.length = 0;
      return { units: stages, facts };
    },
  };
}

function processListeners(): number {
  return process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
}
