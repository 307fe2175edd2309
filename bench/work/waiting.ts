import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { done, type OpenRequest, pipeline, type RunHost, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { type Answer, streamingModel } from "../model.ts";
import { TASK } from "../review.ts";
import { benchSession, cpuNow, scratch } from "../session.ts";

const WATCHED_MS = 3_000;

/** Asks a new question after each answer. */
const asks = pipeline({
  id: "asks",
  input: z.object({ task: z.string() }),
  stages: {
    ask: stage({
      prompt: "Ask.",
      allowedTools: ["AskUser"],
      completionTool: "submit",
      completionSchema: z.object({ said: z.string() }),
      turnCap: 100,
    }),
  },
  initial: "ask",
  next: { ask: ({ output }) => done(output.said) },
});
const question = (call: number): Answer => ({
  reasoning: [],
  text: [],
  tool: "AskUser",
  input: [JSON.stringify({ question: `Continue with ${call}?` })],
});

/** Runs of one process that each wait for an answer, with the journal on disk: the CPU of the process meanwhile. */
export async function waitingRuns({ quick }: WorkloadOptions): Promise<Workload> {
  const runs = quick ? 20 : 2_000;
  const folder = scratch();
  const host = sqliteHost(join(folder, "store"));
  const session = benchSession(folder, { model: streamingModel(question), host: host, wait: true });
  for (let started = 0; started < runs; started += 1) session.start(asks, { task: TASK });
  while ((await host.requests()).length < runs) await setTimeout(100);
  const waiting = (await host.requests()).values();
  return {
    warmUps: 1,
    slice: async () => {
      const [before, began] = [cpuNow(), performance.now()];
      await setTimeout(quick ? 300 : WATCHED_MS);
      const percent = ((cpuNow() - before) / (performance.now() - began)) * 100;
      const { value: request } = waiting.next();
      return {
        units: 1,
        facts: { runs, percent, answerMs: request === undefined ? Number.NaN : await answer(host, request) },
      };
    },
    close: async () => {
      await session.close();
      await host.close();
    },
  };
}

/** CPU time from an answer until its run waits for the next one. */
async function answer(host: RunHost, { runId, requestId, digest }: OpenRequest): Promise<number> {
  const before = cpuNow();
  const payload = { kind: "value", value: "yes", digest };
  await host.signal(runId, { name: `request/${requestId}`, payload, digest, by: "bench" });
  while ((await host.requests(runId)).every((open) => open.requestId === requestId)) await setTimeout(20);
  return cpuNow() - before;
}
