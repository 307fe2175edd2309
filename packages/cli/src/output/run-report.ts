import {
  isJson,
  isSluiceError,
  type Json,
  type JsonObject,
  type OpenRequest,
  type StageResult,
  type Usage,
} from "@sluice/core";
import { messageOf, NO_USAGE, redactJson, redactText, thrownAt } from "@sluice/core/runtime";
import type { RunResult, Suspension } from "@sluice/stages";
import { type Cleaner, LOOKS } from "@sluice/tui/user";
import { type RunView, workedMs } from "@sluice/view";
import { shownError } from "@sluice/view/words";

/** The output of `--output-format json`, and the last line of `stream-json`. */
export type RunReport = {
  /** null if an error occurred before the run began. */
  readonly runId: string | null;
  readonly status: "completed" | "failed" | "cancelled" | "suspended";
  /** null unless the run completed. */
  readonly output: Json;
  readonly error: ReportedError | null;
  /** Every execution of a state, in the order they ended. */
  readonly stages: readonly Json[];
  readonly denied: readonly Json[];
  /** `costUsd` does not include `unpricedCalls`. */
  readonly usage: Usage;
  /** Only if it is suspended. */
  readonly suspended?: {
    readonly reason: string;
    /** Of the first fault of a provider. */
    readonly code?: string;
    readonly message?: string;
    /** When a fault may have ended, in epoch milliseconds, where that is known. */
    readonly retryAt?: number;
    /** All faults, each with the execution that waits. */
    readonly faults?: readonly Json[];
    /** When a run that sleeps continues, in epoch milliseconds. */
    readonly wakeAt?: number;
    readonly requests: readonly Json[];
    readonly resume: string;
  };
};
export type ReportedError = {
  readonly code: string;
  readonly message: string;
  /** Where the user's code threw: `src/pipeline.ts:41:9`. */
  readonly at?: string;
  readonly class?: string;
  readonly detail?: Json;
};

const NOTHING = { output: null, error: null, stages: [], denied: [], usage: NO_USAGE };

/** A run's result as a report. The stages of a suspended run come from `totals`. */
export function reportOf(result: RunResult<unknown>, totals: RunTotals, resume: string): RunReport {
  const { runId, status } = result;
  const rest =
    result.stages.length > 0
      ? { stages: withWorkedMs(result.stages, totals), denied: result.denied.map(asShown), usage: { ...result.usage } }
      : withoutRunIds(totals);
  switch (status) {
    case "completed":
      return { runId, status, ...NOTHING, output: asShown(result.output), ...rest };
    case "failed":
    case "cancelled":
      return { runId, status, ...NOTHING, error: shownError(result.error), ...rest };
    case "suspended": {
      const { reason, waitingFor, wakeAt, suspended: why } = result;
      const wake = wakeAt === undefined ? {} : { wakeAt };
      const suspended = { reason, ...shownFaults(why), ...wake, requests: waitingFor.map(asRequest), resume };
      return { runId, status, ...NOTHING, ...rest, suspended };
    }
  }
}

/** Redacted, since providers write the messages. */
function shownFaults({
  code,
  message,
  retryAt,
  faults,
}: Suspension): Pick<NonNullable<RunReport["suspended"]>, "code" | "message" | "retryAt" | "faults"> {
  return {
    ...(code === undefined ? {} : { code }),
    ...(message === undefined ? {} : { message: redactText(message) }),
    ...(retryAt === undefined ? {} : { retryAt }),
    ...(faults === undefined ? {} : { faults: faults.map((fault) => asShown(fault)) }),
  };
}

/** Results of stages with the time that they worked; a result itself counts its sleeps and the times without a process. */
function withWorkedMs(results: readonly StageResult<unknown>[], { stages }: RunTotals): readonly Json[] {
  // Executions of children may share a name; both lists have them in the declared order of the children.
  const nameOf = (executionId: string, key = ""): string => JSON.stringify([executionId, key]);
  const left = Map.groupBy(stages, ({ executionId, key }) => nameOf(executionId, key));
  return results.map((result) => {
    const ms = left.get(nameOf(result.executionId, result.key))?.shift()?.ms ?? result.ms;
    return asShown({ ...result, ms });
  });
}

/** The recorded name of any agent that `sluice gateway` serves. */
const MCP_AGENT = "mcp";

/** What the words that resume a run depend on. */
export interface Resumable {
  readonly runId: string;
  /** A request is open: without --wait, the resumed run would deny it. */
  readonly isOpen: boolean;
  /** The agent of another program that works on it, which continues it with its gateway. */
  readonly agent?: string;
  /** It sleeps, and keeps --suspend-sleeps: without --no-suspend-sleeps, it would be suspended at once. */
  readonly isLeftAsleep?: boolean;
}

/** The words that resume a run. */
export function resumeWords({ runId, isOpen, agent = "", isLeftAsleep = false }: Resumable): readonly string[] {
  if (agent === MCP_AGENT) return ["gateway", "--resume", runId];
  if (agent !== "") return ["gateway", "run", agent, "--resume", runId];
  return ["resume", runId, ...(isOpen ? ["--wait"] : []), ...(isLeftAsleep ? ["--no-suspend-sleeps"] : [])];
}

/** An error before a run began. */
export function reportOfError(thrown: unknown, clean: Cleaner, at?: string): RunReport {
  const place = at === undefined ? {} : { at };
  return { runId: null, status: "failed", ...NOTHING, error: { ...errorOf(thrown, clean), ...place } };
}

interface FaultyRun {
  readonly runId: string;
  readonly workspace: string;
  readonly totals: RunTotals;
  readonly resume: string;
}

/** A run whose journal or executor failed: it is suspended and can be resumed. */
export function reportOfFault(thrown: unknown, { runId, workspace, totals, resume }: FaultyRun): RunReport {
  const suspended = { reason: "interrupted", requests: [], resume };
  const error = { ...errorOf(thrown, LOOKS), ...thrownAt(thrown, workspace) };
  return { runId, status: "suspended", ...NOTHING, error, ...withoutRunIds(totals), suspended };
}

function withoutRunIds({ stages, denied, usage }: RunTotals): Pick<RunReport, "stages" | "denied" | "usage"> {
  return {
    stages: stages.map(({ runId: _runId, ...stage }) => stage),
    denied: denied.map(({ runId: _runId, ...call }) => call),
    usage,
  };
}

function errorOf(thrown: unknown, clean: Cleaner): ReportedError {
  const message = clean.text(messageOf(thrown));
  if (!isSluiceError(thrown)) return { code: "unexpected", message };
  const { code, detail } = thrown;
  return {
    class: thrown.class,
    code,
    message,
    ...(detail === undefined ? {} : { detail: clean.json(asJson(detail)) }),
  };
}

/** A request redacted like the events, since output ends in logs. */
export function asRequest({ requestId, runId, kind, digest, body, openedAt }: OpenRequest): JsonObject {
  return { requestId, runId, kind, digest, body: redactJson(body), openedAt };
}

/** An output, redacted for printing. Programs that need it whole use the session. */
export function asShown(value: unknown): Json {
  return redactJson(asJson(value));
}

function asJson(value: unknown): Json {
  const copy: unknown = JSON.parse(JSON.stringify(value ?? null));
  return isJson(copy) ? copy : null;
}

export type RunTotals = ReturnType<typeof totalsOf>;

/** The stages, denials and usage of a run and the runs below it, also before its end: a stage is `unfinished` until it ends. */
export function totalsOf({ executions, forks, denied, usage, updatedAt }: RunView) {
  const lists = new Set(forks.flatMap(({ runId, fork, list }) => (list === undefined ? [] : [runId + fork])));
  const stages = executions.map((execution) => {
    const { runId, executionId, item, fork, stateId, status, attempt, turns, usage: used, sleeps } = execution;
    return {
      runId,
      executionId,
      ...(fork !== undefined && lists.has(fork.runId + fork.fork) ? { key: item ?? stateId } : {}),
      status: execution.endedAt === undefined ? "unfinished" : status,
      attempts: attempt,
      turns,
      usage: used,
      ms: workedMs(execution, updatedAt),
      ...(sleeps === 0 ? {} : { sleeps }),
      ...(execution.nextWakeAt === undefined ? {} : { nextWakeAt: execution.nextWakeAt }),
    };
  });
  return { stages, denied: denied.map((call) => ({ ...call })), usage };
}
