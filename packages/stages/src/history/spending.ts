import {
  type AgentSpec,
  type JournalRecord,
  type PipelineSpec,
  parseStoredJson,
  type RunJournal,
  readEvents,
  SluiceError,
  type Spending,
  type StateLimits,
} from "@sluice/core";
import { type CallUsage, readReservation } from "../agent/budget.ts";
import { readModelStep } from "../agent/model-step-record.ts";
import { parseAgentStep } from "../agent/step-names.ts";
import type { ModelFacts } from "../models/pricing/model-facts.ts";

/** What a run and its children spent, by their journals. */
export type RecordedUsage = Required<Spending> & {
  readonly workedMs: number;
  /** Models that were called without a known price. */
  readonly unpriced: readonly string[];
};

type Counted = NonNullable<CallUsage["counted"]>;

/** Of a run whose pipeline caps nothing, nobody asks: its journal need not be read for that. */
export const NO_RECORDED_USAGE: RecordedUsage = { tokens: 0, costUsd: 0, workedMs: 0, unpriced: [] };

export function isCapped({ maxTokens, maxCostUsd, timeoutMs }: StateLimits): boolean {
  return maxTokens !== undefined || maxCostUsd !== undefined || timeoutMs !== undefined;
}

/**
 * What the model steps of a run and its children recorded, so that caps go on from there after a restart. Costs are those that
 * were recorded: a price that changed meanwhile changes nothing of what was spent. A call whose process did not live to record
 * what came of it counts with all that was set aside for it.
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

/** A cap on money over a model without a price could not hold. Throws Session `price_unknown`, all such models at once. */
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

/** A run that called models without a price before has spent nobody knows how much of a cap it has now. */
export function refuseUnpricedRecords({ limits }: PipelineSpec, runId: string, { unpriced }: RecordedUsage): void {
  if (limits.maxCostUsd === undefined || unpriced.length === 0) return;
  const models = unpriced.join(", ");
  const message = `run ${runId} called ${models} when no price was known for it, so a cap on its cost (maxCostUsd) cannot hold any more; resume it without the cap, or start anew`;
  throw new SluiceError("Session", "price_unknown", message, { detail: { models: [...unpriced] } });
}

function priceUnknown(why: string, models: readonly string[]): SluiceError {
  const given = models.map((model) => `${JSON.stringify(model)}: { input: …, output: … }`).join(", ");
  const message = `${why} (maxCostUsd), and no price is known for ${models.join(", ")}; give it in US dollars for a million tokens, as the session's prices: { ${given} }`;
  return new SluiceError("Session", "price_unknown", message, { detail: { models: [...models] } });
}
