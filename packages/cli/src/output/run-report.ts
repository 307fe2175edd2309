import {
  addUsage,
  field,
  isJson,
  isSluiceError,
  type Json,
  type JsonObject,
  messageOf,
  type OpenRequest,
  redactJson,
  redactText,
  type SluiceEvent,
  type Usage,
} from "@sluice/core";
import type { RunResult } from "@sluice/stages";
import { type Cleaner, LOOKS } from "@sluice/tui/user";
import { textAt, usageAt } from "@sluice/view/words";

/** What `--output-format json` prints about a run, and `stream-json` in its last line. */
export type RunReport = {
  /** null when there was an error before a run began. */
  readonly runId: string | null;
  readonly status: "completed" | "failed" | "cancelled" | "suspended";
  /** What the run returned; null unless it is completed. */
  readonly output: Json;
  readonly error: ReportedError | null;
  /** Every execution of a state, in the order they ended. */
  readonly stages: readonly Json[];
  /** Calls that were refused. */
  readonly denied: readonly Json[];
  /** `costUsd` is what is known of the money; `unpricedCalls` are without it. */
  readonly usage: Usage;
  /** Only when it is suspended. */
  readonly suspended?: { readonly reason: string; readonly requests: readonly Json[]; readonly resume: string };
};
export type ReportedError = {
  readonly code: string;
  readonly message: string;
  readonly class?: string;
  readonly detail?: Json;
};

const NO_USAGE = { inputTokens: 0, outputTokens: 0 };

/** A run's result as a report. What only its journal knows comes from the account, such as the stages of a suspended run. */
export function reportOf(result: RunResult<unknown>, account: RunTotals, resume: string): RunReport {
  const { runId, status } = result;
  const told = result.stages.length > 0;
  const rest = told
    ? { stages: result.stages.map(asShown), denied: result.denied.map(asShown), usage: { ...result.usage } }
    : spentSoFar(account);
  switch (status) {
    case "completed":
      return { runId, status, output: asShown(result.output), error: null, ...rest };
    case "failed":
    case "cancelled":
      return { runId, status, output: null, error: shownError(result.error), ...rest };
    case "suspended": {
      const suspended = { reason: result.reason, requests: result.waitingFor.map(asRequest), resume };
      return { runId, status, output: null, error: null, ...rest, suspended };
    }
  }
}

/** An error before a run began. */
export function reportOfError(thrown: unknown, clean: Cleaner): RunReport {
  const error = errorOf(thrown, clean);
  return { runId: null, status: "failed", output: null, error, stages: [], denied: [], usage: NO_USAGE };
}

/** A run whose journal failed: it stops here and can be resumed. */
export function reportOfFault(thrown: unknown, runId: string, account: RunTotals, resume: string): RunReport {
  const suspended = { reason: "interrupted", requests: [], resume };
  return { runId, status: "suspended", output: null, error: errorOf(thrown, LOOKS), ...spentSoFar(account), suspended };
}

function spentSoFar({ stages, denied, usage }: RunTotals): Pick<RunReport, "stages" | "denied" | "usage"> {
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

/** An error as a run recorded it. */
export function shownError({ code, message }: ReportedError): { readonly code: string; readonly message: string } {
  return { code, message: redactText(message) };
}

/** For output that ends in logs: redacted like the events, where the request itself is not. */
export function asRequest({ requestId, runId, kind, digest, body, openedAt }: OpenRequest): JsonObject {
  return { requestId, runId, kind, digest, body: redactJson(body), openedAt };
}

/** What a run or a stage returned, as it is printed: output ends in logs. A program that needs it whole calls the session. */
export function asShown(value: unknown): Json {
  return redactJson(asJson(value));
}

/** The JSON of a value whose type the compiler does not know to be JSON. */
function asJson(value: unknown): Json {
  const copy: unknown = JSON.parse(JSON.stringify(value ?? null));
  return isJson(copy) ? copy : null;
}

/** One execution of a state, as far as the events tell. */
export type StageAccount = {
  readonly runId: string;
  readonly executionId: string;
  /** `unfinished` while it has not been left. */
  status: string;
  attempts: number;
  turns: number;
  usage: Usage;
  ms: number;
};
/** A call that was refused. */
export type DeniedAccount = {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly tool: string;
  readonly cause: string;
};

/** What a run and its children did so far, added up from their events: also for runs that have no end yet. */
export interface RunTotals {
  readonly stages: readonly StageAccount[];
  readonly denied: readonly DeniedAccount[];
  readonly usage: Usage;
}

const NONE: Usage = { inputTokens: 0, outputTokens: 0 };

export interface RunSummarizer {
  add(event: SluiceEvent): void;
  account(): RunTotals;
}

export function createRunSummarizer(): RunSummarizer {
  const stages = new Map<string, StageAccount & { startedAt: number }>();
  const denied: DeniedAccount[] = [];

  const stageOf = ({ runId, executionId, at }: SluiceEvent): (StageAccount & { startedAt: number }) | undefined => {
    if (executionId === undefined) return undefined;
    const key = JSON.stringify([runId, executionId]);
    let stage = stages.get(key);
    if (stage === undefined) {
      stage = { runId, executionId, status: "unfinished", attempts: 1, turns: 0, usage: NONE, ms: 0, startedAt: at };
      stages.set(key, stage);
    }
    return stage;
  };

  return {
    add(event) {
      const { type, data, executionId = "", attempt = 1, runId } = event;
      const stage = stageOf(event);
      if (stage === undefined) return;
      stage.attempts = Math.max(stage.attempts, attempt);
      stage.ms = event.at - stage.startedAt;
      if (type === "turn.finished") {
        stage.turns += 1;
        stage.usage = addUsage(stage.usage, usageAt(data));
      } else if (type === "stage.exit" && field(data, "phase") === "left") {
        stage.status = textAt(data, "outcome");
        // It has a usage where there is more to it than its turns.
        if (field(data, "usage") !== undefined) stage.usage = usageAt(data);
      } else if (
        type === "call.decided" &&
        field(data, "verdict") === "refused" &&
        field(data, "cause") !== undefined
      ) {
        const call = { callId: textAt(data, "callId"), tool: textAt(data, "tool"), cause: textAt(data, "cause") };
        denied.push({ runId, executionId, attempt, ...call });
      }
    },
    account() {
      const all = [...stages.values()].map(({ startedAt: _startedAt, ...stage }) => stage);
      return { stages: all, denied, usage: all.reduce((sum, stage) => addUsage(sum, stage.usage), NONE) };
    },
  };
}
