import type { JsonObject } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { AssertAnswer, PreconditionAnswer } from "../../definition/state-rules.ts";
import type { EventType } from "../../journal/events.ts";
import { sharedData } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import type { ResolvedChoice } from "../../machine/decide-next.ts";
import type { Attempt } from "../attempt.ts";
import { cancelReason } from "../limits/limits.ts";
import { callUserCode, type HookAnswer } from "./user-code.ts";

type PhaseEvent = Extract<EventType, `stage.${string}`>;
/** Whose code a phase runs, as its author knows it. */
const CODE_OF: Partial<Record<PhaseEvent, string>> = {
  "stage.setup": "setup",
  "stage.init": "the prompt",
  "stage.precondition": "precondition",
  "stage.assert": "assert",
};
/** What a hook returned, looked at: user code in JavaScript may return anything. */
export type PhaseAnswer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

/** One phase's hook: absent, its phase answers by itself. */
export interface PhaseHook<T> {
  readonly ask: (() => unknown) | undefined;
  read(value: unknown): PhaseAnswer<T>;
  readonly otherwise: T;
  /** What the event after the phase says of the answer. */
  say(value: T): JsonObject;
}

/** Walks through phases inside one step: an event before and an event after each, whatever its hook does. */
export interface Phases {
  note(type: EventType, data: JsonObject): void;
  /** At once when the hook answers at once. */
  through<T>(type: PhaseEvent, hook: PhaseHook<T>): HookAnswer<T> | Promise<HookAnswer<T>>;
}

export function createPhases({ journal, execution, limits }: Attempt, call: StepCall): Phases {
  const { signal } = execution.steps;
  const note = (type: EventType, data: JsonObject): void => call.event(journal.event(type, data));
  const ask = <T>(
    type: PhaseEvent,
    { ask, otherwise }: PhaseHook<T>,
  ): HookAnswer<unknown> | Promise<HookAnswer<unknown>> => {
    const cancelled = cancelReason(signal);
    if (cancelled !== undefined) return { kind: "cancelled", reason: cancelled };
    if (ask === undefined) return { kind: "answered", value: otherwise };
    return callUserCode(CODE_OF[type] ?? type, signal, limits, ask);
  };
  const leave = <T>(type: PhaseEvent, hook: PhaseHook<T>, given: HookAnswer<unknown>): HookAnswer<T> => {
    const asked = readAnswer(hook, given);
    note(type, asked.kind === "answered" ? hook.say(asked.value) : leftWith(asked.kind));
    if (asked.kind === "failed" && asked.limit !== undefined) {
      note("limit.reached", { limit: asked.limit, message: asked.message });
    }
    return asked;
  };
  return {
    note,
    through: (type, hook) => {
      note(type, ENTERED);
      const given = ask(type, hook);
      return given instanceof Promise ? given.then((later) => leave(type, hook, later)) : leave(type, hook, given);
    },
  };
}

function readAnswer<T>({ ask, read, otherwise }: PhaseHook<T>, given: HookAnswer<unknown>): HookAnswer<T> {
  if (given.kind !== "answered") return given;
  if (ask === undefined) return { kind: "answered", value: otherwise };
  const reading = read(given.value);
  if (reading.ok) return { kind: "answered", value: reading.value };
  return { kind: "failed", code: "hook", message: reading.fault };
}

export function readPreconditionAnswer(value: unknown): PhaseAnswer<PreconditionAnswer> {
  if (value === "proceed" || value === "skip") return { ok: true, value };
  if (typeof value === "object" && value !== null && "retryAfterMs" in value) {
    const { retryAfterMs } = value;
    if (typeof retryAfterMs === "number" && Number.isFinite(retryAfterMs)) return { ok: true, value: { retryAfterMs } };
  }
  return {
    ok: false,
    fault: 'precondition answered neither "proceed", nor "skip", nor { retryAfterMs: milliseconds }',
  };
}

export function readAssertAnswer(value: unknown): PhaseAnswer<AssertAnswer> {
  if (value === "ok") return { ok: true, value };
  if (typeof value === "object" && value !== null) {
    if ("retry" in value && typeof value.retry === "string") return { ok: true, value: { retry: value.retry } };
    if ("fail" in value && typeof value.fail === "string") return { ok: true, value: { fail: value.fail } };
  }
  return { ok: false, fault: 'assert answered neither "ok", nor { retry: feedback }, nor { fail: reason }' };
}

// What the events of phases say, where it is one of a few things: a stage has a score of them.

export const ENTERED = sharedData({ phase: "entered" });
export const LEFT = sharedData({ phase: "left" });

const gateLeft = {
  proceed: sharedData({ phase: "left", answer: "proceed" }),
  skip: sharedData({ phase: "left", answer: "skip" }),
  retry: sharedData({ phase: "left", answer: "retry" }),
};
const assertLeft = {
  ok: sharedData({ phase: "left", answer: "ok" }),
  retry: sharedData({ phase: "left", answer: "retry" }),
  fail: sharedData({ phase: "left", answer: "fail" }),
};
const outcomeLeft = {
  completed: sharedData({ phase: "left", outcome: "completed" }),
  failed: sharedData({ phase: "left", outcome: "failed" }),
  skipped: sharedData({ phase: "left", outcome: "skipped" }),
  paused: sharedData({ phase: "left", outcome: "paused" }),
  cancelled: sharedData({ phase: "left", outcome: "cancelled" }),
};
const choiceLeft = {
  to: sharedData({ phase: "left", choice: "to" }),
  fanOut: sharedData({ phase: "left", choice: "fanOut" }),
  done: sharedData({ phase: "left", choice: "done" }),
  fail: sharedData({ phase: "left", choice: "fail" }),
  cancel: sharedData({ phase: "left", choice: "cancel" }),
};
const finished = {
  completed: sharedData({ outcome: "completed" }),
  failed: sharedData({ outcome: "failed" }),
  skipped: sharedData({ outcome: "skipped" }),
  paused: sharedData({ outcome: "paused" }),
  cancelled: sharedData({ outcome: "cancelled" }),
};
type Status = StageResult<unknown>["status"];

export function leftPrecondition(answer: PreconditionAnswer): JsonObject {
  return gateLeft[typeof answer === "string" ? answer : "retry"];
}

export function leftAssert(answer: AssertAnswer): JsonObject {
  return assertLeft[answer === "ok" ? answer : "retry" in answer ? "retry" : "fail"];
}

/** Of Act and of Exit. */
export function leftWith(outcome: Status): JsonObject {
  return outcomeLeft[outcome];
}

export function leftNext(choice: ResolvedChoice["kind"]): JsonObject {
  return choiceLeft[choice];
}

/** An attempt that ended as its stage did. */
export function finishedAs(outcome: Status): JsonObject {
  return finished[outcome];
}
