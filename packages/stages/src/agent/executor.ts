import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import {
  type ActOutcome,
  type ActScope,
  type AvailableTools,
  type FailureCode,
  field,
  type Json,
  type StateExecutor,
  type StateSpec,
  type Usage,
} from "@sluice/core";
import { addUsage } from "@sluice/core/runtime";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";
import { modelFacts } from "../models/pricing/prices.ts";
import { FILTERED } from "../models/reply/failure.ts";
import { type AgentSpec, readAgent } from "./agent-spec.ts";
import { NO_USAGE, nearWindow } from "./budget.ts";
import { withSkills } from "./completion/skills.ts";
import { checkCompletions, contract, firstMessage, nudge, systemMessages } from "./contract.ts";
import { callModel, type ModelCaller } from "./model-call.ts";
import { modelTurn, type TurnAnswer } from "./model-turn.ts";
import type { CompletionCheck, Reply, TurnCall } from "./reply-record.ts";
import { completionStepName } from "./step-names.ts";
import { callId, Transcript } from "./transcript.ts";

/**
 * Runs agent states: one transcript per attempt, turn by turn, until a completion is valid or a limit is reached. `caller`
 * replaces `callModel`, for telemetry and other clocks.
 */
export function agentExecutor(
  modelOf: (agent: AgentSpec) => ResolvedModel,
  factsOf: (modelId: string) => ModelFacts = modelFacts(),
  caller: ModelCaller = (request) => callModel(request),
): StateExecutor {
  const stageModels = new WeakMap<ResolvedModel, StageModel>();
  const stageModelOf = (agent: AgentSpec): StageModel => {
    const model = modelOf(agent);
    const known = stageModels.get(model) ?? { model, facts: factsOf(model.pricedAs ?? model.id), caller };
    stageModels.set(model, known);
    return known;
  };
  const prepared = new WeakMap<AvailableTools, PreparedStage>();
  const prepare = (state: StateSpec, offer: AvailableTools): PreparedStage => {
    const agent = readAgent(state);
    const known = prepared.get(offer);
    if (known?.agent === agent) return known;
    const completion = completionTool(agent);
    const tools = [...offeredTools(offer, agent), completion];
    const stage = {
      agent,
      system: systemMessages(contract(agent, offer)),
      tools,
      toolsSize: JSON.stringify(tools).length,
      lastTurnTools: [completion],
    };
    prepared.set(offer, stage);
    return stage;
  };
  return {
    kind: "agent",
    init: (state, ctx, offer) => {
      const { agent, system } = prepare(state, offer);
      return { system: system(withSkills(agent.prompt(ctx), state, ctx)), first: firstMessage(ctx) };
    },
    act: (init, scope) => {
      const stage = prepare(scope.state, scope.offer);
      return act(init, scope, stage, stageModelOf(stage.agent));
    },
  };
}

/** What is the same each time a state is entered. */
interface PreparedStage {
  readonly agent: AgentSpec;
  /** Adds the contract to a prompt. */
  readonly system: (prompt: string) => string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** In characters; every prompt includes the tools. */
  readonly toolsSize: number;
  readonly lastTurnTools: readonly LanguageModelV4FunctionTool[];
}

interface StageModel {
  readonly model: ResolvedModel;
  readonly facts: ModelFacts;
  readonly caller: ModelCaller;
}

/** The state of an attempt between turns. */
interface AgentState {
  readonly scope: ActScope;
  readonly agent: AgentSpec;
  readonly facts: ModelFacts;
  readonly transcript: Transcript;
  usage: Usage;
  /** Whether `limit.near` was reported for the context window. */
  nearReported: boolean;
  /** Whether the model completed, but never with valid arguments. */
  onlyInvalid: boolean;
}

async function act(init: Json, scope: ActScope, prepared: PreparedStage, stageModel: StageModel): Promise<ActOutcome> {
  const { agent } = prepared;
  const { facts } = stageModel;
  // Counting bytes is slower and needed only for reservations.
  const sizeOf = scope.budget.capped ? Buffer.byteLength : lengthOf;
  const transcript = new Transcript(textField(init, "system"), textField(init, "first"), prepared.toolsSize, sizeOf);
  const state: AgentState = {
    scope,
    agent,
    facts,
    transcript,
    usage: NO_USAGE,
    nearReported: false,
    onlyInvalid: false,
  };
  for (let turn = 1; turn <= agent.turnCap; turn += 1) {
    if (scope.signal.aborted) return cancelled(state, turn - 1);
    const tools = turn === agent.turnCap ? prepared.lastTurnTools : prepared.tools;
    const answer = await modelTurn(scope, { turn, agent, ...stageModel, transcript, tools });
    const outcome = await handleAnswer(state, turn, answer);
    if (outcome !== undefined) return outcome;
  }
  return outOfTurns(state);
}

/** Appends an answer to the transcript and executes its calls. Returns the outcome if the attempt ends with this turn. */
async function handleAnswer(state: AgentState, turn: number, answer: TurnAnswer): Promise<ActOutcome | undefined> {
  const { scope, agent, transcript } = state;
  state.usage = addUsage(state.usage, answer.usage);
  const totals = { turns: turn, usage: state.usage };
  if (answer.kind === "cancelled") return cancelled(state, turn);
  // The limit was reached before the model was called.
  if (answer.kind === "limit") {
    const { code, message, limit, detail } = answer.hit;
    return { status: "failed", code, message, detail: { limit, ...detail }, ...totals, turns: turn - 1 };
  }
  if (answer.kind === "failed") {
    const { error, tries } = answer;
    const code = error.kind === "context_overflow" ? "context_overflow" : "model";
    const message = tries === 1 ? error.message : `${error.message} (after ${tries} tries)`;
    const detail = { code: error.code, ...(error.status === undefined ? {} : { status: error.status }) };
    return { status: "failed", code, message, detail, ...totals };
  }
  const { reply } = answer;
  transcript.assistant(reply);
  reportNearWindow(state);

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
  // The same transcript would be filtered again; only an attempt with a new transcript can succeed.
  if (reply.finishReason === "content-filter" && reply.calls.length === 0) {
    const { code, message } = FILTERED;
    return { status: "failed", code: "model", message, detail: { code }, ...totals };
  }
  if (outcomes.some((outcome) => outcome.stuck === true)) {
    return { status: "failed", code: "tool", message: "the model made the same call six times in a row", ...totals };
  }
  if (scope.signal.aborted) return cancelled(state, turn);

  const completions = others.length === 0 ? answer.completions : await lateCompletions(scope, turn, reply, agent);
  const accepted = completions.find((check) => check.ok);
  if (accepted?.ok === true) {
    scope.note({ type: "completion.accepted", data: { turn, callId: callId(turn, accepted.index) } });
    return { status: "completed", output: accepted.output, ...totals };
  }
  for (const check of completions) noteRejected(scope, turn, check);
  state.onlyInvalid ||= completions.length > 0;
  if (reply.calls.length === 0) transcript.user(nudge(agent.completionTool, agent.turnCap - turn));
  else transcript.results(reply.calls, outcomes, completions, turn);
  return undefined;
}

function cancelled({ scope, usage }: AgentState, turns: number): ActOutcome {
  return { status: "cancelled", reason: reasonOf(scope.signal), turns, usage };
}

function outOfTurns({ scope, agent, onlyInvalid, usage }: AgentState): ActOutcome {
  const code: FailureCode = onlyInvalid ? "schema" : "turn_cap";
  scope.note({ type: "limit.reached", data: { limit: "turnCap", message: `${agent.turnCap} turns` } });
  const message = onlyInvalid
    ? `no ${agent.completionTool} call matched its schema within ${agent.turnCap} turns`
    : `${agent.completionTool} was not called within ${agent.turnCap} turns`;
  return { status: "failed", code, message, turns: agent.turnCap, usage };
}

/** Reports once per attempt that the transcript is close to filling the model's context window. */
function reportNearWindow(state: AgentState): void {
  if (state.nearReported) return;
  const data = nearWindow(state.transcript.promptTokens(), state.facts.contextWindow);
  if (data === undefined) return;
  state.nearReported = true;
  state.scope.note({ type: "limit.near", data });
}

function lengthOf(text: string): number {
  return text.length;
}

/** Completions beside other calls are checked after those have run. */
async function lateCompletions(
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
  return functionTool(
    agent.completionTool,
    "Submits the result of this stage and finishes it.",
    agent.completionSchema.jsonSchema,
  );
}

function functionTool(
  name: string,
  description: string,
  inputSchema: AgentSpec["completionSchema"]["jsonSchema"],
): LanguageModelV4FunctionTool {
  return { type: "function", name, description, inputSchema: { ...inputSchema } };
}

function textField(init: Json, key: string): string {
  const text = field(init, key);
  return typeof text === "string" ? text : "";
}

function reasonOf(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason.message : "cancelled";
}
