import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import {
  type ActOutcome,
  type ActScope,
  type AgentSpec,
  type AvailableTools,
  addUsage,
  type FailureCode,
  field,
  type Json,
  type LimitHit,
  SluiceError,
  type StateExecutor,
  type StateSpec,
  type Usage,
} from "@sluice/core";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/model-facts.ts";
import { modelFacts } from "../models/pricing/prices.ts";
import { FILTERED } from "../models/reply/failure.ts";
import { NO_USAGE, nearWindow } from "./budget.ts";
import { checkCompletions, contract, firstMessage, nudge, systemMessages } from "./contract.ts";
import type { ModelCaller } from "./model-call.ts";
import { ModelTurn, type TurnAnswer } from "./model-turn.ts";
import type { CompletionCheck, Reply, TurnCall } from "./reply-record.ts";
import { completionStepName } from "./step-names.ts";
import { callId, Transcript } from "./transcript.ts";

/** Runs agent states: one transcript, turn by turn, until a completion is accepted or a cap is reached. */
export function agentExecutor(
  modelOf: (agent: AgentSpec) => ResolvedModel,
  factsOf: (modelId: string) => ModelFacts = modelFacts(),
): StateExecutor {
  return followedExecutor({ modelOf, factsOf, caller: undefined });
}

/** The same with model calls that somebody follows. */
export function followedExecutor({ modelOf, factsOf, caller }: Followed): StateExecutor {
  const known = new WeakMap<ResolvedModel, Asked>();
  const asked = (agent: AgentSpec): Asked => {
    const model = modelOf(agent);
    const before = known.get(model) ?? { model, facts: factsOf(model.pricedAs ?? model.id), caller };
    known.set(model, before);
    return before;
  };
  const prepared = new WeakMap<AvailableTools, Prepared>();
  const prepare = (state: StateSpec, offer: AvailableTools): Prepared => {
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

interface Followed {
  readonly modelOf: (agent: AgentSpec) => ResolvedModel;
  readonly factsOf: (modelId: string) => ModelFacts;
  readonly caller: ModelCaller | undefined;
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
  readonly caller: ModelCaller | undefined;
}

/** What an attempt knows from turn to turn. */
interface Talk {
  readonly scope: ActScope;
  readonly agent: AgentSpec;
  readonly facts: ModelFacts;
  readonly transcript: Transcript;
  usage: Usage;
  /** It was said that the transcript nears the model's context window. */
  near: boolean;
  /** A completion was made, and none fitted. */
  onlyInvalid: boolean;
}

async function act(init: Json, scope: ActScope, prepared: Prepared, asked: Asked): Promise<ActOutcome> {
  const { agent } = prepared;
  const { facts } = asked;
  // Bytes are worth measuring only where something is set aside by them.
  const sizeOf = scope.limits.capped ? Buffer.byteLength : lengthOf;
  const transcript = new Transcript(textOf(init, "system"), textOf(init, "first"), prepared.toolsSize, sizeOf);
  const talk: Talk = { scope, agent, facts, transcript, usage: NO_USAGE, near: false, onlyInvalid: false };
  for (let turn = 1; turn <= agent.turnCap; turn += 1) {
    if (scope.signal.aborted) return cancelled(talk, turn - 1);
    const tools = turn === agent.turnCap ? prepared.last : prepared.tools;
    const request = new ModelTurn(scope, { turn, agent, ...asked, transcript, tools });
    let answer: TurnAnswer | undefined;
    while (answer === undefined) answer = await request.take(await request.ask());
    const ended = await takeAnswer(talk, turn, answer);
    if (ended !== undefined) return ended;
  }
  return outOfTurns(talk);
}

/** Puts an answer into the transcript and does what it asks for. What the attempt came to, when it ends with that. */
async function takeAnswer(talk: Talk, turn: number, answer: TurnAnswer): Promise<ActOutcome | undefined> {
  const { scope, agent, transcript } = talk;
  talk.usage = addUsage(talk.usage, answer.usage);
  const spent = { turns: turn, usage: talk.usage };
  if (answer.kind === "cancelled") return cancelled(talk, turn);
  // A limit is met before the model is called.
  if (answer.kind === "limit") return { ...limited(answer.hit), ...spent, turns: turn - 1 };
  if (answer.kind === "failed") return { ...failed(answer), ...spent };
  const { reply } = answer;
  transcript.assistant(reply);
  noteNear(talk);

  const others = reply.calls.filter((call) => call.tool !== agent.completionTool);
  const outcomes =
    others.length === 0
      ? []
      : await scope.calls(
          turn,
          others.map((call) => requestOf(turn, call)),
        );
  const finished = { turn, finishReason: reply.finishReason, calls: reply.calls.length, usage: { ...answer.usage } };
  scope.note({ type: "turn.finished", data: finished });
  // A filter stops the same transcript again; what may help is an attempt with a fresh one.
  if (reply.finishReason === "content-filter" && reply.calls.length === 0) {
    const { code, message } = FILTERED;
    return { status: "failed", code: "model", message, detail: { code }, ...spent };
  }
  if (outcomes.some((outcome) => outcome.stuck === true)) {
    return { status: "failed", code: "tool", message: "the model made the same call six times in a row", ...spent };
  }
  if (scope.signal.aborted) return cancelled(talk, turn);

  const completions = others.length === 0 ? answer.completions : await readLast(scope, turn, reply, agent);
  const accepted = completions.find((check) => check.ok);
  if (accepted?.ok === true) {
    scope.note({ type: "completion.accepted", data: { turn, callId: callId(turn, accepted.index) } });
    return { status: "completed", output: accepted.output, ...spent };
  }
  for (const check of completions) noteRejected(scope, turn, check);
  talk.onlyInvalid ||= completions.length > 0;
  if (reply.calls.length === 0) transcript.user(nudge(agent.completionTool, agent.turnCap - turn));
  else transcript.results(reply.calls, outcomes, completions, turn);
  return undefined;
}

function cancelled({ scope, usage }: Talk, turns: number): ActOutcome {
  return { status: "cancelled", reason: reasonOf(scope.signal), turns, usage };
}

function outOfTurns({ scope, agent, onlyInvalid, usage }: Talk): ActOutcome {
  const code: FailureCode = onlyInvalid ? "schema" : "turn_cap";
  scope.note({ type: "limit.reached", data: { limit: "turnCap", message: `${agent.turnCap} turns` } });
  const message = onlyInvalid
    ? `no ${agent.completionTool} fitted its schema within ${agent.turnCap} turns`
    : `${agent.completionTool} was not called within ${agent.turnCap} turns`;
  return { status: "failed", code, message, turns: agent.turnCap, usage };
}

/** Says once that the transcript nears the model's context window. */
function noteNear(talk: Talk): void {
  const { scope, transcript, facts } = talk;
  const filled = talk.near ? undefined : nearWindow(transcript.promptTokens(), facts.contextWindow);
  if (filled === undefined) return;
  talk.near = true;
  scope.note({ type: "limit.near", data: filled });
}

function lengthOf(text: string): number {
  return text.length;
}

/** The completions of a turn that made other calls too: read when those have run. */
async function readLast(
  scope: ActScope,
  turn: number,
  reply: Reply,
  agent: AgentSpec,
): Promise<readonly CompletionCheck[]> {
  if (!reply.calls.some((call) => call.tool === agent.completionTool)) return [];
  return await scope.steps.run(completionStepName(turn), () => checkCompletions(reply, agent), {
    decides: () => true,
  });
}

type Failure = {
  readonly status: "failed";
  readonly code: FailureCode;
  readonly message: string;
  readonly detail: Json;
};

function limited({ code, message, limit, detail }: LimitHit): Failure {
  return { status: "failed", code, message, detail: { limit, ...detail } };
}

function failed({ error, tries }: Extract<TurnAnswer, { readonly kind: "failed" }>): Failure {
  const code = error.kind === "context_overflow" ? "context_overflow" : "model";
  const message = tries === 1 ? error.message : `${error.message} (after ${tries} tries)`;
  const detail = { code: error.code, ...(error.status === undefined ? {} : { status: error.status }) };
  return { status: "failed", code, message, detail };
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

function offeredTools(
  { allowedTools, tools }: AvailableTools,
  agent: AgentSpec,
): readonly LanguageModelV4FunctionTool[] {
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
