// What the envelopes of a pipeline say about the recorded tool calls of a run.

import { field, type Json, type JsonObject, type PipelineSpec, type RunJournal, type StateSpec } from "@sluice/core";
import {
  type CallUsage,
  compileEnvelope,
  countAllowed,
  type DenialCause,
  decide,
  type GateState,
  NO_CALLS,
  type SecurityMode,
} from "@sluice/core/gate";
import { readEvents } from "@sluice/core/host";
import { parseAttemptStep, type RecordedVerdict, readVerdicts, SECURITY_MODES } from "@sluice/core/runtime";
import { builtinTools } from "@sluice/stages/runtime";

/** A recorded call, and what would become of it now. */
export interface TrialCall {
  /** The run or the child run that made it. */
  readonly runId: string;
  readonly executionId: string;
  readonly state: string;
  /** `t<turn>.c<index>` */
  readonly callId: string;
  readonly tool: string;
  /** Its arguments in short, as the run's events have them. */
  readonly args?: string;
  /** `granted`, `refused` and `unanswered`: a person was asked. */
  readonly was: "allowed" | "granted" | "refused" | "unanswered" | "denied";
  /** `asked`: a person has to grant it. */
  readonly now: "allowed" | "asked" | "denied";
  /** Why it is not allowed. */
  readonly why?: string;
  /** Whether the gate decides differently; how a person answered makes no difference. */
  readonly changed: boolean;
}

/** What a run was started with. */
export interface RunGround {
  readonly root: string;
  readonly mode: SecurityMode;
  readonly allow: readonly string[];
}

export interface TriedCalls {
  readonly calls: readonly TrialCall[];
  /** Calls that name no tool of the run, have invalid arguments, or were made in states that the pipeline lacks. */
  readonly unjudged: number;
}

/** Decides about the calls of one journal again, by what they were recorded to touch. Opens nothing, and runs no guard hook. */
export function tryCalls(spec: PipelineSpec, { runId, records }: RunJournal, ground: RunGround): TriedCalls {
  const calls = new Map<string, TrialCall>();
  const usage = new Map<string, CallUsage>();
  let unjudged = 0;
  for (const record of records) {
    const step = record.phase === "done" ? parseAttemptStep(record.stepId) : undefined;
    if (step?.kind !== "calls" || (step.part !== "verdicts" && step.part !== "approvals")) continue;
    const args = argsIn(readEvents(runId, record).map(({ data }) => data));
    for (const verdict of readVerdicts(record.value) ?? []) {
      const key = JSON.stringify([step.executionId, step.attempt, verdict.id]);
      const known = calls.get(key);
      if (known !== undefined) {
        // The answer of a person, or what became of it.
        const was = wasOf(verdict) ?? known.was;
        calls.set(key, { ...known, was, changed: isChanged(was, known.now) });
        continue;
      }
      const state = spec.states.get(step.state);
      const was = wasOf(verdict);
      if (state === undefined || was === undefined) {
        unjudged += 1;
        continue;
      }
      const used = usage.get(step.executionId) ?? NO_CALLS;
      const { now, why } = decided(state, verdict, ground, used);
      if (now !== "denied") usage.set(step.executionId, countAllowed(used, verdict.edits));
      const { executionId } = step;
      const about = args.get(verdict.id);
      calls.set(key, {
        ...{ runId, executionId, state: step.state, callId: verdict.id, tool: verdict.tool, was, now },
        ...(about === undefined ? {} : { args: about }),
        ...(why === undefined ? {} : { why }),
        changed: isChanged(was, now),
      });
    }
  }
  return { calls: [...calls.values()], unjudged };
}

function argsIn(events: readonly JsonObject[]): ReadonlyMap<string, string> {
  return new Map(
    events.flatMap(({ callId, args }) =>
      typeof callId === "string" && typeof args === "string" ? [[callId, args]] : [],
    ),
  );
}

function isChanged(was: TrialCall["was"], now: TrialCall["now"]): boolean {
  if (was === "allowed" || was === "denied") return was !== now;
  return now !== "asked";
}

/** What a record says about a call; undefined if it could not be judged. */
function wasOf({ verdict }: RecordedVerdict): TrialCall["was"] | undefined {
  if (verdict.kind === "ask") return "unanswered";
  if (verdict.kind === "approved") return verdict.by === "grant" ? "granted" : "allowed";
  return verdict.cause === undefined ? undefined : DENIED[verdict.cause];
}

const DENIED: Readonly<Record<DenialCause, TrialCall["was"]>> = {
  denied: "refused",
  deferred: "refused",
  timeout: "unanswered",
  no_interactor: "unanswered",
  hook: "denied",
  mode: "denied",
  limit: "denied",
};

function decided(
  state: StateSpec,
  { tool, subjects, edits }: RecordedVerdict,
  { root, mode, allow }: RunGround,
  usage: CallUsage,
): { readonly now: TrialCall["now"]; readonly why?: string } {
  const builtin = builtinTools().find(({ name }) => name === tool);
  const gate: GateState = {
    workspace: { root },
    mode,
    allow: compileEnvelope(allow),
    limits: state.limits,
    usage,
    tool: {
      effect: builtin?.effect ?? "write",
      builtin: builtin !== undefined,
      bound: { ok: true, subjects },
      // What was not measured is not known to be too much.
      measured: { ok: true, edits: edits ?? [] },
    },
  };
  const verdict = decide({ tool }, compileEnvelope(state.allowedTools), gate);
  if (verdict.kind === "allow") return { now: "allowed" };
  return verdict.kind === "prompt" ? { now: "asked", why: verdict.why } : { now: "denied", why: verdict.reason };
}

/** What a `run.started` event says about the run. */
export function groundOf(data: JsonObject): RunGround {
  const allow: readonly Json[] = Array.isArray(data.allow) ? data.allow : [];
  const root = field(data, "cwd");
  return {
    root: typeof root === "string" ? root : "/",
    mode: SECURITY_MODES.find((mode) => mode === data.mode) ?? "ask",
    allow: allow.filter((text) => typeof text === "string"),
  };
}
