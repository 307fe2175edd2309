import {
  type ElicitRequestFormParams,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Answer, Clock } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import type { AgentCall, GatewayRun, OpenQuestion } from "../run/gateway-run-types.ts";
import { argumentsDigest, type QuestionFacts, type QuestionStates } from "./question-state.ts";

/**
 * Whether a client may be asked about open requests, and what its answer may do: it approves only what its form shows whole. A
 * client's answer does not prove that a person gave it, since hooks of a host can give it.
 */
export type ElicitationMode = "off" | "deny-only" | "approve";

export interface GrantQuestionsOptions {
  readonly run: GatewayRun;
  readonly clock: Clock;
  readonly mode: ElicitationMode;
  readonly states: QuestionStates;
  /** How long a client has to answer a question that the server sends. */
  readonly elicitationMs: number;
}

/** Questions about open requests, asked through the client. */
export interface GrantQuestions {
  /** Whether the caller is to ask about the request. Clients without a person decline at once, so each is asked about once. */
  claim(question: OpenQuestion): boolean;
  /** Asks by the result of the call (2026-07-28): the client asks, and makes the call again with the answer. */
  byResult(question: OpenQuestion, call: AgentCall): Promise<InputRequiredResult>;
  /** Asks by a request to the client (before 2026-07-28), until it is answered or `closed` aborts. Never rejects. */
  byRequest(question: OpenQuestion, ctx: ServerContext, client: string, closed: AbortSignal): Promise<void>;
  /** Uses the answer that came with a repeated call. */
  take(asked: QuestionFacts, responses: Record<string, unknown> | undefined, client: string): Promise<void>;
}

const KEY = "decision";
const APPROVE = "approve";
const DENY = "deny";
const LEAVE = "leave it open";
const LONGEST_REASON = 1_000;

export function createGrantQuestions(options: GrantQuestionsOptions): GrantQuestions {
  const { run, clock, mode, states, elicitationMs } = options;
  const asked = new Set<string>();

  const send = async (request: RequestFacts, answer: Answer | undefined, client: string): Promise<void> => {
    // Another answer may have been first; the call takes that one.
    if (answer !== undefined) await run.answer(request, answer, `elicitation:${client}`);
  };

  return {
    claim: (question) => {
      const key = keyOf(question);
      if (mode === "off" || asked.has(key)) return false;
      asked.add(key);
      return true;
    },
    byResult: async (question, call) => {
      const { runId, requestId, digest } = question;
      const requestState = await states.mint({
        runId,
        requestId,
        digest,
        tool: call.tool,
        input: argumentsDigest(call.input),
        approvable: isApprovable(mode, question),
      });
      return inputRequired({ inputRequests: { [KEY]: inputRequired.elicit(form(mode, question)) }, requestState });
    },
    byRequest: async (question, ctx, client, closed) => {
      const late = new AbortController();
      const disarm = clock.after(elicitationMs, () => late.abort());
      try {
        const { action, content } = await ctx.mcpReq.send(
          { method: "elicitation/create", params: { ...form(mode, question) } },
          // The injected clock ends it; the SDK's own timer must not be first.
          { signal: AbortSignal.any([closed, late.signal]), timeout: 2 * elicitationMs },
        );
        await send(question, answerIn(isApprovable(mode, question), action, content), client);
      } catch {
        // The client cannot ask, was too slow, or the request was closed by another answer: it stays open for the others.
        return;
      } finally {
        disarm();
      }
    },
    take: async (request, responses, client) => {
      const view = inputResponse(responses, KEY);
      if (view.kind === "elicit") await send(request, answerIn(request.approvable, view.action, view.content), client);
    },
  };
}

type RequestFacts = Pick<OpenQuestion, "runId" | "requestId" | "digest">;

function keyOf({ runId, requestId }: RequestFacts): string {
  return JSON.stringify([runId, requestId]);
}

/**
 * What a client's answer does. Declining or closing the form leaves the request to others, since clients without a person do that by
 * themselves.
 */
function answerIn(
  approvable: boolean,
  action: string,
  content: Readonly<Record<string, unknown>> | undefined,
): Answer | undefined {
  if (action !== "accept" || content === undefined) return undefined;
  const { decision, reason } = content;
  if (decision === APPROVE && approvable) return { kind: "approve" };
  if (decision !== DENY) return undefined;
  const words = typeof reason === "string" ? visible(reason.slice(0, LONGEST_REASON)).trim() : "";
  return words === "" ? { kind: "deny" } : { kind: "deny", reason: words };
}

/** Whether a form may approve: only what it shows whole. */
function isApprovable(mode: ElicitationMode, { whole }: OpenQuestion): boolean {
  return mode === "approve" && whole !== undefined;
}

function form(mode: ElicitationMode, of: OpenQuestion): ElicitRequestFormParams {
  const { runId, question, whole } = of;
  const approvable = isApprovable(mode, of);
  // Hosts cut what does not fit into a line of the terminal.
  const shown = approvable
    ? `\n\n${whole}`
    : ` ${question}\nThis form cannot approve it. See and answer it with: sluice show ${runId}`;
  return {
    mode: "form",
    message: `A person has to decide:${shown}`,
    requestedSchema: {
      type: "object",
      properties: {
        decision: {
          type: "string",
          title: "Decision",
          enum: approvable ? [APPROVE, DENY, LEAVE] : [DENY, LEAVE],
        },
        reason: { type: "string", title: "Reason, for the agent", maxLength: LONGEST_REASON },
      },
      required: ["decision"],
    },
  };
}
