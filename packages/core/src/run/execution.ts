import type { Json, JsonObject } from "../base/json.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import type { StageContext, StageResult } from "../definition/types.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { StepRunner } from "../journal/seam.ts";
import type { NextDecision } from "../routing/next.ts";
import { Act } from "./act.ts";
import { type Attempt, firstAttempt } from "./attempt.ts";
import type { Denied } from "./calls.ts";
import type { Entry, RunState } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import { type Entered, enter, outOf, passGate } from "./enter.ts";
import type { ActOutcome, Offer, StateExecutor } from "./executor.ts";
import { type Counted, leave } from "./leave.ts";
import type { RunMeter } from "./limits.ts";
import { cancelReason } from "./over.ts";
import { addUsage, NO_USAGE } from "./usage.ts";

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

/** Runs a state to its result: attempts of Setup, Init, CheckGate, Act, Assert; then Exit and Next, once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const maxAttempts = execution.state.retryPolicy?.maxAttempts ?? 3;
  let attempt = firstAttempt(execution);
  const { place, denied } = attempt;
  let counted: Counted | undefined;
  try {
    for (;;) {
      await place.take();
      const entered = await enter(attempt);
      counted ??= { turns: 0, usage: NO_USAGE, startedAt: entered.at };
      const ctx = attempt.contextWith(entered.kind === "ready" ? entered.setup : null);
      const begun = await begin(attempt, entered, ctx, execution.turnsBefore + counted.turns);
      const outcome = begun instanceof Act ? await begun.end(await begun.work()) : begun;
      if (outcome !== "skipped") counted = plus(counted, outcome);
      const left = await leave(attempt, ctx, outcome, counted, attempt.number < maxAttempts);
      if (left.kind === "left") {
        if (!execution.routed && left.result.status === "failed") place.leaveLast();
        return { result: left.result, next: left.next ?? undefined, denied };
      }
      attempt = attempt.next(left.feedback);
    }
  } finally {
    place.leave();
  }
}

function plus(counted: Counted, { turns, usage }: ActOutcome): Counted {
  return { ...counted, turns: counted.turns + turns, usage: addUsage(counted.usage, usage) };
}

/** The work of an attempt, unless it ended before that. */
async function begin(
  attempt: Attempt,
  entered: Entered,
  ctx: StageContext,
  turnsBefore: number,
): Promise<Act | ActOutcome | "skipped"> {
  if (entered.kind === "out") return outOf(entered.why);
  const gate = await passGate(attempt, entered.gate, ctx);
  if (gate !== "proceed") return gate;
  const reason = cancelReason(attempt.execution.steps.signal);
  if (reason !== undefined) return outOf({ kind: "cancelled", reason });
  return new Act(attempt, ctx, entered.init, turnsBefore);
}
