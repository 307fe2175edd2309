import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { ActScope, RunFault, StepCall, StepOptions, Usage } from "@sluice/core";
import { addUsage, itemKeyOf, type LimitHit, NO_USAGE, parseStoredJson, raceAbort } from "@sluice/core/runtime";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/pricing/price-table.ts";
import { mostOf } from "../models/pricing/prices.ts";
import { advised } from "../models/provider-advice.ts";
import { type AfterFailure, afterFailure, type FailedCalls, mayRetry } from "../models/provider-faults.ts";
import type { ModelFailure } from "../models/reply/reply.ts";
import { LiveText, maskedCut } from "../secrets/cut-text.ts";
import type { AgentSpec } from "./agent-spec.ts";
import {
  backoffStepNames,
  completionStepName,
  costOfStep,
  decidesCompletion,
  type ModelStepRecord,
  modelStepName,
  replayedCompletion,
  usageOfStep,
} from "./agent-steps.ts";
import { type CallUsage, maxOutput, readReservation, spentOn, spentOnFailure } from "./budget.ts";
import type { Completion } from "./completion/completion.ts";
import { type Message, messagesAsPrompt, NO_MESSAGES, readMessages, takesMessages } from "./messages.ts";
import type { ModelCaller, ModelOutcome, ModelPlace, ModelRequest } from "./model-call.ts";
import {
  type CompletionCheck,
  callsOnly,
  decodeChecks,
  decodeReply,
  encodeChecks,
  encodeReply,
  maskReply,
  type Reply,
  wasStopped,
} from "./reply-record.ts";
import type { Transcript } from "./transcript.ts";

// Until Sluice 0.1, a turn retried by these rules, and recorded only when a call had failed.
const EARLIER_ATTEMPTS = 4;
const EARLIER_BACKOFF_MS = 1_000;
const EARLIER_RETRY_AFTER_MS = 60_000;

/** A model of a state, with what is known about it. */
export interface StageModel {
  readonly model: ResolvedModel;
  readonly facts: ModelFacts;
}
/** The models of a state in the order in which they are tried. */
export type StageModels = readonly [StageModel, ...StageModel[]];
/** The models of an attempt, and the index of the one that it uses. */
export interface ModelsInUse {
  readonly all: StageModels;
  index: number;
}

export function modelInUse({ all, index }: ModelsInUse): StageModel {
  return all[index] ?? all[0];
}

/** The failed calls of the model in use. */
type Failures = Omit<FailedCalls, "since"> & { readonly since: number | undefined };
const NO_FAILURES: Failures = { count: 0, since: undefined };

/** What a turn needs to call its model. */
interface TurnRequest {
  readonly turn: number;
  readonly agent: AgentSpec;
  readonly completion: Completion;
  /** A model that fails for long is replaced by the next one, also for the turns that follow. */
  readonly models: ModelsInUse;
  readonly transcript: Transcript;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** `callModel`, or what observes it for telemetry. */
  readonly caller: ModelCaller;
  /** A call that an earlier process began is not made again. */
  readonly once?: true;
}

/** The result of all attempts of a turn. `completions` are checked only if the reply has no other calls. */
export type TurnAnswer = { readonly usage: Usage } & (
  | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure; readonly tries: number }
  | { readonly kind: "limit"; readonly hit: LimitHit }
  /** `partial` is the text of a reply that was stopped; "" if there is none. */
  | { readonly kind: "cancelled"; readonly partial: string }
);

/**
 * One turn of a model. Each attempt is one step, whose record says what follows a failure; waits between attempts survive a restart,
 * and so does a suspension, after which the turn starts over with the first model.
 */
export async function modelTurn(scope: ActScope, request: TurnRequest): Promise<TurnAnswer> {
  const { turn, transcript, models } = request;
  let usage = NO_USAGE;
  let failures = 0;
  let ofModel = NO_FAILURES;
  for (let step = 1; ; step += 1) {
    const used = modelInUse(models);
    const recorded = await modelStep(scope, modelStepName(turn, step), {
      request,
      used,
      reserve: reservationOf(scope, request, used),
      step,
      failures,
      ofModel,
      messages: NO_MESSAGES,
    });
    for (const text of messagesAsPrompt(recorded.messages ?? NO_MESSAGES)) transcript.user(text);
    usage = addUsage(usage, usageOfStep(recorded));
    if (recorded.kind === "reply") {
      const reply = decodeReply(recorded.reply);
      return { kind: "reply", reply, completions: decodeChecks(recorded.completions, reply), usage };
    }
    if (recorded.kind === "limit") return { kind: "limit", hit: recorded.hit, usage };
    if (recorded.kind === "lost" && request.once === true) return { kind: "failed", error: LOST, tries: step, usage };
    if (recorded.kind === "lost") continue;
    const { error } = recorded;
    failures += 1;
    ofModel = { count: ofModel.count + 1, since: ofModel.since ?? recorded.at };
    if (error.kind === "aborted") return { kind: "cancelled", usage, partial: recorded.partial ?? "" };
    const next = recorded.next ?? (await nextOfEarlier(scope, turn, step, error, failures));
    switch (next.kind) {
      case "fail":
        return { kind: "failed", error, tries: failures, usage };
      case "retry":
        await scope.wait(backoffStepNames(turn, step).backoff, next.until);
        break;
      case "fallback":
        models.index = Math.min(models.index + 1, models.all.length - 1);
        ofModel = NO_FAILURES;
        break;
      case "suspend":
        await scope.suspend(faultOf(error, used, failures, next.retryAt));
        models.index = 0;
        ofModel = NO_FAILURES;
    }
    if (scope.signal.aborted) return { kind: "cancelled", usage, partial: "" };
  }
}

/** What followed a failed call of an earlier version, whose record does not say it. */
async function nextOfEarlier(
  scope: ActScope,
  turn: number,
  step: number,
  error: ModelFailure,
  failures: number,
): Promise<AfterFailure> {
  if (!mayRetry(error) || failures >= EARLIER_ATTEMPTS) return { kind: "fail" };
  const failedAt = await scope.steps.now(backoffStepNames(turn, step).failedAt);
  const doubling = EARLIER_BACKOFF_MS * 2 ** (failures - 1);
  const waitMs = error.retryAfterMs === undefined ? doubling : Math.min(error.retryAfterMs, EARLIER_RETRY_AFTER_MS);
  return { kind: "retry", until: failedAt + waitMs };
}

function faultOf(error: ModelFailure, { model }: StageModel, tries: number, retryAt: number | undefined): RunFault {
  const { code, message, status } = error;
  const detail = { model: model.id, tries, ...(status === undefined ? {} : { status }) };
  return { reason: "provider", code, message, detail, ...(retryAt === undefined ? {} : { retryAt }) };
}

/** The most that this turn can use; undefined without a cap. */
function reservationOf(
  { budget }: ActScope,
  { agent, transcript }: TurnRequest,
  { facts }: StageModel,
  more: readonly string[] = [],
): Usage | undefined {
  if (!budget.capped) return undefined;
  return mostOf(facts.price, transcript.promptTokens(more), maxOutput(agent.maxOutputTokens, true, facts) ?? 0);
}

interface ModelAttempt {
  readonly request: TurnRequest;
  readonly used: StageModel;
  readonly reserve: Usage | undefined;
  /** From 1, over all model steps of the turn. */
  readonly step: number;
  /** How many steps of the turn have failed before, without those that were lost with their process. */
  readonly failures: number;
  /** The last of these, of the model in use. */
  readonly ofModel: Failures;
  /** Messages received since the previous call. */
  readonly messages: readonly Message[];
}

function modelStep(scope: ActScope, stepId: string, trial: ModelAttempt): Promise<ModelStepRecord> {
  const { request, used, reserve, step } = trial;
  const { executionId, ctx, deadline, steps } = scope;
  const data = { turn: request.turn, try: step, model: used.model.id, elapsedMs: deadline.runMs() };
  const events = [{ type: "turn.started", executionId, attempt: ctx.attempt, data } as const];
  const open = reserve === undefined ? { events } : { events, cost: reserve };
  const ask = (call: StepCall): Promise<ModelStepRecord> =>
    call.recorded === undefined
      ? tryModel(scope, trial, call)
      : replayedCompletion(call.recorded, request, scope, call);
  const takes = takesMessages(ctx.attempt, request.turn);
  return steps.run(stepId, ask, { open, cost: costOfStep, takes, decides: decidesCompletion });
}

/** How a state completes, and its turn. */
interface CompletingTurn {
  readonly completion: Completion;
  readonly turn: number;
}

/** Checks the own calls of a reply, inside a step. Those whose schemas still work when the attempt has to end do not fit. */
async function checkCompletions(
  { completion, turn }: CompletingTurn,
  reply: Pick<Reply, "calls">,
  scope: ActScope,
): Promise<readonly CompletionCheck[]> {
  const checked = await scope.deadline.timed(scope.signal, (timed) =>
    raceAbort(timed, completion.check(reply, turn, scope)),
  );
  if (checked !== undefined) return checked.value;
  const message = "was still checked when the state was cancelled, or its time was up";
  const hit = scope.signal.aborted ? undefined : scope.deadline.exceeded();
  const stopped = hit === undefined ? {} : { hit };
  return reply.calls
    .filter(({ tool }) => completion.own.has(tool))
    .map(({ index }) => ({ index, ok: false, issues: [{ path: "$", message }], stopped }));
}

/** The same in a step of its own, of a reply that also calls other tools. */
export async function checkLate(
  at: CompletingTurn,
  reply: Pick<Reply, "calls">,
  scope: ActScope,
): Promise<readonly CompletionCheck[]> {
  return await scope.steps.run(completionStepName(at.turn), () => checkCompletions(at, reply, scope), CHECKS_AGAIN);
}

/** Replay checks again, unless a check was stopped. */
const CHECKS_AGAIN: StepOptions = {
  decides: ({ value }) => {
    const read = parseStoredJson(value);
    return !read.ok || !wasStopped(read.value);
  },
};

/** Adds the messages received since the previous call, which need a larger reservation. */
function withMessages(scope: ActScope, trial: ModelAttempt, messages: readonly Message[]): ModelAttempt {
  if (messages.length === 0) return trial;
  return { ...trial, messages, reserve: reservationOf(scope, trial.request, trial.used, messagesAsPrompt(messages)) };
}

async function tryModel(scope: ActScope, begun: ModelAttempt, call: StepCall): Promise<ModelStepRecord> {
  const { budget, deadline } = scope;
  const lost = lostCall(scope, call);
  if (lost !== undefined) return { kind: "lost", ...lost };
  if (begun.request.once === true && wasBegun(scope, call)) return { kind: "lost" };
  const late = deadline.exceeded();
  if (late !== undefined) return limitRecord(scope, call, late);
  const reading = readMessages(call, takesMessages(scope.ctx.attempt, begun.request.turn), scope.secrets);
  // Few stores are asynchronous, and few turns have messages.
  const trial = withMessages(scope, begun, reading instanceof Promise ? await reading : reading);
  const hit = trial.reserve === undefined ? undefined : budget.reserve(trial.reserve);
  // Without a call no messages are consumed.
  if (hit !== undefined) return limitRecord(scope, call, hit);
  noteMessages(scope, trial, call);
  const live = new LiveReply(scope, trial);
  let outcome: ModelOutcome | undefined;
  try {
    outcome = await deadline.timed(call.signal, (signal) =>
      trial.request.caller(modelRequest(scope, trial, signal, live), modelPlace(scope, trial)),
    );
    const record = outcome.ok
      ? await replyRecord(scope, trial, outcome)
      : withPartial(failureRecord(scope, trial, outcome, call), live.said(), scope);
    return trial.messages.length === 0 ? record : { ...record, messages: trial.messages };
  } finally {
    live.end(outcome?.ok === true);
  }
}

function noteMessages({ executionId, ctx }: ActScope, { request, messages }: ModelAttempt, call: StepCall): void {
  for (const { by, text, at, kind } of messages) {
    const data = { turn: request.turn, by, text, sentAt: at, ...(kind === undefined ? {} : { kind }) };
    call.event({ type: "message.received", executionId, attempt: ctx.attempt, data });
  }
}

function modelPlace(
  { executionId, ctx, secrets }: ActScope,
  { request: { turn }, used: { model }, step }: ModelAttempt,
): ModelPlace {
  const { runId, attempt } = ctx;
  return { runId, executionId, attempt, turn, try: step, model: model.id, clean: secrets.text };
}

/** A reply that was stopped keeps its text, which the next execution of the state reads. */
function withPartial(record: ModelStepRecord, said: string, { secrets }: ActScope): ModelStepRecord {
  if (record.kind !== "failed" || record.error.kind !== "aborted" || said === "") return record;
  return { ...record, partial: maskedCut(said, secrets) };
}

/** The streamed texts of one reply; each is created when its first piece arrives. */
class LiveReply {
  readonly #scope: ActScope;
  readonly #trial: ModelAttempt;
  readonly #shown: { text?: LiveText; reasoning?: LiveText } = {};
  #said = "";

  constructor(scope: ActScope, trial: ModelAttempt) {
    this.#scope = scope;
    this.#trial = trial;
  }

  /** The text so far, as the model wrote it. */
  said(): string {
    return this.#said;
  }

  push(delta: string, kind: "text" | "reasoning"): void {
    if (kind === "text") this.#said += delta;
    this.#shown[kind] ??= this.#create(kind);
    this.#shown[kind].push(delta);
  }

  /** A reply that is not complete may have been cut inside a secret. */
  end(isComplete: boolean): void {
    const { reasoning, text } = this.#shown;
    for (const shown of [reasoning, text]) {
      if (isComplete) shown?.end();
      else shown?.drop();
    }
  }

  #create(kind: string): LiveText {
    const { executionId, ctx, secrets, steps } = this.#scope;
    const { request, step } = this.#trial;
    const place = { executionId, attempt: ctx.attempt, turn: request.turn, try: step };
    const show = (text: string): void => steps.emit(kind, { ...place, text });
    return new LiveText(secrets, show, () => steps.heard());
  }
}

function modelRequest(
  scope: ActScope,
  { request, used, failures, messages }: ModelAttempt,
  signal: AbortSignal,
  live: LiveReply,
): ModelRequest {
  const { agent, transcript, tools, completion } = request;
  const { model, facts } = used;
  const { temperature, topP, seed, stopSequences, reasoning, providerOptions } = agent;
  const key = itemKeyOf(scope.ctx.runId, scope.stateId);
  const turn = scope.turnsBefore + request.turn - 1;
  const maxOutputTokens = maxOutput(agent.maxOutputTokens, scope.budget.capped, facts);
  return {
    model: model.at({
      stage: scope.stateId,
      turn,
      attempt: failures + 1,
      runId: scope.ctx.runId,
      execution: { executionId: scope.executionId, attempt: scope.ctx.attempt, turn: request.turn },
      ...(key === undefined ? {} : { key }),
      ...(agent.cache === false ? { cache: false } : {}),
      ...(transcript.hasFiles ? {} : { files: false }),
    }),
    prompt: transcript.prompt(messagesAsPrompt(messages)),
    tools,
    ...(completion.forced === true || agent.toolChoice === "required"
      ? { toolChoice: { type: "required" } as const }
      : {}),
    callIds: transcript.callIds,
    secrets: scope.secrets,
    ...(model.agent === undefined ? {} : { patient: true }),
    signal,
    onText: (delta, kind) => live.push(delta, kind),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(stopSequences === undefined ? {} : { stopSequences }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(providerOptions === undefined ? {} : { providerOptions: { ...providerOptions } }),
  };
}

function spentBy(outcome: ModelOutcome, { used: { facts, model }, reserve }: ModelAttempt): CallUsage {
  // Its own program counts what it spends.
  if (model.agent !== undefined) return { costUsd: 0 };
  if (outcome.ok) return spentOn(outcome.usage, facts, reserve);
  return spentOnFailure(outcome.error, outcome.begun, facts, reserve);
}

async function replyRecord(
  scope: ActScope,
  trial: ModelAttempt,
  outcome: Extract<ModelOutcome, { readonly ok: true }>,
): Promise<ModelStepRecord> {
  const { request } = trial;
  const masked = maskReply(outcome, scope.secrets);
  // Beside other calls, completions are checked after those have run.
  const completions = callsOnly(masked, request.completion.own) ? await checkCompletions(request, masked, scope) : [];
  return {
    kind: "reply",
    reply: encodeReply(masked),
    completions: encodeChecks(completions, masked),
    ...spentBy(outcome, trial),
  };
}

function failureRecord(
  scope: ActScope,
  trial: ModelAttempt,
  outcome: Extract<ModelOutcome, { readonly ok: false }>,
  call: StepCall,
): ModelStepRecord {
  const { deadline, secrets } = scope;
  const spent = spentBy(outcome, trial);
  const late = outcome.error.kind === "aborted" ? deadline.exceeded() : undefined;
  if (late !== undefined) return { ...limitRecord(scope, call, late), ...spent };
  const failure = advised(outcome.error, trial.used.model);
  const error = { ...failure, message: secrets.text(failure.message) };
  const at = deadline.now();
  const next = nextAfter(scope, trial, error, at);
  noteNext(scope, trial, error, { at, next }, call);
  return { kind: "failed", error, at, next, ...spent };
}

function nextAfter(
  scope: ActScope,
  { request: { models }, ofModel }: ModelAttempt,
  error: ModelFailure,
  now: number,
): AfterFailure {
  const policy = scope.providerFaults();
  // A run that has ended is not suspended because its last words are missing.
  const onProviderFault = scope.closing === true ? "fail" : policy.onProviderFault;
  const failed = { count: ofModel.count + 1, since: ofModel.since ?? now };
  const hasFallback = models.index + 1 < models.all.length;
  return afterFailure(error, failed, { ...policy, onProviderFault }, { now, hasFallback });
}

function noteNext(
  { executionId, ctx }: ActScope,
  { request: { turn, models }, used, step }: ModelAttempt,
  { code, message }: ModelFailure,
  { at, next }: { readonly at: number; readonly next: AfterFailure },
  call: StepCall,
): void {
  const failed = { turn, try: step, code, message };
  const spare = models.all[models.index + 1];
  if (next.kind === "retry") {
    const data = { ...failed, waitMs: next.until - at };
    call.event({ type: "model.retried", executionId, attempt: ctx.attempt, data });
  } else if (next.kind === "fallback" && spare !== undefined) {
    const data = { ...failed, from: used.model.id, to: spare.model.id };
    call.event({ type: "model.fallback", executionId, attempt: ctx.attempt, data });
  }
}

const LOST: ModelFailure = { kind: "permanent", code: "lost", message: "the process that made this call has ended" };

/** Whether an earlier process began this step. */
function wasBegun({ steps }: ActScope, { opened }: StepCall): boolean {
  return opened !== undefined && opened.incarnation !== steps.incarnation;
}

/** The usage of a call whose process ended before its result was recorded: its whole reservation. */
function lostCall({ steps }: ActScope, { opened }: StepCall): CallUsage | undefined {
  if (opened === undefined || opened.incarnation === steps.incarnation) return undefined;
  const { inputTokens, outputTokens, costUsd } = readReservation(opened.intent) ?? opened.cost ?? {};
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
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
  return { kind: "limit", hit: kept };
}
