import type {
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import {
  type ActOutcome,
  type ActScope,
  type AgentSpec,
  addUsage,
  type CallOutcome,
  type FailureCode,
  field,
  type Json,
  type Offer,
  SluiceError,
  type StateExecutor,
  type StateSpec,
  type Usage,
} from "@sluice/core";
import { FILTERED } from "../models/failure.ts";
import type { ResolvedModel } from "../models/model.ts";
import { type ModelFacts, modelFacts } from "../models/prices.ts";
import { contract, nudge, openTranscript } from "./contract.ts";
import type { CompletionCheck, Reply, TurnCall } from "./kept-reply.ts";
import { createPromptMeter, NO_USAGE, nearWindow } from "./metering.ts";
import { askModel, checkCompletions, type TurnAnswer, type TurnRequest } from "./model-turn.ts";

/** Runs agent states: one transcript, turn by turn, until a completion is accepted or a cap is reached. */
export function agentExecutor(
  modelOf: (agent: AgentSpec) => ResolvedModel,
  factsOf: (modelId: string) => ModelFacts = modelFacts(),
): StateExecutor {
  const known = new WeakMap<ResolvedModel, ModelFacts>();
  const asked = (agent: AgentSpec): Asked => {
    const model = modelOf(agent);
    const facts = known.get(model) ?? factsOf(model.pricedAs ?? model.id);
    known.set(model, facts);
    return { model, facts };
  };
  const prepared = new WeakMap<Offer, Prepared>();
  const prepare = (state: StateSpec, offer: Offer): Prepared => {
    const agent = agentOf(state);
    const before = prepared.get(offer);
    if (before?.agent === agent) return before;
    const last = completionTool(agent);
    const tools = [...offeredTools(offer, agent), last];
    const made = {
      agent,
      contract: contract(agent, offer),
      tools,
      toolsSize: JSON.stringify(tools).length,
      last: [last],
    };
    prepared.set(offer, made);
    return made;
  };
  return {
    kind: "agent",
    init: (state, ctx, offer) => {
      const { agent, contract } = prepare(state, offer);
      return { ...openTranscript(agent.prompt(ctx), contract, ctx) };
    },
    act: (init, scope) => {
      const agent = prepare(scope.state, scope.offer);
      return act(init, scope, agent, asked(agent.agent));
    },
  };
}

/** What is the same each time a state is entered. */
interface Prepared {
  readonly agent: AgentSpec;
  readonly contract: string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** Characters of the tools, which go with every prompt. */
  readonly toolsSize: number;
  /** The tools of the last turn. */
  readonly last: readonly LanguageModelV4FunctionTool[];
}

/** The model of a stage, and what is known about it. */
interface Asked {
  readonly model: ResolvedModel;
  readonly facts: ModelFacts;
}

async function act(init: Json, scope: ActScope, prepared: Prepared, { model, facts }: Asked): Promise<ActOutcome> {
  const { agent, tools, last } = prepared;
  const completion = { tool: agent.completionTool, schema: agent.completionSchema };
  // Bytes are worth measuring only where something is set aside by them.
  const sizeOf = scope.limits.capped ? Buffer.byteLength : (text: string): number => text.length;
  const transcript = createTranscript(textOf(init, "system"), textOf(init, "first"), sizeOf);
  const prompt = createPromptMeter(prepared.toolsSize);
  const promptTokens = (): number => prompt.next(transcript.size());
  let usage = NO_USAGE;
  let near = false;
  let onlyInvalid = false;

  for (let turn = 1; turn <= agent.turnCap; turn += 1) {
    const spent = (turns: number): { turns: number; usage: Usage } => ({ turns, usage });
    if (scope.signal.aborted) return { status: "cancelled", reason: reasonOf(scope.signal), ...spent(turn - 1) };
    const answer = await askModel(scope, {
      turn,
      model,
      facts,
      prompt: transcript.messages,
      promptTokens,
      tools: turn === agent.turnCap ? last : tools,
      completion,
      callIds: transcript.callIds,
      ...(agent.temperature === undefined ? {} : { temperature: agent.temperature }),
      ...(agent.maxOutputTokens === undefined ? {} : { maxOutputTokens: agent.maxOutputTokens }),
    });
    usage = addUsage(usage, answer.usage);
    // A limit is met before the model is called.
    if (answer.kind !== "reply")
      return { ...noReply(answer, scope.signal), ...spent(answer.kind === "limit" ? turn - 1 : turn) };
    const { reply } = answer;
    transcript.assistant(reply);
    prompt.replied(reply.usage, transcript.size());
    const filled = near ? undefined : nearWindow(promptTokens(), facts.contextWindow);
    if (filled !== undefined) {
      near = true;
      scope.note({ type: "limit.near", data: filled });
    }

    const others = reply.calls.filter((call) => call.tool !== completion.tool);
    const outcomes =
      others.length === 0
        ? []
        : await scope.calls(
            turn,
            others.map((call) => requestOf(turn, call)),
          );
    const finished = {
      turn,
      finishReason: reply.finishReason,
      calls: reply.calls.length,
      usage: { ...answer.usage },
    };
    scope.note({ type: "turn.finished", data: finished });
    // A filter stops the same transcript again; what may help is an attempt with a fresh one.
    if (reply.finishReason === "content-filter" && reply.calls.length === 0) {
      const { code, message } = FILTERED;
      return { status: "failed", code: "model", message, detail: { code }, ...spent(turn) };
    }
    if (outcomes.some((outcome) => outcome.stuck === true)) {
      return {
        status: "failed",
        code: "tool",
        message: "the model made the same call six times in a row",
        ...spent(turn),
      };
    }
    if (scope.signal.aborted) return { status: "cancelled", reason: reasonOf(scope.signal), ...spent(turn) };

    const completions = others.length === 0 ? answer.completions : await readLast(scope, turn, reply, completion);
    const accepted = completions.find((check) => check.ok);
    if (accepted?.ok === true) {
      scope.note({ type: "completion.accepted", data: { turn, callId: callId(turn, accepted.index) } });
      return { status: "completed", output: accepted.output, ...spent(turn) };
    }
    for (const check of completions) noteRejected(scope, turn, check);
    onlyInvalid ||= completions.length > 0;
    if (reply.calls.length === 0) transcript.user(nudge(completion.tool, agent.turnCap - turn));
    else transcript.results(reply.calls, outcomes, completions, turn);
  }
  const code: FailureCode = onlyInvalid ? "schema" : "turn_cap";
  scope.note({ type: "limit.reached", data: { limit: "turnCap", message: `${agent.turnCap} turns` } });
  const message = onlyInvalid
    ? `no ${completion.tool} fitted its schema within ${agent.turnCap} turns`
    : `${completion.tool} was not called within ${agent.turnCap} turns`;
  return { status: "failed", code, message, turns: agent.turnCap, usage };
}

/** The completions of a turn that made other calls too: read when those have run. */
async function readLast(
  scope: ActScope,
  turn: number,
  reply: Reply,
  completion: TurnRequest["completion"],
): Promise<readonly CompletionCheck[]> {
  if (!reply.calls.some((call) => call.tool === completion.tool)) return [];
  return await scope.steps.run(`turn/${turn}/completion`, () => checkCompletions(reply, completion));
}

type NoReply =
  | { status: "cancelled"; reason: string }
  | { status: "failed"; code: FailureCode; message: string; detail?: Json };

function noReply(answer: Exclude<TurnAnswer, { readonly kind: "reply" }>, signal: AbortSignal): NoReply {
  switch (answer.kind) {
    case "cancelled":
      return { status: "cancelled", reason: reasonOf(signal) };
    case "limit":
      return {
        status: "failed",
        code: answer.hit.code,
        message: answer.hit.message,
        detail: { limit: answer.hit.limit, ...answer.hit.detail },
      };
    case "failed": {
      const { error, tries } = answer;
      const code = error.kind === "context_overflow" ? "context_overflow" : "model";
      const message = tries === 1 ? error.message : `${error.message} (after ${tries} tries)`;
      return {
        status: "failed",
        code,
        message,
        detail: { code: error.code, ...(error.status === undefined ? {} : { status: error.status }) },
      };
    }
  }
}

/** The messages of one attempt: append-only, in the provider's format, each converted once. */
function createTranscript(system: string, first: string, sizeOf: (text: string) => number) {
  const messages: LanguageModelV4Message[] = [{ role: "system", content: system }];
  const callIds = new Set<string>();
  let size = sizeOf(system);
  const user = (text: string): void => {
    size += sizeOf(text);
    messages.push({ role: "user", content: [{ type: "text", text }] });
  };
  user(first);
  return {
    messages,
    callIds,
    size: () => size,
    user,
    assistant: (reply: Reply): void => {
      // Providers refuse an empty assistant message.
      if (reply.content.length === 0) return;
      size += reply.chars;
      // Those of calls that the provider ran itself, too.
      for (const part of reply.content) if (part.type === "tool-call") callIds.add(part.toolCallId);
      messages.push({ role: "assistant", content: reply.content });
    },
    results: (
      calls: readonly TurnCall[],
      outcomes: readonly CallOutcome[],
      completions: readonly CompletionCheck[],
      turn: number,
    ): void => {
      const byId = new Map(outcomes.map((outcome) => [outcome.id, outcome]));
      const content = calls.map((call): LanguageModelV4ToolResultPart => {
        const output = outputOf(
          byId.get(callId(turn, call.index)),
          completions.find((check) => check.index === call.index),
        );
        size += sizeOf(output.type === "text" ? output.value : JSON.stringify(output.value));
        return { type: "tool-result", toolCallId: call.id, toolName: call.wireName ?? call.tool, output };
      });
      messages.push({ role: "tool", content });
    },
  };
}

type ResultOutput = { type: "text"; value: string } | { type: "json" | "error-json"; value: Json };

function outputOf(outcome: CallOutcome | undefined, check: CompletionCheck | undefined): ResultOutput {
  if (outcome !== undefined) {
    if (!outcome.ok) return { type: "error-json", value: outcome.output };
    return typeof outcome.output === "string"
      ? { type: "text", value: outcome.output }
      : { type: "json", value: outcome.output };
  }
  const issues = check?.ok === false ? check.issues.map((issue) => ({ ...issue })) : [];
  const value = {
    code: "completion_schema_invalid",
    message: "the arguments do not fit the schema; call it again with all issues mended",
    issues,
  };
  return { type: "error-json", value };
}

function noteRejected(scope: ActScope, turn: number, check: CompletionCheck): void {
  if (check.ok) return;
  const issues = check.issues.map((issue) => ({ ...issue }));
  scope.note({
    type: "completion.rejected",
    data: { turn, callId: callId(turn, check.index), code: "completion_schema_invalid", issues },
  });
}

function requestOf(turn: number, { index, tool, input, inputError, rawInput }: TurnCall) {
  const id = callId(turn, index);
  if (inputError === undefined && input !== undefined) return { id, tool, input };
  const code = inputError?.code === "truncated" ? ("truncated_call" as const) : ("invalid_tool_input" as const);
  const message = inputError?.message ?? "the arguments could not be read";
  return { id, tool, inputFault: { code, message, ...(rawInput === undefined ? {} : { raw: rawInput }) } };
}

function offeredTools({ allowedTools, tools }: Offer, agent: AgentSpec): readonly LanguageModelV4FunctionTool[] {
  const all = agent.visibility === "session" || allowedTools === undefined;
  return tools
    .filter((tool) => all || tool.allowed)
    .map(({ name, description, inputSchema }) => functionTool(name, description, inputSchema));
}

function completionTool(agent: AgentSpec): LanguageModelV4FunctionTool {
  return functionTool(agent.completionTool, "Ends this stage with its result.", agent.completionSchema.jsonSchema);
}

function functionTool(
  name: string,
  description: string,
  inputSchema: AgentSpec["completionSchema"]["jsonSchema"],
): LanguageModelV4FunctionTool {
  return { type: "function", name, description, inputSchema: { ...inputSchema } };
}

function agentOf(state: StateSpec): AgentSpec {
  if (state.agent === undefined)
    throw new SluiceError("Validation", "state_invalid", "an agent state has to be made with stage()");
  return state.agent;
}

function callId(turn: number, index: number): string {
  return `t${turn}.c${index}`;
}

function textOf(init: Json, key: string): string {
  const text = field(init, key);
  return typeof text === "string" ? text : "";
}

function reasonOf(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason.message : "cancelled";
}
