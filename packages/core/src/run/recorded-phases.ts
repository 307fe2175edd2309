import type { Json, JsonObject } from "../base/json.ts";
import type { RecordedOutcome, StepCall } from "../journal/seam.ts";
import type { NextDecision } from "../routing/next.ts";
import type { Entered } from "./enter.ts";
import type { Left } from "./leave.ts";
import type { LimitHit } from "./limits.ts";

// What the phases of a stage took from the world when they were recorded, for a replay of them.

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
export function entersAnew(hasSetup: boolean): (recorded: RecordedOutcome) => boolean {
  return hasSetup ? isReady : (recorded) => isReady(recorded) || lastPhase(recorded) === "stage.init";
}

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
  /** Undefined for an attempt that was sent back: nothing recorded its time. */
  readonly ms: number | undefined;
  readonly hit: LimitHit | undefined;
  readonly exitFault: string | undefined;
}

export function recordedLeave({ recorded }: StepCall): LeaveBefore | undefined {
  if (recorded === undefined) return undefined;
  const left = leftIn(recorded);
  const { events } = recorded;
  const asserting = events.findIndex(({ type }) => type === "stage.assert");
  const capped = events
    .slice(0, asserting === -1 ? undefined : asserting)
    .findLast(({ type, data }) => type === "limit.reached" && isCap(data));
  return {
    ms: left.kind === "left" ? left.result.ms : undefined,
    hit: capped === undefined ? undefined : hitIn(capped.data),
    exitFault: faultOfExit(recorded, left),
  };
}

/**
 * Assert and the route are asked again, except where the run was cancelled over them, or a time cap passed while a hook was at work:
 * what it would have said is not known then.
 */
export function leavesAnew(recorded: RecordedOutcome): boolean {
  const left = leftIn(recorded);
  if (left.kind === "retry") return true;
  const asserting = recorded.events.findIndex(({ type }) => type === "stage.assert");
  const late = asserting !== -1 && recorded.events.slice(asserting).some(({ type }) => type === "limit.reached");
  return left.result.status !== "cancelled" && !isCancelled(left.next) && !late;
}

/** Routes return their cancels themselves: this one was made because the run was cancelled. */
export function isCancelled(next: NextDecision | null): boolean {
  return next?.by === "default" && next.choice.kind === "cancel";
}

/** A route after a failed fork is asked again unless the run was cancelled over it. */
export function routesAnew({ value }: RecordedOutcome): boolean {
  const next: NextDecision = JSON.parse(value);
  return !isCancelled(next);
}

function leftIn({ value }: RecordedOutcome): Left {
  return JSON.parse(value);
}

function faultOfExit({ events }: RecordedOutcome, left: Left): string | undefined {
  const fault = events.findLast(({ type }) => type === "stage.exit")?.data.fault;
  if (typeof fault !== "string") return undefined;
  // Its event may have been redacted further than the result that it made.
  const made = left.kind === "left" && left.result.status === "failed" && left.result.code === "hook";
  return made ? left.result.message : fault;
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
