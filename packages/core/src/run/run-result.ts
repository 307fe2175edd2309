import { isJsonObject, type Json } from "../base/json.ts";
import type { StageResult, Usage } from "../definition/result.ts";
import type { EventDraft } from "../journal/events.ts";
import type { ProgramEnd, RunEnd } from "../journal/seam.ts";
import type { MachineEnd } from "../machine/transition.ts";
import type { Denied, ExecutionEnd } from "./execution.ts";
import { addUsage, NO_USAGE } from "./limits/limits.ts";

/** Totals of a run. */
export interface RunAccount {
  readonly stages: StageResult<Json>[];
  readonly denied: Denied[];
  usage: Usage;
}

/** The end of a run, as recorded in the journal and returned in `RunResult`. */
export type RunOutcome = {
  readonly status: RunEnd["status"];
  readonly output?: Json;
  readonly error?: { readonly code: string; readonly message: string };
  readonly stages: readonly StageResult<Json>[];
  readonly denied: readonly Denied[];
  readonly usage: Usage;
};

/** Adds an execution that has ended. */
export function addTo(account: RunAccount, { result, denied }: Pick<ExecutionEnd, "result" | "denied">): void {
  account.stages.push(result);
  account.denied.push(...denied);
  account.usage = addUsage(account.usage, result.usage);
}

/** The run's last record. */
export function runEndOf({ stages, denied, usage }: RunAccount, end: MachineEnd): ProgramEnd {
  const { status } = end;
  const error = errorOf(end);
  const failed = error === undefined ? {} : { error };
  const output = status === "completed" ? { output: end.output } : {};
  const outcome: RunOutcome = { status, ...output, ...failed, stages, denied, usage };
  const reached: readonly EventDraft[] =
    status === "failed" && end.limit !== undefined
      ? [{ type: "limit.reached", data: { limit: end.limit, message: end.message } }]
      : [];
  const data = { status, usage: { ...usage }, denied: denied.length, ...failed };
  return { status, value: outcome, events: [...reached, { type: "run.finished", data }] };
}

function errorOf(end: MachineEnd): { readonly code: string; readonly message: string } | undefined {
  switch (end.status) {
    case "completed":
      return undefined;
    case "failed":
      return { code: end.code, message: end.message };
    case "cancelled":
      return { code: "cancelled", message: end.reason };
  }
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
