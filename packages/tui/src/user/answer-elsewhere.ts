import {
  type Answer,
  type OpenRequest,
  type RunHost,
  type SignalOutcome,
  SluiceError,
  type SluiceEvent,
} from "@sluice/core";
import { startedUnsandboxed } from "@sluice/core/gate";
import { type CodeScope, rootRunId } from "@sluice/core/runtime";
import { eventsOf, readRunStarted } from "@sluice/view/words";
import { answerPayload, sendAnswer } from "./send-answer.ts";

/**
 * How to answer a request from another process: `freely`, with the one-time `code` from the terminal of the run's process, or,
 * if no process executes the run, by resuming it in a terminal (`resume`).
 */
export type AnswerRoute = "freely" | "code" | "resume";

/** The route according to the run's record; the run's own process decides. */
export async function answerRouteOf(
  host: RunHost,
  runId: string,
  events: readonly SluiceEvent[],
): Promise<AnswerRoute> {
  const rootId = rootRunId(runId);
  const { answers } = await readRunStarted(host, rootId);
  const isOwned = (await host.get(rootId))?.owner !== undefined;
  if (answers === "any" || !startedUnsandboxed(events, isOwned)) return "freely";
  return isOwned ? "code" : "resume";
}

/** Whether an answer allows something; denials need no proof. */
export function needsProof({ kind }: Answer): boolean {
  return kind === "approve" || kind === "value";
}

/** What a request's code is bound to: the process that waits for the answer now. */
export async function codeScopeOf(host: RunHost, { runId, requestId }: OpenRequest): Promise<CodeScope> {
  const rootId = rootRunId(runId);
  const records = (await host.get(rootId))?.records ?? 0;
  const last = (await host.records(rootId, Math.max(0, records - 1))).at(-1);
  if (last !== undefined) return { runId, requestId, incarnation: last.incarnation };
  throw new SluiceError("Host", "journal_damaged", `run ${rootId} has no records`);
}

/** Why an answer is not sent, and what to do instead. */
export function unprovenText(route: Exclude<AnswerRoute, "freely">, { runId, requestId }: OpenRequest): string {
  const root = rootRunId(runId);
  const why = `not sent: run ${root} started processes without a sandbox, and any of them could send this answer to ${requestId}`;
  return route === "code"
    ? `${why}; answer in the terminal that executes the run, or with --code and the code that it shows`
    : `${why}; no process executes the run: resume it in a terminal (sluice resume ${root}) and answer there`;
}

export function wrongCodeText({ runId, requestId }: OpenRequest): string {
  return `not sent: this is not the code of ${requestId}: it is mistyped, or belongs to another request or to an earlier process; the terminal that executes ${rootRunId(runId)} shows the code of each waiting request`;
}

/** Answers a run of another process. Throws Validation `answer_unproven` if the answer could not count. */
export async function answerElsewhere(
  host: RunHost,
  request: OpenRequest,
  answer: Answer,
  by: string,
): Promise<SignalOutcome> {
  const root = rootRunId(request.runId);
  const route = needsProof(answer) ? await answerRouteOf(host, root, await eventsOf(host, root)) : "freely";
  if (route !== "freely") throw new SluiceError("Validation", "answer_unproven", unprovenText(route, request));
  return await sendAnswer(host, request, answerPayload(request, answer), by);
}
