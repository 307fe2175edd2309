import { join } from "node:path";
import { sqliteHost } from "@sluice/sqlite";
import { createSession } from "@sluice/stages";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { streamingModel } from "../model.ts";
import { REVIEW_ANSWER, TASK } from "../review.ts";
import { benchSession, completed, cpuNow, scratch } from "../session.ts";
import { loopOf } from "./stages.ts";

/**
 * A run that is suspended after three thousand recorded steps and resumed by another session: the cost of recovering them,
 * including the chain check, until the interrupted model call is made again.
 */
export async function resumeOfSteps({ quick }: WorkloadOptions): Promise<Workload> {
  // A stage is three steps: enter, the model's turn, leave.
  const stages = quick ? 20 : 1000;
  const folder = scratch();
  let slices = 0;
  return {
    warmUps: quick ? 1 : 2,
    slice: async () => {
      slices += 1;
      const store = join(folder, `store-${slices}`);
      const looped = loopOf(stages + 1);
      const { runId, workCpuMs } = await leftAtWork(folder, store, looped, stages);
      const host = sqliteHost(store);
      let asked = { cpu: Number.NaN, wall: Number.NaN };
      const model = streamingModel(
        () => REVIEW_ANSWER,
        () => {
          asked = { cpu: cpuNow(), wall: performance.now() };
          return undefined;
        },
      );
      const session = benchSession(folder, { model, host: host });
      const [cpu, wall] = [cpuNow(), performance.now()];
      completed(await session.resume(looped, runId));
      await session.close();
      await host.close();
      const facts = { workCpuMs, resumeCpuMs: asked.cpu - cpu, newWorkMs: asked.wall - wall };
      return { units: 3 * stages, facts };
    },
  };
}

/** Runs `stages` stages and suspends the run in the next model call. */
async function leftAtWork(folder: string, store: string, looped: ReturnType<typeof loopOf>, stages: number) {
  let reached: () => void = () => undefined;
  const there = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const model = streamingModel(
    () => REVIEW_ANSWER,
    (call, { abortSignal }) => {
      if (call < stages) return undefined;
      reached();
      return new Promise((_resolve, reject) => {
        abortSignal?.addEventListener("abort", () => reject(new Error("left")), { once: true });
      });
    },
  );
  const host = sqliteHost(store);
  const session = createSession({ cwd: folder, env: {}, model, host: host });
  const before = cpuNow();
  const run = session.start(looped, { task: TASK });
  await there;
  const workCpuMs = cpuNow() - before;
  await session.close();
  await host.close();
  return { runId: run.runId, workCpuMs };
}
