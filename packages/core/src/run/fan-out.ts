import { field, type Json, type JsonObject } from "../base/json.ts";
import type { Failed, SiblingOutcome, StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { ChildRun, SiblingEnd, StepCall, StepRunner } from "../journal/seam.ts";
import { stepIds } from "../journal/step-id.ts";
import type { NextDecision, ResolvedChoice } from "../machine/decide-next.ts";
import { AttemptJournal } from "./attempt.ts";
import { type RunState, stageContext } from "./context.ts";
import { type Execution, type ExecutionEnd, isDenied } from "./execution.ts";
import { decideRoute } from "./stage/leave.ts";
import { decidesRoute, isStageResult } from "./stage/recorded-phases.ts";

export type FanOutChoice = Extract<ResolvedChoice, { readonly kind: "fanOut" }>;

/** The input of a sibling's run, which sees no other data of its parent. */
type SiblingInput = JsonObject & {
  readonly sibling: string;
  readonly input: Json;
  readonly run: Json;
  readonly context: JsonObject;
  readonly upstream: JsonObject;
  /** The visit of its state, counted over the whole run. */
  readonly visit: number;
  /** Turns of its state before this visit, over the whole run. */
  readonly turns: number;
};

/** One fan-out of a run, up to its join. */
export interface FanOut {
  /** `fan-<n>`, counted over the run. */
  readonly id: string;
  readonly choice: FanOutChoice;
  visitOf(state: string): number;
  turnsOf(state: string): number;
}
export interface FanOutResult {
  /** Ends of the siblings that were started. */
  readonly children: ReadonlyMap<string, ExecutionEnd>;
  readonly outcomes: Readonly<Record<string, SiblingOutcome>>;
  /** The join's upstream outputs, in declared order. */
  readonly upstream: JsonObject;
  /** Keys whose failure fails the fan-out; empty under `settle`. */
  readonly failed: readonly string[];
}

export async function runFanOut(
  spec: PipelineSpec,
  steps: StepRunner,
  run: RunState,
  fork: FanOut,
): Promise<FanOutResult> {
  const { id, choice } = fork;
  const keys = choice.siblings.map((sibling) => sibling.state);
  const children = choice.siblings.map(({ state, input }): ChildRun => {
    const childInput: SiblingInput = {
      sibling: state,
      input,
      run: run.runInput,
      context: run.context,
      upstream: run.upstream,
      visit: fork.visitOf(state),
      turns: fork.turnsOf(state),
    };
    const data = { pipeline: spec.id, state, parent: steps.runId };
    return { key: state, input: childInput, events: [{ type: "run.started", data }] };
  });
  const settled = await steps.runChildren(id, children, {
    onFailure: choice.onFailure,
    failed: (end) => end.status === "failed",
    open: { events: [{ type: "fanOut.started", data: { fanOut: id, siblings: keys, join: choice.join } }] },
    joined: (ends) => [{ type: "fanOut.joined", data: { fanOut: id, outcomes: outcomesIn(ends) } }],
  });

  const ended = new Map<string, ExecutionEnd>();
  const outcomes: Record<string, SiblingOutcome> = {};
  const upstream = new Map(Object.entries(run.upstream));
  for (const key of keys) {
    const end = settled[key];
    if (end === undefined) continue;
    const child = readSibling(end);
    if (child !== undefined) ended.set(key, child);
    outcomes[key] = outcomeOf(end, child);
    // Deletes first, so that the siblings' outputs are in declared order.
    upstream.delete(key);
    if (child?.result.status === "completed") upstream.set(key, child.result.output);
  }
  const failed = choice.onFailure === "settle" ? [] : keys.filter((key) => settled[key]?.status !== "completed");
  return { children: ended, outcomes, upstream: Object.fromEntries(upstream), failed };
}

/** A failed fan-out is a failure of the state that started it, so that state's failure route decides. */
export async function routeFailedFanOut(
  execution: Execution,
  forking: StageResult<Json>,
  forked: FanOutResult,
  fork: FanOut,
  run: RunState,
): Promise<{ readonly result: Failed; readonly next: NextDecision }> {
  // Leaves out siblings that were only cancelled because another one failed.
  const failures = forked.failed.filter((key) => forked.outcomes[key]?.status === "failed");
  const failed = failures.length > 0 ? failures : forked.failed;
  const reasons = failed.map((key) => {
    const outcome = forked.outcomes[key];
    return outcome !== undefined && "message" in outcome ? `${key}: ${outcome.message}` : key;
  });
  const { executionId, attempts, turns, usage, ms } = forking;
  const result: Failed = {
    executionId,
    attempts,
    turns,
    usage,
    ms,
    status: "failed",
    code: "fan_out",
    message: `parallel stages failed: ${reasons.join("; ")}`,
    detail: { fanOut: fork.id, failed: [...failed] },
  };
  const ctx = stageContext({ ...run, fork: forked.outcomes }, execution, attempts, null);
  const journal = new AttemptJournal(execution.steps, executionId, attempts);
  const decide = (call: StepCall): Promise<NextDecision> => decideRoute(execution, journal, call, result, ctx);
  const next = await execution.steps.run(stepIds.failedFanOut(fork.id), decide, { decides: decidesRoute });
  return { result, next };
}

function readSibling(end: SiblingEnd): ExecutionEnd | undefined {
  const [result, denied] = [field(end.value, "result"), field(end.value, "denied")];
  if (!isStageResult(result) || !Array.isArray(denied) || !denied.every(isDenied)) return undefined;
  return { result, denied, next: undefined };
}

function outcomeOf(end: SiblingEnd, child: ExecutionEnd | undefined): SiblingOutcome {
  const result = child?.result;
  if (result?.status === "completed" || result?.status === "skipped") return { status: result.status };
  if (result?.status === "failed") return { status: "failed", code: result.code, message: result.message };
  const reason = field(end.value, "reason");
  return {
    status: "cancelled",
    code: "cancelled",
    message: result?.status === "cancelled" ? result.reason : typeof reason === "string" ? reason : "cancelled",
  };
}

/**
 * Data of the join event. State names are values, since redaction looks at keys and a state may be called `cookie`. The heads bind
 * an export, which leaves values out, to the siblings' journals.
 */
function outcomesIn(ends: Readonly<Record<string, SiblingEnd>>): JsonObject[] {
  return Object.entries(ends).map(([name, { status, head }]) => ({ name, status, head }));
}
