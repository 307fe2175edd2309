import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { type Clock, field, isJsonObject } from "@sluice/core";
import { toJsonValue, visible } from "@sluice/core/runtime";
import type { AgentCall, CallReply, GatewayRun, OpenQuestion, PhaseNow } from "../run/gateway-run-types.ts";
import { CALLER_LEFT, GET_STATE, partsOf } from "../run/words.ts";
import type { GrantQuestions } from "./grant-question.ts";
import { argumentsDigest, type QuestionFacts } from "./question-state.ts";

/** The client that makes a call. */
export interface CallingClient {
  readonly label: string;
  /** Whether a person can be asked through this client, and how. */
  readonly asks: "never" | "by_result" | "by_request";
}

export interface ToolCallsOptions {
  readonly run: GatewayRun;
  readonly clock: Clock;
  readonly questions: GrantQuestions;
  /** How long a call waits for a person before its answer says so. */
  readonly patienceMs: number;
  /** How often a call in flight reports progress. */
  readonly progressMs: number;
  readonly maxCalls: number;
  /** Whether results that are objects are repeated as structured content. */
  readonly structured: boolean;
}

export interface ToolCalls {
  /** Every failure is a result that the model reads, except a `requestState` that is not for this call. */
  call(
    request: CallToolRequest,
    ctx: ServerContext,
    client: CallingClient,
  ): Promise<CallToolResult | InputRequiredResult>;
}

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const { run, clock, questions, patienceMs, progressMs, maxCalls, structured } = options;
  let calls = 0;

  const answered = async (
    call: AgentCall,
    ctx: ServerContext,
    client: CallingClient,
    signal: AbortSignal,
  ): Promise<CallToolResult | InputRequiredResult> => {
    /** The request that the client's form shows now. */
    let shown: OpenQuestion | undefined;
    // The run continues an abandoned call; the same call made again attaches to it.
    const abandoned = new AbortController();
    const { answer } = run.call({
      ...call,
      patienceMs,
      signal: AbortSignal.any([signal, abandoned.signal]),
      asking: () => shown,
    });
    // Reading the state waits for no person.
    const askable = client.asks === "never" || call.tool === GET_STATE ? undefined : firstToAsk(run, questions);
    const ended = answer.then(() => undefined);
    const question = askable && (await Promise.race([ended, askable.promise]));
    askable?.stop();
    if (question !== undefined && client.asks === "by_result") {
      abandoned.abort();
      // An answer that was given before would be lost here: the repeated call would be a new one.
      const reply = await answer;
      const isAbandoned = field(reply.output, "code") === CALLER_LEFT.code;
      return isAbandoned ? await questions.byResult(question, call) : resultOf(reply, structured);
    }
    if (question !== undefined) {
      shown = question;
      const closed = new AbortController();
      const form = questions.byRequest(question, ctx, client.label, AbortSignal.any([signal, closed.signal]));
      await Promise.race([ended, form]);
      closed.abort();
      shown = undefined;
    }
    return resultOf(await answer, structured);
  };

  return {
    call: async (request, ctx, client) => {
      const { name: tool } = request.params;
      const given = toJsonValue(request.params.arguments ?? {});
      if (!given.ok) return failure(`The arguments of ${visible(tool)} cannot be used: ${given.fault}.`);
      const call: AgentCall = { tool, input: given.value };

      const asked = ctx.mcpReq.requestState<QuestionFacts>();
      if (asked !== undefined) {
        if (asked.tool !== tool || asked.input !== argumentsDigest(call.input)) throw foreignState();
        await questions.take(asked, ctx.mcpReq.inputResponses, client.label);
      }

      if (calls >= maxCalls) {
        return failure(`${maxCalls} calls are in progress already. Wait for their results, then make this call again.`);
      }
      calls += 1;
      const progress = startProgress(clock, progressMs, ctx, () => progressText(run, tool));
      try {
        return await answered(call, ctx, client, signalOf(ctx));
      } finally {
        progress.stop();
        calls -= 1;
      }
    },
  };
}

/** The SDK's answer to a state that does not verify. */
function foreignState(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid or expired requestState", {
    reason: "invalid_request_state",
  });
}

function progressText(run: GatewayRun, tool: string): string {
  const { waiting } = run.now();
  return waiting === undefined ? `${visible(tool)} is running` : `A person has to answer: ${waiting.question}`;
}

/** A call ends when the client cancels it, and when its HTTP request is closed: no client can take the result then. */
function signalOf(ctx: ServerContext): AbortSignal {
  const request = ctx.http?.req?.signal;
  return request === undefined ? ctx.mcpReq.signal : AbortSignal.any([ctx.mcpReq.signal, request]);
}

export function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** Names the author of a content block that is not the result of a call. */
const BY = "sluice/by";

function resultOf(reply: CallReply, structured: boolean): CallToolResult {
  // Each part is a block of its own, so that a result cannot pose as the gateway.
  const content: CallToolResult["content"] = partsOf(reply).map(({ by, text }) => ({
    type: "text",
    text,
    ...(by === "gateway" ? { _meta: { [BY]: by } } : {}),
  }));
  if (!reply.ok) return { content, isError: true };
  return structured && isJsonObject(reply.output) ? { content, structuredContent: { ...reply.output } } : { content };
}

interface Askable {
  readonly promise: Promise<OpenQuestion>;
  stop(): void;
}

/** The first open request that no client was asked about; this call asks then. */
function firstToAsk(run: GatewayRun, questions: GrantQuestions): Askable {
  const { promise, resolve } = Promise.withResolvers<OpenQuestion>();
  let isFound = false;
  const look = ({ waiting }: PhaseNow): void => {
    if (isFound || waiting === undefined || !questions.claim(waiting)) return;
    isFound = true;
    resolve(waiting);
  };
  const stop = run.onPhase(look);
  look(run.now());
  return { promise, stop };
}

interface Progress {
  stop(): void;
}

/** Reports to a client that asked for it that a call is in flight, which also keeps the client's timeouts away. */
function startProgress(clock: Clock, everyMs: number, ctx: ServerContext, message: () => string): Progress {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return { stop: () => undefined };
  let progress = 0;
  let stopped = false;
  let disarm = (): void => undefined;
  const arm = (): void => {
    disarm = clock.after(everyMs, () => void report());
  };
  const report = async (): Promise<void> => {
    progress += 1;
    const params = { progressToken, progress, message: message() };
    try {
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    } catch {
      // The client is gone; its closed request ends the call.
      return;
    }
    if (!stopped) arm();
  };
  arm();
  return {
    stop: () => {
      stopped = true;
      disarm();
    },
  };
}
