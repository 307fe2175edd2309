import { digestOf } from "../../base/canonical.ts";
import { cloneJson, type Json, jsonFault } from "../../base/json.ts";
import { decide, type LiveTool, type Verdict } from "../../gate/decide.ts";
import {
  type Alternatives,
  type DenialCause,
  denial,
  invalidToolInput,
  repeatedCall,
  truncatedCall,
  unknownTool,
} from "../../gate/denial.ts";
import type { ApprovedBy, Proposal } from "../../gate/grants.ts";
import { type GuardVerdict, type NamedGuard, runGuardHooks } from "../../gate/guard-hooks.ts";
import type { Subject } from "../../gate/subjects.ts";
import { argsSummary, grantRequestBody } from "../../gate/summary.ts";
import type { BoundCall, PreparedCall, Tool } from "../../gate/tool.ts";
import { maskSecrets, redactJson } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import { cancelReason, raceAbort } from "../limits/limits.ts";
import { type CallEnvironment, type ExecutableCall, toolCall } from "./execute-tool-call.ts";
import type { CallGroup, ProposedToolCall, ToolCallContext } from "./tool-call.ts";
import {
  type CallVerdict,
  isUndecided,
  REPEATED,
  type RecordedVerdict,
  readRecordedVerdict,
  STUCK,
  worldLimitOf,
} from "./verdict.ts";

export interface Authorizer {
  readonly callEnvironment: CallEnvironment;
  /** The gate's verdicts on a group, inside a step. Calls outside the envelope get `ask`, with an event for their request. */
  decide(group: CallGroup, step: StepCall): Promise<RecordedVerdict[]>;
  /** The final verdict on a call that a person granted, inside a step. */
  granted(proposal: Proposal, asking: RecordedVerdict, step: StepCall): Promise<RecordedVerdict>;
  refuse(asking: RecordedVerdict, cause: DenialCause, reason: string, step: StepCall): RecordedVerdict;
  /** For a call that was not decided before the run was cancelled. */
  cancelled(call: Pick<RecordedVerdict, "id" | "tool">, step: StepCall): RecordedVerdict;
  /** Undefined unless approved. `first` is the verdict before any answer. */
  runnable(proposal: Proposal, decided: RecordedVerdict, first: RecordedVerdict): ExecutableCall | undefined;
}

export function createAuthorizer(of: ToolCallContext): Authorizer {
  const { execution, journal, ctx, grants, offer, limits, completionTool } = of;
  const { deps, envelope, spec, state, steps } = execution;
  // The run's signal, since creating a signal for the step costs more than a verdict.
  const { signal } = steps;
  const allowedTools = (offer.allowedTools ?? offer.tools.map((tool) => tool.name)).map(deps.secrets.text);
  const alternatives: Alternatives = { allowedTools, completionTool };
  const guards: NamedGuard[] = [];
  for (const [name, hook] of [
    ["session", deps.onCall],
    ["pipeline", spec.onCall],
    ["state", state.onCall],
  ] as const) {
    if (hook !== undefined) guards.push({ name, hook });
  }
  // In mode allowlist, the session's list is the envelope of stages without one.
  const effective = envelope ?? (deps.mode === "allowlist" ? deps.allow : undefined);
  const mayWrite = effective === undefined || effective.mayWrite;
  const { notes } = of;
  const callEnvironment: CallEnvironment = { deps, notes, mayWrite, envelope: effective, sandbox: state.sandbox };
  const bound = new Map<string, BoundCall>();
  const works = new Map<string, PreparedCall>();

  /** Masks a final verdict and adds its event. */
  const decided = (undecided: RecordedVerdict, step: StepCall): RecordedVerdict => {
    const { id, tool } = undecided;
    const proposal = of.proposalOf(id);
    if (proposal === undefined || undecided.verdict.kind === "ask") return undecided;
    const verdict = maskSecrets(undecided.verdict, deps.secrets);
    const call = { callId: id, tool, argsDigest: proposal.argsDigest, args: summaryOf(tool, proposal.input) };
    const cause = verdict.kind === "refused" && verdict.cause !== undefined ? { cause: verdict.cause } : {};
    const decision =
      verdict.kind === "approved"
        ? { verdict: "approved", by: verdict.by }
        : { verdict: "refused", ...cause, result: verdict.output };
    step.event(journal.event("call.decided", { ...call, ...decision }));
    return { ...undecided, verdict };
  };

  const bind = async (tool: Tool, proposal: Proposal, before?: RecordedVerdict): Promise<LiveTool> => {
    const facts = { effect: tool.effect, builtin: deps.builtins.has(tool.name) };
    if (proposal.input === undefined) return facts;
    const result = await tool.bind(proposal.input);
    if (!result.ok) return { ...facts, bound: result };
    bound.set(proposal.id, result.call);
    if (before !== undefined) return { ...facts, bound: { ok: true, subjects: before.subjects } };
    // Cloned, because subjects are recorded and have to be JSON.
    const subjects = cloneJson(result.call.subjects(deps.workspace, { env: deps.env, mayWrite }));
    if (subjects.ok) return { ...facts, bound: { ok: true, subjects: subjects.value.map(withoutSecrets) } };
    const reason = `the subjects that ${tool.name} returned for this call are not JSON: ${subjects.fault}`;
    return { ...facts, bound: { ok: true, subjects: [{ kind: "refused", reason }] } };
  };

  /** Masks reasons only: a call is held to its paths and words, which come from arguments that were masked before. */
  const withoutSecrets = (subject: Subject): Subject =>
    "reason" in subject ? { ...subject, reason: deps.secrets.text(subject.reason) } : subject;

  const vetoOf = async (proposal: Proposal, by: ApprovedBy): Promise<GuardVerdict["vetoed"]> => {
    if (guards.length === 0) return undefined;
    const { id, tool, executionId, attempt, argsDigest } = proposal;
    const input = bound.get(id)?.input ?? null;
    const guarded = { tool, input, executionId, attempt, proposalId: id, argsDigest, approvedBy: by };
    return (await runGuardHooks(guards, guarded, ctx, { clock: deps.clock, signal })).vetoed;
  };

  /** Runs the guard hooks on an approved call and prepares the intent of a writing tool. */
  const approve = async (
    proposal: Proposal,
    by: ApprovedBy,
    subjects: readonly Subject[],
    step: StepCall,
  ): Promise<RecordedVerdict> => {
    const { id, tool } = proposal;
    const vetoed = await vetoOf(proposal, by);
    if (vetoed !== undefined) {
      const reason = deps.secrets.text(vetoed.reason);
      step.event(journal.event("hook.vetoed", { callId: id, tool, hook: vetoed.hook, reason }));
      return { id, tool, subjects, verdict: refusal("hook", tool, vetoed.reason, alternatives) };
    }
    const before = readRecordedVerdict(step, id, tool);
    const intent = before === undefined ? await prepare(proposal, by, subjects) : before.intent;
    return { id, tool, subjects, verdict: { kind: "approved", by }, ...(intent === undefined ? {} : { intent }) };
  };

  const prepare = async (proposal: Proposal, by: ApprovedBy, judged: readonly Subject[]): Promise<Json | undefined> => {
    const work = await workOf(proposal, by);
    if (work?.prepare === undefined) return undefined;
    try {
      const intent = await work.prepare(toolCall({ proposal, judged, by }, callEnvironment, signal));
      return jsonFault(intent) === undefined ? intent : undefined;
    } catch {
      // Without an intent the call can run, but its outcome is unknown if it is interrupted.
      return undefined;
    }
  };

  /** The acting part of a call, for a permit of this proposal that is redeemed once. */
  const workOf = async (proposal: Proposal, by: ApprovedBy): Promise<PreparedCall | undefined> => {
    const known = works.get(proposal.id);
    if (known !== undefined) return known;
    if (!bound.has(proposal.id)) {
      const tool = deps.tools.get(proposal.tool);
      if (tool !== undefined) await bind(tool, proposal);
    }
    const call = bound.get(proposal.id);
    const permit = call === undefined ? undefined : grants.admit(proposal, call, by);
    const work = permit === undefined ? undefined : grants.redeem(permit, proposal);
    if (work !== undefined) works.set(proposal.id, work);
    return work;
  };

  /**
   * Why the approval of a call by an earlier process is no longer valid: the pipeline, its tools or the session may have changed.
   * Undefined if it is valid, or if the call was authorized in this process. It never approves a call.
   */
  const whyApprovalIsStale = async (
    proposal: Proposal,
    by: ApprovedBy,
    { subjects, verdict: first }: RecordedVerdict,
  ): Promise<string | undefined> => {
    const { id, tool: name } = proposal;
    const tool = deps.tools.get(name);
    if (tool === undefined || bound.has(id)) return undefined;
    const live = await bind(tool, proposal);
    const call = bound.get(id);
    const stale = (why: string): string =>
      `this call was approved before the run was resumed, and that approval is no longer valid: ${why}`;
    if (live.bound?.ok !== true || call === undefined) return stale("its tool no longer accepts these arguments");
    // Built-in tools open only the paths that were checked, even if links have changed.
    const current = live.builtin ? [] : live.bound.subjects;
    const verdict = judgeNow(proposal, { ...live, bound: { ok: true, subjects: [...subjects, ...current] } });
    if (verdict.kind === "refused") return stale(verdict.reason);
    if (by !== "grant") return verdict.kind === "ask" ? stale(verdict.why) : undefined;
    if (first.kind === "ask" && digestOf(call.input) !== digestOf(first.body.input ?? null))
      return stale("its tool now transforms these arguments differently from what was approved");
    if (live.builtin || digestOf(current) === digestOf(subjects)) return undefined;
    return stale("it now touches something else");
  };

  const approveGranted = async (
    proposal: Proposal,
    asking: RecordedVerdict,
    step: StepCall,
  ): Promise<RecordedVerdict> => {
    const { id, tool } = proposal;
    const { subjects } = asking;
    const before = readRecordedVerdict(step, id, tool);
    const stale = await whyApprovalIsStale(proposal, "grant", asking);
    const why = before === undefined ? stale : worldLimitOf(before);
    if (why !== undefined) return { id, tool, subjects, verdict: refusal("limit", tool, why, alternatives) };
    return await approve(proposal, "grant", subjects, step);
  };

  const judgeNow = (proposal: Proposal, tool: LiveTool | undefined): Verdict => {
    const { workspace, mode, allow, protectedPaths } = deps;
    return decide(proposal, envelope, {
      workspace,
      mode,
      allow,
      ...(tool === undefined ? {} : { tool }),
      ...(protectedPaths === undefined ? {} : { protectedPaths }),
    });
  };

  const judgeOne = async ({ proposal, request, times }: ProposedToolCall, step: StepCall): Promise<RecordedVerdict> => {
    const { id, tool: name } = proposal;
    const before = readRecordedVerdict(step, id, name);
    const refused = (output: Json, stuck?: true): RecordedVerdict => {
      const verdict = { kind: "refused", output, ...(stuck === undefined ? {} : { stuck }) } as const;
      return { id, tool: name, subjects: [], verdict };
    };
    const denied = (cause: DenialCause, reason: string, subjects: readonly Subject[] = []): RecordedVerdict => {
      return { id, tool: name, subjects, verdict: refusal(cause, name, reason, alternatives) };
    };
    if (times >= REPEATED) return refused(repeatedCall(name, times), times >= STUCK ? true : undefined);
    if (request.inputFault?.code === "truncated_call") return refused(truncatedCall(name));
    const late = before === undefined ? limits.exceeded()?.message : worldLimitOf(before);
    if (late !== undefined) return denied("limit", late, before?.subjects);
    const tool = deps.tools.get(name);
    const live = tool === undefined ? undefined : await bind(tool, proposal, before);
    const verdict = judgeNow(proposal, live);
    const subjects = live?.bound?.ok === true ? live.bound.subjects : [];
    switch (verdict.kind) {
      case "approved":
        return await approve(proposal, verdict.by, subjects, step);
      case "ask":
        // The reason may quote a pattern that contains a secret.
        return announce(proposal, deps.secrets.text(verdict.why), subjects, step);
      case "refused":
        if (verdict.cause === "unknown_tool") return refused(unknownTool(name, deps.tools.keys(), alternatives));
        if (verdict.cause === "invalid_tool_input") return refused(invalidToolInput(name, verdict.issues));
        return denied(verdict.cause, deps.secrets.text(verdict.reason), subjects);
    }
  };

  /** The denial of a call that an earlier process approved but did not start, and that may no longer run. */
  const refusedNow = async (proposal: Proposal, by: ApprovedBy, first: RecordedVerdict): Promise<Json | undefined> => {
    if (bound.has(proposal.id)) return undefined;
    const stale = await whyApprovalIsStale(proposal, by, first);
    const vetoed = stale === undefined ? await vetoOf(proposal, by) : undefined;
    const reason = stale ?? vetoed?.reason;
    if (reason === undefined) return undefined;
    return denial(stale === undefined ? "hook" : "limit", proposal.tool, deps.secrets.text(reason), alternatives);
  };

  /** Opens the request for a grant. If no one can answer, the same record closes it. */
  const announce = (proposal: Proposal, why: string, subjects: readonly Subject[], step: StepCall): RecordedVerdict => {
    const { id, tool, argsDigest } = proposal;
    const requestId = grants.request(proposal);
    const input = bound.get(id)?.input ?? proposal.input ?? null;
    const body = grantRequestBody({ proposal, input, summary: summaryOf(tool, input), why, subjects });
    step.event(journal.event("grant.requested", { requestId, kind: "grantStageTool", digest: argsDigest, body }));
    const before = readRecordedVerdict(step, id, tool);
    const reachable = before === undefined ? deps.people.reachable() : !isUndecided(before);
    if (reachable) return { id, tool, subjects, verdict: { kind: "ask", body } };
    grants.answer(requestId, { approve: false, digest: argsDigest });
    const answered = { requestId, callId: id, answer: "none", cause: "no_interactor", by: "headless" };
    step.event(journal.event("grant.answered", answered));
    const reason = `no one is available to approve this call: ${why}`;
    return { id, tool, subjects, verdict: refusal("no_interactor", tool, reason, alternatives) };
  };

  const cancelled = ({ id, tool }: Pick<RecordedVerdict, "id" | "tool">, step: StepCall): RecordedVerdict => {
    const output = { code: "call_not_run", message: "the run was cancelled before this call was decided" };
    return decided({ id, tool, subjects: [], verdict: { kind: "refused", output } }, step);
  };

  return {
    callEnvironment,
    decide: async (group, step) => {
      const verdicts: RecordedVerdict[] = [];
      for (const proposed of group) {
        const judged = await raceAbort(signal, judgeOne(proposed, step));
        verdicts.push(judged === undefined ? cancelled(proposed.proposal, step) : decided(judged.value, step));
      }
      return verdicts;
    },
    granted: async (proposal, asking, step) => {
      if (cancelReason(signal) !== undefined) return cancelled(asking, step);
      const approved = await raceAbort(signal, approveGranted(proposal, asking, step));
      return approved === undefined ? cancelled(asking, step) : decided(approved.value, step);
    },
    refuse: ({ id, tool }, cause, reason, step) =>
      decided({ id, tool, subjects: [], verdict: refusal(cause, tool, reason, alternatives) }, step),
    cancelled,
    runnable: (proposal, { verdict, subjects, intent }, first) => {
      const tool = deps.tools.get(proposal.tool);
      if (tool === undefined || verdict.kind !== "approved") return undefined;
      const { by } = verdict;
      return {
        proposal,
        by,
        tool,
        judged: subjects,
        refusedNow: () => refusedNow(proposal, by, first),
        work: () => workOf(proposal, by),
        ...(intent === undefined ? {} : { intent }),
      };
    },
  };
}

function refusal(cause: DenialCause, tool: string, reason: string, alternatives: Alternatives): CallVerdict {
  return { kind: "refused", cause, output: denial(cause, tool, reason, alternatives) };
}

/** Redacts before summarising, since redaction recognises secrets by their keys. */
function summaryOf(tool: string, input: Json | undefined): string {
  return argsSummary(tool, redactJson(input ?? null));
}
