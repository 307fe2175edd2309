import {
  cloneJson,
  field,
  isJsonObject,
  isObject,
  type Json,
  jsonFault,
  parseStoredJson,
  toJsonValue,
} from "../../base/json.ts";
import { idFault } from "../../base/problems.ts";
import { readPatch } from "../../definition/choice.ts";
import type { StepCall, StepOptions } from "../../journal/seam.ts";
import { stepNames } from "../../journal/step-id.ts";
import { issuesText } from "../../schema/issues.ts";
import type { CompiledSchema } from "../../schema/schema.ts";
import type { Attempt } from "../attempt.ts";
import type { ActOutcome } from "../executor.ts";
import { isAmount } from "../limits/ledger.ts";
import { cancelReason, type LimitHit, NO_USAGE, raceAbort } from "../limits/limits.ts";

type CheckedOutput =
  | { readonly ok: true; readonly output: Json }
  | { readonly ok: false; readonly why: string }
  /** The state was cancelled, or its time was up while the schema still worked. */
  | { readonly ok: false; readonly cancelled: string }
  | { readonly ok: false; readonly hit: LimitHit };

/** Checks an executor's output against the state's schema, in a step, because a schema may be user code. */
export function checkedOutput(attempt: Attempt, acted: ActOutcome): Promise<ActOutcome> | ActOutcome {
  const { kind, output: schema, checksOutput } = attempt.execution.state;
  const outcome = readOutcome(kind, acted);
  if (schema === undefined || checksOutput === true || outcome.status !== "completed") return outcome;
  return checkedBy(attempt, schema, outcome);
}

async function checkedBy(
  attempt: Attempt,
  schema: CompiledSchema<unknown>,
  outcome: Extract<ActOutcome, { readonly status: "completed" }>,
): Promise<ActOutcome> {
  const { output, turns, usage } = outcome;
  const checked = await attempt.journal.run(
    stepNames.output,
    (call) => check(attempt, schema, output, call),
    CHECKS_AGAIN,
  );
  if (checked.ok) return { ...outcome, output: checked.output };
  if ("cancelled" in checked) return { status: "cancelled", reason: checked.cancelled, turns, usage };
  const failed = { status: "failed", turns, usage } as const;
  if ("why" in checked) return { ...failed, code: "schema", message: `the output does not fit: ${checked.why}` };
  const { code, limit, message, detail } = checked.hit;
  return { ...failed, code, message: `${message}; ${STILL_CHECKED}`, detail: { limit, ...detail } };
}

const STILL_CHECKED = "the schema of the output was still checking";

/** Replay checks an output again, unless the check was stopped. */
const CHECKS_AGAIN: StepOptions = {
  decides: ({ value }) => {
    const read = parseStoredJson(value);
    return !read.ok || (field(read.value, "cancelled") === undefined && field(read.value, "hit") === undefined);
  },
};

/** An executor may be user code: an invalid outcome fails its state and nothing else. */
export function readOutcome(kind: string, acted: ActOutcome): ActOutcome {
  const faults: string[] = [];
  const own = isObject(acted) ? ownOutcome(acted, faults) : acted;
  const fault = outcomeFault(own) ?? faults[0];
  if (fault === undefined) return own;
  const message = `the executor of ${kind} returned an invalid outcome: ${fault}`;
  return { status: "failed", code: "hook", message, turns: 0, usage: NO_USAGE };
}

/**
 * A copy of an outcome, which its executor may change later, or have read differently. Adds what is not JSON to `faults`. An output
 * is copied after its schema made JSON of it.
 */
function ownOutcome(acted: ActOutcome, faults: string[]): ActOutcome {
  const read = { ...acted };
  const own = <T>(value: T, name: string): T => {
    const copy = value === undefined ? undefined : cloneJson(value);
    if (copy?.ok === false) faults.push(`${name} must be JSON: ${copy.fault}`);
    return copy?.ok === true ? copy.value : value;
  };
  const usage = own(read.usage, "its usage");
  const refused = read.refused === undefined ? {} : { refused: own(read.refused, "what was refused") };
  const outcome = { ...read, usage, ...refused };
  switch (outcome.status) {
    case "completed":
      return outcome.adds === undefined ? outcome : { ...outcome, adds: own(outcome.adds, "what it adds") };
    case "failed": {
      const { detail, ...failed } = outcome;
      const copy = detail === undefined ? undefined : cloneJson(detail);
      if (copy?.ok !== false) return copy === undefined ? failed : { ...failed, detail: copy.value };
      return { ...failed, message: `${failed.message} (its detail is left out, since it is not JSON: ${copy.fault})` };
    }
    case "cancelled":
      return outcome.partial === undefined
        ? outcome
        : { ...outcome, partial: own(outcome.partial, "its partial work") };
    case "paused":
      return { ...outcome, request: own(outcome.request, "the request of a pause") };
    default:
      return outcome;
  }
}

function outcomeFault(acted: unknown): string | undefined {
  if (!isObject(acted)) return `it is ${acted === null ? "null" : typeof acted}`;
  const { status, turns, usage, code, message, reason, refused = [] } = acted;
  if (!isAmount(turns)) return "turns must be a number from 0";
  if (!isObject(usage)) return "usage must be an object";
  if (!isUsage(usage)) return "usage must hold numbers from 0, at least inputTokens and outputTokens";
  const isRefused = (one: unknown): boolean =>
    isObject(one) && typeof one.to === "string" && typeof one.why === "string";
  if (!Array.isArray(refused) || !refused.every(isRefused)) return "refused must be a list of { to, why }";
  switch (status) {
    case "completed":
      return acted.adds === undefined ? undefined : additionsFault(acted.adds);
    case "failed":
      return typeof code === "string" && typeof message === "string" ? undefined : "a failure needs code and message";
    case "cancelled":
      return typeof reason === "string" ? undefined : "a cancelled outcome needs a reason";
    case "paused":
      return jsonFault(acted.request) === undefined ? undefined : "the request of a pause must be JSON";
    default:
      return "status must be completed, failed, cancelled or paused";
  }
}

function isUsage(usage: Readonly<Record<string, unknown>>): boolean {
  if (!isAmount(usage.inputTokens) || !isAmount(usage.outputTokens)) return false;
  return Object.values(usage).every((count) => count === undefined || isAmount(count));
}

/** What is added becomes part of the run's context and outputs, so it is judged as what a route adds. */
function additionsFault(adds: unknown): string | undefined {
  const own = toJsonValue(adds);
  if (!own.ok || !isJsonObject(own.value)) return "what it adds must be JSON";
  const { context = {}, upstream = {}, ...others } = own.value;
  if (Object.keys(others).length > 0) return "it adds context and upstream, and nothing else";
  const patch = readPatch(context);
  if (!patch.ok) return patch.reason;
  if (!isJsonObject(upstream)) return "upstream must be an object of outputs";
  const [fault] = Object.keys(upstream).flatMap((name) => idFault(name) ?? []);
  return fault;
}

async function check(
  { execution, limits, journal }: Attempt,
  schema: CompiledSchema<unknown>,
  output: Json,
  call: StepCall,
): Promise<CheckedOutput> {
  const { signal } = execution.detours;
  const checking = schema.check(output);
  const ended =
    checking instanceof Promise
      ? await limits.timed(signal, (timed) => raceAbort(timed, checking))
      : { value: checking };
  const cancelled = cancelReason(signal);
  if (cancelled !== undefined) return { ok: false, cancelled };
  if (ended !== undefined) {
    const { value: verdict } = ended;
    return verdict.ok ? { ok: true, output: verdict.value } : { ok: false, why: issuesText(verdict.issues) };
  }
  const hit = limits.exceeded();
  if (hit === undefined) return { ok: false, why: STILL_CHECKED };
  call.event(journal.event("limit.reached", { limit: hit.limit, message: hit.message, ...hit.detail }));
  return { ok: false, hit };
}
