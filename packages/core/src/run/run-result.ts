import { field, isJsonObject, type Json, numberField } from "../base/json.ts";
import type { StageResult, Usage } from "../definition/result.ts";
import type { EventDraft } from "../journal/events.ts";
import type { ProgramEnd, RunEnd } from "../journal/seam.ts";
import type { MachineEnd, MachineLimit, Transition } from "../machine/transition-types.ts";
import { type Denied, type ExecutionEnd, isDenied } from "./execution.ts";
import { addUsage, NO_USAGE } from "./limits/limits.ts";
import { isStageResult } from "./stage/recorded-phases.ts";

/** Totals of a run. */
export interface RunAccount {
  readonly stages: StageResult<Json>[];
  readonly denied: Denied[];
  usage: Usage;
}

/** Why a run failed. A type, since it is recorded. */
export type RunError = {
  readonly code: string;
  readonly message: string;
  /** Where code of the pipeline threw, relative to the workspace: `src/pipeline.ts:41:9`. */
  readonly at?: string;
};

/** The end of a run, as recorded in the journal and returned in `RunResult`. */
export type RunOutcome = {
  readonly status: RunEnd["status"];
  readonly output?: Json;
  readonly error?: RunError;
  /** The final state that ended it, if one did. */
  readonly state?: string;
  /** Of an orchestrated run: what its orchestrator said at the end. */
  readonly acknowledgement?: Acknowledgement;
  readonly stages: readonly StageResult<Json>[];
  readonly denied: readonly Denied[];
  readonly usage: Usage;
};

/** What an orchestrator says when its run has ended. A type, since it is recorded. */
export type Acknowledgement = {
  readonly text: string;
  /** It asks for another run of the pipeline with this input. */
  readonly followUp?: { readonly input: Json };
};

/** What a child adds to the totals of its parent. */
export type ChildAccount = Pick<RunOutcome, "stages" | "denied" | "usage">;

export function newAccount(): RunAccount {
  return { stages: [], denied: [], usage: NO_USAGE };
}

/** Adds an execution that has ended. */
export function addTo(account: RunAccount, { result, denied }: Pick<ExecutionEnd, "result" | "denied">): void {
  account.stages.push(result);
  account.denied.push(...denied);
  account.usage = addUsage(account.usage, result.usage);
}

/** Adds a child's run that has ended. */
export function addChildTo(account: RunAccount, { stages, denied, usage }: ChildAccount): void {
  account.stages.push(...stages);
  account.denied.push(...denied);
  account.usage = addUsage(account.usage, usage);
}

/** The end of a run of one state: `others` are the executions of its detours. */
export function siblingEndOf({ stateId, result, denied, left }: ExecutionEnd, others: RunAccount): ProgramEnd {
  const status = siblingStatus(result);
  const detours = others.stages.length === 0 ? {} : { detours: others.stages };
  const value = { result, denied: [...denied, ...others.denied], ...detours };
  return { status, value, events: [...reachedBy(left), { type: "run.finished", data: { status, state: stateId } }] };
}

function siblingStatus({ status }: StageResult<Json>): RunEnd["status"] {
  switch (status) {
    case "completed":
    case "skipped":
      return "completed";
    case "failed":
    case "paused":
      return "failed";
    case "cancelled":
      return "cancelled";
  }
}

/** The cap of the run that an end is due to. */
type Cap = { readonly limit: MachineLimit; readonly message: string };

/** The cap of the run that stopped a move. */
export function capOf({ effect }: Pick<Transition, "effect">): Cap | undefined {
  const end = effect.kind === "end" ? effect.end : undefined;
  return end?.status === "failed" && end.limit !== undefined ? { limit: end.limit, message: end.message } : undefined;
}

function reachedBy(move: Pick<Transition, "effect"> | undefined): readonly EventDraft[] {
  const cap = move === undefined ? undefined : capOf(move);
  return cap === undefined ? [] : [{ type: "limit.reached", data: cap }];
}

/** Reads what a child's end says of its executions. Undefined for a child that was cancelled from outside. */
export function readChildAccount({ value }: RunEnd): ChildAccount | undefined {
  const [result, detours = [], denied] = [field(value, "result"), field(value, "detours"), field(value, "denied")];
  const stages =
    result === undefined ? field(value, "stages") : Array.isArray(detours) ? [result, ...detours] : undefined;
  if (!Array.isArray(denied) || !denied.every(isDenied)) return undefined;
  if (!Array.isArray(stages) || !stages.every(isStageResult)) return undefined;
  if (result !== undefined) {
    const [first, ...others] = stages;
    const usage = others.reduce((sum, stage) => addUsage(sum, stage.usage), first?.usage ?? NO_USAGE);
    return { stages, denied, usage };
  }
  const usage = field(value, "usage");
  return isUsage(usage) ? { stages, denied, usage } : undefined;
}

function isUsage(value: Json | undefined): value is Usage {
  return numberField(value, "inputTokens") !== undefined && numberField(value, "outputTokens") !== undefined;
}

/** The run's last record. */
export function runEndOf(
  { stages, denied, usage }: RunAccount,
  end: MachineEnd,
  acknowledgement?: Acknowledgement,
): ProgramEnd {
  const { status } = end;
  const error = errorOf(end);
  const failed = error === undefined ? {} : { error };
  const output = status === "completed" ? { output: end.output } : {};
  const final = end.state === undefined ? {} : { state: end.state };
  const said = acknowledgement === undefined ? {} : { acknowledgement };
  const outcome: RunOutcome = { status, ...output, ...failed, ...final, ...said, stages, denied, usage };
  const reached = reachedBy({ effect: { kind: "end", end } });
  const data = { status, usage: { ...usage }, denied: denied.length, ...failed, ...final, ...said };
  return { status, value: outcome, events: [...reached, { type: "run.finished", data }] };
}

function errorOf(end: MachineEnd): RunError | undefined {
  switch (end.status) {
    case "completed":
      return undefined;
    case "failed":
      return { code: end.code, message: end.message, ...(end.at === undefined ? {} : { at: end.at }) };
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
