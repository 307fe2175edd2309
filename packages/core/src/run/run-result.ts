import { isJsonObject, type Json } from "../base/json.ts";
import type { StageResult, Usage } from "../definition/result.ts";
import type { EventDraft } from "../journal/events.ts";
import type { ProgramEnd, RunEnd } from "../journal/seam.ts";
import type { Denied } from "./execution.ts";
import { NO_USAGE } from "./limits/limits.ts";

/** Totals of a run. */
export interface RunAccount {
  readonly stages: StageResult<Json>[];
  readonly denied: Denied[];
  usage: Usage;
}

type RunEnding =
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string; readonly code?: string }
  | { readonly kind: "cancel"; readonly reason: string };

/** The end of a run, as recorded in the journal and returned in `RunResult`. */
export type RunOutcome = {
  readonly status: RunEnd["status"];
  readonly output?: Json;
  readonly error?: { readonly code: string; readonly message: string };
  readonly stages: readonly StageResult<Json>[];
  readonly denied: readonly Denied[];
  readonly usage: Usage;
};

/** The run's last record. `cause` is an unhandled stage failure, whose code becomes the run's. */
export function runEndOf(
  account: RunAccount,
  ending: RunEnding,
  events: readonly EventDraft[],
  cause?: StageResult<Json>,
): ProgramEnd {
  const status = ending.kind === "done" ? "completed" : ending.kind === "fail" ? "failed" : "cancelled";
  const { stages, denied, usage } = account;
  const error = errorOf(ending, cause);
  const outcome: RunOutcome = {
    status,
    ...(ending.kind === "done" ? { output: ending.output } : {}),
    ...(error === undefined ? {} : { error }),
    stages,
    denied,
    usage,
  };
  const finished: EventDraft = {
    type: "run.finished",
    data: {
      status,
      usage: { ...usage },
      denied: denied.length,
      ...(error === undefined ? {} : { error: { ...error } }),
    },
  };
  return { status, value: outcome, events: [...events, finished] };
}

function errorOf(
  ending: RunEnding,
  cause: StageResult<Json> | undefined,
): { code: string; message: string } | undefined {
  if (ending.kind === "done") return undefined;
  if (ending.kind === "cancel") return { code: "cancelled", message: ending.reason };
  if (ending.code !== undefined) return { code: ending.code, message: ending.reason };
  return { code: cause?.status === "failed" ? cause.code : "failed", message: ending.reason };
}

/** Reads a run's end, also one written by an external cancel, which has no stages. */
export function readOutcome(end: RunEnd): RunOutcome {
  const none = { stages: [], denied: [], usage: NO_USAGE };
  const { reason, ...kept } = isOutcome(end.value) ? end.value : {};
  const fallback = end.status === "completed" ? {} : { error: { code: end.status, message: reason ?? end.status } };
  return { ...none, ...fallback, ...kept, status: end.status };
}

/** Only programs and cancels write run ends, both as objects of this shape. */
function isOutcome(value: Json): value is Partial<RunOutcome> & { readonly reason?: string } {
  return isJsonObject(value);
}
