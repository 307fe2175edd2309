import type { StageContext } from "../../definition/result.ts";
import { type Attempt, firstAttempt } from "../attempt.ts";
import type { Execution, ExecutionEnd } from "../execution.ts";
import type { ActOutcome } from "../executor.ts";
import { addUsage, cancelReason, NO_USAGE } from "../limits/limits.ts";
import { act } from "./act-scope.ts";
import { awaitPrecondition, endedBeforeAct, enter } from "./enter.ts";
import { type AttemptTotals, leave } from "./leave.ts";
import type { Entered } from "./recorded-phases.ts";

/** Runs a state to its result: attempts of Setup, Init, Precondition, Act and Assert, then Exit and Next once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const maxAttempts = execution.state.retryPolicy?.maxAttempts ?? 3;
  let attempt = firstAttempt(execution);
  const { slot, denied } = attempt;
  let totals: AttemptTotals | undefined;
  try {
    for (;;) {
      await slot.acquire();
      const entered = await enter(attempt);
      totals ??= { turns: 0, usage: NO_USAGE, startedAt: entered.at };
      const ctx = attempt.contextWith(entered.kind === "ready" ? entered.setup : null);
      const outcome = await outcomeOf(attempt, entered, ctx, execution.turnsBefore + totals.turns);
      if (outcome !== "skipped") {
        const { turns, usage } = outcome;
        totals = { ...totals, turns: totals.turns + turns, usage: addUsage(totals.usage, usage) };
      }
      const left = await leave(attempt, ctx, outcome, totals, attempt.number < maxAttempts);
      if (left.kind === "left") {
        if (!execution.routed && left.result.status === "failed") slot.releaseDeferred();
        return { result: left.result, next: left.next ?? undefined, denied };
      }
      attempt = attempt.next(left.feedback);
    }
  } finally {
    slot.release();
  }
}

async function outcomeOf(
  attempt: Attempt,
  entered: Entered,
  ctx: StageContext,
  turnsBefore: number,
): Promise<ActOutcome | "skipped"> {
  if (entered.kind === "ended") return endedBeforeAct(entered.why);
  const answer = await awaitPrecondition(attempt, entered.precondition, ctx);
  if (answer !== "proceed") return answer;
  const reason = cancelReason(attempt.execution.steps.signal);
  if (reason !== undefined) return endedBeforeAct({ kind: "cancelled", reason });
  return await act(attempt, ctx, entered.init, turnsBefore);
}
