import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from "@ai-sdk/provider";
import {
  type ActScope,
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
import { callModel } from "./model-call.ts";

const MAX_TRIES = 4;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** Asked of the provider where a token cap needs a maximum to set aside and the stage names none. */
const DEFAULT_MAX_OUTPUT_TOKENS = 8_192;
const CHARS_PER_TOKEN = 4;

/** What a turn needs to ask its model. */
export interface TurnRequest {
  readonly turn: number;
  readonly model: ResolvedModel;
  readonly prompt: LanguageModelV4Prompt;
  /** Characters of the prompt so far; counted as it grows, never again as a whole. */
  readonly promptChars: number;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly completion: { readonly tool: string; readonly schema: CompiledSchema<unknown> };
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly callIds: ReadonlySet<string>;
}

export type TurnAnswer =
  /** `completions` are read already when the turn made no other calls: in the same record as the reply. */
  | { readonly kind: "reply"; readonly reply: Reply; readonly completions: readonly CompletionCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure; readonly tries: number }
  | { readonly kind: "limit"; readonly hit: LimitHit }
  | { readonly kind: "cancelled" };

/** What a model step records. */
type Recorded = { readonly worked: Worked } & (
  | { readonly kind: "reply"; readonly reply: KeptReply; readonly completions: readonly KeptCheck[] }
  | { readonly kind: "failed"; readonly error: ModelFailure }
  | { readonly kind: "limit"; readonly hit: LimitHit }
);

/** Asks the model for one turn. Every try is a step of its own; waits between tries survive a restart. */
export async function askModel(scope: ActScope, request: TurnRequest): Promise<TurnAnswer> {
  const { turn } = request;
  for (let attempt = 1; ; attempt += 1) {
    const stepId = attempt === 1 ? `turn/${turn}/model` : `turn/${turn}/model/${attempt}`;
    const recorded = await scope.steps.run(stepId, (call) => tryModel(scope, request, attempt, call), {
      open: {
        events: [
          {
            type: "turn.started",
            executionId: scope.executionId,
            attempt: scope.ctx.attempt,
            data: { turn, try: attempt, model: request.model.id, workedMs: scope.limits.worked().runMs },
          },
        ],
      },
    });
    scope.limits.atLeast(recorded.worked);
    if (recorded.kind === "reply") {
      const reply = readReply(recorded.reply);
      scope.limits.spent(reply.usage);
      return { kind: "reply", reply, completions: readChecks(recorded.completions, reply) };
    }
    if (recorded.kind === "limit") return recorded;
    const { error } = recorded;
    if (error.kind === "aborted") return { kind: "cancelled" };
    if (!mayRetry(error) || attempt >= MAX_TRIES) return { kind: "failed", error, tries: attempt };
    const now = await scope.steps.now(`${stepId}/failed-at`);
    await scope.wait(`${stepId}/backoff`, now + backoffMs(error, attempt));
    if (scope.signal.aborted) return { kind: "cancelled" };
  }
}

async function tryModel(scope: ActScope, request: TurnRequest, attempt: number, call: StepCall): Promise<Recorded> {
  const { limits, secrets, stateId, ctx, executionId } = scope;
  const { turn, model } = request;
  const hit = limits.late();
  if (hit !== undefined) return limitRecord(scope, call, hit);
  const maxOutputTokens = request.maxOutputTokens ?? (limits.capped ? DEFAULT_MAX_OUTPUT_TOKENS : undefined);
  const reserved = limits.reserve(Math.ceil(request.promptChars / CHARS_PER_TOKEN) + (maxOutputTokens ?? 0));
  if (!reserved.ok) return limitRecord(scope, call, reserved);

  const shown = (kind: string): LiveText =>
    createLiveText(
      secrets,
      (text) => scope.steps.emit(kind, { executionId, attempt: ctx.attempt, turn, try: attempt, text }),
      scope.steps.heard,
    );
  const live = { text: shown("text"), reasoning: shown("reasoning") };
  let usage: Usage | undefined;
  let whole = false;
  try {
    const reply = await limits.timed(call.signal, (signal) =>
      callModel({
        model: model.at({ stage: stateId, turn: scope.turnsBefore + turn - 1, attempt }),
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
    const late = limits.late();
    if (!reply.ok && reply.error.kind === "aborted" && late !== undefined) return limitRecord(scope, call, late);
    if (!reply.ok) return failureRecord(scope, call, turn, attempt, cleanFailure(reply.error, secrets));
    usage = reply.usage;
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
    };
  } finally {
    for (const text of [live.reasoning, live.text]) {
      if (whole) text.end();
      else text.drop();
    }
    reserved.settle(usage);
  }
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
  const { code, limit, message } = hit;
  call.event({
    type: "limit.reached",
    executionId: scope.executionId,
    attempt: scope.ctx.attempt,
    data: { limit, message },
  });
  return { kind: "limit", hit: { code, limit, message }, worked: scope.limits.worked() };
}

function failureRecord(scope: ActScope, call: StepCall, turn: number, attempt: number, error: ModelFailure): Recorded {
  if (mayRetry(error) && attempt < MAX_TRIES) {
    const waitMs = backoffMs(error, attempt);
    const data = { turn, try: attempt, code: error.code, message: error.message, waitMs };
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
