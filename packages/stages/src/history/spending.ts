import { type JournalRecord, type PipelineSpec, type RunJournal, SluiceError, type StateLimits } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { parseStoredJson, type Spending } from "@sluice/core/runtime";
import { type AgentSpec, agentsOf } from "../agent/agent-spec.ts";
import { type CallUsage, readReservation } from "../agent/budget.ts";
import { readModelStep } from "../agent/model-step-record.ts";
import { parseAgentStep } from "../agent/step-names.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";

/** What a run and its children have used, from their journals. */
export type RecordedUsage = Required<Spending> & {
  readonly workedMs: number;
  /** Models that were called without a known price. */
  readonly unpriced: readonly string[];
};

type Counted = NonNullable<CallUsage["counted"]>;

/** For pipelines without caps, whose journals are not read for their usage. */
export const NO_RECORDED_USAGE: RecordedUsage = { tokens: 0, costUsd: 0, workedMs: 0, unpriced: [] };

export function isCapped({ maxTokens, maxCostUsd, timeoutMs }: StateLimits): boolean {
  return maxTokens !== undefined || maxCostUsd !== undefined || timeoutMs !== undefined;
}

/**
 * Sums the recorded model steps of a run and its children, so that caps hold across restarts. Costs are the recorded ones, even
 * if prices have changed. A call without a recorded result counts with its whole reservation.
 */
export function recordedUsage(journals: readonly RunJournal[]): RecordedUsage {
  let tokens = 0;
  let costUsd = 0;
  let workedMs = 0;
  const unpriced = new Set<string>();
  for (const { runId, records } of journals) {
    const open = new Map<string, JournalRecord>();
    const add = (counted: Counted | undefined, cost: number | undefined, stepId: string): void => {
      if (counted === undefined) return;
      tokens += counted.inputTokens + counted.outputTokens;
      costUsd += cost ?? 0;
      if (cost === undefined) unpriced.add(modelIn(runId, open.get(stepId)));
    };
    for (const record of records) {
      const { phase, stepId, value } = record;
      if (parseAgentStep(stepId)?.kind !== "model") continue;
      if (phase === "open") {
        open.set(stepId, record);
        continue;
      }
      const recorded = readModelStep(value);
      if (recorded === undefined) continue;
      const counted = recorded.counted ?? (recorded.kind === "reply" ? recorded.reply.usage : undefined);
      add(counted, recorded.costUsd, stepId);
      workedMs = Math.max(workedMs, recorded.elapsed.runMs);
      open.delete(stepId);
    }
    for (const [stepId, { value }] of open) {
      const intent = parseStoredJson(value);
      const reserved = intent.ok ? readReservation(intent.value) : undefined;
      add(reserved, reserved?.costUsd, stepId);
    }
  }
  return { tokens, costUsd, workedMs, unpriced: [...unpriced] };
}

/** The model that a `turn.started` event names. */
function modelIn(runId: string, opened: JournalRecord | undefined): string {
  const events = opened === undefined ? [] : readEvents(runId, opened);
  const model = events.find(({ type }) => type === "turn.started")?.data.model;
  return typeof model === "string" ? model : "a model";
}

/** A cost cap cannot hold for a model without a price. Throws Session `price_unknown`, which lists all such models. */
export function refuseUnpriced(
  spec: PipelineSpec,
  modelOf: (agent: AgentSpec) => string | undefined,
  factsOf: (modelId: string) => ModelFacts,
): void {
  const whole = spec.limits.maxCostUsd !== undefined;
  const isCostCapped = (id: string): boolean => whole || spec.states.get(id)?.limits?.maxCostUsd !== undefined;
  const models = [...agentsOf(spec)].flatMap(([id, agent]) => (isCostCapped(id) ? (modelOf(agent) ?? []) : []));
  const unpriced = [...new Set(models)].filter((model) => factsOf(model).price === undefined);
  if (unpriced.length === 0) return;
  const given = unpriced.map((model) => `${JSON.stringify(model)}: { input: …, output: … }`).join(", ");
  const message = `pipeline ${spec.id} caps its cost (maxCostUsd), and the price of ${unpriced.join(", ")} is unknown; set it in the session's prices, in US dollars per million tokens: { ${given} }`;
  throw new SluiceError("Session", "price_unknown", message, { detail: { models: unpriced } });
}

/** The cost so far of a run that called models without a price is unknown, so a cost cap cannot hold. */
export function refuseUnpricedRecords({ limits }: PipelineSpec, runId: string, { unpriced }: RecordedUsage): void {
  if (limits.maxCostUsd === undefined || unpriced.length === 0) return;
  const models = unpriced.join(", ");
  const message = `run ${runId} called ${models} without a known price, so its cost cap (maxCostUsd) cannot be enforced; resume it without the cap or start a new run`;
  throw new SluiceError("Session", "price_unknown", message, { detail: { models: [...unpriced] } });
}
