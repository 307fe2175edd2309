import type { Problem } from "../base/errors.ts";
import { deepFreeze, isObject, type JsonObject, jsonFault } from "../base/json.ts";
import { createReport, idFault, type Report } from "../base/problems.ts";
import { readSchema } from "../schema/compile-schema.ts";
import type { CompiledSchema, Schema } from "../schema/schema.ts";
import { readPattern, type ToolPattern } from "./patterns/tool-pattern.ts";
import type { FinalOutcome, KindFacts, StateSpec } from "./spec.ts";
import { type AllowedTool, checkLimits, checkProviderFaults, isCount, readEnvironment } from "./state-rules.ts";
import type { AnyState, AnyStates, State, StateOptions } from "./types.ts";

type Hooks = Pick<StateSpec, "onCall" | "setup" | "precondition" | "assert" | "exit">;

/** StateCommon with erased types. */
export interface CommonOptions
  extends Hooks,
    Pick<StateSpec, "allowedTools" | "retryPolicy" | "retry" | "onProviderFault" | "limits" | "sandbox" | "env"> {
  readonly inputSchema?: Schema<unknown>;
  /** States by name. Only their names are used. */
  readonly reads?: unknown;
}
/** What a kind gives for its own options. */
export interface KindDefinition extends KindFacts {
  /** The names of its options, for suggestions. */
  readonly keys: readonly string[];
  readonly problems: readonly Problem[];
}

const HOOKS = ["setup", "precondition", "assert", "exit", "onCall"] as const;
const COMMON_KEYS = [
  "inputSchema",
  "allowedTools",
  "retryPolicy",
  "retry",
  "onProviderFault",
  "limits",
  "sandbox",
  "env",
  ...HOOKS,
];

/**
 * Makes a state of a kind from the options that all kinds share and what the kind gives for its own. Never throws: `pipeline()`
 * reports the problems.
 */
export function stateSpec(kind: string, common: CommonOptions, { keys, problems, ...own }: KindDefinition): StateSpec {
  const report = createReport();
  const kindFault = typeof kind === "string" ? idFault(kind) : "must be the name of a kind";
  if (kindFault !== undefined) report.add("kind", kindFault);
  report.include("", problems);
  // Options without parts are data, which the fingerprint covers as a whole.
  const isData = own.parts === undefined && own.options !== undefined;
  const dataFault = isData ? jsonFault(own.options, "options") : undefined;
  if (dataFault !== undefined) report.add("options", `is not JSON: ${dataFault}`, "put functions into the executor");
  const { inputSchema, allowedTools, retryPolicy, retry, onProviderFault, limits, sandbox, env, ...others } = common;
  const { reads, ...hooks } = others;
  report.unknownKeys("", common, [...COMMON_KEYS, ...keys]);
  const schema = inputSchema === undefined ? undefined : schemaAt(report, "inputSchema", inputSchema);
  const patterns = readEnvelope(report, allowedTools);
  checkRetryPolicy(report, retryPolicy);
  checkProviderFaults(report, { retry, onProviderFault });
  checkLimits(report, "limits", limits, "state");
  checkSandbox(report, sandbox);
  const environment = readEnvironment(report, "env", env);
  for (const hook of HOOKS) {
    if (common[hook] !== undefined && typeof common[hook] !== "function") report.add(hook, "must be a function");
  }
  return {
    ...own,
    ...hooks,
    ...(isData && dataFault === undefined ? { options: structuredClone(own.options) } : {}),
    kind,
    ...(schema === undefined ? {} : { inputSchema: schema }),
    // Frozen copies: what was checked must not change under the gate, and the state's executor gets it.
    ...(allowedTools === undefined ? {} : deepFreeze({ allowedTools: structuredClone(allowedTools), patterns })),
    ...(retryPolicy === undefined ? {} : { retryPolicy: deepFreeze(structuredClone(retryPolicy)) }),
    ...(retry === undefined ? {} : { retry: deepFreeze(structuredClone(retry)) }),
    ...(onProviderFault === undefined ? {} : { onProviderFault }),
    ...(limits === undefined ? {} : { limits: deepFreeze(structuredClone(limits)) }),
    ...(sandbox === undefined ? {} : { sandbox: deepFreeze(structuredClone(sandbox)) }),
    ...(environment === undefined ? {} : { env: environment }),
    ...(isObject(reads) ? { reads: Object.keys(reads) } : {}),
    ...(report.problems.length === 0 ? {} : { problems: report.problems }),
  };
}

/** A schema that could not be read accepts nothing; its pipeline is refused anyway. */
const UNREADABLE: CompiledSchema<never> = {
  jsonSchema: {},
  digest: "",
  check: () => ({ ok: false, issues: [{ path: "$", message: "the schema could not be read" }] }),
};

/** Compiles a schema, or reports why it cannot be used. */
export function schemaAt<T>(report: Report, path: string, schema: Schema<T> | JsonObject): CompiledSchema<T> {
  const reading = readSchema(schema);
  if (reading.ok) return reading.value;
  report.add(path, reading.message);
  return UNREADABLE;
}

/** Every pattern of allowedTools that can be read. */
export function readEnvelope(report: Report, allowedTools: readonly AllowedTool[] | undefined): readonly ToolPattern[] {
  if (allowedTools === undefined) return [];
  if (!Array.isArray(allowedTools)) {
    report.add("allowedTools", "must be a list of tool patterns", "[] allows none; leave it out for no envelope");
    return [];
  }
  const patterns: ToolPattern[] = [];
  for (const [index, entry] of allowedTools.entries()) {
    const path = `allowedTools[${index}]`;
    const reading = readPattern(entry);
    if (reading.ok) patterns.push(reading.value);
    else report.add(path, reading.message, reading.suggestion);
  }
  return patterns;
}

function checkRetryPolicy(report: Report, policy: unknown): void {
  if (policy === undefined) return;
  if (typeof policy !== "object" || policy === null) {
    report.add("retryPolicy", "must be an object: { maxAttempts: 3 }");
    return;
  }
  report.unknownKeys("retryPolicy", policy, ["maxAttempts"]);
  if (!("maxAttempts" in policy) || !isCount(policy.maxAttempts)) {
    report.add("retryPolicy.maxAttempts", "must be a whole number from 1", "1 means no second attempt");
  }
}

function checkSandbox(report: Report, sandbox: unknown): void {
  if (sandbox === undefined) return;
  if (typeof sandbox !== "object" || sandbox === null) {
    report.add("sandbox", 'must be an object: { scratch: ["coverage"] }');
    return;
  }
  report.unknownKeys("sandbox", sandbox, ["network", "scratch"]);
  if ("network" in sandbox && typeof sandbox.network !== "boolean")
    report.add("sandbox.network", "must be true or false");
  if (!("scratch" in sandbox)) return;
  if (!Array.isArray(sandbox.scratch) || !sandbox.scratch.every(isScratchFolder))
    report.add("sandbox.scratch", "must be a list of folders of the workspace", '["coverage", "node_modules/.cache"]');
}

/** Whether a path names an unprotected folder inside the workspace. */
export function isScratchFolder(path: unknown): boolean {
  if (typeof path !== "string" || path === "" || path.startsWith("/") || /[\0\\*?]/.test(path)) return false;
  const names = path.split("/");
  return names.every((name) => !["", ".", "..", ".git", ".sluice"].includes(name.toLowerCase()));
}

/** StateOptions with erased types. */
type CustomOptions = CommonOptions & Omit<StateOptions<AnyStates, unknown, unknown>, keyof CommonOptions>;

const KEYS = ["kind", "reads", "options", "output"];
/** The kind of a final state. No executor has it. */
const FINAL = "final";

/**
 * Defines a state of a custom kind. The session's executor of that kind does its work; setup, precondition, gate, limits, assert,
 * routes and journal are as for a stage. Never throws: `pipeline()` reports its problems with all others.
 */
export function state<const A extends Record<string, AnyState> = Record<never, never>, O = unknown, I = undefined>(
  options: StateOptions<A, O, I>,
): State<O, NoInfer<I>>;
export function state(given: CustomOptions): State {
  const { kind, options, output, ...common } = given;
  const report = createReport();
  if (kind === "agent") report.add("kind", "agent states are made with stage()");
  if (kind === FINAL) report.add("kind", "final states are made with final()");
  const own = { options, output: schemaAt(report, "output", output), keys: KEYS, problems: report.problems };
  return { kind, spec: stateSpec(kind, common, own) };
}

/** Defines a final state: entering it ends the run with this outcome. It has no body and no routes, and counts no visit. */
export function final(outcome: FinalOutcome): State<never, undefined> {
  const isKnown = outcome === "completed" || outcome === "failed" || outcome === "cancelled";
  const problems = isKnown ? [] : [{ path: "final", message: "must be completed, failed or cancelled" }];
  const shape = { outcome: String(outcome) };
  const own = { shape, parts: shape, keys: [], problems };
  return { kind: FINAL, spec: { ...stateSpec(FINAL, { allowedTools: [] }, own), final: { outcome } } };
}
