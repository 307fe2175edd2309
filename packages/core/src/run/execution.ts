import type { Json, JsonObject } from "../base/json.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import type { StageContext, StageResult } from "../definition/types.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { StepRunner } from "../journal/seam.ts";
import type { NextDecision } from "../routing/next.ts";
import { ActWait } from "./act.ts";
import { Attempt, type Attempts } from "./attempt.ts";
import type { Denied } from "./calls.ts";
import type { Entry, RunState } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import { type Entered, enter, outOf, passGate } from "./enter.ts";
import type { ActOutcome, Offer, StateExecutor } from "./executor.ts";
import { type Counted, leave } from "./leave.ts";
import { ExecutionLimits, type RunMeter } from "./limits.ts";
import { checkedOutput } from "./output.ts";
import { cancelReason } from "./over.ts";
import { ENTERED, leftWith } from "./phase-data.ts";
import { Place } from "./place.ts";
import { OpenScope } from "./scope.ts";
import { Stopwatch } from "./stopwatch.ts";
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

/** Runs a state to its result: attempts of Setup, Init, CheckGate, Act, Assert; then Exit and Next, once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const { turnsBefore } = execution;
  const all = attemptsOf(execution);
  const maxAttempts = execution.state.retryPolicy?.maxAttempts ?? 3;
  let counted: Counted | undefined;
  let feedback: string | undefined;
  try {
    for (let number = 1; ; number += 1) {
      await all.place.take();
      const attempt = new Attempt(all, number, feedback);
      const entered = await enter(attempt);
      counted ??= { turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, startedAt: entered.at };
      const ctx = attempt.contextWith(entered.kind === "ready" ? entered.setup : null);
      const outcome = await actOn(attempt, entered, ctx, turnsBefore + counted.turns);
      if (outcome !== "skipped") counted = plus(counted, outcome);
      const left = await leave(attempt, ctx, outcome, counted, number < maxAttempts);
      if (left.kind === "left") {
        if (!execution.routed && left.result.status === "failed") all.place.leaveLast();
        return { result: left.result, next: left.next ?? undefined, denied: all.denied };
      }
      feedback = left.feedback;
    }
  } finally {
    all.place.leave();
  }
}

function attemptsOf(execution: Execution): Attempts {
  const { state, steps, deps, meter, stateId, visit } = execution;
  const watch = new Stopwatch(deps.clock);
  return {
    execution,
    executionId: `${stateId}#${visit}`,
    limits: new ExecutionLimits(state.limits ?? {}, meter, deps.clock, watch),
    place: new Place(deps.slots, [watch, meter.work], steps.signal),
    denied: [],
  };
}

function plus(counted: Counted, { turns, usage }: ActOutcome): Counted {
  return { ...counted, turns: counted.turns + turns, usage: addUsage(counted.usage, usage) };
}

async function actOn(
  attempt: Attempt,
  entered: Entered,
  ctx: StageContext,
  turnsBefore: number,
): Promise<ActOutcome | "skipped"> {
  if (entered.kind === "out") return outOf(entered.why);
  const gate = await passGate(attempt, entered.gate, ctx);
  if (gate !== "proceed") return gate;
  const { execution, journal } = attempt;
  const { signal } = execution.steps;
  const reason = cancelReason(signal);
  if (reason !== undefined) return outOf({ kind: "cancelled", reason });
  journal.note("stage.act", ENTERED);
  const open = new OpenScope(attempt, ctx, turnsBefore);
  const wait = new ActWait(open, signal, execution.deps.clock);
  let acted: ActOutcome | undefined;
  try {
    acted = await wait.outcomeOf(execution.executor.act(entered.init, open.scope));
  } finally {
    wait.close();
  }
  const cancelled = cancelReason(signal);
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
