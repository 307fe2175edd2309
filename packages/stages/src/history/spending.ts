import {
  type AgentSpec,
  field,
  type Json,
  type PipelineSpec,
  type RunJournal,
  SluiceError,
  type Spending,
  type StateLimits,
} from "@sluice/core";
import type { ModelFacts } from "../models/pricing/price-table.ts";

/** What a run and its children have used, from their journals. */
export type RecordedUsage = Required<Spending> & {
  readonly workedMs: number;
  /** Models that were called without a known price. */
  readonly unpriced: readonly string[];
};

/** For pipelines without caps, whose journals are not read for their usage. */
export const NO_RECORDED_USAGE: RecordedUsage = { tokens: 0, costUsd: 0, workedMs: 0, unpriced: [] };

export function isCapped({ maxTokens, maxCostUsd, timeoutMs }: StateLimits): boolean {
  return maxTokens !== undefined || maxCostUsd !== undefined || timeoutMs !== undefined;
}

const MODEL_STEP = /\/turn\/\d+\/model(?:\/\d+)?$/;

/**
 * Sums the recorded model steps of a run and its children, so that caps hold across restarts. Costs are the recorded ones, even
 * if prices have changed. A call without a recorded result counts with its whole reservation.
 */
export function recordedUsage(journals: readonly RunJournal[]): RecordedUsage {
  let tokens = 0;
  let costUsd = 0;
  let workedMs = 0;
  const unpriced = new Set<string>();
  for (const { records } of journals) {
    const open = new Map<string, { readonly intent: string; readonly events: string }>();
    const add = (counted: Json | undefined, cost: Json | undefined, stepId: string): void => {
      if (counted === undefined) return;
      tokens += amount(field(counted, "inputTokens")) + amount(field(counted, "outputTokens"));
      costUsd += amount(cost);
      if (cost === undefined) unpriced.add(modelIn(open.get(stepId)?.events ?? ""));
    };
    for (const { phase, stepId, value, events } of records) {
      if (phase === "life" || !MODEL_STEP.test(stepId)) continue;
      if (phase === "open") {
        open.set(stepId, { intent: value, events });
        continue;
      }
      const recorded: Json = JSON.parse(value);
      const counted = field(recorded, "counted") ?? field(field(recorded, "reply"), "usage");
      add(counted, field(recorded, "costUsd"), stepId);
      workedMs = Math.max(workedMs, amount(field(field(recorded, "worked"), "runMs")));
      open.delete(stepId);
    }
    for (const [stepId, { intent }] of open) {
      if (intent === "") continue;
      const reserve: Json = JSON.parse(intent);
      add(reserve, field(reserve, "costUsd"), stepId);
    }
  }
  return { tokens, costUsd, workedMs, unpriced: [...unpriced] };
}

/** The model that a `turn.started` event names. */
function modelIn(events: string): string {
  const all: Json = JSON.parse(events === "" ? "[]" : events);
  const started = Array.isArray(all) ? all.find((event) => field(event, "type") === "turn.started") : undefined;
  const model = field(field(started, "data"), "model");
  return typeof model === "string" ? model : "a model";
}

function amount(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}

/** A cost cap cannot hold for a model without a price. Throws Session `price_unknown`, which lists all such models. */
export function refuseUnpriced(
  spec: PipelineSpec,
  modelOf: (agent: AgentSpec) => string | undefined,
  factsOf: (modelId: string) => ModelFacts,
): void {
  const whole = spec.limits.maxCostUsd !== undefined;
  const capped = [...spec.states.values()].filter(({ limits }) => whole || limits?.maxCostUsd !== undefined);
  const models = capped.flatMap(({ agent }) => (agent === undefined ? [] : (modelOf(agent) ?? [])));
  const unpriced = [...new Set(models)].filter((model) => factsOf(model).price === undefined);
  if (unpriced.length > 0) throw priceUnknown(`pipeline ${spec.id} caps its cost`, unpriced);
}

/** The cost so far of a run that called models without a price is unknown, so a cost cap cannot hold. */
export function refuseUnpricedRecords({ limits }: PipelineSpec, runId: string, { unpriced }: RecordedUsage): void {
  if (limits.maxCostUsd === undefined || unpriced.length === 0) return;
  const models = unpriced.join(", ");
  const message = `run ${runId} called ${models} without a known price, so its cost cap (maxCostUsd) cannot be enforced; resume it without the cap or start a new run`;
  throw new SluiceError("Session", "price_unknown", message, { detail: { models: [...unpriced] } });
}

function priceUnknown(why: string, models: readonly string[]): SluiceError {
  const given = models.map((model) => `${JSON.stringify(model)}: { input: …, output: … }`).join(", ");
  const message = `${why} (maxCostUsd), and the price of ${models.join(", ")} is unknown; set it in the session's prices, in US dollars per million tokens: { ${given} }`;
  return new SluiceError("Session", "price_unknown", message, { detail: { models: [...models] } });
}
