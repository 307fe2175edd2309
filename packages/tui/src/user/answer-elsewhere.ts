import {
  type Answer,
  type CodeScope,
  type OpenRequest,
  type RunHost,
  type SignalOutcome,
  SluiceError,
  type SluiceEvent,
  startedUnsandboxed,
} from "@sluice/core";
import { eventsOf, readRunStarted, rootOf } from "@sluice/view";
import { answerPayload, sendAnswer } from "./send-answer.ts";

/**
 * How people answer a request of a run that works elsewhere so that it counts: `freely`, with the `code` that the run's process
 * shows on its terminal, or, where no process works on the run, by resuming it in a terminal (`resume`).
 */
export type AnswerRoute = "freely" | "code" | "resume";

/** By what the run recorded so far. Its own process may know more, and decides. */
export async function answerRouteOf(
  host: RunHost,
  runId: string,
  events: readonly SluiceEvent[],
): Promise<AnswerRoute> {
  const rootId = rootOf(runId);
  const { answers } = await readRunStarted(host, rootId);
  const atWork = (await host.get(rootId))?.owner !== undefined;
  if (answers === "any" || !startedUnsandboxed(events, atWork)) return "freely";
  return atWork ? "code" : "resume";
}

/** Whether an answer lets something happen: whoever only says no has to prove nothing. */
export function needsProof({ kind }: Answer): boolean {
  return kind === "approve" || kind === "value";
}

/** Where a request's code holds: in the process that waits for its answer now. */
export async function codeScopeOf(host: RunHost, { runId, requestId }: OpenRequest): Promise<CodeScope> {
  const rootId = rootOf(runId);
  const records = (await host.get(rootId))?.records ?? 0;
  const last = (await host.records(rootId, Math.max(0, records - 1))).at(-1);
  if (last !== undefined) return { runId, requestId, incarnation: last.incarnation };
  throw new SluiceError("Host", "journal_damaged", `run ${rootId} has no records`);
}

/** Why an answer is not sent, and what to do instead. */
export function unprovenText(way: Exclude<AnswerRoute, "freely">, { runId, requestId }: OpenRequest): string {
  const root = rootOf(runId);
  const why = `not sent: run ${root} has started processes without a wall, and any of them could answer ${requestId} like this`;
  return way === "code"
    ? `${why}; answer where the run works, or with --code and the code that its terminal shows`
    : `${why}; no process works on the run: resume it in a terminal (sluice resume ${root}), and you are asked there`;
}

export function wrongCodeText({ runId, requestId }: OpenRequest): string {
  return `not sent: this is not the code of ${requestId}: it is mistyped, or another request's, or an earlier process's; the terminal that runs ${rootOf(runId)} shows the code of each request that waits`;
}

/** Sends an answer to a run that works in another process. Throws Validation `answer_unproven` where it could not count. */
export async function answerElsewhere(
  host: RunHost,
  request: OpenRequest,
  answer: Answer,
  by: string,
): Promise<SignalOutcome> {
  const root = rootOf(request.runId);
  const way = needsProof(answer) ? await answerRouteOf(host, root, await eventsOf(host, root)) : "freely";
  if (way !== "freely") throw new SluiceError("Validation", "answer_unproven", unprovenText(way, request));
  return await sendAnswer(host, request, answerPayload(request, answer), by);
}
