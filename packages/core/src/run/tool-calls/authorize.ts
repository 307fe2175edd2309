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
import { cleaned, redactJson } from "../../journal/redaction.ts";
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
  /** The gate's word on a group, inside a step. Calls outside the envelope come back as `ask`, with their request announced. */
  decide(group: CallGroup, step: StepCall): Promise<RecordedVerdict[]>;
  /** The last word on a call that a person granted: guard hooks, and the intent of a writing call. Inside a step. */
  granted(proposed: ProposedToolCall, judged: RecordedVerdict, step: StepCall): Promise<RecordedVerdict>;
  refuse(judged: RecordedVerdict, cause: DenialCause, reason: string, step: StepCall): RecordedVerdict;
  /** Nobody refused it: the run was cancelled first. */
  cancelled(call: Pick<RecordedVerdict, "id" | "tool">, step: StepCall): RecordedVerdict;
  /** `asked` is what was said of it before anybody answered. */
  runnable(proposal: Proposal, judged: RecordedVerdict, asked: RecordedVerdict): ExecutableCall | undefined;
}

export function createAuthorizer(of: ToolCallContext): Authorizer {
  const { execution, journal, ctx, grants, offer, limits, completionTool } = of;
  const { deps, envelope, spec, state, steps } = execution;
  // The run's signal, not the step's: a signal of its own would cost a step that only judges more than its judging.
  const { signal } = steps;
  const allowedTools = (offer.allowedTools ?? offer.tools.map((tool) => tool.name)).map(deps.secrets.text);
  const wayOut: Alternatives = { allowedTools, completionTool };
  const guards: NamedGuard[] = [];
  for (const [name, hook] of [
    ["session", deps.onCall],
    ["pipeline", spec.onCall],
    ["state", state.onCall],
  ] as const) {
    if (hook !== undefined) guards.push({ name, hook });
  }
  // In mode allowlist the session's list is the envelope of the stages that have none.
  const held = envelope ?? (deps.mode === "allowlist" ? deps.allow : undefined);
  const mayWrite = held === undefined || held.mayWrite;
  const callEnvironment: CallEnvironment = { deps, notes: of.notes, mayWrite, envelope: held, sandbox: state.sandbox };
  const bound = new Map<string, BoundCall>();
  const works = new Map<string, PreparedCall>();

  const decided = (judged: RecordedVerdict, step: StepCall): RecordedVerdict => {
    const { id, tool } = judged;
    const proposal = of.proposalOf(id);
    // What still waits for a person is decided later.
    if (proposal === undefined || judged.verdict.kind === "ask") return judged;
    // Reasons come from tools and hooks, too.
    const verdict = cleaned(judged.verdict, deps.secrets);
    const what = { callId: id, tool, argsDigest: proposal.argsDigest, args: summaryOf(tool, proposal.input) };
    const cause = verdict.kind === "refused" && verdict.cause !== undefined ? { cause: verdict.cause } : {};
    const how =
      verdict.kind === "approved"
        ? { verdict: "approved", by: verdict.by }
        : { verdict: "refused", ...cause, result: verdict.output };
    step.event(journal.event("call.decided", { ...what, ...how }));
    return { ...judged, verdict };
  };

  const bind = async (tool: Tool, proposal: Proposal, before?: RecordedVerdict): Promise<LiveTool> => {
    const facts = { effect: tool.effect, builtin: deps.builtins.has(tool.name) };
    if (proposal.input === undefined) return facts;
    const result = await tool.bind(proposal.input);
    if (!result.ok) return { ...facts, bound: result };
    bound.set(proposal.id, result.call);
    if (before !== undefined) return { ...facts, bound: { ok: true, subjects: before.subjects } };
    // They are recorded: a tool's facts that are not JSON are facts nobody can rely on.
    const own = cloneJson(result.call.subjects(deps.workspace, { env: deps.env, mayWrite }));
    if (own.ok) return { ...facts, bound: { ok: true, subjects: own.value.map(withoutSecrets) } };
    const reason = `what ${tool.name} says this call would touch is not JSON: ${own.fault}`;
    return { ...facts, bound: { ok: true, subjects: [{ kind: "refused", reason }] } };
  };

  /** Paths and words stay as they are, since calls are held to them: they come from arguments that were cleaned. */
  const withoutSecrets = (subject: Subject): Subject =>
    "reason" in subject ? { ...subject, reason: deps.secrets.text(subject.reason) } : subject;

  const vetoOf = async (proposal: Proposal, by: ApprovedBy): Promise<GuardVerdict["vetoed"]> => {
    const { id, tool, executionId, attempt, argsDigest } = proposal;
    const input = bound.get(id)?.input ?? null;
    const guarded = { tool, input, executionId, attempt, proposalId: id, argsDigest, approvedBy: by };
    if (guards.length === 0) return undefined;
    return (await runGuardHooks(guards, guarded, ctx, { clock: deps.clock, signal })).vetoed;
  };

  /** Runs the hooks on an approved call and lets a writing tool prepare its intent. */
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
      return { id, tool, subjects, verdict: refusal("hook", tool, vetoed.reason, wayOut) };
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
      // Without an intent the call can run, but an interrupted one is reported as unknown.
      return undefined;
    }
  };

  /** The one way to a tool's work: a permit for this proposal, redeemed once. */
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
   * Why what an earlier process said of a call does not hold any more, since the pipeline, its tools or the session may be
   * others now; undefined where it does, and for what was judged here. It never lets anything through.
   */
  const standsNoMore = async (
    proposal: Proposal,
    by: ApprovedBy,
    { subjects, verdict: asked }: RecordedVerdict,
  ): Promise<string | undefined> => {
    const { id, tool: name } = proposal;
    const tool = deps.tools.get(name);
    if (tool === undefined || bound.has(id)) return undefined;
    const live = await bind(tool, proposal);
    const call = bound.get(id);
    if (live.bound?.ok !== true || call === undefined) return "its tool does not take these arguments any more";
    // Sluice's own tools open what was judged and nothing else, wherever it leads by now.
    const own = live.builtin ? [] : live.bound.subjects;
    const now = judgeNow(proposal, { ...live, bound: { ok: true, subjects: [...subjects, ...own] } });
    if (now.kind === "refused") return now.reason;
    if (by !== "grant") return now.kind === "ask" ? now.why : undefined;
    if (asked.kind === "ask" && digestOf(call.input) !== digestOf(asked.body.input ?? null))
      return "its tool makes other arguments of it than somebody saw";
    return live.builtin || digestOf(own) === digestOf(subjects) ? undefined : "it touches something else by now";
  };

  const approveGranted = async (
    proposal: Proposal,
    judged: RecordedVerdict,
    step: StepCall,
  ): Promise<RecordedVerdict> => {
    const { id, tool } = proposal;
    const before = readRecordedVerdict(step, id, tool);
    const now = changed(await standsNoMore(proposal, "grant", judged));
    const why = before === undefined ? now : worldLimitOf(before);
    if (why !== undefined) return { id, tool, subjects: judged.subjects, verdict: refusal("limit", tool, why, wayOut) };
    return await approve(proposal, "grant", judged.subjects, step);
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
    const refused = (verdict: CallVerdict, subjects: readonly Subject[] = []): RecordedVerdict => ({
      id,
      tool: name,
      subjects,
      verdict,
    });
    if (times >= REPEATED) {
      return refused({
        kind: "refused",
        output: repeatedCall(name, times),
        ...(times >= STUCK ? { stuck: true } : {}),
      });
    }
    if (request.inputFault?.code === "truncated_call") return refused({ kind: "refused", output: truncatedCall(name) });
    const late = before === undefined ? limits.late()?.message : worldLimitOf(before);
    if (late !== undefined) return refused(refusal("limit", name, late, wayOut), before?.subjects);
    const tool = deps.tools.get(name);
    const live = tool === undefined ? undefined : await bind(tool, proposal, before);
    const verdict = judgeNow(proposal, live);
    const subjects = live?.bound?.ok === true ? live.bound.subjects : [];
    switch (verdict.kind) {
      case "approved":
        return await approve(proposal, verdict.by, subjects, step);
      case "ask":
        // A pattern, which its author wrote, may hold one.
        return announce(proposal, deps.secrets.text(verdict.why), subjects, step);
      case "refused":
        if (verdict.cause === "unknown_tool")
          return refused({ kind: "refused", output: unknownTool(name, deps.tools.keys(), wayOut) });
        if (verdict.cause === "invalid_tool_input")
          return refused({ kind: "refused", output: invalidToolInput(name, verdict.issues) });
        return refused(refusal(verdict.cause, name, deps.secrets.text(verdict.reason), wayOut), subjects);
    }
  };

  /** For a call that an earlier process approved and did not begin: what the model is told where it may not run now. */
  const refusedNow = async (proposal: Proposal, by: ApprovedBy, asked: RecordedVerdict): Promise<Json | undefined> => {
    if (bound.has(proposal.id)) return undefined;
    const why = changed(await standsNoMore(proposal, by, asked));
    const vetoed = why === undefined ? await vetoOf(proposal, by) : undefined;
    const reason = why ?? vetoed?.reason;
    if (reason === undefined) return undefined;
    return denial(why === undefined ? "hook" : "limit", proposal.tool, deps.secrets.text(reason), wayOut);
  };

  /** Core issues the request; with nobody there it is answered in the same record. */
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
    const verdict = refusal("no_interactor", tool, `nobody is there to grant it: ${why}`, wayOut);
    return { id, tool, subjects, verdict };
  };

  const cancelled = ({ id, tool }: Pick<RecordedVerdict, "id" | "tool">, step: StepCall): RecordedVerdict => {
    const output = { code: "call_not_run", message: "the run was cancelled before this call was decided" };
    return decided({ id, tool, subjects: [], verdict: { kind: "refused", output } }, step);
  };

  return {
    callEnvironment,
    decide: async (group, step) => {
      const judged: RecordedVerdict[] = [];
      for (const proposed of group) {
        const one = await raceAbort(signal, judgeOne(proposed, step));
        judged.push(one === undefined ? cancelled(proposed.proposal, step) : decided(one.value, step));
      }
      return judged;
    },
    granted: async ({ proposal }, judged, step) => {
      if (cancelReason(signal) !== undefined) return cancelled(judged, step);
      const approved = await raceAbort(signal, approveGranted(proposal, judged, step));
      return approved === undefined ? cancelled(judged, step) : decided(approved.value, step);
    },
    refuse: ({ id, tool }, cause, reason, step) =>
      decided({ id, tool, subjects: [], verdict: refusal(cause, tool, reason, wayOut) }, step),
    cancelled,
    runnable: (proposal, { verdict, subjects, intent }, asked) => {
      const tool = deps.tools.get(proposal.tool);
      if (tool === undefined || verdict.kind !== "approved") return undefined;
      const { by } = verdict;
      return {
        proposal,
        by,
        tool,
        judged: subjects,
        refusedNow: () => refusedNow(proposal, by, asked),
        work: () => workOf(proposal, by),
        ...(intent === undefined ? {} : { intent }),
      };
    },
  };
}

function changed(why: string | undefined): string | undefined {
  return why === undefined
    ? undefined
    : `it was approved before this run was taken up, which does not hold now: ${why}`;
}

function refusal(cause: DenialCause, tool: string, reason: string, wayOut: Alternatives): CallVerdict {
  return { kind: "refused", cause, output: denial(cause, tool, reason, wayOut) };
}

/** In one line a secret has no key any more by which it could be known: it goes before. */
function summaryOf(tool: string, input: Json | undefined): string {
  return argsSummary(tool, redactJson(input ?? null));
}
