import { field, type Json, type JsonObject, numberField, parseStoredJson, textField } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { PreconditionAnswer } from "../../definition/state-rules.ts";
import { decodeValue } from "../../journal/record.ts";
import type { RecordedOutcome, StepOptions } from "../../journal/seam.ts";
import { stepIds, stepNames } from "../../journal/step-id.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import { fromRecordedStart, isDecision, isRecordedStart } from "../../machine/recorded-decision.ts";
import type { Interrupted, MatchedInterrupt } from "../execution.ts";
import type { LimitHit } from "../limits/limits.ts";
import { type MissingAnswer, readPreconditionAnswer } from "./phases.ts";

// What the enter and leave steps record, and which of it a replay reuses because it came from outside the pipeline.

/** The record of the enter step. Resume reads it, so hooks and prompts run once. */
export type RecordedEntry = { readonly at: number } & (
  | { readonly kind: "ready"; readonly setup: Json; readonly init: Json; readonly precondition: PreconditionAnswer }
  | { readonly kind: "ended"; readonly why: MissingAnswer }
);

/** The record of the leave step. */
export type Left =
  | { readonly kind: "retry"; readonly feedback: string }
  | {
      readonly kind: "left";
      readonly result: StageResult<Json>;
      readonly next: NextDecision | null;
      /** A handler of an interrupt did not return to the execution, whose run continues. */
      readonly interrupted?: true;
      /** A person interrupted the execution, whose run continues. */
      readonly interruption?: Interrupted;
    };

/** What a replay reuses of an entry: the time, and the answers of hooks with side effects. */
export interface EntryBefore
  extends Pick<Extract<RecordedEntry, { readonly kind: "ready" }>, "at" | "setup" | "precondition"> {}

export function recordedEntry(recorded: RecordedOutcome): EntryBefore {
  const entered = enteredIn(recorded);
  return entered.kind === "ready" ? entered : { at: entered.at, setup: null, precondition: "proceed" };
}

/**
 * Replay runs an entry again only where its record holds the hooks' answers. A failed entry holds none, and is read as it is,
 * unless the prompt threw and no setup hook ran before it.
 */
export const ENTERING: { readonly afterSetup: StepOptions; readonly withoutSetup: StepOptions } = {
  afterSetup: { decides: isReady },
  withoutSetup: { decides: (recorded) => isReady(recorded) || isPromptFault(recorded) },
};

function isReady(recorded: RecordedOutcome): boolean {
  return enteredIn(recorded).kind === "ready";
}

function isPromptFault(recorded: RecordedOutcome): boolean {
  const entered = enteredIn(recorded);
  const last = recorded.events.findLast(({ type }) => type.startsWith("stage."))?.type;
  return entered.kind === "ended" && entered.why.kind === "failed" && last === "stage.init";
}

function enteredIn({ value }: RecordedOutcome): RecordedEntry {
  return decodeValue(value, isEntered, stepNames.enter);
}

function isEntered(value: Json): value is RecordedEntry {
  if (typeof field(value, "at") !== "number") return false;
  if (field(value, "kind") === "ended") return isMissingAnswer(field(value, "why"));
  const [setup, init] = [field(value, "setup"), field(value, "init")];
  const isReady = field(value, "kind") === "ready" && setup !== undefined && init !== undefined;
  return isReady && readPreconditionAnswer(field(value, "precondition")).ok;
}

function isMissingAnswer(value: Json | undefined): value is MissingAnswer {
  if (field(value, "kind") === "cancelled") return hasText(value, "reason");
  return field(value, "kind") === "failed" && hasText(value, "code") && hasText(value, "message");
}

/** What a replay reuses of a leave step: the clock, the caps and the exit hook. */
export interface LeaveBefore {
  /** Since the execution began. */
  readonly ms: number;
  readonly hit: LimitHit | undefined;
  readonly exitFault: ExitFault | undefined;
}

/** Why an exit hook failed. A type, since it is recorded. */
export type ExitFault = { readonly message: string; readonly detail?: { readonly at: string } };

export function recordedLeave(recorded: RecordedOutcome, startedAt: number): LeaveBefore {
  const left = leftIn(recorded);
  const { events } = recorded;
  // A cap reached after Assert is not here: `leavesAgain` reads such a record as it is.
  const capped = events.findLast(({ type, data }) => type === "limit.reached" && isCap(data));
  return {
    // For a retried attempt only the time of its record is known.
    ms: left.kind === "left" ? left.result.ms : (events[0]?.at ?? startedAt) - startedAt,
    hit: capped === undefined ? undefined : hitIn(capped.data),
    exitFault: faultOfExit(recorded, left),
  };
}

/** Replay runs Assert and the route again, unless a cancel or a time cap interrupted them: their answer is then unknown. */
function leavesAgain(recorded: RecordedOutcome): boolean {
  const left = leftIn(recorded);
  if (left.kind === "retry") return true;
  const asserting = recorded.events.findIndex(({ type }) => type === "stage.assert");
  const timedOut = asserting !== -1 && recorded.events.slice(asserting).some(({ type }) => type === "limit.reached");
  return left.result.status !== "cancelled" && !isCancelled(left.next) && !timedOut;
}

export const LEAVING: StepOptions = { decides: leavesAgain };

/** Whether the run was cancelled, as opposed to a route that returned a cancel. */
function isCancelled(next: NextDecision | null): boolean {
  return next?.by === "default" && next.choice.kind === "cancel";
}

/** Replay asks the route after a failed fan-out again, unless a cancel interrupted it. */
export function decidesRoute({ value }: RecordedOutcome): boolean {
  return !isCancelled(decodeValue(value, isDecision, "that routes a failed fan-out"));
}

/** Replay checks the initial state's input again, unless a cancel interrupted that. */
export function decidesStart({ value }: RecordedOutcome): boolean {
  return !isCancelled(fromRecordedStart(decodeValue(value, isRecordedStart, stepIds.initial)));
}

export function leftIn({ value }: Pick<RecordedOutcome, "value">): Left {
  return decodeValue(value, isLeft, stepNames.leave);
}

/** What a leave step recorded; undefined for a value that it does not record. */
export function readLeft(value: string): Left | undefined {
  const read = parseStoredJson(value);
  return read.ok && isLeft(read.value) ? read.value : undefined;
}

function isLeft(value: Json): value is Left {
  if (field(value, "kind") === "retry") return hasText(value, "feedback");
  const next = field(value, "next") ?? null;
  const interruption = field(value, "interruption");
  const isRead = interruption === undefined || isInterrupted(interruption);
  const isResult = isStageResult(field(value, "result")) && (next === null || isDecision(next));
  return field(value, "kind") === "left" && isResult && isRead;
}

function isInterrupted(value: Json): value is Interrupted {
  const missed = field(value, "missed") ?? [];
  return hasText(value, "by") && hasText(value, "reason") && Array.isArray(missed) && missed.every(isMatched);
}

function isMatched(value: Json): value is MatchedInterrupt {
  const files = field(value, "files");
  return hasText(value, "interrupt") && Array.isArray(files) && files.every((file: Json) => typeof file === "string");
}

export function isStageResult(value: Json | undefined): value is StageResult<Json> {
  const usage = field(value, "usage");
  const counts = [
    ...["attempts", "turns", "ms"].map((key) => numberField(value, key)),
    ...["inputTokens", "outputTokens"].map((key) => numberField(usage, key)),
  ];
  if (!hasText(value, "executionId") || counts.includes(undefined)) return false;
  switch (field(value, "status")) {
    case "completed":
      return field(value, "output") !== undefined;
    case "failed":
      return hasText(value, "code") && hasText(value, "message");
    case "cancelled":
      return hasText(value, "reason");
    case "paused":
      return field(value, "request") !== undefined;
    default:
      return field(value, "status") === "skipped";
  }
}

function hasText(value: Json | undefined, key: string): boolean {
  return textField(value, key) !== undefined;
}

function faultOfExit({ events }: RecordedOutcome, left: Left): ExitFault | undefined {
  const data = events.findLast(({ type }) => type === "stage.exit")?.data;
  const fault = textField(data, "fault");
  if (fault === undefined) return undefined;
  const at = textField(data, "at");
  const place = at === undefined ? {} : { detail: { at } };
  // If nothing had failed before, the fault is the result's message, which is less redacted than the event.
  const before = events.findLast(({ type }) => type === "attempt.finished")?.data.outcome;
  const isResult = before !== "failed" && left.kind === "left" && left.result.status === "failed";
  return { message: isResult ? left.result.message : fault, ...place };
}

const CAPS = /^(?:state|caller|run)\.(?:maxTokens|maxCostUsd|timeoutMs)$/;

function isCap({ limit }: JsonObject): boolean {
  return typeof limit === "string" && CAPS.test(limit);
}

function hitIn(data: JsonObject): LimitHit {
  const limit = textField(data, "limit") ?? "";
  const code = limit.endsWith("timeoutMs") ? "timeout" : "budget";
  const hit = { code, limit, message: textField(data, "message") ?? "" } as const;
  const [max, used] = [numberField(data, "max"), numberField(data, "used")];
  if (max === undefined || used === undefined) return hit;
  const [reserved = 0, requested = 0] = [numberField(data, "reserved"), numberField(data, "requested")];
  return { ...hit, detail: { max, used, reserved, requested } };
}
