// Chooses what follows every state of an orchestrated run, in one conversation over the whole run.
import {
  type ActOutcome,
  type ActScope,
  field,
  isJsonObject,
  type Json,
  type RefusedTarget,
  type StateExecutor,
  type StateSpec,
  type Usage,
} from "@sluice/core";
import { addUsage, issuesText, NO_USAGE, textField } from "@sluice/core/runtime";
import type { ModelFacts } from "../../models/pricing/price-table.ts";
import { type AgentSpec, readAgent } from "../agent-spec.ts";
import { type Completion, invalidCompletion, type Rejected } from "../completion/completion.ts";
import { cancelled, endedByCap, endedWithout, noteWarnings, type Warned } from "../executor.ts";
import type { ModelCaller } from "../model-call.ts";
import { checkLate, type ModelsInUse, modelInUse, modelTurn, type StageModels } from "../model-turn.ts";
import { type CompletionCheck, callsOnly, type Reply, type TurnCall } from "../reply-record.ts";
import { type CallAnswer, callId } from "../transcript.ts";
import { Conversation } from "./conversation.ts";
import { acknowledging, namedBy, selectingStates } from "./selecting.ts";
import {
  asleepText,
  closingText,
  GET_STATE,
  MOST_NUDGES,
  nudgeText,
  SELECT_STATE,
  START_FOLLOW_UP,
  systemText,
  turnMessage,
} from "./words.ts";

/** The share of the context window that a prompt may fill before outputs of earlier states are left out. */
const FULL = 0.7;
/** Tokens, of a model whose context window is not known. */
const UNKNOWN_WINDOW = 128_000;

/** Runs the orchestrators of pipelines. */
export function orchestratorExecutor(modelsOf: (agent: AgentSpec) => StageModels, caller: ModelCaller): StateExecutor {
  const conversations = new WeakMap<object, Conversation>();
  const warned: Warned = new WeakMap();
  return {
    kind: "orchestrator",
    init: (state, ctx, _offer, place) => {
      if (place.closing === true) return { text: closingText(asJson(ctx.input)) };
      if (place.returns === true) return { text: asleepText(asJson(ctx.input)) };
      const isFirst = ctx.visit === 1;
      const message = { ...turnMessage(ctx, place.targets, isFirst) };
      if (!isFirst) return message;
      return { ...message, system: systemText(readAgent(state).prompt(ctx), place.targets, mayPrompt(state)) };
    },
    act: async (init, scope) => {
      const agent = readAgent(scope.state);
      const models = { all: modelsOf(agent), index: 0 };
      const { model, facts } = modelInUse(models);
      const completion =
        scope.closing === true ? acknowledging() : selectingStates(scope.targets, mayPrompt(scope.state));
      const conversation = conversations.get(scope.kept) ?? newConversation(init, scope, completion);
      if (conversation === undefined) {
        const message = "its conversation has not begun, since its first execution failed";
        return { status: "failed", code: "orchestrator", message, turns: 0, usage: NO_USAGE };
      }
      conversations.set(scope.kept, conversation);
      conversation.user(textField(init, "text") ?? "", textField(init, "brief"));
      compact(conversation, facts, scope);
      // An agent of another program makes calls and writes no texts: it reads what there is to say before its next call.
      if (model.agent !== undefined && scope.returns === true)
        return { status: "completed", output: { return: true }, turns: 0, usage: NO_USAGE };
      if (model.agent !== undefined && scope.closing === true)
        return { status: "completed", output: {}, turns: 0, usage: NO_USAGE };
      const shared = { scope, agent, models, caller, warned };
      const work: Work = { ...shared, completion, conversation, usage: NO_USAGE, refused: [] };
      const outcome = scope.closing === true ? await acknowledge(work) : await choose(work);
      return work.refused.length === 0 ? outcome : { ...outcome, refused: work.refused };
    },
  };
}

/** One execution of an orchestrator. */
interface Work {
  readonly scope: ActScope;
  readonly agent: AgentSpec;
  readonly models: ModelsInUse;
  readonly caller: ModelCaller;
  readonly warned: Warned;
  readonly completion: Completion;
  readonly conversation: Conversation;
  readonly refused: RefusedTarget[];
  usage: Usage;
}

function mayPrompt({ chooses }: StateSpec): boolean {
  return chooses?.prompts === true;
}

function newConversation(init: Json, scope: ActScope, { tool, besides }: Completion): Conversation | undefined {
  const system = textField(init, "system");
  if (system === undefined) return undefined;
  const fixed = JSON.stringify([tool, ...besides]).length;
  // Counting bytes is slower and needed only for reservations.
  const sizeOf = scope.budget.capped ? Buffer.byteLength : (text: string): number => text.length;
  return new Conversation(system, { fixed, sizeOf });
}

function compact(conversation: Conversation, { contextWindow }: ModelFacts, scope: ActScope): void {
  const max = contextWindow ?? UNKNOWN_WINDOW;
  const used = conversation.transcript.promptTokens();
  const replaced = conversation.compact(Math.floor(FULL * max));
  if (replaced === 0) return;
  const message = `outputs of ${replaced} earlier executions are left out of the orchestrator's prompt`;
  scope.note({ type: "limit.near", data: { limit: "contextWindow", message, used, max } });
}

/** Turn by turn until a state is selected. */
async function choose(work: Work): Promise<ActOutcome> {
  const { scope, agent, completion, conversation } = work;
  let nudges = 0;
  let last: Rejected | undefined;
  for (let turn = 1; turn <= agent.turnCap; turn += 1) {
    if (scope.signal.aborted) return cancelled(work, turn - 1);
    const tools = turn === agent.turnCap ? [completion.tool] : [...completion.besides, completion.tool];
    const answer = await takeTurn(work, turn, tools);
    if (answer.kind !== "reply") return endedWithout(work, turn, answer);
    const { reply } = answer;
    // The answer to a message; the execution that sleeps continues.
    if (reply.calls.length === 0 && scope.returns === true)
      return { status: "completed", output: { return: true }, turns: turn, usage: work.usage };
    if (reply.calls.length === 0) {
      if (nudges === MOST_NUDGES || turn === agent.turnCap) return unchosen(work, turn, nudges, last);
      nudges += 1;
      conversation.user(nudgeText(nudges, agent.turnCap - turn));
      continue;
    }
    const checks = await checksOf(work, turn, answer.completions, reply);
    const capped = endedByCap(work, turn, checks);
    if (capped !== undefined) return capped;
    const settled = settle(work, turn, reply, checks);
    conversation.results(reply.calls, settled.answers, turn);
    last = settled.rejected ?? last;
    if (settled.output !== undefined)
      return { status: "completed", output: settled.output, turns: turn, usage: work.usage };
  }
  return unchosen(work, agent.turnCap, nudges, last);
}

function unchosen({ completion, usage }: Work, turns: number, nudges: number, last: Rejected | undefined): ActOutcome {
  const reminded = nudges === 0 ? "" : ` and ${nudges} ${nudges === 1 ? "reminder" : "reminders"}`;
  return {
    status: "failed",
    ...completion.notCompleted(`within ${turns} ${turns === 1 ? "turn" : "turns"}${reminded}`, last),
    turns,
    usage,
  };
}

/** One turn of the model, which becomes part of the conversation. */
async function takeTurn(work: Work, turn: number, tools: readonly Completion["tool"][], once?: true) {
  const { scope, agent, models, caller, completion, conversation } = work;
  const { transcript } = conversation;
  const before = transcript.messages.length;
  const request = { turn, agent, completion, models, caller, transcript, tools };
  const answer = await modelTurn(scope, once === undefined ? request : { ...request, once });
  work.usage = addUsage(work.usage, answer.usage);
  conversation.took(transcript.messages.slice(before));
  if (answer.kind !== "reply") return answer;
  const { reply } = answer;
  conversation.assistant(reply, turn);
  noteWarnings(work, turn, reply);
  const data = { turn, finishReason: reply.finishReason, calls: reply.calls.length, usage: { ...answer.usage } };
  scope.note({ type: "turn.finished", data });
  return answer;
}

/** A reply that also calls what does not exist was not checked with its record. */
async function checksOf(
  { scope, completion }: Work,
  turn: number,
  known: readonly CompletionCheck[],
  reply: Reply,
): Promise<readonly CompletionCheck[]> {
  if (callsOnly(reply, completion.own)) return known;
  return await checkLate({ completion, turn }, reply, scope);
}

interface AnsweredCalls {
  readonly answers: readonly CallAnswer[];
  /** The accepted choice. */
  readonly output: Json | undefined;
  readonly rejected: Rejected | undefined;
}

/** Answers the calls of a turn, in order; the first choice that can be followed counts. */
function settle(work: Work, turn: number, reply: Reply, checks: readonly CompletionCheck[]): AnsweredCalls {
  let output: Json | undefined;
  let rejected: Rejected | undefined;
  const answers = reply.calls.map((call): CallAnswer => {
    const id = callId(turn, call.index);
    const no = (code: string, message: string): CallAnswer => ({ id, ok: false, output: { code, message } });
    if (output !== undefined) return no("call_not_run", "a state was selected before, so this call was not run");
    const check = checks.find(({ index }) => index === call.index);
    if (call.tool !== SELECT_STATE && call.tool !== GET_STATE)
      return no(
        "tool_unknown",
        `there is no tool ${call.tool.slice(0, 80)}; the tools are ${SELECT_STATE} and ${GET_STATE}`,
      );
    if (check?.ok !== true) {
      rejected = refuse(work, turn, call, check?.issues ?? []);
      return { id, ok: false, output: rejected.output };
    }
    if (call.tool === GET_STATE) return { id, ok: true, output: check.output };
    output = check.output;
    work.scope.note({ type: "completion.accepted", data: { turn, callId: id } });
    return { id, ok: true, output: { selected: field(output, "to") ?? field(output, "end") ?? null } };
  });
  return { answers, output, rejected };
}

function refuse(
  { scope, refused }: Work,
  turn: number,
  call: TurnCall,
  issues: Extract<CompletionCheck, { readonly ok: false }>["issues"],
): Rejected {
  const to = namedBy(call);
  const why = issuesText(issues);
  refused.push({ to, why });
  const data = { from: scope.stateId, to, reason: why, turn, callId: callId(turn, call.index) };
  scope.note({ type: "route.rejected", data });
  return { kind: "rejected", output: invalidCompletion(issues.map((issue) => ({ ...issue }))), why, to };
}

/** The closing turn. Begun by another process, it is not repeated. */
async function acknowledge(work: Work): Promise<ActOutcome> {
  const { scope, completion, conversation } = work;
  const answer = await takeTurn(work, 1, [completion.tool], true);
  if (answer.kind !== "reply") return endedWithout(work, 1, answer);
  const { reply } = answer;
  if (reply.calls.length > 0) conversation.results(reply.calls, [], 1);
  const text = scope.secrets.text(textOf(reply)).trim();
  const wish = reply.calls.find(({ tool }) => tool === START_FOLLOW_UP)?.input;
  const input = isJsonObject(wish) ? wish.input : undefined;
  const totals = { turns: 1, usage: work.usage };
  if (text === "" && input === undefined)
    return { status: "failed", ...completion.notCompleted("", undefined), ...totals };
  return {
    status: "completed",
    output: { text, ...(input === undefined ? {} : { followUp: { input } }) },
    ...totals,
  };
}

function textOf({ content }: Reply): string {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
}

/** A context's input, which was recorded as JSON. */
function asJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null));
}
