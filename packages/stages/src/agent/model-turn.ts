import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from "@ai-sdk/provider";
import {
  type ActScope,
  addUsage,
  type CompiledSchema,
  type Issue,
  isJson,
  type Json,
  type LimitHit,
  messageOf,
  type SecretFilter,
  type StepCall,
  type Usage,
  type Worked,
} from "@sluice/core";
import type { ResolvedModel } from "../models/model.ts";
import type { ModelFacts } from "../models/prices.ts";
import type { ModelFailure } from "../models/reply.ts";
import { cleanReply } from "./clean-reply.ts";
import {
  type CompletionCheck,
  type KeptCheck,
  type KeptReply,
  keepChecks,
  keepReply,
  type Reply,
  readChecks,
  readReply,
} from "./kept-reply.ts";
import { createLiveText, type LiveText } from "./live-text.ts";
import {
  maxOutput,
  NO_USAGE,
  type Reserve,
  reserveFor,
  type Spent,
  spendingOf,
  spentOn,
  spentOnFailure,
  usageOfCall,
} from "./metering.ts";
import { callModel } from "./model-call.ts";

const MAX_TRIES = 4;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 60_000;

/** What a turn needs to ask its model. */
export interface TurnRequest {
  readonly turn: number;
  readonly model: ResolvedModel;
  readonly facts: ModelFacts;
  readonly prompt: LanguageModelV4Prompt;
  /** Tokens the prompt may have; looked at where a cap holds. */
  readonly promptTokens: () => number;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly completion: { readonly tool: string; readonly schema: CompiledSchema<unknown> };
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly callIds: ReadonlySet<string>;
}

/** Of all tries of a turn. `completions` are read already when it made no other calls: in the same record as the reply. */
export type TurnAnswer = { readonly usage: Usage } & (
  | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure; readonly tries: number }
  | { readonly kind: "limit"; readonly hit: LimitHit }
  | { readonly kind: "cancelled" }
);

/** What a model step records; `lost` is a call whose process did not live to record what came of it. */
type Recorded = Spent & { readonly worked: Worked } & (
    | { readonly kind: "reply"; readonly reply: KeptReply; readonly completions: readonly KeptCheck[] }
    | { readonly kind: "failed"; readonly error: ModelFailure }
    | { readonly kind: "limit"; readonly hit: LimitHit }
    | { readonly kind: "lost" }
  );

/** Asks the model for one turn. Every try is a step of its own; waits between tries survive a restart. */
export async function askModel(scope: ActScope, request: TurnRequest): Promise<TurnAnswer> {
  const { turn } = request;
  const reserve = reserveOf(scope, request);
  let usage = NO_USAGE;
  let failures = 0;
  for (let attempt = 1; ; attempt += 1) {
    const stepId = attempt === 1 ? `turn/${turn}/model` : `turn/${turn}/model/${attempt}`;
    const recorded = await scope.steps.run(
      stepId,
      (call) => tryModel(scope, request, { step: attempt, try: failures + 1 }, reserve, call),
      {
        open: {
          events: [
            {
              type: "turn.started",
              executionId: scope.executionId,
              attempt: scope.ctx.attempt,
              data: { turn, try: attempt, model: request.model.id, workedMs: scope.limits.worked().runMs },
            },
          ],
          ...(reserve === undefined ? {} : { intent: reserve }),
        },
      },
    );
    scope.limits.atLeast(recorded.worked);
    const spent = usageOfCall(recorded, recorded.kind === "reply" ? recorded.reply.usage : undefined);
    scope.limits.spent(spendingOf(spent));
    usage = usage === NO_USAGE ? spent : addUsage(usage, spent);
    if (recorded.kind === "reply") {
      const reply = readReply(recorded.reply);
      return { kind: "reply", reply, completions: readChecks(recorded.completions, reply), usage };
    }
    if (recorded.kind === "limit") return { kind: "limit", hit: recorded.hit, usage };
    if (recorded.kind === "lost") continue;
    const { error } = recorded;
    failures += 1;
    if (error.kind === "aborted") return { kind: "cancelled", usage };
    if (!mayRetry(error) || failures >= MAX_TRIES) return { kind: "failed", error, tries: failures, usage };
    const now = await scope.steps.now(`${stepId}/failed-at`);
    await scope.wait(`${stepId}/backoff`, now + backoffMs(error, failures));
    if (scope.signal.aborted) return { kind: "cancelled", usage };
  }
}

/** The most this turn can use, where a cap holds. */
function reserveOf({ limits }: ActScope, request: TurnRequest): Reserve | undefined {
  if (!limits.capped) return undefined;
  const { facts, promptTokens, maxOutputTokens } = request;
  return reserveFor(facts, promptTokens(), maxOutput(maxOutputTokens, true, facts) ?? 0);
}

/** Which try it is: of the step, and without those that were lost with their process. */
interface Trial {
  readonly step: number;
  readonly try: number;
}

async function tryModel(
  scope: ActScope,
  request: TurnRequest,
  trial: Trial,
  reserve: Reserve | undefined,
  call: StepCall,
): Promise<Recorded> {
  const { limits, secrets, stateId, ctx, executionId } = scope;
  const { turn, model, facts } = request;
  const lost = lostCall(scope, call);
  if (lost !== undefined) return { kind: "lost", ...lost, worked: limits.worked() };
  const hit = limits.late();
  if (hit !== undefined) return limitRecord(scope, call, hit);
  const reserved = reserve === undefined ? undefined : limits.reserve(spendingOf(reserve));
  if (reserved?.ok === false) return limitRecord(scope, call, reserved);
  const maxOutputTokens = maxOutput(request.maxOutputTokens, limits.capped, facts);

  const shown = (kind: string): LiveText =>
    createLiveText(
      secrets,
      (text) => scope.steps.emit(kind, { executionId, attempt: ctx.attempt, turn, try: trial.step, text }),
      scope.steps.heard,
    );
  const live = { text: shown("text"), reasoning: shown("reasoning") };
  let used: Usage | undefined;
  let whole = false;
  try {
    const reply = await limits.timed(call.signal, (signal) =>
      callModel({
        model: model.at({ stage: stateId, turn: scope.turnsBefore + turn - 1, attempt: trial.try }),
        prompt: request.prompt,
        tools: request.tools,
        callIds: request.callIds,
        secrets: model.secrets,
        signal,
        onText: (delta, kind) => live[kind].push(delta),
        ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
        ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
      }),
    );
    if (!reply.ok) {
      const spent = spentOnFailure(reply.error, reply.begun, facts, reserve);
      used = usageOfCall(spent, undefined);
      const late = reply.error.kind === "aborted" ? limits.late() : undefined;
      if (late !== undefined) return { ...limitRecord(scope, call, late), ...spent };
      return { ...failureRecord(scope, call, turn, trial, cleanFailure(reply.error, secrets)), ...spent };
    }
    const spent = spentOn(reply.usage, facts, reserve);
    used = usageOfCall(spent, reply.usage);
    whole = true;
    const cleaned = cleanReply(reply, secrets);
    // Beside other calls a completion is judged when those have run.
    const alone = cleaned.calls.every((call) => call.tool === request.completion.tool);
    const completions = alone ? await checkCompletions(cleaned, request.completion) : [];
    return {
      kind: "reply",
      reply: keepReply(cleaned),
      completions: keepChecks(completions, cleaned),
      worked: limits.worked(),
      ...spent,
    };
  } finally {
    for (const text of [live.reasoning, live.text]) {
      if (whole) text.end();
      else text.drop();
    }
    reserved?.settle(used === undefined ? undefined : spendingOf(used));
  }
}

/** What was set aside for a call that an earlier process made: nobody knows what came of it, so all of it counts. */
function lostCall({ steps }: ActScope, { opened }: StepCall): Spent | undefined {
  if (opened?.intent === undefined || opened.incarnation === steps.incarnation) return undefined;
  const { inputTokens, outputTokens, costUsd }: Reserve = JSON.parse(JSON.stringify(opened.intent));
  return { counted: { inputTokens, outputTokens }, ...(costUsd === undefined ? {} : { costUsd }) };
}

/** Reads the completion calls of a reply up to the first that fits. Inside a step: a schema may be user code. */
export async function checkCompletions(
  reply: Pick<Reply, "calls">,
  completion: TurnRequest["completion"],
): Promise<readonly CompletionCheck[]> {
  const checks: CompletionCheck[] = [];
  for (const call of reply.calls) {
    if (call.tool !== completion.tool) continue;
    if (call.input === undefined) {
      const message = call.inputError?.message ?? "the arguments could not be read";
      checks.push({ index: call.index, ok: false, issues: [{ path: "$", message }] });
      continue;
    }
    const verdict = await checkOutput(completion.schema, call.input);
    checks.push({ index: call.index, ...verdict });
    if (verdict.ok) break;
  }
  return checks;
}

type OutputCheck =
  | { readonly ok: true; readonly output: Json }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** A schema may be user code that throws, and what it makes of a value must still be JSON to be kept. */
async function checkOutput(schema: CompiledSchema<unknown>, input: Json): Promise<OutputCheck> {
  try {
    const verdict = await schema.check(input);
    if (!verdict.ok) return verdict;
    if (isJson(verdict.value)) return { ok: true, output: verdict.value };
    return {
      ok: false,
      issues: [{ path: "$", message: "the schema turned the payload into something that is not JSON" }],
    };
  } catch (thrown) {
    return { ok: false, issues: [{ path: "$", message: `the schema could not check this: ${messageOf(thrown)}` }] };
  }
}

function limitRecord(scope: ActScope, call: StepCall, hit: LimitHit): Recorded {
  const { code, limit, message, detail } = hit;
  call.event({
    type: "limit.reached",
    executionId: scope.executionId,
    attempt: scope.ctx.attempt,
    data: { limit, message, ...detail },
  });
  const kept = { code, limit, message, ...(detail === undefined ? {} : { detail }) };
  return { kind: "limit", hit: kept, worked: scope.limits.worked() };
}

function failureRecord(scope: ActScope, call: StepCall, turn: number, trial: Trial, error: ModelFailure): Recorded {
  if (mayRetry(error) && trial.try < MAX_TRIES) {
    const waitMs = backoffMs(error, trial.try);
    const data = { turn, try: trial.step, code: error.code, message: error.message, waitMs };
    call.event({ type: "model.retried", executionId: scope.executionId, attempt: scope.ctx.attempt, data });
  }
  return { kind: "failed", error, worked: scope.limits.worked() };
}

function cleanFailure(error: ModelFailure, secrets: SecretFilter): ModelFailure {
  return { ...error, message: secrets.text(error.message) };
}

function mayRetry(error: ModelFailure): boolean {
  return error.kind === "transient" || error.kind === "cut_stream";
}

function backoffMs(error: ModelFailure, attempt: number): number {
  const doubling = FIRST_BACKOFF_MS * 2 ** (attempt - 1);
  return error.retryAfterMs === undefined ? doubling : Math.min(error.retryAfterMs, LONGEST_RETRY_AFTER_MS);
}
