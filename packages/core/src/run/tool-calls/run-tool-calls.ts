import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import {
  type Authorization,
  authorizeCall,
  type CallRequest,
  type CallScope,
  type Policy,
  SealedCall,
} from "../../gate/authorize-call.ts";
import { denial, denialIn } from "../../gate/denial.ts";
import { sandboxOf } from "../../gate/envelope.ts";
import { runGuardHooks } from "../../gate/guard-hooks.ts";
import { type CallUsage, countAllowed, countResult, limitsEdits, NO_CALLS } from "../../gate/usage.ts";
import { redactJson } from "../../journal/redaction.ts";
import { type CallGroupId, stepNames } from "../../journal/step-id.ts";
import type { Attempt } from "../attempt.ts";
import { eventWords } from "../event-words.ts";
import type { MatchedInterrupt } from "../execution.ts";
import type { CallOutcome, HandledInterrupt } from "../executor.ts";
import { cancelReason } from "../limits/limits.ts";
import { askQuestion } from "./ask-user.ts";
import { type CallStep, type ExecutableCall, type ExecutedCall, executeToolCall } from "./execute-tool-call.ts";
import { handleInterrupt } from "./interrupts.ts";
import { recordVerdicts, requestIdOf } from "./record-verdicts.ts";
import { authorizeGranted, recordApprovals } from "./request-approval.ts";
import { bytesOf, withinResultLimit } from "./result-limit.ts";
import type { AskedCall, DecidedCall, ToolCallContext } from "./tool-call.ts";
import { earlierVerdict } from "./verdict.ts";

/** Call ids that would make a request's id be that of a question, a transition, or an approval. */
const OF_REQUESTS = /\/|^(?:approval)?$/;
/** How long a writing call may run after a suspension: otherwise its outcome is unknown. */
const WRITE_GRACE_MS = 5_000;

/** The tool calls of one attempt: authorized, run and recorded. Nothing else runs a tool. */
export interface Calls {
  run(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]>;
  /** The handlers of the interrupts that the last such call started. */
  readonly handling: Promise<unknown> | undefined;
  /** Ends the attempt and voids its approvals. Returns the requests whose grants were not used. */
  close(): readonly string[];
}

export function createCalls(attempt: Attempt, entry: StageContext): Calls {
  const { execution, executionId } = attempt;
  let open = true;
  const scope: CallScope = { runId: execution.steps.runId, executionId, attempt: attempt.number, isOpen: () => open };
  const notes: ToolCallContext["notes"] = {};
  const of: ToolCallContext = { attempt, policy: policyOf(attempt, entry, notes), notes, openRequests: new Set() };
  const ids = new Set<string>();
  let interrupts = attempt.handled;
  // A new transcript: its model has made no call before.
  const { last, times } = NO_CALLS;
  attempt.used.calls = { ...attempt.used.calls, last, times };

  const seal = (request: CallRequest): SealedCall => {
    const call = new SealedCall(scope, request);
    const { id } = call;
    // An executor's mistake, not a model's: the verdict on one call must never apply to another, or to another kind of request.
    const why = ids.has(id) ? "two calls have the" : OF_REQUESTS.test(id) ? "a call has the reserved" : undefined;
    if (why !== undefined) {
      const message = `${executionId}, attempt ${attempt.number}: ${why} id ${id}; ids must be unique in an attempt, and have no slash`;
      throw new SluiceError("Host", "call_id_repeated", message);
    }
    ids.add(id);
    return call;
  };

  let handling: Promise<readonly HandledInterrupt[]> | undefined;
  /** Runs the handlers of the interrupts that a call started, in order. Returns those that returned. */
  const handle = async (matched: readonly MatchedInterrupt[]): Promise<readonly HandledInterrupt[]> => {
    const handled: HandledInterrupt[] = [];
    for (const [index, one] of matched.entries()) {
      if (isCancelled(of)) {
        // A person interrupted the execution: what its call started waits for the next one.
        attempt.missed.push(...matched.slice(index));
        break;
      }
      const end = await handleInterrupt(of, one, interrupts);
      interrupts += 1;
      if (end !== undefined) handled.push(end);
    }
    return handled;
  };

  return {
    run: async (turn, requests) => {
      // Not by the list's own `map`, which could return other calls.
      let waiting: readonly SealedCall[] = Array.from(requests, seal);
      const outcomes: CallOutcome[] = [];
      let interrupted = false;
      for (let group = 0; waiting.length > 0; group += 1) {
        // After a cancel, an interrupt or a stuck call no further group is decided.
        if (interrupted || isCancelled(of) || outcomes.some(({ stuck }) => stuck === true)) break;
        const groupId = { turn, group };
        const decided = await recordVerdicts(of, groupId, nextGroup(of, waiting), waiting);
        const settled = decided.some(isAsked) ? await recordApprovals(of, groupId, decided) : decided;
        const results = isCancelled(of) ? NO_RESULTS : await executeApproved(of, groupId, settled);
        for (const one of settled) {
          const ran = results.get(one.call.id);
          attempt.used.calls = usedWith(of, one, ran);
          const outcome = outcomeOf(of, one, ran);
          const { interrupts: matched = [] } = ran ?? {};
          if (matched.length === 0) outcomes.push(outcome);
          else {
            handling = handle(matched);
            outcomes.push({ ...outcome, interrupts: await handling });
          }
          interrupted ||= matched.length > 0;
        }
        waiting = waiting.slice(decided.length);
      }
      return [...outcomes, ...waiting.map((call) => (interrupted ? interruptedCall(call) : notRun(call)))];
    },
    get handling() {
      return handling;
    },
    close: () => {
      open = false;
      return [...of.openRequests];
    },
  };
}

/** What is used after a call whose verdict is final; `ran` is its result if it was run. */
function usedWith(
  { attempt: { used, execution } }: ToolCallContext,
  { usage: { last, times }, verdict: { verdict, edits } }: DecidedCall,
  ran: ExecutedCall | undefined,
): CallUsage {
  const made = { ...used.calls, last, times };
  const allowed = verdict.kind === "approved" ? countAllowed(made, edits ?? ran?.edits) : made;
  if (ran === undefined || execution.state.limits?.maxResultBytes === undefined) return allowed;
  return countResult(allowed, ran.bytes ?? bytesOf(ran));
}

function policyOf(attempt: Attempt, entry: StageContext, notes: ToolCallContext["notes"]): Policy {
  const { deps, envelope, state, offer, events, env, detours, writesAll, guards: outer } = attempt.execution;
  const { tools, builtins, mode, allow, workspace, protectedPaths, secrets, clock } = deps;
  const { onCall: hook } = state;
  const guards = hook === undefined ? outer : [...outer, { name: "state", hook }];
  const { signal } = detours;
  // In mode allowlist, the session's list is the envelope of stages without one.
  const effective = envelope ?? (mode === "allowlist" ? allow : undefined);
  return {
    tools,
    builtins,
    envelope,
    mode,
    allow,
    workspace,
    ...(protectedPaths === undefined ? {} : { protectedPaths }),
    // Frozen, since every tool gets it.
    scene: Object.freeze({
      env,
      mayWrite: (effective === undefined || effective.mayWrite) && !limitsEdits(state.limits),
      ...(state.env?.set === undefined ? {} : { unrecorded: Object.freeze(Object.keys(state.env.set)) }),
      secrets,
    }),
    limits: state.limits,
    writesAll,
    notes,
    alternatives: {
      // Masked on access, since only a denial names them.
      get allowedTools() {
        return (offer.allowedTools ?? offer.tools.map((tool) => tool.name)).map(secrets.text);
      },
      completionTool: state.completionTool ?? "",
      ...(events.length === 0 ? {} : { events: events.map((event) => secrets.text(eventWords(event))) }),
    },
    ...(guards.length === 0
      ? {}
      : {
          hooks: (call) =>
            runGuardHooks(guards, { ...call, kind: state.kind }, attempt.contextNow(entry), { clock, signal }),
        }),
    mask: secrets.text,
    redact: redactJson,
  };
}

/** The next calls that are decided and run together: neighbouring reads, or one other call. */
function nextGroup({ attempt }: ToolCallContext, waiting: readonly SealedCall[]): readonly SealedCall[] {
  if (waiting.length === 1) return waiting;
  const { tools } = attempt.execution.deps;
  const other = waiting.findIndex((call) => (tools.get(call.tool)?.effect ?? "read") !== "read");
  return waiting.slice(0, other < 0 ? undefined : Math.max(1, other));
}

/** Runs approved calls: reads concurrently in one step, a writing call behind an open record, a question as a request. */
async function executeApproved(
  of: ToolCallContext,
  groupId: CallGroupId,
  group: readonly DecidedCall[],
): Promise<ReadonlyMap<string, ExecutedCall>> {
  const { journal, execution, limits } = of.attempt;
  const { deps, steps } = execution;
  const runnables = executableCalls(of, group);
  const [only] = runnables;
  if (only === undefined) return NO_RESULTS;
  const startEvents = runnables.flatMap(({ call, by, subjects }) => {
    const { id: callId, tool, argsDigest } = call;
    const wall = sandboxOf(subjects);
    if (wall === "none") deps.answers.startsUnwalled();
    const started = journal.event("call.started", {
      callId,
      tool,
      argsDigest,
      ...(wall === undefined ? {} : { wall }),
    });
    if (by !== "grant") return [started];
    const requestId = requestIdOf(call);
    of.openRequests.delete(requestId);
    return [journal.event("grant.consumed", { requestId, callId, argsDigest }), started];
  });
  const effect = runnables.length === 1 ? only.tool?.effect : "read";
  if (effect === "ask") {
    for (const { type, data } of startEvents) journal.note(type, data);
    return new Map([[only.call.id, await askQuestion(of, groupId, only)]]);
  }
  const intent: Json = { callId: only.call.id, argsDigest: only.call.argsDigest, prepared: only.intent ?? null };
  const results = await journal.run(
    stepNames.calls(groupId, "call"),
    async (step): Promise<ExecutedCall[]> => {
      const { event } = step;
      // A call with an open record has them there, whatever the effect of its tool is now.
      if (step.opened === undefined) for (const started of startEvents) event(started);
      const all = await limits.timed(step.signal, async (signal) => {
        const hold: CallStep["hold"] = (work) => step.hold(work);
        const stepFacts = { signal, opened: step.opened, hold, incarnation: steps.incarnation };
        const ran =
          runnables.length === 1
            ? [await executeToolCall(only, of, stepFacts)]
            : await concurrently(runnables, deps.maxParallelReads, (one) => executeToolCall(one, of, stepFacts));
        const { maxResultBytes } = execution.state.limits ?? {};
        if (maxResultBytes === undefined) return ran;
        return withinResultLimit(ran, maxResultBytes, of.attempt.used.calls.resultBytes);
      });
      for (const [index, { outcome, ms, facts, at }] of all.entries()) {
        const call = runnables[index]?.call;
        if (call === undefined) continue;
        const ended = { callId: call.id, tool: call.tool, outcome, ms, ...(at === undefined ? {} : { at }) };
        event(journal.event("call.finished", facts === undefined ? ended : { ...ended, facts }));
      }
      return all;
    },
    effect === "write" ? { open: { events: startEvents, intent }, graceMs: WRITE_GRACE_MS } : {},
  );
  return new Map(runnables.flatMap(({ call }, index) => (results[index] ? [[call.id, results[index]] as const] : [])));
}

const NO_RESULTS: ReadonlyMap<string, ExecutedCall> = new Map();

/** The approved calls of a group, each with what the gate says just before it runs. */
function executableCalls(of: ToolCallContext, group: readonly DecidedCall[]): readonly ExecutableCall[] {
  const executable: readonly ExecutableCall[] = group.flatMap((decided) => {
    const { call, authorization, verdict: recorded } = decided;
    const { verdict, subjects, edits, intent } = recorded;
    if (verdict.kind !== "approved") return [];
    const tool = of.policy.tools.get(call.tool);
    const authorize = (): Authorization | Promise<Authorization> =>
      executable.length > 1 && tool?.effect !== "read"
        ? changedBeside(of, decided)
        : (authorization ?? authorizeRecorded(of, decided));
    const counted = edits === undefined ? {} : { edits };
    return [
      { call, by: verdict.by, subjects, ...counted, tool, authorize, ...(intent === undefined ? {} : { intent }) },
    ];
  });
  return executable;
}

/** A call of a tool that only read when it was decided together with others, and does not any more. */
function changedBeside({ policy }: ToolCallContext, { call, verdict }: DecidedCall): Authorization {
  const why = "its tool changed since it was decided: it may not run beside others";
  const output = denial("limit", call.tool, why, policy.alternatives);
  return { kind: "deny", cause: "limit", output, subjects: verdict.subjects };
}

/** Decides again about a call that an earlier process approved and did not begin. */
async function authorizeRecorded(of: ToolCallContext, decided: DecidedCall): Promise<Authorization> {
  const { call, verdict, usage, asked } = decided;
  const earlier = earlierVerdict(verdict);
  if (earlier !== undefined) return await authorizeCall(call, { ...of.policy, usage }, earlier);
  return await authorizeGranted(of, decided, asked ?? NOBODY_ASKED, undefined);
}

/** A record of a grant without its request and answer grants nothing. */
const NOBODY_ASKED: AskedCall = { body: {}, subjects: [], answer: undefined };

async function concurrently<A, B>(items: readonly A[], limit: number, work: (item: A) => Promise<B>): Promise<B[]> {
  const { default: PQueue } = await import("p-queue");
  const queue = new PQueue({ concurrency: limit });
  return await Promise.all(items.map((item) => queue.add(() => work(item))));
}

/** The result of a call, in the form that its model reads; its notes are kept for later calls. */
function outcomeOf(of: ToolCallContext, { call, verdict: { verdict } }: DecidedCall, ran?: ExecutedCall): CallOutcome {
  const { id, tool } = call;
  if (verdict.kind === "refused") {
    const { cause, output, stuck } = verdict;
    const { executionId, attempt } = call.scope;
    if (cause !== undefined) of.attempt.denied.push({ executionId, attempt, callId: id, tool, cause });
    return {
      id,
      tool,
      ok: false,
      output: denialIn(of.attempt.execution.stateId, output),
      ...(stuck === true ? { stuck } : {}),
    };
  }
  if (ran === undefined) return notRun(call);
  // Not assigned, since a note may be named __proto__.
  for (const [key, value] of Object.entries(ran.notes ?? {}))
    Object.defineProperty(of.notes, key, { value, writable: true, enumerable: true, configurable: true });
  return { id, tool, ok: ran.ok, output: ran.output, ...(ran.files === undefined ? {} : { files: ran.files }) };
}

/** A call after one that started an interrupt: its model decided about it before it knew what the handler did. */
function interruptedCall({ id, tool }: SealedCall): CallOutcome {
  const message =
    "a call before this one started an interrupt, so this call was not run; make it again if it is still right";
  return { id, tool, ok: false, output: { code: "interrupted", message } };
}

function notRun({ id, tool }: SealedCall): CallOutcome {
  return { id, tool, ok: false, output: { code: "call_not_run", message: "the stage ended before this call" } };
}

function isAsked({ verdict }: DecidedCall): boolean {
  return verdict.verdict.kind === "ask";
}

function isCancelled({ attempt }: ToolCallContext): boolean {
  return cancelReason(attempt.execution.detours.signal) !== undefined;
}
