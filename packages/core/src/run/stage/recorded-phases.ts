import type { Json, JsonObject } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { PreconditionAnswer } from "../../definition/state-rules.ts";
import type { RecordedOutcome, StepCall, StepOptions } from "../../journal/seam.ts";
import type { NextDecision } from "../../machine/decide-next.ts";
import type { LimitHit } from "../limits/limits.ts";
import type { MissingAnswer } from "./user-code.ts";

// What the phases of a stage record, and what a replay takes of it: what they had from the world.

/** What the enter step found; recorded, so that hooks and prompts are not asked again on resume. */
export type Entered = { readonly at: number } & (
  | { readonly kind: "ready"; readonly setup: Json; readonly init: Json; readonly gate: PreconditionAnswer }
  | { readonly kind: "out"; readonly why: MissingAnswer }
);

/** What the leave step decided. */
export type Left =
  | { readonly kind: "retry"; readonly feedback: string }
  | { readonly kind: "left"; readonly result: StageResult<Json>; readonly next: NextDecision | null };

/** What hooks that read the world said when a state was entered. */
export interface EntryBefore extends Pick<Extract<Entered, { readonly kind: "ready" }>, "at" | "setup" | "gate"> {}

export function recordedEntry({ recorded }: StepCall): EntryBefore | undefined {
  if (recorded === undefined) return undefined;
  const entered = enteredIn(recorded);
  return entered.kind === "ready" ? entered : { at: entered.at, setup: null, gate: "proceed" };
}

/**
 * An entry that came to nothing is taken as it is, since what its hooks said is not known then; but a prompt that threw, with
 * nothing before it that reads the world, is asked again.
 */
export function entering(hasSetup: boolean): StepOptions {
  return hasSetup ? AFTER_SETUP : WITHOUT_SETUP;
}

const AFTER_SETUP: StepOptions = { decides: isReady };
const WITHOUT_SETUP: StepOptions = {
  decides: (recorded) => isReady(recorded) || lastPhase(recorded) === "stage.init",
};

function isReady(recorded: RecordedOutcome): boolean {
  return enteredIn(recorded).kind === "ready";
}

function lastPhase({ events }: RecordedOutcome): string | undefined {
  return events.findLast(({ type }) => type.startsWith("stage."))?.type;
}

function enteredIn({ value }: RecordedOutcome): Entered {
  return JSON.parse(value);
}

/** What the clock, the caps and the exit hook said when a stage was left. */
export interface LeaveBefore {
  /** Since the execution began. */
  readonly ms: number;
  readonly hit: LimitHit | undefined;
  readonly exitFault: string | undefined;
}

export function recordedLeave({ recorded }: StepCall, startedAt: number): LeaveBefore | undefined {
  if (recorded === undefined) return undefined;
  const left = leftIn(recorded);
  const { events } = recorded;
  // None comes after Assert: such a record is taken as it is.
  const capped = events.findLast(({ type, data }) => type === "limit.reached" && isCap(data));
  return {
    // Of an attempt that was sent back only its record's time is known.
    ms: left.kind === "left" ? left.result.ms : (events[0]?.at ?? startedAt) - startedAt,
    hit: capped === undefined ? undefined : hitIn(capped.data),
    exitFault: faultOfExit(recorded, left),
  };
}

/**
 * Assert and the route are asked again, except where the run was cancelled over them, or a time cap passed while a hook was at work:
 * what it would have said is not known then.
 */
function leavesAnew(recorded: RecordedOutcome): boolean {
  const left = leftIn(recorded);
  if (left.kind === "retry") return true;
  const asserting = recorded.events.findIndex(({ type }) => type === "stage.assert");
  const late = asserting !== -1 && recorded.events.slice(asserting).some(({ type }) => type === "limit.reached");
  return left.result.status !== "cancelled" && !isCancelled(left.next) && !late;
}

export const LEAVING: StepOptions = { decides: leavesAnew };

/** Routes return their cancels themselves: this one was made because the run was cancelled. */
function isCancelled(next: NextDecision | null): boolean {
  return next?.by === "default" && next.choice.kind === "cancel";
}

/** A route after a failed fork is asked again unless the run was cancelled over it. */
export function decidesRoute({ value }: RecordedOutcome): boolean {
  const next: NextDecision = JSON.parse(value);
  return !isCancelled(next);
}

function leftIn({ value }: RecordedOutcome): Left {
  return JSON.parse(value);
}

function faultOfExit({ events }: RecordedOutcome, left: Left): string | undefined {
  const fault = events.findLast(({ type }) => type === "stage.exit")?.data.fault;
  if (typeof fault !== "string") return undefined;
  // Where nothing had failed before, it made the result; its event may have been redacted further than that.
  const before = events.findLast(({ type }) => type === "attempt.finished")?.data.outcome;
  return before !== "failed" && left.kind === "left" && left.result.status === "failed" ? left.result.message : fault;
}

const CAPS = /^(?:state|run)\.(?:maxTokens|maxCostUsd|timeoutMs)$/;

function isCap({ limit }: JsonObject): boolean {
  return typeof limit === "string" && CAPS.test(limit);
}

function hitIn({ limit, message, ...detail }: JsonObject): LimitHit {
  const name = textOf(limit);
  const { max, used, reserved, asked } = detail;
  const hit = {
    code: name.endsWith("timeoutMs") ? "timeout" : "budget",
    limit: name,
    message: textOf(message),
  } as const;
  if (typeof max !== "number" || typeof used !== "number") return hit;
  return { ...hit, detail: { max, used, reserved: numberOf(reserved), asked: numberOf(asked) } };
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}
