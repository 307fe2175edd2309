import { hash } from "node:crypto";
import { isSluiceError, messageOf } from "../../base/errors.ts";
import {
  type ClonedJson,
  deepFreeze,
  isObject,
  isTexts,
  type Json,
  type JsonObject,
  strictClone,
} from "../../base/json.ts";
import { thrownAt } from "../../base/source-place.ts";
import type {
  AllowedCall,
  ApprovedBy,
  Authorization,
  DeniedCall,
  PromptedCall,
  SealedCall,
} from "../../gate/authorize-call.ts";
import { mayBeAnyLine } from "../../gate/decide.ts";
import { outcomeUnknown } from "../../gate/denial.ts";
import { fileReach, isWalled } from "../../gate/envelope.ts";
import type { FileEdit, RecoverAnswer, ResultFile, Subject, ToolCall, ToolResult } from "../../gate/subjects.ts";
import type { Tool } from "../../gate/tool.ts";
import { limitsEdits } from "../../gate/usage.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import type { RunDeps } from "../deps.ts";
import type { MatchedInterrupt } from "../execution.ts";
import { ABORT_GRACE_MS } from "../limits/limits.ts";
import { startUnwalled } from "../requests/answer.ts";
import { matchedInterrupts, watchedFiles } from "./interrupts.ts";
import type { ToolCallContext } from "./tool-call.ts";

/** How long an interrupted call may take to end, such as to end its processes, in milliseconds. */
const INTERRUPT_GRACE_MS = 5_000;
/** Longer output is cut in the middle for the model; the record keeps all of it. */
const LONGEST_OUTPUT = 100_000;
/** Base64 has four characters for three bytes. */
const MOST_FILE_CHARACTERS = Math.ceil((5 * 1024 * 1024) / 3) * 4;

/** The recorded result of a call. */
export type ExecutedCall = {
  readonly ok: boolean;
  readonly output: Json;
  readonly outcome: "ok" | "error" | "abandoned" | "outcome_unknown" | "recovered";
  readonly ms: number;
  readonly full?: Json;
  readonly files?: readonly ResultFile[];
  readonly notes?: JsonObject;
  readonly facts?: JsonObject;
  /** Where the tool threw, for people: the model does not see it. */
  readonly at?: string;
  /** The interrupts that it starts. */
  readonly interrupts?: readonly MatchedInterrupt[];
  /** The bytes of UTF-8 of `output` that count, in states that limit them. */
  readonly bytes?: number;
  /** What the call was counted to edit, if its verdict does not say: the limits came with a resume after it. */
  readonly edits?: readonly FileEdit[];
};
/** The result before it is recorded, with the files that the call changed, as its tool reports them. */
type RawResult = Omit<ExecutedCall, "ms" | "interrupts"> & Pick<ToolResult, "changed" | "changesUnknown">;

/** An approved call, as its tool sees it. */
export interface ApprovedCall {
  readonly call: SealedCall;
  readonly by: ApprovedBy;
  readonly subjects: readonly Subject[];
  readonly edits?: readonly FileEdit[];
  readonly intent?: Json;
}

/** An approved call with what this process needs to run it. */
export interface ExecutableCall extends ApprovedCall {
  /** Undefined if the session has no such tool any more. */
  readonly tool: Tool | undefined;
  /** What the gate says just before the call runs. An approval by an earlier process is decided again here. */
  authorize(): Authorization | Promise<Authorization>;
}

/** The step a call runs in. Its signal aborts on cancel, at a time cap, and when the run has to stop in this process. */
export interface CallStep extends Pick<StepCall, "hold"> {
  readonly signal: AbortSignal;
  readonly opened: StepCall["opened"];
  readonly incarnation: string;
}

/** What a tool gets beside its input. */
export function toolCall(
  approved: ApprovedCall,
  of: ToolCallContext,
  signal: AbortSignal,
  onUnwalled?: () => void,
): ToolCall {
  const { call, by, subjects, edits, intent } = approved;
  const { runId, executionId, attempt } = call.scope;
  const { policy } = of;
  const { state, deps } = of.attempt.execution;
  const { atWork } = deps;
  const granted = by === "grant";
  const { interrupts } = of.attempt.execution;
  const watched = interrupts.length === 0 ? undefined : watchedFiles(interrupts);
  // In mode allowlist, the session's list is the envelope of stages without one.
  const envelope = policy.envelope ?? (policy.mode === "allowlist" ? policy.allow : undefined);
  const before = { count: atWork.count, started: atWork.started };
  return {
    runId,
    executionId,
    attempt,
    proposalId: call.id,
    // The same on every execution of a call, and safe in an environment variable.
    idempotencyKey: hash("sha256", JSON.stringify([runId, executionId, attempt, call.id])).slice(0, 32),
    workspace: deps.workspace,
    signal,
    ...policy.scene,
    secrets: deps.secrets,
    // Made on access, since few tools read them.
    get notes() {
      return deepFreeze({ ...of.notes });
    },
    get reach() {
      return {
        ...fileReach(granted ? undefined : envelope, call.tool),
        // What processes write cannot be counted.
        ...(limitsEdits(state.limits) ? { writes: [] } : {}),
        scratch: state.sandbox?.scratch ?? [],
        network: state.sandbox?.network === true,
        readOnly: deps.protectedPaths ?? [],
      };
    },
    get anyLine() {
      // Without a sandbox, only the line that was judged is known to only read.
      if (limitsEdits(state.limits) && !isWalled(subjects)) return false;
      // A granted command line was approved as a whole.
      return granted || mayBeAnyLine(call.tool, envelope, subjects, deps);
    },
    startsUnwalled: () => {
      startUnwalled(deps.answers, `the tool ${call.tool}`, deps.tools.get(call.tool));
      onUnwalled?.();
    },
    ...(watched === undefined ? {} : { watched }),
    othersAtWork: () => before.count > 0 || atWork.started > before.started + 1,
    judged: subjects,
    ...(edits === undefined ? {} : { edits }),
    ...(intent === undefined ? {} : { intent }),
    ...(call.takes === undefined ? {} : { takes: call.takes }),
  };
}

/** Runs a call, or recovers one that an earlier process began. Failures of the tool become results. */
export async function executeToolCall(
  runnable: ExecutableCall,
  of: ToolCallContext,
  step: CallStep,
): Promise<ExecutedCall> {
  const { deps } = of.attempt.execution;
  const { clock } = deps;
  const startedAt = clock.now();
  let unwalled = false;
  const finish = ({ changed, changesUnknown, ...ran }: RawResult): ExecutedCall => {
    const { subjects, tool } = runnable;
    const { outcome } = ran;
    // A call with an open record began as a writing one, whatever the effect of its tool is now.
    const interrupts =
      tool?.effect === "read" && step.opened === undefined
        ? []
        : matchedInterrupts(of, () => {
            const writesNothing = isWalled(subjects) && call.reach.writes.length === 0;
            return { subjects, outcome, changed, isUnknown: changesUnknown === true, writesNothing };
          });
    return {
      ...ran,
      ms: Math.max(0, clock.now() - startedAt),
      // Recorded, because a process that resumes the run has to know it.
      ...(unwalled ? { facts: { ...ran.facts, wall: "none" } } : {}),
      ...(interrupts.length === 0 ? {} : { interrupts }),
    };
  };
  const call = toolCall(runnable, of, step.signal, () => {
    unwalled = true;
  });
  // Only writing calls have an open record, so this does not depend on the tool's current effect.
  if (step.opened !== undefined && step.opened.incarnation !== step.incarnation) {
    const answer = await recover(runnable, call, deps);
    if (answer === "unknown")
      return finish({ ok: false, output: outcomeUnknown(runnable.call.tool), outcome: "outcome_unknown" });
    if (answer !== "not_started") {
      const output = "This call took effect before the process was stopped; it was not run again.";
      const notes = answer === "done" ? {} : { notes: maskSecrets(answer.done.notes, deps.secrets) };
      return finish({ ok: true, output, outcome: "recovered", ...notes });
    }
  }
  const found = runnable.authorize();
  const authorization = found instanceof Promise ? await found : found;
  if (authorization.kind !== "allow") return finish(refusedCall(authorization, deps));
  const { edits } = authorization;
  if (edits === undefined || runnable.edits !== undefined)
    return finish(await act(runnable, authorization, call, deps, step));
  // Recorded with the result, since the verdict of an earlier process has no count.
  return finish({ ...(await act(runnable, authorization, { ...call, edits }, deps, step)), edits });
}

async function recover({ tool, intent }: ExecutableCall, call: ToolCall, deps: RunDeps): Promise<RecoverAnswer> {
  try {
    await deps.endSurvivors?.(call.idempotencyKey);
    if (tool?.recover === undefined || intent === undefined) return "unknown";
    const answer = await tool.recover(intent, call);
    if (answer === "done" || answer === "not_started") return answer;
    // Recovery answers are untrusted: invalid notes are dropped, and an invalid answer is `unknown`.
    const notes = typeof answer === "object" ? answer?.done?.notes : undefined;
    if (notes === undefined) return "unknown";
    const own = strictClone(notes);
    return own.ok ? { done: { notes: own.value } } : "done";
  } catch {
    // If recovery fails or a process cannot be killed, the outcome is unknown.
    return "unknown";
  }
}

async function act(
  runnable: ExecutableCall,
  authorization: AllowedCall,
  call: ToolCall,
  deps: RunDeps,
  step: CallStep,
): Promise<RawResult> {
  // After the authorization, which may have waited for the tool and for hooks.
  if (step.signal.aborted) return failed("call_aborted", "the stage ended before this call began");
  deps.atWork.count += 1;
  deps.atWork.started += 1;
  const running =
    deps.around === undefined
      ? authorization.execute(call)
      : deps.around(call, runnable.call.tool, () => authorization.execute(call));
  const done = running.finally(() => {
    deps.atWork.count -= 1;
  });
  try {
    const result = await raceAbortGrace(done, step, deps);
    if (result !== undefined) return checked(result, deps);
    const message = "the call was aborted but did not end; it is unknown whether it took effect";
    return { ...failed("call_aborted", message), outcome: "abandoned" };
  } catch (thrown) {
    if (isSluiceError(thrown, "approval_void")) return failed("call_refused", thrown.message);
    const place = maskSecrets(thrownAt(thrown, deps.workspace.root), deps.secrets);
    const message = `the tool failed: ${deps.secrets.text(messageOf(thrown))}`;
    return { ...failed("tool_failed", clipped(message)), ...place };
  }
}

/** The result of a call that the gate does not allow any more. */
export function refusedCall(authorization: PromptedCall | DeniedCall, { secrets }: RunDeps): ExecutedCall {
  const output = authorization.kind === "deny" ? secrets.json(authorization.output) : VOID;
  return { ok: false, outcome: "error", output, ms: 0 };
}

const VOID = { code: "call_refused", message: "there is no approval for this call, so it was not run" };

/** The result of the work; undefined if it ignores its abort signal for the grace period. */
function raceAbortGrace(
  work: Promise<ToolResult>,
  { signal, hold }: CallStep,
  deps: RunDeps,
): Promise<ToolResult | undefined> {
  return new Promise((resolve, reject) => {
    let disarm: (() => void) | undefined;
    const onAbort = (): void => {
      // Held from the abort on, because a run that stops in this process releases its lock immediately.
      hold(work);
      disarm = deps.clock.after(graceOf(signal), () => resolve(undefined));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const disposed = work.finally(() => {
      disarm?.();
      signal.removeEventListener("abort", onAbort);
    });
    disposed.then(resolve, reject);
  });
}

/** After an interruption the run continues, so that what the call started has to be gone before. A cancel has to be quick. */
function graceOf({ reason }: AbortSignal): number {
  return isSluiceError(reason, "interrupted") ? INTERRUPT_GRACE_MS : ABORT_GRACE_MS;
}

type MaskedParts = Pick<ExecutedCall, "output" | "full" | "notes" | "facts">;

/** Tool results are untrusted: they are validated and masked before they are recorded or sent. */
function checked(result: ToolResult, deps: RunDeps): RawResult {
  const { ok, changesUnknown } = result;
  const own = ownParts({
    output: result.output,
    full: result.full,
    files: result.files,
    notes: result.notes,
    facts: result.facts,
    changed: result.changed,
  });
  if (!own.ok) return failed("tool_failed", `the tool returned something that is not JSON: ${own.fault}`);
  const { output, full, files, notes, facts, changed } = own.value;
  const fileFault = files === undefined ? undefined : faultOfFiles(files, deps);
  if (fileFault !== undefined) return failed("tool_failed", fileFault);
  const given = {
    output,
    ...(full === undefined ? {} : { full }),
    ...(notes === undefined ? {} : { notes }),
    ...(facts === undefined ? {} : { facts }),
  };
  const masked = maskSecrets<MaskedParts>(given, deps.secrets);
  const cut = capped(masked.output);
  const whole = masked.full === undefined && cut !== masked.output ? masked.output : masked.full;
  return {
    ok: ok === true,
    outcome: ok === true ? "ok" : "error",
    output: cut,
    ...(whole === undefined ? {} : { full: whole }),
    ...(files === undefined || files.length === 0 ? {} : { files: files.map(copyOfFile) }),
    ...(masked.notes === undefined ? {} : { notes: masked.notes }),
    ...(masked.facts === undefined ? {} : { facts: masked.facts }),
    // A report of another type is none: then the paths that the call was allowed to write count.
    ...(changed !== undefined && isTexts(changed) ? { changed } : {}),
    ...(changesUnknown === true ? { changesUnknown } : {}),
  };
}

/**
 * A copy of the parts of a result, or why one of them is not JSON. All that follows reads the copy: what the tool does later to an
 * object that it kept must not reach a model, pass the masking of secrets, nor differ from the record.
 */
function ownParts<T extends Pick<ToolResult, "output">>(parts: T): ClonedJson<T> {
  const value = { ...parts };
  for (const name in parts) {
    const part = parts[name];
    // Most parts are texts or absent, and only the output must be there.
    if (typeof part === "string" || (part === undefined && name !== "output")) continue;
    const own = strictClone(part);
    if (!own.ok) return own;
    value[name] = own.value;
  }
  return { ok: true, value };
}

/** Why the files of a result are not used. */
function faultOfFiles(files: unknown, { secrets }: RunDeps): string | undefined {
  if (!Array.isArray(files) || !files.every(isResultFile)) return "the tool returned files that are not valid";
  const total = files.reduce((sum, { data }) => sum + data.length, 0);
  if (total > MOST_FILE_CHARACTERS) return "the tool returned files of more than 5 MB";
  const isClean = files.every((file) => secrets.json(file) === file);
  return isClean ? undefined : "the tool returned a file that contains a secret";
}

function isResultFile(file: unknown): file is ResultFile {
  if (!isObject(file)) return false;
  const { name, mediaType, data } = file;
  return (
    typeof name === "string" &&
    typeof mediaType === "string" &&
    /^[a-z]+\/[a-z0-9.+-]{1,60}$/.test(mediaType) &&
    typeof data === "string" &&
    /^[A-Za-z0-9+/]*={0,2}$/.test(data)
  );
}

/** Members are listed, so that nothing else is recorded. */
function copyOfFile({ name, mediaType, data }: ResultFile): ResultFile {
  return { name, mediaType, data };
}

/** Keeps head and tail, which a model needs most of a long output. */
function capped(output: Json): Json {
  const text = typeof output === "string" ? output : JSON.stringify(output);
  return text.length <= LONGEST_OUTPUT ? output : clipped(text);
}

function clipped(text: string): string {
  if (text.length <= LONGEST_OUTPUT) return text;
  const half = LONGEST_OUTPUT / 2;
  const left = text.length - LONGEST_OUTPUT;
  return `${text.slice(0, half)}\n… ${left} characters omitted …\n${text.slice(-half)}`.toWellFormed();
}

function failed(code: string, message: string): Omit<ExecutedCall, "ms"> {
  return { ok: false, outcome: "error", output: { code, message } };
}
