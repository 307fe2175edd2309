import { messageOf } from "../../base/errors.ts";
import { deepFreeze, type Json, strictClone } from "../../base/json.ts";
import { thrownAt } from "../../base/source-place.ts";
import type { Additions, Completed, Failed, StageContext, StageResult, Usage } from "../../definition/result.ts";
import type { AssertAnswer } from "../../definition/state-rules.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import { stepNames } from "../../journal/step-id.ts";
import { placeIn } from "../../machine/transition.ts";
import type { Transition } from "../../machine/transition-types.ts";
import type { Attempt } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import type { ActOutcome } from "../executor.ts";
import type { ExecutionLimits } from "../limits/limits.ts";
import { capOf } from "../run-result.ts";
import { decideRoute, followRoute } from "./decide-route.ts";
import {
  createPhases,
  ENTERED,
  finishedAs,
  type HookAnswer,
  left,
  leftAssert,
  type Phases,
  readAssertAnswer,
} from "./phases.ts";
import { type ExitFault, LEAVING, type LeaveBefore, type Left, recordedLeave } from "./recorded-phases.ts";

/** Sums over the attempts of an execution. */
export interface AttemptTotals {
  readonly turns: number;
  readonly usage: Usage;
  /** Epoch milliseconds, from the record of the first attempt. */
  readonly startedAt: number;
}
interface Leaving {
  readonly execution: Execution;
  readonly limits: ExecutionLimits;
  readonly ctx: StageContext;
  readonly phases: Phases;
  /** In a replay: what the clock, the caps and the exit hook decided. */
  readonly before: LeaveBefore | undefined;
  readonly base: Pick<Failed, "executionId" | "attempts" | "turns" | "usage" | "ms">;
}

/** Time limit of an exit hook, so that it cannot keep a cancelled run alive. */
const EXIT_MS = 5_000;

/** Assert and, after the last attempt, Exit and Next, in one record. */
export function leave(
  attempt: Attempt,
  entry: StageContext,
  outcome: ActOutcome | "skipped",
  totals: AttemptTotals,
  attemptsLeft: boolean,
): Promise<Left> {
  const { execution, executionId, journal, limits, number } = attempt;
  const { deps } = execution;
  const decide = async (call: StepCall): Promise<Left> => {
    const { turns, usage, startedAt } = totals;
    const before = call.recorded && recordedLeave(call.recorded, startedAt);
    // A clock may be set back.
    const ms = before?.ms ?? Math.max(0, deps.clock.now() - startedAt);
    const base = { executionId, attempts: number, turns, usage, ms };
    const phases = createPhases(attempt, call);
    const ctx = attempt.contextNow(entry);
    const leaving: Leaving = { execution, limits, ctx, phases, before, base };
    const asserting = assertOn(leaving, withinCaps(leaving, resultOf(leaving, outcome)), attemptsLeft);
    const asserted = asserting instanceof Promise ? await asserting : asserting;
    if ("retry" in asserted) {
      const feedback = deps.secrets.text(asserted.retry);
      phases.note("attempt.finished", { outcome: "retry", feedback });
      expireApproval(attempt, phases);
      return { kind: "retry", feedback };
    }
    const exiting = exitWith(leaving, leftForGood(leaving, asserted));
    const result = exiting instanceof Promise ? await exiting : exiting;
    if (result.status !== "completed") expireApproval(attempt, phases);
    attempt.isLeftHere = true;
    const left = { kind: "left", result, next: null, ...endedEarly(attempt, result) } as const;
    if (!execution.routed || result.status === "cancelled") return left;
    // An accepted event is not decided about again.
    const accepted = result.status === "completed" ? attempt.accepted?.decision : undefined;
    const refused = outcome === "skipped" ? undefined : outcome.refused;
    const input = { kind: "result", result, ctx, ...(refused === undefined ? {} : { refused }) } as const;
    if (accepted !== undefined)
      return { ...left, next: followRoute(execution, journal, call, { input, next: accepted }) };
    return { ...left, next: await decideRoute(execution, journal, call, input) };
  };
  return journal.run(stepNames.leave, decide, LEAVING);
}

/** What the record says of an execution that ended as cancelled although its run was not. */
function endedEarly(
  { execution: { detours, steps }, missed }: Attempt,
  { status }: StageResult<Json>,
): Pick<Extract<Left, { readonly kind: "left" }>, "interrupted" | "interruption"> {
  if (detours.left !== undefined) return cancelOf(detours.left) === undefined ? { interrupted: true } : {};
  const { interrupted } = detours;
  if (interrupted === undefined || status !== "cancelled" || steps.signal.aborted) return {};
  return { interruption: missed.length === 0 ? interrupted : { ...interrupted, missed: [...missed] } };
}

/** Why the run was cancelled meanwhile, or the handler itself ended so; undefined for the choice of a route. */
function cancelOf({ effect, trace }: Transition): string | undefined {
  const isDefault = effect.kind === "end" && trace.by === "default";
  return isDefault && effect.end.status === "cancelled" ? effect.end.reason : undefined;
}

/** A sibling has no routes, so it has failed when the handler of an interrupt leads elsewhere. */
function leftForGood({ execution, base }: Leaving, result: StageResult<Json>): StageResult<Json> {
  const { detours, routed } = execution;
  if (detours.left === undefined || routed) return result;
  const reason = cancelOf(detours.left);
  if (reason !== undefined) return { ...base, status: "cancelled", reason };
  const failed = { ...base, status: "failed", code: "interrupted" } as const;
  const cap = capOf(detours.left);
  if (cap !== undefined) return { ...failed, message: cap.message, detail: { limit: cap.limit } };
  return {
    ...failed,
    message: "an interrupt's handler did not return, and a parallel state has no other way on",
  };
}

/** An approval covers a transition of its attempt, and no other. */
function expireApproval({ accepted }: Attempt, phases: Phases): void {
  if (accepted?.requestId === undefined) return;
  phases.note("request.expired", { requestId: accepted.requestId, cause: "attempt_finished" });
}

function resultOf({ execution, base }: Leaving, outcome: ActOutcome | "skipped"): StageResult<Json> {
  if (outcome === "skipped") return { ...base, status: "skipped" };
  const { secrets } = execution.deps;
  switch (outcome.status) {
    case "completed": {
      // Copied before it is masked: the executor may keep the object and change it.
      const own = strictClone(outcome.output);
      if (own.ok) {
        const adds = outcome.adds === undefined ? {} : { adds: maskSecrets<Additions>(outcome.adds, secrets) };
        return { ...base, status: "completed", output: secrets.json(own.value), ...adds };
      }
      const message = `the executor of ${execution.state.kind} completed with something that is not JSON: ${own.fault}`;
      return { ...base, status: "failed", code: "hook", message };
    }
    case "failed": {
      const { code, message, detail } = outcome;
      const failed = { ...base, status: "failed", code, message, ...(detail === undefined ? {} : { detail }) } as const;
      return maskSecrets<StageResult<Json>>(failed, secrets);
    }
    case "cancelled": {
      const { reason, partial } = outcome;
      const left = partial === undefined ? {} : { partial: secrets.json(partial) };
      return { ...base, status: "cancelled", reason: secrets.text(reason), ...left };
    }
    case "paused":
      return { ...base, status: "paused", request: secrets.json(outcome.request) };
  }
}

/** Completed work fails too when it exceeded a cap. */
function withinCaps({ limits, base, phases, before }: Leaving, result: StageResult<Json>): StageResult<Json> {
  if (result.status !== "completed") return result;
  const hit = before === undefined ? (limits.exceeded() ?? limits.overspent()) : before.hit;
  if (hit === undefined) return result;
  const { code, limit, message, detail } = hit;
  phases.note("limit.reached", { limit, message, ...detail });
  return { ...base, status: "failed", code, message, detail: { limit, ...detail } };
}

type Asserted = StageResult<Json> | { readonly retry: string };

/** The result after assert, or the feedback for another attempt. */
function assertOn(leaving: Leaving, result: StageResult<Json>, attemptsLeft: boolean): Promise<Asserted> | Asserted {
  if (result.status !== "completed" && result.status !== "failed") return result;
  const { phases, execution, ctx } = leaving;
  const { state } = execution;
  const asserting = phases.through<AssertAnswer>("stage.assert", {
    ask: state.assert && (() => state.assert?.(deepFreeze<Completed<Json> | Failed>(result), ctx)),
    read: readAssertAnswer,
    otherwise: "ok",
    say: leftAssert,
  });
  const asserted = (answer: HookAnswer<AssertAnswer>): Asserted => assertedBy(leaving, answer, result, attemptsLeft);
  return asserting instanceof Promise ? asserting.then(asserted) : asserted(asserting);
}

/** `ok` cannot turn a failure into a success. */
function assertedBy(
  { execution, base }: Leaving,
  asserted: HookAnswer<AssertAnswer>,
  result: Completed<Json> | Failed,
  attemptsLeft: boolean,
): Asserted {
  const { deps } = execution;
  if (asserted.kind === "cancelled") return { ...base, status: "cancelled", reason: asserted.reason };
  // Keeps the original failure beside that of assert.
  const first =
    result.status === "failed" ? { detail: { failed: { code: result.code, message: result.message } } } : {};
  if (asserted.kind === "failed") {
    const { code, message, at } = asserted;
    const detail = { ...first.detail, ...(at === undefined ? {} : { at }) };
    const failed = { ...base, status: "failed", code, message: deps.secrets.text(message) } as const;
    return Object.keys(detail).length === 0 ? failed : { ...failed, detail: deps.secrets.json(detail) };
  }
  const answer = asserted.value;
  if (answer === "ok") return result;
  if ("retry" in answer && attemptsLeft) return answer;
  const message = "retry" in answer ? `no attempt is left: ${answer.retry}` : answer.fail;
  return { ...base, status: "failed", code: "assert", message: deps.secrets.text(message), ...first };
}

/** Runs the exit hook, if there is one. Its failure fails a result that was completed or skipped. */
function exitWith(leaving: Leaving, result: StageResult<Json>): Promise<StageResult<Json>> | StageResult<Json> {
  const { phases } = leaving;
  const outcome = finishedAs(result.status);
  phases.note(
    "attempt.finished",
    result.status === "failed"
      ? { ...outcome, code: result.code, message: result.message, ...placeIn(result.detail) }
      : outcome,
  );
  phases.note("stage.exit", ENTERED);
  deepFreeze(result);
  if (leaving.execution.state.exit === undefined) return exited(leaving, result, undefined);
  return runExit(leaving, result).then((failed) => exited(leaving, result, failed));
}

function exited(
  { phases, base }: Leaving,
  result: StageResult<Json>,
  failed: ExitFault | undefined,
): StageResult<Json> {
  const ended: StageResult<Json> =
    failed !== undefined && (result.status === "completed" || result.status === "skipped")
      ? { ...base, status: "failed", code: "hook", ...failed }
      : result;
  // The events of turns do not count calls that ended without a reply.
  const { usage } = base;
  const data = left("outcome", ended.status);
  const metered = usage.unmeteredCalls === undefined ? data : { ...data, usage: { ...usage } };
  const fault = failed === undefined ? {} : { fault: failed.message, ...placeIn(failed.detail) };
  phases.note("stage.exit", { ...metered, ...fault });
  return ended;
}

async function runExit({ execution, ctx, before }: Leaving, result: StageResult<Json>): Promise<ExitFault | undefined> {
  if (before !== undefined) return before.exitFault;
  const { state, deps } = execution;
  let disarm: (() => void) | undefined;
  try {
    const timeout = new Promise<ExitFault>((resolve) => {
      disarm = deps.clock.after(EXIT_MS, () => resolve({ message: `the exit hook did not end within ${EXIT_MS} ms` }));
    });
    const done = Promise.resolve(state.exit?.(result, ctx)).then(() => undefined);
    return await Promise.race([done, timeout]);
  } catch (thrown) {
    const { at } = thrownAt(thrown, deps.workspace.root);
    const message = deps.secrets.text(`the exit hook threw: ${messageOf(thrown)}`);
    return at === undefined ? { message } : { message, detail: { at: deps.secrets.text(at) } };
  } finally {
    disarm?.();
  }
}
