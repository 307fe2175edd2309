import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { ActScope, ReceivedSignal, StepCall } from "@sluice/core";
import type { LimitHit } from "@sluice/core/runtime";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";
import type { ModelFailure } from "../models/reply/reply.ts";
import type { AgentSpec } from "./agent-spec.ts";
import {
  type CallUsage,
  maxOutput,
  type Reservation,
  readReservation,
  reservationFor,
  spendingOf,
  spentOn,
  spentOnFailure,
  usageOfCall,
} from "./budget.ts";
import { checkCompletions } from "./contract.ts";
import { LiveText } from "./live-text.ts";
import { type Message, messagesAsPrompt, readMessages, takesMessages } from "./messages.ts";
import type { ModelCaller, ModelOutcome, ModelRequest } from "./model-call.ts";
import { decidesCompletion, type ModelStepRecord, replayedCompletion } from "./model-step-record.ts";
import { encodeChecks, encodeReply, maskReply } from "./reply-record.ts";
import type { Transcript } from "./transcript.ts";

export const MAX_ATTEMPTS = 4;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 60_000;

/** What a turn needs to call its model. */
export interface TurnRequest {
  readonly turn: number;
  readonly agent: AgentSpec;
  readonly model: ResolvedModel;
  readonly facts: ModelFacts;
  readonly transcript: Transcript;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** `callModel`, or what observes it for telemetry. */
  readonly caller: ModelCaller;
}

/** The most that this turn can use; undefined without a cap. */
export function reservationOf(
  { limits }: ActScope,
  { agent, facts, transcript }: TurnRequest,
  more: readonly string[] = [],
): Reservation | undefined {
  if (!limits.capped) return undefined;
  return reservationFor(facts, transcript.promptTokens(more), maxOutput(agent.maxOutputTokens, true, facts) ?? 0);
}

export interface ModelAttempt {
  readonly request: TurnRequest;
  readonly reserve: Reservation | undefined;
  /** From 1, over all model steps of the turn. */
  readonly step: number;
  /** From 1, without steps that were lost with their process. */
  readonly number: number;
  /** Messages received since the previous call. */
  readonly messages: readonly Message[];
}

export function modelStep(scope: ActScope, stepId: string, trial: ModelAttempt): Promise<ModelStepRecord> {
  const { request, reserve, step } = trial;
  const { executionId, ctx, limits, steps } = scope;
  const data = { turn: request.turn, try: step, model: request.model.id, elapsedMs: limits.elapsed().runMs };
  const events = [{ type: "turn.started", executionId, attempt: ctx.attempt, data } as const];
  const open = reserve === undefined ? { events } : { events, intent: reserve };
  const ask = (call: StepCall): Promise<ModelStepRecord> =>
    call.recorded === undefined ? tryModel(scope, trial, call) : replayedCompletion(call.recorded, request.agent, call);
  return steps.run(stepId, ask, { open, takes: takesMessages, decides: decidesCompletion });
}

/** Adds the messages received since the previous call, which need a larger reservation. */
function withMessages(scope: ActScope, trial: ModelAttempt, signals: readonly ReceivedSignal[]): ModelAttempt {
  if (signals.length === 0) return trial;
  const messages = readMessages(signals, scope.secrets);
  return { ...trial, messages, reserve: reservationOf(scope, trial.request, messagesAsPrompt(messages)) };
}

async function tryModel(scope: ActScope, begun: ModelAttempt, call: StepCall): Promise<ModelStepRecord> {
  const { executionId, ctx, limits } = scope;
  const lost = lostCall(scope, call);
  if (lost !== undefined) return { kind: "lost", ...lost, elapsed: limits.elapsed() };
  const hit = limits.deadlineExceeded();
  if (hit !== undefined) return limitRecord(scope, call, hit);
  const trial = withMessages(scope, begun, await call.signals());
  const { turn, model, caller } = trial.request;
  const reserved = trial.reserve === undefined ? undefined : limits.reserve(spendingOf(trial.reserve));
  // Without a call no messages are consumed.
  if (reserved?.ok === false) return limitRecord(scope, call, reserved);
  for (const { by, text, at } of trial.messages) {
    const data = { turn, by, text, sentAt: at };
    call.event({ type: "message.received", executionId, attempt: ctx.attempt, data });
  }
  const place = { runId: ctx.runId, executionId, attempt: ctx.attempt, turn, try: trial.step, model: model.id };
  let live: LiveReply | undefined;
  const onText: NonNullable<ModelRequest["onText"]> = (delta, kind) => {
    live ??= liveReply(scope, trial);
    live[kind].push(delta);
  };
  let outcome: ModelOutcome | undefined;
  try {
    outcome = await limits.timed(call.signal, (signal) =>
      caller(modelRequest(scope, trial, signal, onText), { ...place, clean: scope.secrets.text }),
    );
    const record = outcome.ok ? await replyRecord(scope, trial, outcome) : failureRecord(scope, trial, outcome, call);
    return trial.messages.length === 0 ? record : { ...record, messages: trial.messages };
  } finally {
    for (const shown of live === undefined ? [] : [live.reasoning, live.text]) {
      if (outcome?.ok === true) shown.end();
      else shown.drop();
    }
    // Releases what the call did not use; a call with an unknown outcome has used all of it.
    if (outcome === undefined) reserved?.settle();
    else reserved?.settle(spendingOf(usageOfCall(spentBy(outcome, trial), outcome.ok ? outcome.usage : undefined)));
  }
}

type LiveReply = Readonly<Record<"text" | "reasoning", LiveText>>;

/** The streamed texts of one reply; created when the first piece arrives. */
function liveReply({ executionId, ctx, secrets, steps }: ActScope, { request, step }: ModelAttempt): LiveReply {
  const shown = (kind: string): LiveText => {
    const place = { executionId, attempt: ctx.attempt, turn: request.turn, try: step };
    const show = (text: string): void => steps.emit(kind, { ...place, text });
    return new LiveText(secrets, show, () => steps.heard());
  };
  return { text: shown("text"), reasoning: shown("reasoning") };
}

function modelRequest(
  scope: ActScope,
  { request, number, messages }: ModelAttempt,
  signal: AbortSignal,
  onText: NonNullable<ModelRequest["onText"]>,
): ModelRequest {
  const { agent, model, facts, transcript, tools } = request;
  const { temperature } = agent;
  const turn = scope.turnsBefore + request.turn - 1;
  const maxOutputTokens = maxOutput(agent.maxOutputTokens, scope.limits.capped, facts);
  return {
    model: model.at({ stage: scope.stateId, turn, attempt: number }),
    prompt: transcript.prompt(messagesAsPrompt(messages)),
    tools,
    callIds: transcript.callIds,
    secrets: scope.secrets,
    signal,
    onText,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
  };
}

function spentBy(outcome: ModelOutcome, { request: { facts }, reserve }: ModelAttempt): CallUsage {
  if (outcome.ok) return spentOn(outcome.usage, facts, reserve);
  return spentOnFailure(outcome.error, outcome.begun, facts, reserve);
}

async function replyRecord(
  { secrets, limits }: ActScope,
  trial: ModelAttempt,
  outcome: Extract<ModelOutcome, { readonly ok: true }>,
): Promise<ModelStepRecord> {
  const { agent } = trial.request;
  const masked = maskReply(outcome, secrets);
  // Beside other calls, completions are checked after those have run.
  const alone = masked.calls.every((call) => call.tool === agent.completionTool);
  const completions = alone ? await checkCompletions(masked, agent) : [];
  return {
    kind: "reply",
    reply: encodeReply(masked),
    completions: encodeChecks(completions, masked),
    elapsed: limits.elapsed(),
    ...spentBy(outcome, trial),
  };
}

function failureRecord(
  scope: ActScope,
  trial: ModelAttempt,
  outcome: Extract<ModelOutcome, { readonly ok: false }>,
  call: StepCall,
): ModelStepRecord {
  const { executionId, ctx, limits, secrets } = scope;
  const spent = spentBy(outcome, trial);
  const late = outcome.error.kind === "aborted" ? limits.deadlineExceeded() : undefined;
  if (late !== undefined) return { ...limitRecord(scope, call, late), ...spent };
  const error = { ...outcome.error, message: secrets.text(outcome.error.message) };
  if (mayRetry(error) && trial.number < MAX_ATTEMPTS) {
    const waitMs = backoffMs(error, trial.number);
    const data = { turn: trial.request.turn, try: trial.step, code: error.code, message: error.message, waitMs };
    call.event({ type: "model.retried", executionId, attempt: ctx.attempt, data });
  }
  return { kind: "failed", error, elapsed: limits.elapsed(), ...spent };
}

/** The usage of a call whose process ended before its result was recorded: its whole reservation. */
function lostCall({ steps }: ActScope, { opened }: StepCall): CallUsage | undefined {
  const reserved = opened?.incarnation === steps.incarnation ? undefined : readReservation(opened?.intent);
  if (reserved === undefined) return undefined;
  const { inputTokens, outputTokens, costUsd } = reserved;
  return { counted: { inputTokens, outputTokens }, ...(costUsd === undefined ? {} : { costUsd }) };
}

function limitRecord(scope: ActScope, call: StepCall, hit: LimitHit): ModelStepRecord {
  const { code, limit, message, detail } = hit;
  call.event({
    type: "limit.reached",
    executionId: scope.executionId,
    attempt: scope.ctx.attempt,
    data: { limit, message, ...detail },
  });
  const kept = { code, limit, message, ...(detail === undefined ? {} : { detail }) };
  return { kind: "limit", hit: kept, elapsed: scope.limits.elapsed() };
}

export function mayRetry(error: ModelFailure): boolean {
  return error.kind === "transient" || error.kind === "cut_stream";
}

/** The delay before the next attempt, in milliseconds; `attempt` is counted from 1. */
export function backoffMs(error: ModelFailure, attempt: number): number {
  const doubling = FIRST_BACKOFF_MS * 2 ** (attempt - 1);
  return error.retryAfterMs === undefined ? doubling : Math.min(error.retryAfterMs, LONGEST_RETRY_AFTER_MS);
}
