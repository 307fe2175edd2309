// One tool call from its arguments to the function that runs it: nothing but an allowed call holds that function.
import { canonicalJson, digestOf, sha256 } from "../base/canonical.ts";
import { isSluiceError, SluiceError } from "../base/errors.ts";
import { cloneJson, deepFreeze, isSameJson, type Json, type JsonObject } from "../base/json.ts";
import type { GuardedCall, StateLimits } from "../definition/state-rules.ts";
import { type DeniedVerdict, decide, type SecurityMode, type Verdict } from "./decide.ts";
import {
  type Alternatives,
  type DenialCause,
  denial,
  invalidToolInput,
  repeatedCall,
  truncatedCall,
  unknownTool,
} from "./denial.ts";
import type { Envelope, OtherStages } from "./envelope.ts";
import type { Cleaning } from "./excerpt.ts";
import type { GuardVerdict } from "./guard-hooks.ts";
import type { HardLimits } from "./hard-limits.ts";
import type { CallScene, FileEdit, Subject, ToolCall, ToolResult } from "./subjects.ts";
import { argsSummary, grantRequestBody } from "./summary.ts";
import type { BoundInput, Question, Tool } from "./tool.ts";
import { type CallUsage, limitsEdits, type MeasuredEdits, NO_CALLS } from "./usage.ts";

/** Where calls are made: one attempt of one execution of one run. What was approved in it ends with it. */
export interface CallScope {
  readonly runId: string;
  readonly executionId: string;
  /** From 1. */
  readonly attempt: number;
  /** Whether calls may still run. */
  isOpen(): boolean;
}

/** One tool call of a model, as its executor read it. */
export interface CallRequest {
  /** Unique in the attempt, without a slash: `t<turn>.c<index>`. */
  readonly id: string;
  readonly tool: string;
  /** Absent when the arguments could not be parsed; `inputFault` then gives the reason. */
  readonly input?: Json;
  readonly inputFault?: {
    readonly code: "invalid_tool_input" | "truncated_call";
    readonly message: string;
    /** The raw text, if known: two unreadable calls count as the same only when it is equal. */
    readonly raw?: string;
  };
  /** The media types of files that the model reads in results. */
  readonly takes?: readonly string[];
}

/** A tool call with frozen arguments and their digest. A class, so that no copy and no object of the same shape is accepted. */
export class SealedCall {
  readonly scope: CallScope;
  readonly id: string;
  readonly tool: string;
  /** SHA-256 of the canonical JSON of the arguments as the model sent them. */
  readonly argsDigest: string;
  /** Why the arguments could not be read. */
  readonly inputFault?: string;
  /** The model's output was cut off in the middle of the call. */
  readonly truncated: boolean;
  /** Equal for calls of one tool with the same arguments. */
  readonly key: string;
  /** As in `CallRequest`; no part of what is approved. */
  readonly takes: readonly string[] | undefined;
  readonly #input: Json | undefined;

  /** Takes the digest, and parses the arguments from the digested text, so that what runs is what the digest is of. */
  constructor(scope: CallScope, { id, tool, input, inputFault, takes }: CallRequest) {
    // What is no text could read differently each time, and the answer to one call would count for another.
    if (typeof id !== "string" || typeof tool !== "string")
      throw new TypeError("the id and the tool of a call are texts");
    this.scope = scope;
    this.id = id;
    this.tool = tool;
    this.takes = takes === undefined ? undefined : [...takes];
    this.truncated = inputFault?.code === "truncated_call";
    const read =
      input === undefined ? { fault: inputFault?.message ?? "the arguments could not be read" } : canonicalText(input);
    if ("text" in read) {
      this.#input = deepFreeze<Json>(JSON.parse(read.text));
      this.argsDigest = sha256(read.text);
    } else {
      this.inputFault = read.fault;
      this.argsDigest = digestOf(this.inputFault.toWellFormed());
    }
    // Unreadable arguments have no digest of their own; such calls are the same if their raw text is.
    const digest = inputFault?.raw === undefined ? this.argsDigest : sha256(inputFault.raw.toWellFormed());
    this.key = JSON.stringify([tool, digest]);
    Object.freeze(this);
  }

  /** Deeply frozen; undefined if the arguments could not be read. */
  get input(): Json | undefined {
    return this.#input;
  }

  /** A class that extends this one could answer with other arguments, so its objects do not count. */
  static isSealed(value: object): value is SealedCall {
    return #input in value && Object.getPrototypeOf(value) === SealedCall.prototype;
  }
}

// A member that a tool put on its prototype would hold for every call of the process.
Object.freeze(SealedCall.prototype);

/** A call repeated this often is not run. */
const REPEATED = 3;
/** A call repeated this often fails its state. */
const STUCK = 6;

/** What a call is checked against. */
export interface Policy extends HardLimits, Cleaning, OtherStages {
  readonly tools: ReadonlyMap<string, Tool>;
  /** Names of the tools that open nothing but the checked subjects; in mode `ask`, those that do not write need no approval. */
  readonly builtins: ReadonlySet<string>;
  /** Without one, `mode` decides. */
  readonly envelope: Envelope | undefined;
  readonly mode: SecurityMode;
  /** The list for mode `allowlist`. */
  readonly allow: Envelope;
  readonly scene: CallScene;
  /** What the model can do instead, as part of a denial. */
  readonly alternatives: Alternatives;
  /** Checks every allowed call; see `runGuardHooks`. */
  readonly hooks?: (call: Omit<GuardedCall, "kind">) => Promise<GuardVerdict>;
  /** The hard limits of the stage that count, besides those on paths and commands. */
  readonly limits?: StateLimits | undefined;
  /** Of the calls before this one; its repeats include this call. Without it, nothing counts. */
  readonly usage?: CallUsage;
  /** As in `ToolCall`, for tools that measure their calls. */
  readonly notes?: ToolCall["notes"];
  /** Why no call may begin any more, if a time cap has passed. */
  readonly late?: string | undefined;
  /** Used instead of what the tool reports, for replays. */
  readonly subjects?: readonly Subject[] | undefined;
  /** Used instead of what the tool measures, for replays. */
  readonly edits?: readonly FileEdit[] | undefined;
}

/** What an earlier process recorded about a call that did not begin. It allows nothing: the call can only be narrowed. */
export type EarlierVerdict =
  | ({
      readonly kind: "allow";
      readonly by: "envelope" | "mode";
      /** Of the arguments that were decided about; absent if they are not known. */
      readonly argsDigest?: string | undefined;
    } & EarlierFacts)
  /** `body` is what the person was shown. */
  | ({ readonly kind: "prompt"; readonly body: JsonObject } & EarlierFacts);
interface EarlierFacts {
  readonly subjects: readonly Subject[];
  /** What the call was counted to edit, if that was measured. */
  readonly edits?: readonly FileEdit[] | undefined;
}

export type ApprovedBy = "envelope" | "grant" | "mode";
export type Authorization = AllowedCall | PromptedCall | DeniedCall;

export interface AllowedCall {
  readonly kind: "allow";
  readonly by: ApprovedBy;
  /** What the call may touch. */
  readonly subjects: readonly Subject[];
  /** What the call may edit, if that is limited; see `countAllowed`. */
  readonly edits?: readonly FileEdit[];
  /** For tools of effect `ask`. */
  readonly question: Question | undefined;
  /** Makes the intent to record before a writing call runs; absent when the tool has none. */
  readonly prepare?: (call: ToolCall) => Promise<Json>;
  /** Runs the call with the checked arguments, once. Rejects with Host `approval_void` if called again, or after the scope ended. */
  execute(call: ToolCall): Promise<ToolResult>;
}

/** A call that a person has to grant. */
export interface PromptedCall {
  readonly kind: "prompt";
  readonly why: string;
  /** What an approval has to name. */
  readonly digest: string;
  readonly subjects: readonly Subject[];
  /** What the call may edit, if that is limited. */
  readonly edits?: readonly FileEdit[];
  /** What the person is shown. */
  readonly body: JsonObject;
  /**
   * Applies an answer. Only an approval of this digest allows the call, and only if `recordedBody`, the body that was shown, is
   * about this call and has the arguments that would run; guard hooks may still veto. Rejects with Host `approval_void` after the
   * first answer with this digest, and after the scope ended.
   */
  granted(answer: GrantAnswer, recordedBody: JsonObject): Promise<AllowedCall | DeniedCall>;
}
export interface GrantAnswer {
  readonly approve: boolean;
  /** The digest shown to the person. */
  readonly digest: string;
}

export interface DeniedCall {
  readonly kind: "deny";
  /** Absent for a call that could not run: `output` says why. */
  readonly cause?: DenialCause;
  /** What the model reads. */
  readonly output: Json;
  readonly subjects: readonly Subject[];
  /** The model repeats this call so often that its state has to fail. */
  readonly stuck?: true;
  /** Whose guard hook vetoed it, and why. */
  readonly vetoed?: NonNullable<GuardVerdict["vetoed"]>;
}

/**
 * Decides about one call and stores nothing: what the call may do is the returned object, until its scope ends. To continue a call
 * that another process decided about, pass that verdict as `earlier`: the call is decided again, and denied unless it may still run
 * as recorded. Rejects with Host `call_not_sealed` for anything but a SealedCall.
 */
export async function authorizeCall(
  call: SealedCall,
  policy: Policy,
  earlier?: EarlierVerdict,
): Promise<Authorization> {
  if (!SealedCall.isSealed(call))
    throw new SluiceError(
      "Host",
      "call_not_sealed",
      "authorizeCall() takes a SealedCall; create it with new SealedCall(scope, request)",
    );
  if (earlier !== undefined) return await authorizeAgain(call, policy, earlier);
  const unstarted = whyNotStarted(call, policy);
  if (unstarted !== undefined) return unstarted;
  const { refused, verdict, subjects, edits, bound } = await checked(call, policy);
  if (refused !== undefined) return refusal(call, policy, refused, subjects);
  const known: CheckedCall = { call, policy, bound, subjects, edits };
  return verdict.kind === "allow" ? allowed(known, verdict.by) : prompted(known, verdict.why);
}

/** Since the earlier verdict, the pipeline, its tools and the session may have changed. */
async function authorizeAgain(call: SealedCall, policy: Policy, earlier: EarlierVerdict): Promise<Authorization> {
  const { subjects } = earlier;
  const stale = (why: string): DeniedCall => denied(call, policy, "limit", `${STALE}${why}`, subjects);
  if (earlier.kind === "allow" && (earlier.argsDigest ?? call.argsDigest) !== call.argsDigest) return stale(OTHER_CALL);
  const { refused, verdict, subjects: now, edits, bound } = await checked(call, policy, earlier);
  if (refused !== undefined) return stale(refused.cause === "invalid_tool_input" ? UNFIT : refused.reason);
  const known: CheckedCall = { call, policy, bound, subjects, edits };
  if (earlier.kind === "allow") return verdict.kind === "allow" ? allowed(known, earlier.by) : stale(verdict.why);
  const changed = whyNotShown(known, earlier.body);
  if (changed !== undefined) return stale(changed);
  if (!policy.builtins.has(call.tool) && !sameJson(now, subjects)) return stale("it now touches something else");
  // Never allowed by the envelope, even a wider one: a person was asked about this call.
  return prompted(known, "");
}

const UNFIT = "its tool no longer accepts these arguments";
const OTHER_CALL = "it was for another call";
const STALE = "this call was approved before the run was resumed, and that approval is no longer valid: ";

/** A call whose input its tool accepted, and what it may touch. */
interface CheckedCall {
  readonly call: SealedCall;
  readonly policy: Policy;
  readonly bound: BoundInput;
  readonly subjects: readonly Subject[];
  readonly edits: readonly FileEdit[] | undefined;
}
type Checked = { readonly subjects: readonly Subject[]; readonly edits?: readonly FileEdit[] | undefined } & (
  | { readonly refused: DeniedVerdict; readonly verdict?: undefined; readonly bound?: undefined }
  | { readonly refused?: undefined; readonly verdict: Exclude<Verdict, DeniedVerdict>; readonly bound: BoundInput }
);

/** The verdict on what the call would touch now and on what it touched `before`. */
async function checked(call: SealedCall, policy: Policy, earlier?: EarlierFacts): Promise<Checked> {
  const before = earlier?.subjects;
  const { input } = call;
  const tool = policy.tools.get(call.tool);
  const bound = tool === undefined || input === undefined ? undefined : await tool.bind(input);
  const builtin = policy.builtins.has(call.tool);
  // Built-in tools open only the paths that were checked, even if links have changed.
  const subjects = bound?.ok !== true || (builtin && before !== undefined) ? NOTHING : subjectsOf(call, policy, bound);
  const fits = bound?.ok === true ? { ok: true as const, subjects: [...(before ?? NOTHING), ...subjects] } : bound;
  const edits = policy.edits ?? earlier?.edits;
  const measured =
    bound?.ok === true && policy.limits !== undefined
      ? await measuredEdits(bound, policy, [...(before ?? NOTHING), ...subjects], edits)
      : undefined;
  const live = tool && { effect: tool.effect, builtin, ...(fits === undefined ? {} : { bound: fits }), measured };
  const verdict = decide(call, policy.envelope, { ...policy, tool: live });
  if (verdict.kind === "deny") return { refused: verdict, subjects };
  if (bound?.ok !== true) return { refused: UNCHECKED, subjects };
  return { verdict, bound, subjects, edits: measured?.ok === true ? measured.edits : undefined };
}

/** Recorded edits stand, because the tool is held to them when it runs. */
async function measuredEdits(
  { measure }: BoundInput,
  { limits, workspace, notes = {} }: Policy,
  judged: readonly Subject[],
  recorded: readonly FileEdit[] | undefined,
): Promise<MeasuredEdits | undefined> {
  if (!limitsEdits(limits)) return undefined;
  // A tool that measures nothing has no edits on record; a replay hands on an empty list for it.
  if (recorded !== undefined && (measure !== undefined || recorded.length > 0)) return { ok: true, edits: recorded };
  return await measure?.({ workspace, notes: deepFreeze({ ...notes }), judged });
}

const NOTHING: readonly Subject[] = [];
const UNCHECKED: DeniedVerdict = { kind: "deny", cause: "limit", reason: "the input was not checked" };

function subjectsOf({ tool }: SealedCall, policy: Policy, bound: BoundInput): readonly Subject[] {
  const { workspace, scene, mask = unchanged } = policy;
  if (policy.subjects !== undefined) return policy.subjects;
  // Cloned, because subjects are recorded and have to be JSON.
  const subjects = cloneJson(bound.subjects(workspace, scene));
  if (!subjects.ok) {
    const reason = `the subjects that ${tool} returned for this call are not JSON: ${subjects.fault}`;
    return [{ kind: "refused", reason }];
  }
  // Frozen, since the tool gets what it is held to.
  const text = JSON.stringify(subjects.value);
  if (mask(text) === text) return deepFreeze(subjects.value);
  // Only reasons can be masked: a call is held to its paths and words.
  const masked = subjects.value.map((one) => ("reason" in one ? { ...one, reason: mask(one.reason) } : one));
  const rest = JSON.stringify(masked);
  return mask(rest) === rest ? deepFreeze(masked) : [{ kind: "refused", reason: TOUCHES_SECRET }];
}

const TOUCHES_SECRET =
  "a path or a word of this call, or a path that it leads to, holds a known secret, which must not be recorded; use other paths";

/** An allowed call, unless a guard hook vetoes it. */
async function allowed(
  { call, policy, bound, subjects, edits }: CheckedCall,
  by: ApprovedBy,
): Promise<AllowedCall | DeniedCall> {
  const { scope, id, tool, argsDigest } = call;
  if (policy.hooks !== undefined) {
    const { executionId, attempt } = scope;
    const { input } = bound;
    const guarded = { tool, input, executionId, attempt, proposalId: id, argsDigest, approvedBy: by };
    const { vetoed } = await policy.hooks(guarded);
    if (vetoed !== undefined) return { ...denied(call, policy, "hook", vetoed.reason, subjects), vetoed };
  }
  const { question, prepare } = bound;
  let ran = false;
  const execute = async (context: ToolCall): Promise<ToolResult> => {
    if (ran || !scope.isOpen()) throw approvalVoid(call, ran);
    ran = true;
    return bound.execute(context);
  };
  const counted = edits === undefined ? {} : { edits };
  return Object.freeze({ kind: "allow", by, subjects, ...counted, question, ...(prepare && { prepare }), execute });
}

function prompted({ call, policy, bound, subjects, edits }: CheckedCall, reason: string): PromptedCall {
  const { mask = unchanged, redact = unchanged } = policy;
  const { scope, id, tool, argsDigest } = call;
  const { executionId, attempt } = scope;
  const { input } = bound;
  const why = mask(reason);
  const summary = argsSummary(tool, redact(input));
  const given = call.input ?? null;
  const body = grantRequestBody({ executionId, attempt, id, tool, argsDigest, given, input, summary, why, subjects });
  let used = false;
  const granted: PromptedCall["granted"] = async ({ approve, digest }, recordedBody) => {
    if (used || !scope.isOpen()) throw approvalVoid(call, used);
    if (digest !== argsDigest) return denied(call, policy, "denied", OTHER_ARGUMENTS);
    // The first answer to this request stands.
    used = true;
    if (approve !== true) return denied(call, policy, "denied", "the request was not approved");
    const changed = whyNotShown({ call, bound }, recordedBody);
    if (changed !== undefined) return denied(call, policy, "limit", `${STALE}${changed}`, subjects);
    return await allowed({ call, policy, bound, subjects, edits }, "grant");
  };
  const counted = edits === undefined ? {} : { edits };
  return Object.freeze({ kind: "prompt", why, digest: argsDigest, subjects, ...counted, body, granted });
}

const OTHER_ARGUMENTS = "the approval was for different arguments and does not cover this call";
const OTHER_INPUT = "its tool now transforms these arguments differently from what was approved";

/** Why the body that a person was shown is not about this call as it would run now. */
function whyNotShown({ call, bound }: Pick<CheckedCall, "call" | "bound">, body: JsonObject): string | undefined {
  const { scope, id, tool, argsDigest } = call;
  const { executionId, attempt } = scope;
  const isThis = Object.entries({ executionId, attempt, proposalId: id, tool, argsDigest }).every(
    ([name, value]) => body[name] === value,
  );
  if (!isThis) return OTHER_CALL;
  return sameJson(bound.input, body.input) ? undefined : OTHER_INPUT;
}

/** Why a call does not get as far as its tool. */
function whyNotStarted(call: SealedCall, policy: Policy): DeniedCall | undefined {
  const { tool, truncated } = call;
  const { usage: { times } = NO_CALLS, late, subjects } = policy;
  if (times >= REPEATED) {
    const repeated: DeniedCall = { kind: "deny", output: repeatedCall(tool, times), subjects: NOTHING };
    return times >= STUCK ? { ...repeated, stuck: true } : repeated;
  }
  if (truncated) return { kind: "deny", output: truncatedCall(tool), subjects: NOTHING };
  return late === undefined ? undefined : denied(call, policy, "limit", late, subjects);
}

function refusal(call: SealedCall, policy: Policy, verdict: DeniedVerdict, subjects: readonly Subject[]): DeniedCall {
  const { tool } = call;
  switch (verdict.cause) {
    case "unknown_tool":
      return { kind: "deny", output: unknownTool(tool, policy.tools.keys(), policy.alternatives), subjects };
    case "invalid_tool_input":
      return { kind: "deny", output: invalidToolInput(tool, verdict.issues), subjects };
    case "limit":
    case "mode":
      return denied(call, policy, verdict.cause, verdict.reason, subjects);
  }
}

function denied(
  { tool }: SealedCall,
  { alternatives, mask = unchanged }: Policy,
  cause: DenialCause,
  reason: string,
  subjects: readonly Subject[] = NOTHING,
): DeniedCall {
  return { kind: "deny", cause, output: denial(cause, tool, mask(reason), alternatives), subjects };
}

function approvalVoid({ id }: SealedCall, used: boolean): SluiceError {
  const why = used ? "it was used before" : "its attempt has ended";
  return new SluiceError("Host", "approval_void", `the approval of call ${id} is void: ${why}`);
}

function canonicalText(input: Json): { readonly text: string } | { readonly fault: string } {
  try {
    return { text: canonicalJson(input) };
  } catch (thrown) {
    if (isSluiceError(thrown, "not_json")) return { fault: thrown.message };
    throw thrown;
  }
}

/** Whether two values are one as JSON, which drops prototypes and undefined members. */
function sameJson(one: Json, other: Json | undefined): boolean {
  return other !== undefined && isSameJson(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)));
}

function unchanged<T>(value: T): T {
  return value;
}
