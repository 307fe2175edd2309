import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import {
  type ActOutcome,
  type ActScope,
  type AgentSpec,
  addUsage,
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
import { contract, firstMessage, nudge, systemMessages } from "./contract.ts";
import type { CompletionCheck, Reply, TurnCall } from "./kept-reply.ts";
import { NO_USAGE, nearWindow } from "./metering.ts";
import { askModel, checkCompletions, type TurnAnswer } from "./model-turn.ts";
import { callId, Transcript } from "./transcript.ts";

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
      system: systemMessages(contract(agent, offer)),
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
      const { agent, system } = prepare(state, offer);
      return { system: system(agent.prompt(ctx)), first: firstMessage(ctx) };
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
  /** The system message of a prompt. */
  readonly system: (prompt: string) => string;
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
  const { agent } = prepared;
  // Bytes are worth measuring only where something is set aside by them.
  const sizeOf = scope.limits.capped ? Buffer.byteLength : (text: string): number => text.length;
  const transcript = new Transcript(textOf(init, "system"), textOf(init, "first"), prepared.toolsSize, sizeOf);
  let usage = NO_USAGE;
  let near = false;
  let onlyInvalid = false;

  for (let turn = 1; turn <= agent.turnCap; turn += 1) {
    const spent = (turns: number): { turns: number; usage: Usage } => ({ turns, usage });
    if (scope.signal.aborted) return { status: "cancelled", reason: reasonOf(scope.signal), ...spent(turn - 1) };
    const tools = turn === agent.turnCap ? prepared.last : prepared.tools;
    const answer = await askModel(scope, { turn, agent, model, facts, transcript, tools });
    usage = addUsage(usage, answer.usage);
    // A limit is met before the model is called.
    if (answer.kind !== "reply")
      return { ...noReply(answer, scope.signal), ...spent(answer.kind === "limit" ? turn - 1 : turn) };
    const { reply } = answer;
    transcript.assistant(reply);
    const filled = near ? undefined : nearWindow(transcript.promptTokens(), facts.contextWindow);
    if (filled !== undefined) {
      near = true;
      scope.note({ type: "limit.near", data: filled });
    }

    const others = reply.calls.filter((call) => call.tool !== agent.completionTool);
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

    const completions = others.length === 0 ? answer.completions : await readLast(scope, turn, reply, agent);
    const accepted = completions.find((check) => check.ok);
    if (accepted?.ok === true) {
      scope.note({ type: "completion.accepted", data: { turn, callId: callId(turn, accepted.index) } });
      return { status: "completed", output: accepted.output, ...spent(turn) };
    }
    for (const check of completions) noteRejected(scope, turn, check);
    onlyInvalid ||= completions.length > 0;
    if (reply.calls.length === 0) transcript.user(nudge(agent.completionTool, agent.turnCap - turn));
    else transcript.results(reply.calls, outcomes, completions, turn);
  }
  const code: FailureCode = onlyInvalid ? "schema" : "turn_cap";
  scope.note({ type: "limit.reached", data: { limit: "turnCap", message: `${agent.turnCap} turns` } });
  const message = onlyInvalid
    ? `no ${agent.completionTool} fitted its schema within ${agent.turnCap} turns`
    : `${agent.completionTool} was not called within ${agent.turnCap} turns`;
  return { status: "failed", code, message, turns: agent.turnCap, usage };
}

/** The completions of a turn that made other calls too: read when those have run. */
async function readLast(
  scope: ActScope,
  turn: number,
  reply: Reply,
  agent: AgentSpec,
): Promise<readonly CompletionCheck[]> {
  if (!reply.calls.some((call) => call.tool === agent.completionTool)) return [];
  return await scope.steps.run(`turn/${turn}/completion`, () => checkCompletions(reply, agent));
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

function textOf(init: Json, key: string): string {
  const text = field(init, key);
  return typeof text === "string" ? text : "";
}

function reasonOf(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason.message : "cancelled";
}
