import { type JournalRecord, type PipelineSpec, SluiceError } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import type { RecordedCosts } from "@sluice/core/runtime";
import type { AgentSpec } from "../agent/agent-spec.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";

/** A cost cap cannot hold for a model without a price. Throws Session `price_unknown`, which lists all such models of the agents. */
export function refuseUnpriced(
  { id }: PipelineSpec,
  agents: readonly AgentSpec[],
  modelsOf: (agent: AgentSpec) => readonly string[],
  factsOf: (modelId: string) => ModelFacts,
): void {
  const models = agents.flatMap(modelsOf);
  const unpriced = [...new Set(models)].filter((model) => factsOf(model).price === undefined);
  if (unpriced.length === 0) return;
  const given = unpriced.map((model) => `${JSON.stringify(model)}: { input: …, output: … }`).join(", ");
  const message = `pipeline ${id} caps its cost (maxCostUsd), and the price of ${unpriced.join(", ")} is unknown; set it in the session's prices, in US dollars per million tokens: { ${given} }`;
  throw new SluiceError("Session", "price_unknown", message, { detail: { models: unpriced } });
}

/** The cost so far of a run that called models without a price is unknown, so a cost cap cannot hold. */
export function refuseUnpricedRecords({ limits }: PipelineSpec, runId: string, { unpriced }: RecordedCosts): void {
  if (limits.maxCostUsd === undefined || unpriced.length === 0) return;
  const models = [...new Set(unpriced.map((record) => modelIn(runId, record)))];
  const message = `run ${runId} called ${models.join(", ")} without a known price, so its cost cap (maxCostUsd) cannot be enforced; resume it without the cap or start a new run`;
  throw new SluiceError("Session", "price_unknown", message, { detail: { models } });
}

/** The model that a `turn.started` event names; for a step of another kind, the step. */
function modelIn(runId: string, opened: JournalRecord): string {
  const model = readEvents(runId, opened).find(({ type }) => type === "turn.started")?.data.model;
  return typeof model === "string" ? model : opened.stepId;
}
