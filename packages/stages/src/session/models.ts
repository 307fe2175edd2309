import { resolve } from "node:path";
import { SluiceError } from "@sluice/core";
import type { AgentSpec } from "../agent/agent-spec.ts";
import { agentExecutor } from "../agent/executor.ts";
import { callModel, type ModelCaller } from "../agent/model-call.ts";
import type { StageModel, StageModels } from "../agent/model-turn.ts";
import { type ExecutorSources, executorsAsGiven } from "../kinds/executors.ts";
import { playbackTraffic } from "../models/cassettes/playback.ts";
import type { ModelTraffic, TrafficScope } from "../models/cassettes/traffic.ts";
import type { ResolvedModel, ResolvedModels } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";
import { resolveModel } from "../models/registry.ts";
import type { SessionOptions } from "./options.ts";

/** Resolves the models of a session's states, each one once. */
export function sessionModels(
  options: Pick<SessionOptions, "model" | "traffic" | "baseUrls" | "promptCache">,
  scope: TrafficScope,
) {
  const { model: sessionModel, baseUrls, promptCache } = options;
  const traffic = options.traffic ?? playbackOf(sessionModel, scope.root);
  const settings = {
    env: scope.env,
    cwd: scope.root,
    clock: scope.clock,
    ...(baseUrls === undefined ? {} : { baseUrls }),
    ...(promptCache === undefined ? {} : { promptCache }),
  };
  const models = new Map<string, Promise<ResolvedModel>>();
  const resolveFor = (stage: string, named: string | undefined): Promise<ResolvedModel> => {
    const model = named ?? sessionModel;
    const load = async (): Promise<ResolvedModel> => {
      if (model === undefined) throw noModel();
      return typeof model === "object" && "at" in model ? model : await resolveModel(model, settings);
    };
    if (traffic === undefined) return load();
    return traffic.model({ stage, load, ...(typeof model === "string" ? { named: model } : {}) }, scope);
  };
  const of = (stage: string, named: string | undefined): Promise<ResolvedModel> => {
    const key = named ?? "";
    const known = models.get(key) ?? resolveFor(stage, named);
    models.set(key, known);
    return known;
  };
  return {
    of,
    /** The session's own model, if it may be an agent of another program. */
    agent: async (): Promise<readonly ResolvedModel[]> =>
      typeof sessionModel === "object" || sessionModel?.startsWith("acp:") === true ? [await of("", undefined)] : [],
    /** Files that runs must not write. */
    files: (): readonly string[] => traffic?.files ?? [],
  };
}

/** If the session's model is a cassette, it also answers stages that name another model, so that playback never costs anything. */
function playbackOf(model: SessionOptions["model"], root: string): ModelTraffic | undefined {
  const file = typeof model === "string" ? /^cassette:(.+)$/su.exec(model)?.[1] : undefined;
  return file === undefined ? undefined : playbackTraffic(resolve(root, file));
}

export function noModel(): SluiceError {
  return new SluiceError(
    "Session",
    "no_model",
    "no model is configured: use anthropic/<model> with ANTHROPIC_API_KEY set, scripted:<file> or another model id",
  );
}

/** The executors of all kinds that a model works for, which every session and replay has. */
export function modelExecutors(
  modelsOf: (agent: AgentSpec) => ResolvedModels,
  factsOf: (modelId: string) => ModelFacts,
  caller: ModelCaller = (request) => callModel(request),
): ExecutorSources {
  const stageModels = new WeakMap<ResolvedModel, StageModel>();
  const stageModel = (model: ResolvedModel): StageModel => {
    const known = stageModels.get(model) ?? { model, facts: factsOf(model.pricedAs ?? model.id) };
    stageModels.set(model, known);
    return known;
  };
  const modelsWithFacts = (agent: AgentSpec): StageModels => {
    const [first, ...others] = modelsOf(agent);
    return [stageModel(first), ...others.map(stageModel)];
  };
  return [
    ...executorsAsGiven([agentExecutor(modelsWithFacts, caller), agentExecutor(modelsWithFacts, caller, "router")]),
    [
      "orchestrator",
      async () => (await import("../agent/choosing/orchestrator.ts")).orchestratorExecutor(modelsWithFacts, caller),
    ],
  ];
}
