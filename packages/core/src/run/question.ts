import { digestOf } from "../base/canonical.ts";
import type { Json } from "../base/json.ts";
import { compileSchema } from "../definition/schema.ts";
import type { OpenRequest } from "../journal/seam.ts";
import { awaitAnswer, type JournaledAnswer, readAnswer } from "./ask.ts";
import type { CallsOf } from "./calls.ts";
import type { Ran, Runnable } from "./run-call.ts";

/** What a question step opened; recorded. */
type Opened = {
  readonly requestId: string;
  readonly question: string;
  readonly answer: { readonly [key: string]: Json };
  readonly reachable: boolean;
};

/** Runs a call of effect `ask`: opens the request, waits for a person, records the answer as the call's result. */
export async function askQuestion(of: CallsOf, at: string, runnable: Runnable): Promise<Ran> {
  const { journal, execution } = of;
  const { steps, deps } = execution;
  const { proposal, tool } = runnable;
  const requestId = `${proposal.executionId}/a${proposal.attempt}/${proposal.id}/question`;
  const opened = await journal.steps.run(`${at}/question`, async (step): Promise<Opened> => {
    const bound = proposal.input === undefined ? undefined : await tool.bind(proposal.input);
    const question = bound?.ok === true ? bound.call.question : undefined;
    const reachable = question !== undefined && deps.people.reachable();
    const asked = { requestId, question: question?.question ?? "", answer: question?.answer ?? {} };
    if (reachable) {
      const body = { tool: tool.name, question: asked.question, answer: asked.answer };
      step.event(journal.event("request.opened", { requestId, kind: "askUser", digest: digestOf(body), body }));
    }
    return { ...asked, reachable };
  });
  if (!opened.reachable)
    return none("no_interactor", "nobody is there to answer; decide with what you know, and say so in your result");

  const body = { tool: tool.name, question: opened.question, answer: opened.answer };
  const request: OpenRequest = {
    requestId,
    runId: steps.runId,
    kind: "askUser",
    digest: digestOf(body),
    body,
    openedAt: deps.clock.now(),
  };
  const received = await awaitAnswer(of, request);
  return await journal.steps.run(`${at}/answer`, async (step): Promise<Ran> => {
    if (received === undefined) {
      step.event(journal.event("request.expired", { requestId, cause: "cancelled" }));
      return none("cancelled", "the run was cancelled while this waited for an answer");
    }
    const answer = readAnswer(received);
    const { kind, by, reason } = answer;
    step.event(
      journal.event("request.answered", {
        requestId,
        answer: kind,
        by,
        answeredAt: received.at,
        ...(reason === undefined ? {} : { reason }),
      }),
    );
    return await resultOf(answer, opened, of);
  });
}

async function resultOf(answer: JournaledAnswer, opened: Opened, of: CallsOf): Promise<Ran> {
  const { kind, value, reason } = answer;
  if (kind === "none")
    return none(reason ?? "no_interactor", "nobody answered; decide with what you know, and say so in your result");
  if (kind !== "value" || value === undefined)
    return none("not_answered", reason ?? "the person did not answer this question");
  const schema = compileSchema(
    { type: "object", properties: { answer: opened.answer }, required: ["answer"] },
    "an answer",
  );
  const checked = await schema.check({ answer: value });
  if (!checked.ok) return none("answer_invalid", "the answer does not fit what was asked");
  return { ok: true, output: of.execution.deps.secrets.json(value), outcome: "ok", ms: 0 };
}

function none(code: string, message: string): Ran {
  return { ok: false, output: { code, message }, outcome: "error", ms: 0 };
}
