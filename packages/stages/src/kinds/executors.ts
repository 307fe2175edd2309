// Executors are loaded with the first pipeline that has a state of their kind.
import type { StateExecutor } from "@sluice/core";
import type { CommandWorld } from "./commands/run-command.ts";
import { humanExecutor } from "./human.ts";
import { POLL } from "./poll.ts";
import { SCRIPT } from "./script.ts";
import { STEPS } from "./steps-state.ts";
import { subPipelineExecutor } from "./sub-pipeline.ts";
import { timerExecutor } from "./timer.ts";

/** Makes the executor of one kind. */
export type ExecutorSource = () => StateExecutor | Promise<StateExecutor>;
/** Executors by kind. */
export type ExecutorSources = readonly (readonly [kind: string, source: ExecutorSource])[];

/** The executors of all kinds without a model, which every session and replay has. */
export function kindExecutors(world: CommandWorld): ExecutorSources {
  return [
    [STEPS, async () => (await import("./steps.ts")).stepsExecutor],
    [SCRIPT, async () => (await import("./commands/script-executor.ts")).scriptExecutor(world)],
    [POLL, async () => (await import("./commands/poll-executor.ts")).pollExecutor(world)],
    ...executorsAsGiven([timerExecutor, humanExecutor, subPipelineExecutor]),
  ];
}

export function executorsAsGiven(executors: readonly StateExecutor[]): ExecutorSources {
  return executors.map((executor) => [executor.kind, () => executor]);
}

/** The executors that were loaded. Of several for one kind, the last counts. */
export function executorSet(all: ExecutorSources) {
  const sources = new Map(all);
  const loading = new Map<string, Promise<StateExecutor>>();
  const loaded = new Map<string, StateExecutor>();
  const load = async (kind: string): Promise<void> => {
    const source = sources.get(kind);
    if (source === undefined || loaded.has(kind)) return;
    const executor = loading.get(kind) ?? Promise.resolve(source());
    loading.set(kind, executor);
    loaded.set(kind, await executor);
  };
  return {
    kinds: [...sources.keys()],
    loaded,
    /** Loads the executors of these kinds, each one once: they may keep what concerns a run. */
    loadFor: async (needed: Iterable<string>): Promise<void> => {
      for (const kind of needed) await load(kind);
    },
    /** Loads all, for pipelines that are made during a run. */
    loadAll: async (): Promise<void> => {
      for (const kind of sources.keys()) await load(kind);
    },
  };
}
