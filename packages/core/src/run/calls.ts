import PQueue from "p-queue";
import type { Json } from "../base/json.ts";
import type { StageContext } from "../definition/types.ts";
import type { DenialCause } from "../gate/denial.ts";
import type { ToolEffect } from "../gate/facts.ts";
import { createGrants, type Grants, type Proposal } from "../gate/grants.ts";
import { askGrants } from "./ask.ts";
import type { Execution } from "./execution.ts";
import type { CallOutcome, CallRequest, Offer } from "./executor.ts";
import { createJudge, type Judge, type Judged } from "./judge.ts";
import type { Place } from "./place.ts";
import { askQuestion } from "./question.ts";
import { createRepeats } from "./repeats.ts";
import { type Ran, type Runnable, runCall } from "./run-call.ts";
import type { AttemptJournal } from "./scoped-steps.ts";

/** A call that was refused, for the run's account. */
export type Denied = {
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly tool: string;
  readonly cause: DenialCause;
};

/** What the calls of one attempt share. */
export interface CallsOf {
  readonly execution: Execution;
  readonly journal: AttemptJournal;
  readonly ctx: StageContext;
  readonly offer: Offer;
  readonly place: Place;
  readonly completionTool: string;
  readonly grants: Grants;
  /** What results left for later calls of this attempt, such as the hashes of files that were read. */
  readonly notes: Record<string, Json>;
  proposalOf(id: string): Proposal | undefined;
}
export interface Proposed {
  readonly proposal: Proposal;
  readonly request: CallRequest;
  /** How often this very call has come in a row. */
  readonly times: number;
}
/** Neighbouring reads are judged and run together; anything else is alone, after what came before it has run. */
export type Group = readonly Proposed[];

/** On suspension a writing call may finish: the alternative is an outcome nobody knows. */
const WRITE_GRACE_MS = 5_000;

/** The walk of every tool call of one attempt: judged, asked about, run, recorded. No other way in. */
export function createCalls(
  attempt: Pick<CallsOf, "execution" | "journal" | "ctx" | "offer" | "place" | "completionTool">,
  denied: Denied[],
): (turn: number, requests: readonly CallRequest[]) => Promise<readonly CallOutcome[]> {
  const { execution, ctx } = attempt;
  const { deps, steps } = execution;
  const executionId = `${execution.stateId}#${execution.visit}`;
  const grants = createGrants({ runId: steps.runId, executionId, attempt: ctx.attempt });
  const proposals = new Map<string, Proposal>();
  const of: CallsOf = { ...attempt, grants, notes: {}, proposalOf: (id) => proposals.get(id) };
  const judge = createJudge(of);
  const repeats = createRepeats();
  const effectOf = (tool: string): ToolEffect => deps.tools.get(tool)?.effect ?? "read";

  return async (turn, requests) => {
    const proposed = requests.map((request): Proposed => {
      const { id, tool, input, inputFault } = request;
      const proposal = grants.propose(
        input === undefined
          ? { id, tool, inputFault: inputFault?.message ?? "the arguments could not be read" }
          : { id, tool, input },
      );
      proposals.set(id, proposal);
      return { proposal, request, times: repeats.count(tool, proposal.argsDigest) };
    });
    const outcomes: CallOutcome[] = [];
    for (const [index, group] of groupCalls(proposed, effectOf).entries()) {
      // A cancelled run judges and runs nothing more.
      if (steps.signal.aborted) break;
      const settled = await settleGroup(of, judge, `turn/${turn}/${index}`, group);
      for (const { judged, ran } of settled) {
        const { id, tool, verdict } = judged;
        if (verdict.kind === "refused") {
          if (verdict.cause !== undefined)
            denied.push({ executionId, attempt: ctx.attempt, callId: id, tool, cause: verdict.cause });
          outcomes.push({
            id,
            tool,
            ok: false,
            output: verdict.output,
            ...(verdict.stuck === true ? { stuck: true } : {}),
          });
        } else {
          Object.assign(of.notes, ran?.notes);
          outcomes.push({ id, tool, ok: ran?.ok === true, output: ran?.output ?? null });
        }
      }
    }
    return outcomes;
  };
}

interface Settled {
  readonly judged: Judged;
  readonly ran: Ran | undefined;
}

async function settleGroup(of: CallsOf, judge: Judge, at: string, group: Group): Promise<readonly Settled[]> {
  const first = await of.journal.steps.run(`${at}/judge`, (step) => judge.decide(group, step));
  const judged = first.some(({ verdict }) => verdict.kind === "ask")
    ? await askGrants(of, judge, at, group, first)
    : first;
  const runnables = judged.flatMap((one) => {
    const proposal = of.proposalOf(one.id);
    const runnable = proposal === undefined ? undefined : judge.runnable(proposal, one);
    return runnable === undefined ? [] : [runnable];
  });
  const ran = await runApproved(of, judge, at, runnables);
  return judged.map((one) => ({ judged: one, ran: ran.get(one.id) }));
}

/** Runs what was approved: reads side by side in one step, a writing call behind an open record, a question by asking it. */
async function runApproved(
  of: CallsOf,
  judge: Judge,
  at: string,
  runnables: readonly Runnable[],
): Promise<ReadonlyMap<string, Ran>> {
  const { execution, journal, grants } = of;
  const { deps, steps } = execution;
  const [only] = runnables;
  if (only === undefined) return new Map();
  const announced = runnables.flatMap(({ proposal, by }) => {
    const { id: callId, tool, argsDigest } = proposal;
    const consumed =
      by === "grant"
        ? [journal.event("grant.consumed", { requestId: grants.request(proposal), callId, argsDigest })]
        : [];
    return [...consumed, journal.event("call.started", { callId, tool, argsDigest })];
  });
  if (only.tool.effect === "ask") {
    for (const { type, data } of announced) journal.note(type, data);
    return new Map([[only.proposal.id, await askQuestion(of, at, only)]]);
  }
  const env = { deps, notes: of.notes, mayWrite: judge.mayWrite };
  const writing = only.tool.effect === "write";
  const intent: Json = {
    callId: only.proposal.id,
    argsDigest: only.proposal.argsDigest,
    prepared: only.intent ?? null,
  };
  const results = await journal.steps.run(
    `${at}/call`,
    async (step): Promise<Ran[]> => {
      if (!writing) for (const event of announced) step.event(event);
      const lanes = new PQueue({ concurrency: deps.maxParallelReads });
      const all = await Promise.all(
        runnables.map((one) =>
          runnables.length === 1
            ? runCall(one, env, step, steps.incarnation)
            : lanes.add(() => runCall(one, env, step, steps.incarnation)),
        ),
      );
      for (const [index, ran] of all.entries()) {
        const proposal = runnables[index]?.proposal;
        if (proposal === undefined) continue;
        const { outcome, ms, facts } = ran;
        const ended = {
          callId: proposal.id,
          tool: proposal.tool,
          outcome,
          ms,
          ...(facts === undefined ? {} : { facts }),
        };
        step.event(journal.event("call.finished", ended));
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

function groupCalls(calls: readonly Proposed[], effectOf: (tool: string) => ToolEffect): readonly Group[] {
  const groups: Proposed[][] = [];
  let reads: Proposed[] | undefined;
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
