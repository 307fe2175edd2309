import type { Json, JsonObject } from "../base/json.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import type { StageContext, StageResult, Usage } from "../definition/types.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { StepRunner } from "../journal/seam.ts";
import type { NextDecision } from "../routing/next.ts";
import { untilGivenUp } from "./act.ts";
import type { Denied } from "./calls.ts";
import { contextsOf, type Entry, type RunState } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import { type Entered, enter, outOf, passGate } from "./enter.ts";
import type { ActOutcome, Offer, StateExecutor } from "./executor.ts";
import { leave } from "./leave.ts";
import { createLimits, createStopwatch, type Limits, type RunMeter } from "./limits.ts";
import { checkedOutput } from "./output.ts";
import { cancelReason } from "./over.ts";
import { ENTERED, leftWith } from "./phase-data.ts";
import { createPlace, type Place } from "./place.ts";
import { openScope } from "./scope.ts";
import { type AttemptJournal, createAttemptJournal } from "./scoped-steps.ts";
import { addUsage } from "./usage.ts";

/** One entry into one state. */
export interface Execution extends Entry {
  readonly spec: PipelineSpec;
  readonly stateId: string;
  readonly state: StateSpec;
  readonly executor: StateExecutor;
  /** Undefined for a state without allowedTools. */
  readonly envelope: Envelope | undefined;
  readonly offer: Offer;
  /** What the event after Setup says: the tools that were resolved. */
  readonly leftSetup: JsonObject;
  readonly run: RunState;
  readonly steps: StepRunner;
  readonly deps: RunDeps;
  readonly meter: RunMeter;
  /** A sibling's route is its parent's join: it makes no choice of its own. */
  readonly routed: boolean;
  /** Turns this state took in earlier visits. */
  readonly turnsBefore: number;
}
export interface ExecutionEnd {
  readonly result: StageResult<Json>;
  readonly next: NextDecision | undefined;
  readonly denied: readonly Denied[];
}

/** What the attempts of one execution share. */
interface Attempts {
  readonly limits: Limits;
  readonly place: Place;
  readonly denied: Denied[];
}

/** Runs a state to its result: attempts of Setup, Init, CheckGate, Act, Assert; then Exit and Next, once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const { state, steps, deps, meter, stateId, visit } = execution;
  const executionId = `${stateId}#${visit}`;
  const watch = createStopwatch(deps.clock);
  const limits = createLimits(state.limits ?? {}, meter, deps.clock, watch);
  const place = createPlace(deps.slots, [watch, meter.work], steps.signal);
  const shared: Attempts = { limits, place, denied: [] };
  const maxAttempts = state.retryPolicy?.maxAttempts ?? 3;
  let turns = 0;
  let usage: Usage = { inputTokens: 0, outputTokens: 0 };
  let startedAt: number | undefined;
  let feedback: string | undefined;
  try {
    for (let attempt = 1; ; attempt += 1) {
      await place.take();
      const journal = createAttemptJournal(steps, executionId, attempt);
      const contextOf = contextsOf(execution.run, execution, attempt, feedback);
      const entered = await enter(execution, journal, limits, contextOf, attempt, feedback);
      startedAt ??= entered.at;
      const ctx = contextOf(entered.kind === "ready" ? entered.setup : null);
      const outcome = await actOn(execution, journal, entered, ctx, execution.turnsBefore + turns, shared);
      if (outcome !== "skipped") {
        turns += outcome.turns;
        usage = addUsage(usage, outcome.usage);
      }
      const counted = { executionId, attempts: attempt, turns, usage, startedAt };
      const left = await leave(execution, journal, limits, ctx, outcome, counted, attempt < maxAttempts);
      if (left.kind === "left") {
        if (!execution.routed && left.result.status === "failed") place.leaveLast();
        return { result: left.result, next: left.next ?? undefined, denied: shared.denied };
      }
      feedback = left.feedback;
    }
  } finally {
    place.leave();
  }
}

async function actOn(
  execution: Execution,
  journal: AttemptJournal,
  entered: Entered,
  ctx: StageContext,
  turnsBefore: number,
  { limits, place, denied }: Attempts,
): Promise<ActOutcome | "skipped"> {
  if (entered.kind === "out") return outOf(entered.why);
  const gate = await passGate(execution, journal, limits, entered.gate, ctx, place);
  if (gate !== "proceed") return gate;
  const { executor, steps } = execution;
  const reason = cancelReason(steps.signal);
  if (reason !== undefined) return outOf({ kind: "cancelled", reason });
  journal.note("stage.act", ENTERED);
  const open = openScope({ execution, journal, ctx, place, limits, turnsBefore }, denied);
  const acting = executor.act(entered.init, open.scope);
  const acted = await untilGivenUp(acting, open, steps.signal, execution.deps.clock);
  const cancelled = cancelReason(steps.signal);
  // A token never survives its attempt, whatever the executor still has in its hands.
  for (const requestId of open.close()) {
    journal.note("grant.expired", { requestId, cause: cancelled === undefined ? "attempt_finished" : "cancelled" });
  }
  const outcome =
    acted === undefined
      ? outOf({ kind: "cancelled", reason: cancelled ?? "cancelled" })
      : await checkedOutput(journal, execution.state, acted);
  journal.note("stage.act", leftWith(outcome.status));
  return outcome;
}
