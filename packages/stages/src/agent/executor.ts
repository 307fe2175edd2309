import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import {
  type ActOutcome,
  type ActScope,
  type AvailableTools,
  type CallRequest,
  isJsonObject,
  type Json,
  type RefusedTarget,
  type StateExecutor,
  type StatePlace,
  type StateSpec,
  type Usage,
} from "@sluice/core";
import { addUsage, type LimitHit, NO_USAGE, textField } from "@sluice/core/runtime";
import { FILTERED } from "../models/reply/failure.ts";
import { type AgentSpec, readAgent, shownTools } from "./agent-spec.ts";
import { nearWindow } from "./budget.ts";
import { completionByChoice } from "./choosing/by-choice.ts";
import { completionByEvents } from "./completion/by-events.ts";
import {
  type Completion,
  completionByTool,
  contract,
  DECIDING_TURNS,
  functionTool,
  interruptNotice,
  nudge,
  type Rejected,
  systemMessages,
} from "./completion/completion.ts";
import { withSkills } from "./completion/skills.ts";
import { callModel, type ModelCaller } from "./model-call.ts";
import { checkLate, type ModelsInUse, modelInUse, modelTurn, type StageModels, type TurnAnswer } from "./model-turn.ts";
import type { CompletionCheck, Reply, TurnCall } from "./reply-record.ts";
import { type CallAnswer, callId, progressIn, Transcript } from "./transcript.ts";

/**
 * Runs agent states: one transcript per attempt, turn by turn, until a completion is valid or a limit is reached. `caller`
 * replaces `callModel`, for telemetry and other clocks.
 */
export function agentExecutor(
  modelsOf: (agent: AgentSpec) => StageModels,
  caller: ModelCaller = (request) => callModel(request),
  kind: "agent" | "router" = "agent",
): StateExecutor {
  const warned: Warned = new WeakMap();
  const prepared = new WeakMap<AvailableTools, PreparedStage>();
  const prepare = (state: StateSpec, offer: AvailableTools, place: StatePlace): PreparedStage => {
    const known = prepared.get(offer);
    if (known !== undefined && known.agent === state.options) return known;
    const agent = readAgent(state);
    const completion = completionOf(agent, state, place);
    const tools = [...offeredTools(offer, agent), ...completion.besides, completion.tool];
    const stage = {
      agent,
      completion,
      system: systemMessages(contract(completion, state, agent.turnCap, offer)),
      tools,
      toolsSize: JSON.stringify(tools).length,
    };
    // What a state may choose changes from visit to visit.
    if (state.chooses === undefined) prepared.set(offer, stage);
    return stage;
  };
  return {
    kind,
    init: (state, ctx, offer, place) => {
      const { agent, completion, system } = prepare(state, offer, place);
      const own = place.prompt ?? agent.prompt(ctx);
      const prompt = ctx.project?.skills === undefined ? own : withSkills(own, state, ctx.project.skills);
      return { system: system(prompt, completion.about(ctx)), first: completion.first(ctx) };
    },
    act: (init, scope) => {
      const stage = prepare(scope.state, scope.offer, scope);
      return act(init, scope, stage, { models: { all: modelsOf(stage.agent), index: 0 }, caller, warned });
    },
  };
}

function completionOf(agent: AgentSpec, state: StateSpec, place: StatePlace): Completion {
  if (state.chooses !== undefined) return completionByChoice(agent, place);
  const { completionTool, completionSchema } = agent;
  return completionTool === undefined || completionSchema === undefined
    ? completionByEvents(agent, place)
    : completionByTool({ ...agent, completionTool, completionSchema });
}

/** What is the same each time a state is entered. */
interface PreparedStage {
  readonly agent: AgentSpec;
  readonly completion: Completion;
  /** Adds the contract to a prompt. */
  readonly system: (prompt: string, about: string) => string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** In characters; every prompt includes the tools. */
  readonly toolsSize: number;
}

/** What an attempt calls. */
interface ModelCalls {
  readonly models: ModelsInUse;
  readonly caller: ModelCaller;
  readonly warned: Warned;
}

/** The warnings that the states of each run have reported, by `kept` of their scopes. */
export type Warned = WeakMap<object, Set<string>>;

/** The state of an attempt between turns. */
interface AgentState {
  readonly scope: ActScope;
  readonly agent: AgentSpec;
  readonly completion: Completion;
  readonly models: ModelsInUse;
  readonly warned: Warned;
  readonly transcript: Transcript;
  usage: Usage;
  /** Whether `limit.near` was reported for the context window. */
  nearReported: boolean;
  /** Turns since the stage's tool calls were used up. */
  decidingTurns: number;
  /** The last completion that was rejected. */
  rejected: Rejected | undefined;
  /** Of a state that chooses: what it chose and was refused. */
  readonly refused: RefusedTarget[];
  /** The last text of the model. */
  said: string;
}

async function act(init: Json, scope: ActScope, prepared: PreparedStage, calls: ModelCalls): Promise<ActOutcome> {
  const { agent, completion } = prepared;
  const { models, warned } = calls;
  // Counting bytes is slower and needed only for reservations.
  const sizeOf = scope.budget.capped ? Buffer.byteLength : lengthOf;
  const transcript = new Transcript(
    textField(init, "system") ?? "",
    textField(init, "first") ?? "",
    prepared.toolsSize,
    sizeOf,
  );
  const state: AgentState = {
    scope,
    agent,
    completion,
    models,
    warned,
    transcript,
    usage: NO_USAGE,
    nearReported: false,
    decidingTurns: 0,
    rejected: undefined,
    refused: [],
    said: "",
  };
  let outcome: ActOutcome | undefined;
  try {
    for (let turn = 1; ; turn += 1) {
      outcome = endedBefore(state, turn);
      if (outcome !== undefined) break;
      const isOutOfCalls = outOfCalls(scope);
      if (isOutOfCalls) announceDeciding(state);
      const tools = isOutOfCalls || turn === agent.turnCap ? [completion.tool] : prepared.tools;
      const answer = await modelTurn(scope, { turn, agent, completion, ...calls, transcript, tools });
      outcome = await handleAnswer(state, turn, answer);
      if (outcome !== undefined) break;
    }
  } finally {
    for (const { model } of models.all) {
      if (model.ended !== undefined) await model.ended({ stage: scope.stateId, runId: scope.ctx.runId });
    }
  }
  return state.refused.length === 0 ? outcome : { ...outcome, refused: state.refused };
}

/** The outcome of an attempt that begins no turn any more. */
function endedBefore(state: AgentState, turn: number): ActOutcome | undefined {
  const { scope, agent, completion } = state;
  if (completion.hopeless !== undefined) return { status: "failed", ...completion.hopeless, turns: 0, usage: NO_USAGE };
  if (turn > agent.turnCap) return outOfTurns(state);
  if (scope.signal.aborted) return cancelled(state, turn - 1);
  return outOfCalls(scope) && state.decidingTurns === DECIDING_TURNS ? undecided(state, turn - 1) : undefined;
}

/** Appends an answer to the transcript and executes its calls. Returns the outcome if the attempt ends with this turn. */
async function handleAnswer(state: AgentState, turn: number, answer: TurnAnswer): Promise<ActOutcome | undefined> {
  const { scope, completion, transcript } = state;
  state.usage = addUsage(state.usage, answer.usage);
  const totals = { turns: turn, usage: state.usage };
  if (answer.kind !== "reply") return withProgress(endedWithout(state, turn, answer), state);
  const { reply } = answer;
  transcript.assistant(reply);
  state.said = textOf(reply) || state.said;
  noteWarnings(state, turn, reply);
  reportNearWindow(state);

  const others = reply.calls.filter(({ tool }) => !completion.own.has(tool));
  const { takes } = modelInUse(state.models).model;
  const outcomes =
    others.length === 0
      ? []
      : await scope.calls(
          turn,
          others.map((call) => requestOf(turn, call, takes)),
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

  const answers: CallAnswer[] = [...outcomes];
  if (outcomes.some(({ interrupts = [] }) => interrupts.length > 0)) {
    answers.push(...interruptedCalls(state, turn, reply));
  } else if (others.length < reply.calls.length) {
    // In order, up to the one that completes the state. Beside other calls, they are checked after those have run.
    const checks = others.length === 0 ? answer.completions : await checkLate({ completion, turn }, reply, scope);
    const capped = endedByCap(state, turn, checks);
    if (capped !== undefined) return capped;
    for (const call of reply.calls) {
      if (!completion.own.has(call.tool)) continue;
      const check = checks.find(({ index }) => index === call.index);
      const settling = completion.settle(call, check, turn, scope);
      // Each await costs a plain stage more than the rest of this.
      const settled = settling instanceof Promise ? await settling : settling;
      if (settled.kind === "completed") return { status: "completed", output: settled.output, ...totals };
      if (settled.kind === "rejected") state.rejected = settled;
      if (settled.kind === "rejected" && settled.to !== undefined)
        state.refused.push({ to: settled.to, why: settled.why });
      answers.push({ id: callId(turn, call.index), ok: settled.kind === "answered", output: settled.output });
    }
  }
  if (scope.signal.aborted) return cancelled(state, turn);
  if (reply.calls.length === 0) transcript.user(nudge(completion, turnsLeft(state, turn)));
  else transcript.results(reply.calls, answers, turn);
  for (const { interrupts = [] } of outcomes) {
    for (const handled of interrupts) transcript.user(scope.secrets.text(interruptNotice(scope.stateId, handled)));
  }
  return undefined;
}

/** The outcome of a turn without a reply. */
export function endedWithout(
  state: Pick<AgentState, "scope" | "usage"> & { readonly said?: string },
  turn: number,
  answer: Exclude<TurnAnswer, { readonly kind: "reply" }>,
): ActOutcome {
  const { usage } = state;
  switch (answer.kind) {
    case "cancelled":
      return cancelled(state, turn, answer.partial);
    case "limit":
      // The limit was reached before the model was called.
      return overLimit(answer.hit, { turns: turn - 1, usage });
    case "failed": {
      const { error, tries } = answer;
      const code = error.kind === "context_overflow" ? "context_overflow" : "model";
      const message = tries === 1 ? error.message : `${error.message} (after ${tries} tries)`;
      const detail = { code: error.code, ...(error.status === undefined ? {} : { status: error.status }) };
      return { status: "failed", code, message, detail, turns: turn, usage };
    }
  }
}

/** The outcome of a turn whose checks were stopped by a cap; undefined if none was. */
export function endedByCap(
  { scope, usage }: Pick<AgentState, "scope" | "usage">,
  turns: number,
  checks: readonly CompletionCheck[],
): ActOutcome | undefined {
  const [hit] = checks.flatMap((check) => (check.ok ? [] : (check.stopped?.hit ?? [])));
  if (hit === undefined) return undefined;
  scope.note({ type: "limit.reached", data: { limit: hit.limit, message: hit.message, ...hit.detail } });
  return overLimit(hit, { turns, usage });
}

function overLimit(
  { code, message, limit, detail }: LimitHit,
  totals: Pick<ActOutcome, "turns" | "usage">,
): ActOutcome {
  return { status: "failed", code, message, detail: { limit, ...detail }, ...totals };
}

/** A transcript that no longer fits is lost to the next attempt, so its failure says what was done. */
function withProgress(outcome: ActOutcome, { scope, transcript }: AgentState): ActOutcome {
  if (outcome.status !== "failed" || outcome.code !== "context_overflow") return outcome;
  const detail = isJsonObject(outcome.detail) ? outcome.detail : {};
  return { ...outcome, detail: { ...detail, progress: scope.secrets.text(progressIn(transcript.messages)) } };
}

/** `said` is the text of a reply that was stopped. */
export function cancelled(
  { scope, usage, said: before = "" }: Pick<AgentState, "scope" | "usage"> & { readonly said?: string },
  turns: number,
  said = "",
): ActOutcome {
  const partial = said === "" ? before : said;
  return {
    status: "cancelled",
    reason: reasonOf(scope.signal),
    turns,
    usage,
    ...(partial === "" ? {} : { partial }),
  };
}

function outOfTurns({ scope, agent, completion, rejected, usage }: AgentState): ActOutcome {
  scope.note({ type: "limit.reached", data: { limit: "turnCap", message: `${agent.turnCap} turns` } });
  const failure = completion.notCompleted(`within ${agent.turnCap} turns`, rejected);
  return { status: "failed", ...failure, turns: agent.turnCap, usage };
}

/** Whether the calls that the stage may run are used up. */
function outOfCalls(scope: ActScope): boolean {
  return scope.used().calls >= (scope.state.limits?.maxToolCalls ?? Number.POSITIVE_INFINITY);
}

/** Counts a turn that can only complete the state; before the first one, the model reads why. */
function announceDeciding(state: AgentState): void {
  const { scope, completion, transcript } = state;
  state.decidingTurns += 1;
  if (state.decidingTurns > 1) return;
  transcript.user(
    `This stage has used its ${scope.used().calls} tool calls. Only ${completion.tool.name} is available now, for ${DECIDING_TURNS} turns: ${completion.advice}.`,
  );
}

/** The turns after this one in which the model may complete the state. */
function turnsLeft({ scope, agent, decidingTurns }: AgentState, turn: number): number {
  const left = agent.turnCap - turn;
  return outOfCalls(scope) ? Math.min(left, DECIDING_TURNS - decidingTurns) : left;
}

/** The failure of an attempt that used its last tool call and did not complete in the turns that were left. */
function undecided({ scope, completion, rejected, usage }: AgentState, turns: number): ActOutcome {
  const after = `${DECIDING_TURNS} turns after the last of ${scope.used().calls} tool calls`;
  scope.note({ type: "limit.reached", data: { limit: "maxToolCalls", message: after } });
  return { status: "failed", ...completion.notCompleted(`within ${after}`, rejected), turns, usage };
}

/** Reports what the provider did not do as requested, each warning once per state of a run. */
export function noteWarnings(
  { scope, models, warned }: { readonly scope: ActScope; readonly models: ModelsInUse; readonly warned: Warned },
  turn: number,
  { warnings }: Pick<Reply, "warnings">,
): void {
  if (warnings.length === 0) return;
  const reported = warned.get(scope.kept) ?? new Set();
  warned.set(scope.kept, reported);
  const fresh = [...new Set(warnings)].filter((warning) => !reported.has(`${scope.stateId} ${warning}`));
  for (const warning of fresh) reported.add(`${scope.stateId} ${warning}`);
  if (fresh.length > 0)
    scope.note({ type: "model.warned", data: { turn, model: modelInUse(models).model.id, warnings: fresh } });
}

/** Reports once per attempt that the transcript is close to filling the model's context window. */
function reportNearWindow(state: AgentState): void {
  if (state.nearReported) return;
  const data = nearWindow(state.transcript.promptTokens(), modelInUse(state.models).facts.contextWindow);
  if (data === undefined) return;
  state.nearReported = true;
  state.scope.note({ type: "limit.near", data });
}

function lengthOf(text: string): number {
  return text.length;
}

/** The model did not know of the interrupt when it made these calls, so it has to decide again. */
function interruptedCalls({ completion }: AgentState, turn: number, reply: Reply): readonly CallAnswer[] {
  const message =
    "a call of this turn started an interrupt, so this call was not run; make it again if it is still right";
  return reply.calls
    .filter(({ tool }) => completion.own.has(tool))
    .map(({ index }) => ({ id: callId(turn, index), ok: false, output: { code: "interrupted", message } }));
}

function textOf({ content }: Reply): string {
  const texts = content.flatMap((part) => (part.type === "text" ? part.text : []));
  return texts.join("").trim();
}

function requestOf(
  turn: number,
  { index, tool, input, inputError, rawInput }: TurnCall,
  takes: CallRequest["takes"],
): CallRequest {
  const id = callId(turn, index);
  if (inputError === undefined && input !== undefined)
    return { id, tool, input, ...(takes === undefined ? {} : { takes }) };
  const code = inputError?.code === "truncated" ? ("truncated_call" as const) : ("invalid_tool_input" as const);
  const message = inputError?.message ?? "the arguments could not be read";
  return { id, tool, inputFault: { code, message, ...(rawInput === undefined ? {} : { raw: rawInput }) } };
}

function offeredTools(offer: AvailableTools, agent: AgentSpec): readonly LanguageModelV4FunctionTool[] {
  return shownTools(offer, agent).map(({ name, description, inputSchema }) =>
    functionTool(name, description, inputSchema),
  );
}

function reasonOf(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason.message : "cancelled";
}
