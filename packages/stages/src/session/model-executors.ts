import type { AgentSpec } from "../agent/agent-spec.ts";
import { agentExecutor } from "../agent/executor.ts";
import { callModel, type ModelCaller } from "../agent/model-call.ts";
import type { StageModel, StageModels } from "../agent/model-turn.ts";
import { type ExecutorSources, executorsAsGiven } from "../kinds/executors.ts";
import type { ResolvedModel, ResolvedModels } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";

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
