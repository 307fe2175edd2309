import { hash } from "node:crypto";
import { messageOf } from "../../base/errors.ts";
import { type Json, type JsonObject, jsonFault } from "../../base/json.ts";
import type { StateSandbox } from "../../definition/state-rules.ts";
import { mayBeAnyLine } from "../../gate/decide.ts";
import { outcomeUnknown } from "../../gate/denial.ts";
import { type Envelope, fileReach } from "../../gate/envelope.ts";
import type { ApprovedBy, Proposal } from "../../gate/grants.ts";
import type { RecoverAnswer, Subject, ToolCall, ToolResult } from "../../gate/subjects.ts";
import type { PreparedCall, Tool } from "../../gate/tool.ts";
import { cleaned } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import type { RunDeps } from "../deps.ts";

/** A tool that ignores its abort has this long to end by itself before its result is given up. */
const ABORT_GRACE_MS = 50;
/** Output longer than this is cut in the middle for the model; the whole stays in the record. */
const LONGEST_OUTPUT = 100_000;

/** How one call ended, as it is recorded. */
export type ExecutedCall = {
  readonly ok: boolean;
  readonly output: Json;
  readonly outcome: "ok" | "error" | "abandoned" | "outcome_unknown" | "recovered";
  readonly ms: number;
  readonly full?: Json;
  readonly notes?: JsonObject;
  readonly facts?: JsonObject;
};

/** One approved call, with all that running it takes. */
export interface ExecutableCall {
  readonly proposal: Proposal;
  readonly by: ApprovedBy;
  readonly tool: Tool;
  readonly judged: readonly Subject[];
  readonly intent?: Json;
  /** Of a call that an earlier process approved: what is said where it may not run any more. Asked just before it would. */
  refusedNow(): Promise<Json | undefined>;
  /** What the permit hands out; asked for only when the call really runs. */
  work(): Promise<PreparedCall | undefined>;
}

/** The step a call runs in. */
export interface CallStep extends Pick<StepCall, "hold"> {
  /** Aborts on cancel, at a time cap, and when the run has to stop here. */
  readonly signal: AbortSignal;
  readonly opened: StepCall["opened"];
  readonly incarnation: string;
}

export interface CallEnvironment {
  readonly deps: RunDeps;
  readonly notes: Readonly<Record<string, Json>>;
  readonly mayWrite: boolean;
  readonly envelope: Envelope | undefined;
  readonly sandbox: StateSandbox | undefined;
}

/** The call's id for the world outside: the same on every re-execution, and safe in an environment variable. */
function idempotencyKey({ runId, executionId, attempt, id }: Proposal): string {
  return hash("sha256", JSON.stringify([runId, executionId, attempt, id])).slice(0, 32);
}

export function toolCall(
  runnable: Pick<ExecutableCall, "proposal" | "judged" | "intent" | "by">,
  env: CallEnvironment,
  signal: AbortSignal,
): ToolCall {
  const { proposal, judged, intent, by } = runnable;
  const { envelope, sandbox, deps } = env;
  const { atWork } = deps;
  const granted = by === "grant";
  const before = { count: atWork.count, started: atWork.started };
  return {
    runId: proposal.runId,
    executionId: proposal.executionId,
    attempt: proposal.attempt,
    proposalId: proposal.id,
    idempotencyKey: idempotencyKey(proposal),
    workspace: env.deps.workspace,
    signal,
    env: env.deps.env,
    notes: env.notes,
    mayWrite: env.mayWrite,
    reach: {
      ...fileReach(granted ? undefined : envelope, proposal.tool),
      scratch: sandbox?.scratch ?? [],
      network: sandbox?.network === true,
      readOnly: deps.protectedPaths ?? [],
    },
    // A person approved the very text that was shown.
    anyLine: granted || mayBeAnyLine(proposal.tool, envelope, judged, deps),
    startsUnwalled: env.deps.answers.startsUnwalled,
    othersAtWork: () => before.count > 0 || atWork.started > before.started + 1,
    judged,
    ...(intent === undefined ? {} : { intent }),
  };
}

/** Runs a call, or finds out what an earlier process did with it. Whatever the tool does becomes a value. */
export async function executeToolCall(
  runnable: ExecutableCall,
  env: CallEnvironment,
  step: CallStep,
): Promise<ExecutedCall> {
  const { clock } = env.deps;
  const startedAt = clock.now();
  let unwalled = false;
  const finish = (ran: Omit<ExecutedCall, "ms">): ExecutedCall => ({
    ...ran,
    ms: clock.now() - startedAt,
    // A process that resumes the run has to know, too.
    ...(unwalled ? { facts: { ...ran.facts, wall: "none" } } : {}),
  });
  const call: ToolCall = {
    ...toolCall(runnable, env, step.signal),
    startsUnwalled: () => {
      unwalled = true;
      env.deps.answers.startsUnwalled();
    },
  };
  // Whatever its tool calls itself by now: only what may write began behind a record.
  if (step.opened !== undefined && step.opened.incarnation !== step.incarnation) {
    const answer = await recover(runnable, call, env.deps);
    if (answer === "unknown")
      return finish({ ok: false, output: outcomeUnknown(runnable.tool.name), outcome: "outcome_unknown" });
    if (answer !== "not_started") {
      const output = "This call took effect before the process was stopped; it was not run again.";
      const notes = answer === "done" ? {} : { notes: cleaned(answer.done.notes, env.deps.secrets) };
      return finish({ ok: true, output, outcome: "recovered", ...notes });
    }
  }
  if (step.signal.aborted) return finish(failed("call_aborted", "the stage was ended before this call began"));
  return finish(await act(runnable, call, env.deps, step));
}

async function recover({ tool, intent }: ExecutableCall, call: ToolCall, deps: RunDeps): Promise<RecoverAnswer> {
  try {
    await deps.endSurvivors?.(call.idempotencyKey);
    if (tool.recover === undefined || intent === undefined) return "unknown";
    const answer = await tool.recover(intent, call);
    if (answer === "done" || answer === "not_started") return answer;
    // A tool is code of somebody's: notes that cannot be kept are none, and what is no answer tells nothing.
    const notes = typeof answer === "object" ? answer?.done?.notes : undefined;
    if (notes === undefined) return "unknown";
    return jsonFault(notes) === undefined ? { done: { notes } } : "done";
  } catch {
    // A tool that cannot find out, or a process that cannot be ended, leaves the one safe answer.
    return "unknown";
  }
}

async function act(
  runnable: ExecutableCall,
  call: ToolCall,
  deps: RunDeps,
  step: CallStep,
): Promise<Omit<ExecutedCall, "ms">> {
  const refused = await runnable.refusedNow();
  if (refused !== undefined) return { ok: false, outcome: "error", output: refused };
  const work = await runnable.work();
  if (work === undefined) return failed("call_refused", "the permit for this call is void; it was not run");
  deps.atWork.count += 1;
  deps.atWork.started += 1;
  const execute = (): Promise<ToolResult> => work.execute(call);
  const begun = deps.around === undefined ? execute() : deps.around(call, runnable.tool.name, execute);
  const done = begun.finally(() => {
    deps.atWork.count -= 1;
  });
  try {
    const result = await orDeaf(done, step, deps);
    if (result !== undefined) return checked(result, deps);
    const message = "the call was aborted and did not end; whether it took effect is not known";
    return { ...failed("call_aborted", message), outcome: "abandoned" };
  } catch (thrown) {
    return failed("tool_failed", clipped(`the tool failed: ${deps.secrets.text(messageOf(thrown))}`));
  }
}

/** The end of the work; undefined when it goes on for longer than the grace after its abort. */
function orDeaf(work: Promise<ToolResult>, { signal, hold }: CallStep, deps: RunDeps): Promise<ToolResult | undefined> {
  return new Promise((resolve, reject) => {
    let disarm: (() => void) | undefined;
    const onAbort = (): void => {
      // Held from here on, not from the end of the grace: a run that stops here lets go of its lock at once.
      hold(work);
      disarm = deps.clock.after(ABORT_GRACE_MS, () => resolve(undefined));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const over = (): void => {
      disarm?.();
      signal.removeEventListener("abort", onAbort);
    };
    work.then(
      (result) => {
        over();
        resolve(result);
      },
      (thrown: unknown) => {
        over();
        reject(thrown);
      },
    );
  });
}

/** A tool is code of somebody's: what it returns is checked before it is kept or sent. */
function checked(result: ToolResult, deps: RunDeps): Omit<ExecutedCall, "ms"> {
  const { ok, output, full, notes, facts } = result;
  for (const part of [output, full ?? null, notes ?? null, facts ?? null]) {
    const fault = jsonFault(part);
    if (fault !== undefined) return failed("tool_failed", `the tool returned something that is not JSON: ${fault}`);
  }
  const clean = deps.secrets.json(output);
  const cut = capped(clean);
  const whole = full === undefined ? (cut === clean ? undefined : clean) : deps.secrets.json(full);
  return {
    ok: ok === true,
    outcome: ok === true ? "ok" : "error",
    output: cut,
    ...(whole === undefined ? {} : { full: whole }),
    ...(notes === undefined ? {} : { notes: cleaned(notes, deps.secrets) }),
    ...(facts === undefined ? {} : { facts: cleaned(facts, deps.secrets) }),
  };
}

/** Head and tail: where a long output begins and how it ends are what a model needs most. */
function capped(output: Json): Json {
  const text = typeof output === "string" ? output : JSON.stringify(output);
  return text.length <= LONGEST_OUTPUT ? output : clipped(text);
}

function clipped(text: string): string {
  if (text.length <= LONGEST_OUTPUT) return text;
  const half = LONGEST_OUTPUT / 2;
  const left = text.length - LONGEST_OUTPUT;
  return `${text.slice(0, half)}\n… ${left} characters left out …\n${text.slice(-half)}`.toWellFormed();
}

function failed(code: string, message: string): Omit<ExecutedCall, "ms"> {
  return { ok: false, outcome: "error", output: { code, message } };
}
