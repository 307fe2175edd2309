import PQueue from "p-queue";
import { sha256 } from "../../base/canonical.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import { sandboxOf } from "../../gate/envelope.ts";
import { createGrants, type Proposal } from "../../gate/grants.ts";
import type { ToolEffect } from "../../gate/subjects.ts";
import type { StepOptions } from "../../journal/seam.ts";
import { type CallGroupId, stepNames } from "../../journal/step-id.ts";
import type { Attempt } from "../attempt.ts";
import type { CallOutcome, CallRequest } from "../executor.ts";
import { cancelReason } from "../limits/limits.ts";
import { askQuestion } from "./ask-user.ts";
import { type Authorizer, createAuthorizer } from "./authorize.ts";
import { type ExecutableCall, type ExecutedCall, executeToolCall } from "./execute-tool-call.ts";
import { recordApprovals } from "./request-approval.ts";
import type { CallGroup, ProposedToolCall, ToolCallContext } from "./tool-call.ts";
import { decidesVerdict, type RecordedVerdict } from "./verdict.ts";

const JUDGED: StepOptions = { decides: decidesVerdict };
/** How long a writing call may run after a suspension: otherwise its outcome is unknown. */
const WRITE_GRACE_MS = 5_000;

/** The tool calls of one attempt: authorized, run and recorded. Nothing else runs a tool. */
export interface Calls {
  run(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]>;
  /** Ends the attempt and voids its tokens and permits. Returns the requests that were never settled. */
  close(): readonly string[];
}

export function createCalls(attempt: Attempt, ctx: StageContext): Calls {
  const { execution, executionId, journal, limits, slot, denied } = attempt;
  const { deps, steps, state, offer } = execution;
  const grants = createGrants({ runId: steps.runId, executionId, attempt: ctx.attempt });
  const proposals = new Map<string, Proposal>();
  const of: ToolCallContext = {
    execution,
    journal,
    ctx,
    offer,
    slot,
    limits,
    completionTool: state.completionTool ?? "",
    grants,
    notes: {},
    proposalOf: (id) => proposals.get(id),
  };
  const authorizer = createAuthorizer(of);
  const effectOf = (tool: string): ToolEffect => deps.tools.get(tool)?.effect ?? "read";
  let lastCall = "";
  let times = 0;

  const propose = (request: CallRequest): ProposedToolCall => {
    const { id, tool, input, inputFault } = request;
    // An executor's mistake, not a model's: the verdict on one call must never apply to another.
    if (proposals.has(id)) {
      const message = `${executionId}, attempt ${ctx.attempt}: two calls have the id ${id}; ids must be unique in an attempt`;
      throw new SluiceError("Host", "call_id_repeated", message);
    }
    const proposal = grants.propose(
      input === undefined
        ? { id, tool, inputFault: inputFault?.message ?? "the arguments could not be read" }
        : { id, tool, input },
    );
    proposals.set(id, proposal);
    // Unreadable arguments have no digest; such calls are the same if their raw text is.
    const digest = inputFault?.raw === undefined ? proposal.argsDigest : sha256(inputFault.raw.toWellFormed());
    const call = JSON.stringify([tool, digest]);
    times = call === lastCall ? times + 1 : 1;
    lastCall = call;
    return { proposal, request, times };
  };

  const outcomeOf = ({ decided: { id, tool, verdict }, ran }: SettledCall): CallOutcome => {
    if (verdict.kind !== "refused") {
      if (ran === undefined) return notRun(id, tool);
      // Not assigned, since a note may be named __proto__.
      for (const [key, value] of Object.entries(ran.notes ?? {}))
        Object.defineProperty(of.notes, key, { value, writable: true, enumerable: true, configurable: true });
      return { id, tool, ok: ran.ok, output: ran.output };
    }
    const { cause, output, stuck } = verdict;
    if (cause !== undefined) denied.push({ executionId, attempt: ctx.attempt, callId: id, tool, cause });
    return { id, tool, ok: false, output, ...(stuck === true ? { stuck } : {}) };
  };

  return {
    run: async (turn, requests) => {
      const proposed = requests.map(propose);
      const outcomes: CallOutcome[] = [];
      for (const [index, group] of groupCalls(proposed, effectOf).entries()) {
        // After a cancel or a stuck call no further group is authorized.
        if (cancelReason(steps.signal) !== undefined || outcomes.some((outcome) => outcome.stuck === true)) break;
        const settled = await settleGroup(of, authorizer, { turn, group: index }, group);
        outcomes.push(...settled.map(outcomeOf));
      }
      const skipped = proposed.slice(outcomes.length);
      return [...outcomes, ...skipped.map(({ proposal }) => notRun(proposal.id, proposal.tool))];
    },
    close: grants.expireAll,
  };
}

function notRun(id: string, tool: string): CallOutcome {
  return { id, tool, ok: false, output: { code: "call_not_run", message: "the stage ended before this call" } };
}

interface SettledCall {
  readonly decided: RecordedVerdict;
  readonly ran: ExecutedCall | undefined;
}

async function settleGroup(
  of: ToolCallContext,
  authorizer: Authorizer,
  groupId: CallGroupId,
  group: CallGroup,
): Promise<readonly SettledCall[]> {
  const first = await of.journal.run(
    stepNames.calls(groupId, "verdicts"),
    (step) => authorizer.decide(group, step),
    JUDGED,
  );
  const verdicts = first.some(({ verdict }) => verdict.kind === "ask")
    ? await recordApprovals(of, authorizer, groupId, group, first)
    : first;
  if (cancelReason(of.execution.steps.signal) !== undefined)
    return verdicts.map((decided) => ({ decided, ran: undefined }));
  const runnables = verdicts.flatMap((decided, index) => {
    const proposal = of.proposalOf(decided.id);
    const runnable = proposal && authorizer.runnable(proposal, decided, first[index] ?? decided);
    return runnable === undefined ? [] : [runnable];
  });
  const ran = await runApproved(of, authorizer, groupId, runnables);
  for (const { proposal, by } of runnables) if (by === "grant") of.grants.spend(proposal);
  return verdicts.map((decided) => ({ decided, ran: ran.get(decided.id) }));
}

/** Runs approved calls: reads concurrently in one step, a writing call behind an open record, a question as a request. */
async function runApproved(
  of: ToolCallContext,
  authorizer: Authorizer,
  groupId: CallGroupId,
  runnables: readonly ExecutableCall[],
): Promise<ReadonlyMap<string, ExecutedCall>> {
  const { execution, journal, grants, limits } = of;
  const { deps, steps } = execution;
  const [only] = runnables;
  if (only === undefined) return new Map();
  const startEvents = runnables.flatMap(({ proposal, by, judged }) => {
    const { id: callId, tool, argsDigest } = proposal;
    const consumed =
      by === "grant"
        ? [journal.event("grant.consumed", { requestId: grants.request(proposal), callId, argsDigest })]
        : [];
    const wall = sandboxOf(judged);
    if (wall === "none") deps.answers.startsUnwalled();
    const started = { callId, tool, argsDigest, ...(wall === undefined ? {} : { wall }) };
    return [...consumed, journal.event("call.started", started)];
  });
  if (only.tool.effect === "ask") {
    for (const { type, data } of startEvents) journal.note(type, data);
    return new Map([[only.proposal.id, await askQuestion(of, groupId, only)]]);
  }
  const writing = only.tool.effect === "write";
  const intent: Json = {
    callId: only.proposal.id,
    argsDigest: only.proposal.argsDigest,
    prepared: only.intent ?? null,
  };
  const results = await journal.run(
    stepNames.calls(groupId, "call"),
    async (step): Promise<ExecutedCall[]> => {
      if (!writing) for (const event of startEvents) step.event(event);
      const all = await limits.timed(step.signal, (signal) => {
        const stepFacts = { signal, opened: step.opened, hold: step.hold, incarnation: steps.incarnation };
        const { callEnvironment } = authorizer;
        return concurrently(runnables, deps.maxParallelReads, (runnable) =>
          executeToolCall(runnable, callEnvironment, stepFacts),
        );
      });
      for (const [index, { outcome, ms, facts }] of all.entries()) {
        const proposal = runnables[index]?.proposal;
        if (proposal === undefined) continue;
        const ended = { callId: proposal.id, tool: proposal.tool, outcome, ms };
        step.event(journal.event("call.finished", facts === undefined ? ended : { ...ended, facts }));
      }
      return all;
    },
    writing ? { open: { events: startEvents, intent }, graceMs: WRITE_GRACE_MS } : {},
  );
  return new Map(
    runnables.flatMap(({ proposal }, index) => {
      const ran = results[index];
      return ran === undefined ? [] : [[proposal.id, ran] as const];
    }),
  );
}

async function concurrently<A, B>(items: readonly A[], limit: number, work: (item: A) => Promise<B>): Promise<B[]> {
  const [only, ...more] = items;
  if (only !== undefined && more.length === 0) return [await work(only)];
  const queue = new PQueue({ concurrency: limit });
  return await Promise.all(items.map((item) => queue.add(() => work(item))));
}

function groupCalls(calls: readonly ProposedToolCall[], effectOf: (tool: string) => ToolEffect): readonly CallGroup[] {
  const groups: ProposedToolCall[][] = [];
  let reads: ProposedToolCall[] | undefined;
  for (const call of calls) {
    const isRead = effectOf(call.proposal.tool) === "read";
    if (isRead && reads !== undefined) {
      reads.push(call);
      continue;
    }
    const group = [call];
    groups.push(group);
    reads = isRead ? group : undefined;
  }
  return groups;
}
