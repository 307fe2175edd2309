import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import { type Attempt, firstAttempt } from "../attempt.ts";
import type { Execution, ExecutionEnd, MatchedInterrupt } from "../execution.ts";
import type { ActOutcome } from "../executor.ts";
import { addUsage, cancelReason, NO_USAGE } from "../limits/limits.ts";
import { handleInterrupt } from "../tool-calls/interrupts.ts";
import { ActWork, act, endAct } from "./act-scope.ts";
import { awaitPrecondition, endedBeforeAct, enter } from "./enter.ts";
import { type AttemptTotals, leave } from "./leave.ts";
import type { RecordedEntry } from "./recorded-phases.ts";

/** Runs a state to its result: attempts of Setup, Init, Precondition, Act and Assert, then Exit and Next once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const maxAttempts = execution.state.retryPolicy?.maxAttempts ?? 3;
  const { stateId, detours } = execution;
  let attempt = firstAttempt(execution);
  const { slot, denied } = attempt;
  let totals: AttemptTotals | undefined;
  try {
    for (;;) {
      const acquiring = slot.acquire();
      if (acquiring instanceof Promise) await acquiring;
      const current = attempt;
      detours.watch((data) => current.journal.event("execution.interrupted", data));
      const entered = await enter(attempt);
      totals ??= { turns: 0, usage: NO_USAGE, startedAt: entered.at };
      const ctx = attempt.contextWith(entered.kind === "ready" ? entered.setup : null);
      const before = await beforeAct(attempt, entered, ctx);
      let outcome: ActOutcome | "skipped";
      if (before.kind === "over") outcome = before.outcome;
      else {
        const work = new ActWork(attempt);
        const acted = await act(attempt, work, ctx, before.init, execution.turnsBefore + totals.turns);
        outcome = await endAct(attempt, work, acted);
      }
      if (outcome !== "skipped") {
        const { turns, usage } = outcome;
        totals = { ...totals, turns: totals.turns + turns, usage: addUsage(totals.usage, usage) };
      }
      detours.unwatch();
      const left = await leave(attempt, ctx, outcome, totals, attempt.number < maxAttempts);
      if (left.kind === "left") {
        if (!execution.routed && left.result.status === "failed") slot.releaseDeferred();
        const { result, next } = left;
        const by = left.interruption;
        const interrupted = by === undefined ? undefined : { ...by, now: attempt.isLeftHere };
        return { stateId, result, next: next ?? undefined, left: detours.left, interrupted, denied };
      }
      attempt = attempt.next(left.feedback);
    }
  } finally {
    slot.end();
  }
}

/** Runs the handlers of what the calls of the execution before this one started, which a person interrupted. */
async function handleMissed(attempt: Attempt, missed: readonly MatchedInterrupt[]): Promise<void> {
  const { detours } = attempt.execution;
  for (const one of missed) {
    if (cancelReason(detours.signal) !== undefined) {
      attempt.missed.push(one);
      continue;
    }
    await handleInterrupt({ attempt }, one, attempt.handled);
    attempt.handled += 1;
  }
}

/** What an attempt does after it was entered: it acts, or has ended before. */
type BeforeAct =
  | { readonly kind: "act"; readonly init: Json }
  | { readonly kind: "over"; readonly outcome: ActOutcome | "skipped" };

async function beforeAct(attempt: Attempt, entered: RecordedEntry, ctx: StageContext): Promise<BeforeAct> {
  const { detours, view } = attempt.execution;
  // First, since the execution may end before it acts.
  if (attempt.number === 1 && view.at?.missed !== undefined) await handleMissed(attempt, view.at.missed);
  // The run continues where the handler leads, whatever the state would have done.
  const left = detours.left === undefined ? undefined : overIfAborted(detours.signal);
  if (left !== undefined) return left;
  if (entered.kind === "ended") return { kind: "over", outcome: endedBeforeAct(entered.why) };
  const { precondition } = entered;
  const answer = precondition === "proceed" ? precondition : await awaitPrecondition(attempt, precondition, ctx);
  if (answer !== "proceed" && !(answer === "skipped" && detours.interrupted !== undefined))
    return { kind: "over", outcome: answer };
  return overIfAborted(detours.signal) ?? { kind: "act", init: entered.init };
}

function overIfAborted(signal: AbortSignal): BeforeAct | undefined {
  const reason = cancelReason(signal);
  return reason === undefined ? undefined : { kind: "over", outcome: endedBeforeAct({ kind: "cancelled", reason }) };
}
