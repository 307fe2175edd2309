import type { Json } from "../base/json.ts";
import type { Report } from "../base/problems.ts";
import type { StageContext } from "./result.ts";

/** An entry of allowedTools: a pattern; with `optional`, it may match no tool of the session. */
export type AllowedTool = string | { readonly tool: string; readonly optional: true };

export interface RetryPolicy {
  /** Total attempts, from 1. Default: 3. */
  readonly maxAttempts: number;
}

/** Retries of one call to a provider, such as a model call, while its fault may pass by itself. */
export interface ProviderRetry {
  /** Total attempts, from 1. Default: as many as fit into the time. */
  readonly maxAttempts?: number;
  /** How long to retry, in milliseconds from the first fault; 0 for no retry. Default: 300,000. */
  readonly maxElapsedMs?: number;
  /** The wait before the second attempt, in milliseconds. Default: 1,000. */
  readonly initialMs?: number;
  /** By how much each wait is longer than the one before, from 1. Default: 2. No wait is longer than a minute, unless the provider asks for it. */
  readonly factor?: number;
}
/** What happens when a provider fails. A state's settings win over those of its pipeline, and these over the session's. */
export interface ProviderFaultOptions {
  readonly retry?: ProviderRetry;
  /**
   * What follows a fault of a provider that outlasts its retries or cannot pass by itself: `suspend` suspends the run, which continues
   * in the middle of the state when it is resumed; `fail` fails the state. Default: `suspend` if the run's journal is on disk.
   */
  readonly onProviderFault?: "suspend" | "fail";
}

/**
 * Caps of one execution of a state, with the runs of other pipelines that it starts, or of one run. Reaching one is a failure, never a
 * silent success.
 */
export interface Caps {
  /** Input plus output tokens. Failure code `budget`. */
  readonly maxTokens?: number;
  /** US dollars by the session's prices; every model in its scope needs a price. Failure code `budget`. */
  readonly maxCostUsd?: number;
  /** Working time in milliseconds, without waits for answers. Failure code `timeout`. */
  readonly timeoutMs?: number;
}
/**
 * Caps of a state, and hard limits of its tool calls. The hard limits count over one execution with all its attempts. A call beyond
 * one is denied with cause `limit`, and no grant lifts it.
 */
export interface StateLimits extends Caps {
  /** Calls that run. */
  readonly maxToolCalls?: number;
  /** Lines that all calls together may edit: of each edited file the larger number of removed and added lines. */
  readonly maxEditLines?: number;
  /** Lines that one call may edit. */
  readonly maxLinesPerEdit?: number;
  /** Different files that calls may edit, by their real paths. */
  readonly maxFiles?: number;
  /** Bytes of UTF-8 that the results of calls may have together. Results beyond are cut and say so. */
  readonly maxResultBytes?: number;
}
export interface RunLimits extends Caps {
  /** Visits of one state. Default: 10. */
  readonly maxVisits?: number;
  /** Routes taken in one run. Default: 10 times the number of states. */
  readonly maxHops?: number;
  /** Items of one list. Default: 1,000. */
  readonly maxItems?: number;
}

/** May veto a call that is approved. A throw counts as a veto. */
export type GuardHook = (call: GuardedCall, ctx: StageContext) => undefined | Veto | Promise<undefined | Veto>;
export interface GuardedCall {
  readonly tool: string;
  readonly input: Json;
  /** The kind of the state that makes it, such as `agent`. */
  readonly kind: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly proposalId: string;
  readonly argsDigest: string;
  /** What approved the call. */
  readonly approvedBy: "envelope" | "grant" | "mode";
}
export interface Veto {
  readonly veto: string;
}

export type PreconditionAnswer = "proceed" | "skip" | { readonly retryAfterMs: number };
export type AssertAnswer = "ok" | { readonly retry: string } | { readonly fail: string };

/** What the sandbox lets the commands of a state do, in addition to its `allowedTools`. */
export type StateSandbox = {
  /** Whether they may use the network. Default: false. */
  readonly network?: boolean;
  /** Folders of the workspace that they may write to although the state may not; empty at the start and removed afterwards. */
  readonly scratch?: readonly string[];
};

/** The variables of the processes that a state's calls start, instead of the session's. */
export type StateEnvironment = {
  /** Variables with the values that processes get. A model sees the names only. */
  readonly set?: Readonly<Record<string, string>>;
  /** Names of variables that processes do not get. */
  readonly block?: readonly string[];
};

const CAPS = ["maxTokens", "maxCostUsd", "timeoutMs"];
const STATE_LIMITS = [...CAPS, "maxToolCalls", "maxEditLines", "maxLinesPerEdit", "maxFiles", "maxResultBytes"];
const RUN_LIMITS = [...CAPS, "maxVisits", "maxHops", "maxItems"];

/** Caps are positive: whole numbers, or an amount of dollars. */
export function checkLimits(report: Report, path: string, limits: unknown, of: "state" | "run"): void {
  if (limits === undefined) return;
  if (typeof limits !== "object" || limits === null) {
    report.add(path, "must be an object of limits");
    return;
  }
  report.unknownKeys(path, limits, of === "run" ? RUN_LIMITS : STATE_LIMITS);
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined) continue;
    const wanted = name === "maxCostUsd" ? "must be a number above 0, in US dollars" : "must be a whole number from 1";
    const fits = name === "maxCostUsd" ? isAmount(value) : isCount(value);
    if (!fits) report.add(`${path}.${name}`, wanted, "omit it for no limit");
  }
}

const RETRY = ["maxAttempts", "maxElapsedMs", "initialMs", "factor"];

/** Checks what a state, a pipeline or a session does about faults of a provider. */
export function checkProviderFaults(
  report: Report,
  { retry, onProviderFault }: { readonly retry?: unknown; readonly onProviderFault?: unknown },
): void {
  if (onProviderFault !== undefined && onProviderFault !== "suspend" && onProviderFault !== "fail")
    report.add("onProviderFault", 'must be "suspend" or "fail"');
  if (retry === undefined) return;
  if (typeof retry !== "object" || retry === null) {
    report.add("retry", "must be an object: { maxElapsedMs: 300_000 }");
    return;
  }
  report.unknownKeys("retry", retry, RETRY);
  for (const [name, value] of Object.entries(retry)) {
    if (value === undefined) continue;
    if (name === "maxAttempts" && !isCount(value)) report.add("retry.maxAttempts", "must be a whole number from 1");
    if (name === "factor" && !isNumberFrom(1, value)) report.add("retry.factor", "must be a number from 1");
    if ((name === "maxElapsedMs" || name === "initialMs") && !isNumberFrom(0, value))
      report.add(`retry.${name}`, "must be a number of milliseconds from 0");
  }
}

function isNumberFrom(least: number, value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= least;
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Shells and loaders obey these, or Sluice sets them itself, so a value from elsewhere would change what was checked. */
const NOT_SETTABLE =
  /^(?:_|PWD|OLDPWD|IFS|ENV|PS4|PROMPT_COMMAND|CDPATH|GLOBIGNORE|EXECIGNORE|POSIXLY_CORRECT|SHELLOPTS|BASH\w*|LD_\w+|DYLD_\w+|SLUICE_\w+)$/;
/** Characters of one value. */
const LONGEST_VALUE = 32_768;

/** A checked copy; undefined if there is none, or if it has a problem. */
export function readEnvironment(report: Report, path: string, env: unknown): StateEnvironment | undefined {
  if (env === undefined) return undefined;
  if (typeof env !== "object" || env === null || Array.isArray(env)) {
    report.add(path, 'must be an object: { set: { NODE_ENV: "test" }, block: ["DATABASE_URL"] }');
    return undefined;
  }
  const before = report.problems.length;
  report.unknownKeys(path, env, ["set", "block"]);
  const block = "block" in env ? readBlocked(report, `${path}.block`, env.block) : undefined;
  const set = "set" in env ? readVariables(report, `${path}.set`, env.set, block ?? []) : undefined;
  if (report.problems.length > before) return undefined;
  return { ...(set === undefined ? {} : { set }), ...(block === undefined ? {} : { block }) };
}

function readBlocked(report: Report, path: string, block: unknown): readonly string[] | undefined {
  if (block === undefined) return undefined;
  const names: readonly unknown[] = Array.isArray(block) ? block : [undefined];
  const found = names.filter((name) => typeof name === "string" && isVariable(name));
  if (found.length === names.length) return found.map(String);
  report.add(path, "must be a list of names of variables", '["DATABASE_URL"]');
  return undefined;
}

/** A checked copy of variables with their values. What is wrong with them is reported. */
export function readVariables(
  report: Report,
  path: string,
  set: unknown,
  blocked: readonly string[],
): Readonly<Record<string, string>> | undefined {
  if (set === undefined) return undefined;
  if (typeof set !== "object" || set === null || Array.isArray(set)) {
    report.add(path, "must be an object of variables with their values", '{ NODE_ENV: "test" }');
    return undefined;
  }
  const entries = Object.entries(set).map(([name, value]: [string, unknown]) => {
    const at = `${path}.${name}`;
    if (!isVariable(name)) report.add(path, `${JSON.stringify(name)} is not the name of a variable`);
    else if (NOT_SETTABLE.test(name)) report.add(at, "changes how shells and loaders work, so a state cannot set it");
    else if (blocked.includes(name)) report.add(at, "is also blocked", "list it in set or in block");
    if (typeof value === "string" && value.length <= LONGEST_VALUE && value.isWellFormed() && !value.includes("\0"))
      return [name, value] as const;
    // Without the value, which may be secret.
    report.add(at, `must be a text of at most ${LONGEST_VALUE} characters, without NUL`);
    return [name, ""] as const;
  });
  return Object.fromEntries(entries);
}

/** Whether a text is the name of a variable of a process. */
export function isVariable(name: string): boolean {
  return VARIABLE.test(name);
}

/** A whole number from 1. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

/** What a state does about faults of a provider. */
export interface ProviderFaultPolicy {
  readonly onProviderFault: "suspend" | "fail";
  readonly retry: Required<ProviderRetry>;
}

const RETRY_DEFAULTS: Required<ProviderRetry> = {
  maxAttempts: Number.POSITIVE_INFINITY,
  maxElapsedMs: 300_000,
  initialMs: 1_000,
  factor: 2,
};

/** The settings of `inner`, and those of `outer` where it has none. */
export function mergedFaults(
  { retry, onProviderFault }: ProviderFaultOptions,
  outer: ProviderFaultOptions,
): ProviderFaultOptions {
  if (retry === undefined && onProviderFault === undefined) return outer;
  return {
    ...outer,
    ...(onProviderFault === undefined ? {} : { onProviderFault }),
    retry: { ...outer.retry, ...defined(retry) },
  };
}

export function providerFaultPolicy(state: ProviderFaultOptions, outer: ProviderFaultOptions): ProviderFaultPolicy {
  const { onProviderFault = "fail", retry } = mergedFaults(state, outer);
  return { onProviderFault, retry: { ...RETRY_DEFAULTS, ...defined(retry) } };
}

/** An option that is given as undefined is not given. */
function defined(retry: ProviderRetry = {}): ProviderRetry {
  return Object.fromEntries(Object.entries(retry).filter(([, value]) => value !== undefined));
}
