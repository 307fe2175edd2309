import type { StageContext } from "../../definition/result.ts";
import { type Attempt, firstAttempt } from "../attempt.ts";
import type { Execution, ExecutionEnd } from "../execution.ts";
import type { ActOutcome } from "../executor.ts";
import { addUsage, cancelReason, NO_USAGE } from "../limits/limits.ts";
import { Act } from "./act-scope.ts";
import { awaitPrecondition, endedBeforeAct, enter } from "./enter.ts";
import { type CountedAttempt, leave } from "./leave.ts";
import type { Entered } from "./recorded-phases.ts";

/** Runs a state to its result: attempts of Setup, Init, CheckGate, Act, Assert; then Exit and Next, once. */
export async function execute(execution: Execution): Promise<ExecutionEnd> {
  const maxAttempts = execution.state.retryPolicy?.maxAttempts ?? 3;
  let attempt = firstAttempt(execution);
  const { place, denied } = attempt;
  let counted: CountedAttempt | undefined;
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

function plus(counted: CountedAttempt, { turns, usage }: ActOutcome): CountedAttempt {
  return { ...counted, turns: counted.turns + turns, usage: addUsage(counted.usage, usage) };
}

/** The work of an attempt, unless it ended before that. */
async function begin(
  attempt: Attempt,
  entered: Entered,
  ctx: StageContext,
  turnsBefore: number,
): Promise<Act | ActOutcome | "skipped"> {
  if (entered.kind === "ended") return endedBeforeAct(entered.why);
  const answer = await awaitPrecondition(attempt, entered.precondition, ctx);
  if (answer !== "proceed") return answer;
  const reason = cancelReason(attempt.execution.steps.signal);
  if (reason !== undefined) return endedBeforeAct({ kind: "cancelled", reason });
  return new Act(attempt, ctx, entered.init, turnsBefore);
}
