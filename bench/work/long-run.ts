import { getEventListeners } from "node:events";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { streamingModel } from "../model.ts";
import { REVIEW_ANSWER, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";
import { loopOf } from "./stages.ts";

/** One run of ten thousand stages and one more: the cost of the second thousand, of the tenth, and of the end. */
export async function longRun({ quick }: WorkloadOptions): Promise<Workload> {
  const thousand = quick ? 100 : 1000;
  const stages = 10 * thousand;
  const looped = loopOf(stages + 1);
  const marks = new Map<number, number>();
  const model = streamingModel(
    () => REVIEW_ANSWER,
    (call) => {
      const stage = call % (stages + 1);
      if (stage % thousand === 0) marks.set(stage / thousand, cpuNow());
      return undefined;
    },
  );
  const session = benchSession(scratch(), { model, host: shortMemory() });
  return {
    warmUps: 2,
    slice: async () => {
      completed(await session.run(looped, { task: TASK }));
      const end = cpuNow();
      const at = (mark: number): number => marks.get(mark) ?? Number.NaN;
      return { units: stages + 1, facts: { earlyMs: at(2) - at(1), lateMs: at(10) - at(9), endMs: end - at(10) } };
    },
    close: session.close,
  };
}

function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Every signal that was created during a run, and the listeners that remain afterwards. */
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
