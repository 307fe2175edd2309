import type { StateExecutor } from "@sluice/core";
import type { ResolvedModel } from "../../models/model.ts";
import type { ModelFacts } from "../../models/pricing/price-table.ts";
import type { AgentSpec } from "../agent-spec.ts";
import { agentExecutor } from "../executor.ts";
import { callModel, type ModelCaller } from "../model-call.ts";
import { orchestratorExecutor } from "./orchestrator.ts";

/** The executors of all kinds that a model works for, which every session and replay has. */
export function modelExecutors(
  modelOf: (agent: AgentSpec) => ResolvedModel,
  factsOf: (modelId: string) => ModelFacts,
  caller: ModelCaller = (request) => callModel(request),
): readonly StateExecutor[] {
  return [
    agentExecutor(modelOf, factsOf, caller),
    agentExecutor(modelOf, factsOf, caller, "router"),
    orchestratorExecutor(modelOf, factsOf, caller),
  ];
}
