import {
  isJson,
  isSluiceError,
  type Json,
  type JsonObject,
  messageOf,
  type OpenRequest,
  redactJson,
  type Usage,
} from "@sluice/core";
import type { RunResult } from "@sluice/stages";
import type { Account } from "./account.ts";

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
export function reportOf(result: RunResult<unknown>, account: Account, resume: string): RunReport {
  const { runId, status } = result;
  const told = result.stages.length > 0;
  const rest = told
    ? { stages: result.stages.map(asJson), denied: result.denied.map(asJson), usage: { ...result.usage } }
    : spentSoFar(account);
  switch (status) {
    case "completed":
      return { runId, status, output: asJson(result.output), error: null, ...rest };
    case "failed":
    case "cancelled":
      return { runId, status, output: null, error: { ...result.error }, ...rest };
    case "suspended": {
      const suspended = { reason: result.reason, requests: result.waitingFor.map(asRequest), resume };
      return { runId, status, output: null, error: null, ...rest, suspended };
    }
  }
}

/** An error before a run began. */
export function reportOfError(thrown: unknown): RunReport {
  const error = errorOf(thrown);
  return { runId: null, status: "failed", output: null, error, stages: [], denied: [], usage: NO_USAGE };
}

/** A run whose journal failed: it stops here and can be resumed. */
export function reportOfFault(thrown: unknown, runId: string, account: Account, resume: string): RunReport {
  const suspended = { reason: "interrupted", requests: [], resume };
  return { runId, status: "suspended", output: null, error: errorOf(thrown), ...spentSoFar(account), suspended };
}

function spentSoFar({ stages, denied, usage }: Account): Pick<RunReport, "stages" | "denied" | "usage"> {
  return {
    stages: stages.map(({ runId: _runId, ...stage }) => stage),
    denied: denied.map(({ runId: _runId, ...call }) => call),
    usage,
  };
}

function errorOf(thrown: unknown): ReportedError {
  if (!isSluiceError(thrown)) return { code: "unexpected", message: messageOf(thrown) };
  const { code, message, detail } = thrown;
  return { class: thrown.class, code, message, ...(detail === undefined ? {} : { detail }) };
}

/** For output that ends in logs: redacted like the events, where the request itself is not. */
export function asRequest({ requestId, runId, kind, digest, body, openedAt }: OpenRequest): JsonObject {
  return { requestId, runId, kind, digest, body: redactJson(body), openedAt };
}

/** The JSON of a value whose type the compiler does not know to be JSON. */
export function asJson(value: unknown): Json {
  const copy: unknown = JSON.parse(JSON.stringify(value ?? null));
  return isJson(copy) ? copy : null;
}
