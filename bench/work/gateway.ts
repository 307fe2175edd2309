import { closeSync, fdatasyncSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { defineTool, type Json, type Pipeline } from "@sluice/core";
import { type GatewayRun, openGatewayRun } from "@sluice/gateway";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type ResolvedModel } from "@sluice/stages";
import { loadWorkflow } from "@sluice/workflows";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { TASK } from "../review.ts";
import { scratch } from "../session.ts";

/** The rows of the state in which the agent works. */
const ROWS = 100;
/** The records of the run before the first measured call. */
const RECORDS = 10_000;
const RECORDS_A_CALL = 4;

/** A state with a hundred guarded branches, in which the agent stays. */
async function hundredRows(): Promise<Pipeline<{ readonly task: string }, unknown>> {
  const branches = Array.from({ length: ROWS - 1 }, (_, at) => ({ target: "done", guard: `g${at}` }));
  const document = {
    id: "rows",
    initial: "work",
    guards: Object.fromEntries(branches.map(({ guard }, at) => [guard, { field: "n", op: "eq", value: at }])),
    states: {
      work: {
        instructions: "Work.",
        allowed_tools: ["Read"],
        turn_cap: 1_000_000,
        on: { DONE: [...branches, { target: "done" }] },
      },
      done: { type: "final" },
    },
  };
  const text = JSON.stringify(document);
  const { pipeline, diagnostics } = await loadWorkflow("w.json", {
    read: async () => text,
    list: async () => undefined,
  });
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics.slice(0, 5)));
  return pipeline;
}

/** Neighbouring calls differ, since the gate stops repetitions. */
const readOf = (folder: string, call: number): Json => ({
  file_path: join(folder, "a.txt"),
  limit: (call % 1_000) + 1,
});

interface Place {
  readonly folder: string;
  readonly store: string;
}

function place(): Place {
  const folder = scratch();
  writeFileSync(join(folder, "a.txt"), "one\ntwo\nthree\n");
  return { folder, store: join(folder, ".store") };
}

async function openRun({ folder, store }: Place, isNative: boolean): Promise<GatewayRun> {
  const pipeline = await hundredRows();
  return openGatewayRun({
    pipeline,
    agent: { name: "bench", class: "hard" },
    wait: false,
    session: (added) =>
      createSession({ cwd: folder, host: () => sqliteHost(store), sandbox: "off", env: {}, ...added }),
    begin: (session) => session.start(pipeline, { task: TASK }),
    ...(isNative
      ? {
          native: (handOver) => [
            defineTool({
              name: "Read",
              description: "Reads a file.",
              input: z.object({ file_path: z.string(), limit: z.number() }),
              effect: "read",
              subjects: () => [],
              execute: (input, call) => handOver(call, { ...input }),
            }),
          ],
        }
      : {}),
  });
}

/** Times of one call, in milliseconds. */
interface Times {
  /** Until the gate has decided. */
  readonly decided: number;
  readonly answered: number;
}

/** Calls of an agent in one phase: of a gateway tool, or of one of its own, whose report comes at once. */
export function gatewayCalls(kind: "gateway tools" | "native tools"): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const isNative = kind === "native tools";
    const at = place();
    const run = await openRun(at, isNative);
    let made = 0;
    const one = async (): Promise<Times> => {
      const before = performance.now();
      const pending = run.call({ tool: "Read", input: readOf(at.folder, made), ...(isNative ? { native: true } : {}) });
      made += 1;
      let decided = Number.NaN;
      if (isNative) {
        const verdict = await pending.verdict;
        decided = performance.now() - before;
        if (verdict.kind === "deny") throw new Error(verdict.text);
        pending.report({ ok: true, output: "one" });
      }
      const { ok, text } = await pending.answer;
      if (!ok) throw new Error(text);
      return { decided, answered: performance.now() - before };
    };
    const first = (quick ? RECORDS / 50 : RECORDS) / RECORDS_A_CALL;
    for (let call = 0; call < first; call += 1) await one();
    const units = quick ? 20 : 300;
    return {
      warmUps: 1,
      slice: async () => {
        const times: Times[] = [];
        for (let call = 0; call < units; call += 1) times.push(await one());
        const decided = times.map((each) => each.decided);
        const answered = times.map((each) => each.answered);
        return {
          units,
          facts: {
            ...(isNative ? { decidedP50: quantile(decided, 0.5), decidedP95: quantile(decided, 0.95) } : {}),
            answeredP50: quantile(answered, 0.5),
            answeredP95: quantile(answered, 0.95),
            syncP95: quantile(syncs(at, quick ? 20 : 100), 0.95),
          },
        };
      },
      close: () => run.close(),
    };
  };
}

/** The same calls, in the same state, of a model that answers at once. */
export async function stageReads({ quick }: WorkloadOptions): Promise<Workload> {
  const at = place();
  const pipeline = await hundredRows();
  const permits = semaphore();
  let made = 0;
  const model: ResolvedModel = {
    id: "bench",
    secrets: [],
    at: () =>
      modelOf(async () => {
        await permits.take();
        made += 1;
        return readOf(at.folder, made);
      }),
  };
  const session = createSession({
    cwd: at.folder,
    host: () => sqliteHost(at.store),
    sandbox: "off",
    env: {},
    traffic: { model: async () => model, files: [] },
  });
  session.start(pipeline, { task: TASK }).then(undefined, () => undefined);
  const go = (calls: number): Promise<void> => permits.give(calls);
  await go((quick ? RECORDS / 50 : RECORDS) / RECORDS_A_CALL);
  const units = quick ? 20 : 300;
  return {
    warmUps: 1,
    slice: async () => {
      await go(units);
      return { units, facts: {} };
    },
    close: () => session.close(),
  };
}

/** Lets a model make so many calls, and waits until it asks for one more. */
function semaphore(): { take(): Promise<void>; give(calls: number): Promise<void> } {
  let left = 0;
  let wake: (() => void) | undefined;
  let used: (() => void) | undefined;
  return {
    take: async () => {
      if (left === 0) {
        used?.();
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      left -= 1;
    },
    give: (calls) =>
      new Promise((resolve) => {
        left = calls;
        used = resolve;
        wake?.();
      }),
  };
}

function modelOf(next: () => Promise<Json>): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "bench",
    supportedUrls: {},
    doGenerate: async () => {
      throw new Error("the calls are streamed");
    },
    doStream: async () => {
      const input = JSON.stringify(await next());
      const usage = {
        inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: undefined, reasoning: undefined },
      };
      return {
        stream: new ReadableStream({
          start: (controller) => {
            controller.enqueue({ type: "stream-start", warnings: [] });
            controller.enqueue({ type: "tool-call", toolCallId: `c${input}`, toolName: "Read", input });
            controller.enqueue({ type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage });
            controller.close();
          },
        }),
      };
    },
  };
}

/** The noise of the machine: times of writes of 512 bytes, each synced, as a record is. */
function syncs({ folder }: Place, writes: number): readonly number[] {
  const file = openSync(join(folder, "synced"), "w");
  const bytes = Buffer.alloc(512, "x");
  try {
    return Array.from({ length: writes }, () => {
      const before = performance.now();
      writeSync(file, bytes);
      fdatasyncSync(file);
      return performance.now() - before;
    });
  } finally {
    closeSync(file);
  }
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}
