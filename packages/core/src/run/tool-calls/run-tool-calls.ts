import PQueue from "p-queue";
import { sha256 } from "../../base/canonical.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import { sandboxOf } from "../../gate/envelope.ts";
import { createGrants, type Proposal } from "../../gate/grants.ts";
import type { ToolEffect } from "../../gate/subjects.ts";
import type { StepOptions } from "../../journal/seam.ts";
import type { Attempt } from "../attempt.ts";
import type { CallOutcome, CallRequest } from "../executor.ts";
import { cancelReason } from "../limits/limits.ts";
import { askQuestion } from "./ask-user.ts";
import { type Authorizer, createAuthorizer } from "./authorize.ts";
import { type ExecutableCall, type ExecutedCall, executeToolCall } from "./execute-tool-call.ts";
import { recordApprovals } from "./request-approval.ts";
import {
  type CallGroup,
  type CallGroupId,
  callStep,
  type ProposedToolCall,
  type ToolCallContext,
} from "./tool-call.ts";
import { createRepeatedCalls, decidesVerdict, type RecordedVerdict } from "./verdict.ts";

/** Made once: every group is judged in such a step. */
const JUDGED: StepOptions = { decides: decidesVerdict };
/** On suspension a writing call may finish: the alternative is an outcome nobody knows. */
const WRITE_GRACE_MS = 5_000;

/** The walk of every tool call of one attempt: judged, asked about, run, recorded. No other way in. */
export interface Calls {
  run(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]>;
  /** Ends the attempt: tokens and permits are void from now on. Returns the requests that were never settled. */
  close(): readonly string[];
}

export function createCalls(attempt: Attempt, ctx: StageContext): Calls {
  const { execution, executionId, journal, limits, place, denied } = attempt;
  const { deps, steps, state, offer } = execution;
  const grants = createGrants({ runId: steps.runId, executionId, attempt: ctx.attempt });
  const proposals = new Map<string, Proposal>();
  const of: ToolCallContext = {
    execution,
    journal,
    ctx,
    offer,
    place,
    limits,
    completionTool: state.agent?.completionTool ?? "",
    grants,
    notes: {},
    proposalOf: (id) => proposals.get(id),
  };
  const judge = createAuthorizer(of);
  const repeats = createRepeatedCalls();
  const effectOf = (tool: string): ToolEffect => deps.tools.get(tool)?.effect ?? "read";

  const propose = (request: CallRequest): ProposedToolCall => {
    const { id, tool, input, inputFault } = request;
    // An executor's mistake, not a model's: what was decided about one call must never be taken for another.
    if (proposals.has(id)) {
      const message = `${executionId}, attempt ${ctx.attempt}: the id ${id} was given to two calls; ids are unique in an attempt`;
      throw new SluiceError("Host", "call_id_repeated", message);
    }
    const proposal = grants.propose(
      input === undefined
        ? { id, tool, inputFault: inputFault?.message ?? "the arguments could not be read" }
        : { id, tool, input },
    );
    proposals.set(id, proposal);
    // Arguments that cannot be read have no digest of their own; only the same text again is the same call.
    const digest = inputFault?.raw === undefined ? proposal.argsDigest : sha256(inputFault.raw.toWellFormed());
    return { proposal, request, times: repeats.count(tool, digest) };
  };

  const outcomeOf = ({ judged: { id, tool, verdict }, ran }: Settled): CallOutcome => {
    if (verdict.kind !== "refused") {
      if (ran === undefined) return notRun(id, tool);
      // Defined, not assigned: a note named __proto__ is a note.
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
        // A run that is cancelled, or a state that has to fail, judges and runs nothing more.
        if (cancelReason(steps.signal) !== undefined || outcomes.some((outcome) => outcome.stuck === true)) break;
        const settled = await settleGroup(of, judge, { turn, group: index }, group);
        outcomes.push(...settled.map(outcomeOf));
      }
      const rest = proposed.slice(outcomes.length);
      return [...outcomes, ...rest.map(({ proposal }) => notRun(proposal.id, proposal.tool))];
    },
    close: grants.expireAll,
  };
}

function notRun(id: string, tool: string): CallOutcome {
  return { id, tool, ok: false, output: { code: "call_not_run", message: "the stage was ended before this call" } };
}

interface Settled {
  readonly judged: RecordedVerdict;
  readonly ran: ExecutedCall | undefined;
}

async function settleGroup(
  of: ToolCallContext,
  judge: Authorizer,
  at: CallGroupId,
  group: CallGroup,
): Promise<readonly Settled[]> {
  const first = await of.journal.run(callStep(at, "verdicts"), (step) => judge.decide(group, step), JUDGED);
  const judged = first.some(({ verdict }) => verdict.kind === "ask")
    ? await recordApprovals(of, judge, at, group, first)
    : first;
  if (cancelReason(of.execution.steps.signal) !== undefined)
    return judged.map((one) => ({ judged: one, ran: undefined }));
  const runnables = judged.flatMap((one, index) => {
    const proposal = of.proposalOf(one.id);
    const runnable = proposal === undefined ? undefined : judge.runnable(proposal, one, first[index] ?? one);
    return runnable === undefined ? [] : [runnable];
  });
  const ran = await runApproved(of, judge, at, runnables);
  for (const { proposal, by } of runnables) if (by === "grant") of.grants.spend(proposal);
  return judged.map((one) => ({ judged: one, ran: ran.get(one.id) }));
}

/** Runs what was approved: reads side by side in one step, a writing call behind an open record, a question by asking it. */
async function runApproved(
  of: ToolCallContext,
  judge: Authorizer,
  at: CallGroupId,
  runnables: readonly ExecutableCall[],
): Promise<ReadonlyMap<string, ExecutedCall>> {
  const { execution, journal, grants, limits } = of;
  const { deps, steps } = execution;
  const [only] = runnables;
  if (only === undefined) return new Map();
  const announced = runnables.flatMap(({ proposal, by, judged }) => {
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
    for (const { type, data } of announced) journal.note(type, data);
    return new Map([[only.proposal.id, await askQuestion(of, at, only)]]);
  }
  const writing = only.tool.effect === "write";
  const intent: Json = {
    callId: only.proposal.id,
    argsDigest: only.proposal.argsDigest,
    prepared: only.intent ?? null,
  };
  const results = await journal.run(
    callStep(at, "call"),
    async (step): Promise<ExecutedCall[]> => {
      if (!writing) for (const event of announced) step.event(event);
      const all = await limits.timed(step.signal, (signal) => {
        const at = { signal, opened: step.opened, hold: step.hold, incarnation: steps.incarnation };
        return sideBySide(runnables, deps.maxParallelReads, (one) => executeToolCall(one, judge.callEnvironment, at));
      });
      for (const [index, { outcome, ms, facts }] of all.entries()) {
        const proposal = runnables[index]?.proposal;
        if (proposal === undefined) continue;
        const ended = { callId: proposal.id, tool: proposal.tool, outcome, ms };
        step.event(journal.event("call.finished", facts === undefined ? ended : { ...ended, facts }));
      }
      return all;
    },
    writing ? { open: { events: announced, intent }, graceMs: WRITE_GRACE_MS } : {},
  );
  return new Map(
    runnables.flatMap(({ proposal }, index) => {
      const ran = results[index];
      return ran === undefined ? [] : [[proposal.id, ran] as const];
    }),
  );
}

async function sideBySide<A, B>(items: readonly A[], most: number, work: (item: A) => Promise<B>): Promise<B[]> {
  const [only, ...more] = items;
  if (only !== undefined && more.length === 0) return [await work(only)];
  const lanes = new PQueue({ concurrency: most });
  return await Promise.all(items.map((item) => lanes.add(() => work(item))));
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
