import { type Json, type Pipeline, type RunHost, SluiceError, type SluiceEvent } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { type RunResult, replayRun } from "@sluice/stages";
import { expect } from "vitest";
import { handClock } from "./hand-clock.ts";
import { eventsOf, noModel, session, type TestSessionOptions, workExecutor } from "./run-kit.ts";

// A run that is killed before each of its records and resumed in another process, compared with one that is not.

/** What two runs of the same work have in common. */
export interface RunFacts {
  readonly status: string;
  readonly output: unknown;
  readonly error: unknown;
  readonly state: unknown;
  readonly stages: readonly string[];
  /** Types and data of all events of the tree, without those of resuming. */
  readonly events: readonly string[];
}

export interface KilledRun {
  readonly pipeline: Pipeline<Json, unknown>;
  readonly input: Json;
  /** For both processes of one run. */
  readonly options?: TestSessionOptions;
}

/** Runs it whole, and then once for each record, killed before it. `make` is called for each run. */
export async function killedEverywhere(
  make: () => KilledRun,
): Promise<{ readonly whole: RunFacts; readonly killed: readonly RunFacts[] }> {
  const whole = await runKilled(make(), Number.POSITIVE_INFINITY);
  const killed: RunFacts[] = [];
  for (let record = 2; record <= whole.written; record += 1) killed.push((await runKilled(make(), record)).facts);
  return { whole: whole.facts, killed };
}

async function runKilled(
  { pipeline, input, options = {} }: KilledRun,
  killedAt: number,
): Promise<{ readonly facts: RunFacts; readonly written: number }> {
  const clock = handClock();
  const memory = createMemoryJournals();
  let written = 0;
  const process = (store: JournalStore) =>
    session({ model: noModel, ...options, clock, host: createHost(store, { clock }) });
  const first = process(
    counted(memory.connect(), () => {
      written += 1;
      if (written >= killedAt) throw new SluiceError("Host", "store_io", "the process was killed");
    }),
  );
  // Without a sandbox, an answer that a killed process was given proves nothing.
  const run = first.start(pipeline, input, { answers: "any" });
  const result = await run.then(
    (ended) => ended,
    () => undefined,
  );
  if (result !== undefined) {
    const { tools = [], executors = [] } = options;
    const replayed = await replayRun(pipeline, await first.host.journal(run.runId), {
      executors: [workExecutor, ...executors],
      tools: [...tools],
      env: {},
    });
    // A replay decides everything again, and finds what was recorded.
    expect(replayed.divergence?.message).toBeUndefined();
    return { facts: await factsOf(first.host, run.runId, result), written };
  }
  const second = process(memory.connect());
  const resumed = second.resume(pipeline, run.runId);
  const facts = await factsOf(second.host, run.runId, await resumed);
  return { facts, written };
}

/** A store that calls this before each record that it takes. */
export function counted(store: JournalStore, onWrite: () => void): JournalStore {
  return {
    ...store,
    append: (commit) => {
      onWrite();
      return store.append(commit);
    },
    create: (seed, commit) => {
      onWrite();
      return store.create(seed, commit);
    },
  };
}

export async function factsOf(host: RunHost, runId: string, result: RunResult<unknown>): Promise<RunFacts> {
  const events = await eventsOf(host, runId);
  const { status, output, error, state, stages } = { output: null, error: null, state: null, ...result };
  return {
    status,
    output,
    error,
    state,
    stages: stages.map(
      (stage) => `${stage.key === undefined ? "" : `${stage.key}/`}${stage.executionId} ${stage.status}`,
    ),
    events: events
      .filter(({ type }) => type !== "run.resumed" && type !== "run.suspended")
      .map((event) => textOf(event, runId)),
  };
}

/** Without ids and times, which differ from run to run. */
function textOf({ type, runId, executionId, data }: SluiceEvent, rootId: string): string {
  const text = JSON.stringify(data, (key, value: unknown) => (VARYING.has(key) ? undefined : value));
  return [runId.replace(rootId, ""), executionId ?? "", type, text.replaceAll(rootId, "")].join(" ");
}

const VARYING = new Set([
  "head",
  "digest",
  "ms",
  "at",
  "answeredAt",
  "usage",
  "proof",
  "incarnation",
  "cwd",
  "argsDigest",
]);
