import { type Json, toJsonValue } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { PreconditionAnswer } from "../../definition/state-rules.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import { stepNames } from "../../journal/step-id.ts";
import type { Attempt } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import type { ActOutcome } from "../executor.ts";
import { cancelReason, NO_USAGE } from "../limits/limits.ts";
import {
  createPhases,
  type HookAnswer,
  LEFT,
  leftPrecondition,
  type MissingAnswer,
  type PhaseAnswer,
  type PhaseHook,
  readPreconditionAnswer,
} from "./phases.ts";
import { ENTERING, type RecordedEntry, recordedEntry } from "./recorded-phases.ts";

/** Setup, Init and Precondition in one record: everything before the first model call. */
export function enter(attempt: Attempt): Promise<RecordedEntry> {
  const { execution, journal, number, feedback } = attempt;
  const { state, stateId, executor, deps, offer, events, targets, visit, view } = execution;
  const prompt = view.at?.prompt;
  const place = {
    stateId,
    events,
    targets,
    ...(prompt === undefined ? {} : { prompt }),
    ...(execution.closing === true ? { closing: true as const } : {}),
    ...(execution.returns === true ? { returns: true as const } : {}),
  };
  const decide = async (call: StepCall): Promise<RecordedEntry> => {
    const before = call.recorded && recordedEntry(call.recorded);
    const at = before?.at ?? deps.clock.now();
    const phases = createPhases(attempt, call);
    phases.note("attempt.started", { attempt: number, visit, ...(feedback === undefined ? {} : { feedback }) });

    const setUp = await phases.through<Json>("stage.setup", {
      ask: state.setup && (() => (before === undefined ? state.setup?.(attempt.contextWith(null)) : before.setup)),
      read: (value) => readJson(value, "setup"),
      otherwise: null,
      say: () => execution.leftSetup,
    });
    if (setUp.kind !== "answered") return { kind: "ended", at, why: maskSecrets(setUp, deps.secrets) };
    const setup = deps.secrets.json(setUp.value);
    const ctx = attempt.contextWith(setup);

    const rendered = await phases.through<Json>("stage.init", {
      ask: executor.init && (() => executor.init?.(state, ctx, offer, place)),
      read: (value) => readJson(value, "init"),
      otherwise: null,
      say: () => LEFT,
    });
    if (rendered.kind !== "answered") return { kind: "ended", at, why: maskSecrets(rendered, deps.secrets) };
    const precondition = await phases.through(
      "stage.precondition",
      preconditionHook(execution, ctx, before?.precondition),
    );
    if (precondition.kind !== "answered") return { kind: "ended", at, why: maskSecrets(precondition, deps.secrets) };
    return { kind: "ready", at, setup, init: deps.secrets.json(rendered.value), precondition: precondition.value };
  };
  return journal.run(stepNames.enter, decide, state.setup === undefined ? ENTERING.withoutSetup : ENTERING.afterSetup);
}

/** Asks a precondition that returned `retryAfterMs` again after a durable wait, as often as the state has attempts. */
export async function awaitPrecondition(
  attempt: Attempt,
  first: PreconditionAnswer,
  ctx: StageContext,
): Promise<"proceed" | "skipped" | ActOutcome> {
  const { execution, journal, slot } = attempt;
  const { detours } = execution;
  const tries = execution.state.retryPolicy?.maxAttempts ?? 3;
  let answer: HookAnswer<PreconditionAnswer> = { kind: "answered", value: first };
  for (let times = 1; ; times += 1) {
    if (answer.kind !== "answered") return endedBeforeAct(answer);
    const { value } = answer;
    if (value === "proceed") return value;
    if (value === "skip") return "skipped";
    if (times >= tries) {
      const message = `precondition asked to wait ${times} ${times === 1 ? "time" : "times"} and never returned "proceed"`;
      return endedBeforeAct({ kind: "failed", code: "precondition", message });
    }
    const now = await journal.now(stepNames.preconditionNow(times));
    const until = now + Math.max(0, value.retryAfterMs);
    await slot.withSlotReleased(() => journal.sleepUntil(stepNames.preconditionSleep(times), until));
    const reason = cancelReason(detours.signal);
    if (reason !== undefined) return endedBeforeAct({ kind: "cancelled", reason });
    answer = await journal.run(stepNames.precondition(times), async (call) => {
      const phases = createPhases(attempt, call);
      return maskSecrets(
        await phases.through("stage.precondition", preconditionHook(execution, ctx)),
        execution.deps.secrets,
      );
    });
  }
}

/** The outcome of an attempt that ended before Act. */
export function endedBeforeAct(why: MissingAnswer): ActOutcome {
  const none = { turns: 0, usage: NO_USAGE };
  if (why.kind === "cancelled") return { ...none, status: "cancelled", reason: why.reason };
  const { code, message, limit, at } = why;
  const detail = { ...(limit === undefined ? {} : { limit }), ...(at === undefined ? {} : { at }) };
  return { ...none, status: "failed", code, message, ...(Object.keys(detail).length === 0 ? {} : { detail }) };
}

function preconditionHook(
  { state }: Execution,
  ctx: StageContext,
  before?: PreconditionAnswer,
): PhaseHook<PreconditionAnswer> {
  return {
    ask: state.precondition && (() => before ?? state.precondition?.(ctx)),
    read: readPreconditionAnswer,
    otherwise: "proceed",
    say: leftPrecondition,
  };
}

/** Copies, because the context freezes the value and the hook may still use its object. */
function readJson(value: unknown, where: string): PhaseAnswer<Json> {
  const own = toJsonValue(value);
  return own.ok ? own : { ok: false, fault: `${where} returned something that is not JSON: ${own.fault}` };
}
