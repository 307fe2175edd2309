import type { JsonObject } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { AssertAnswer, GateAnswer } from "../../definition/state-rules.ts";
import { sharedData } from "../../journal/record/event-data.ts";
import type { ResolvedChoice } from "../../machine/resolve-choice.ts";

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

export function leftGate(answer: GateAnswer): JsonObject {
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
