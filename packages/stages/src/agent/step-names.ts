import type { AttemptRef, AttemptStepRef } from "@sluice/core/host";
import { parseAttemptStep } from "@sluice/core/runtime";

// The names of an agent's own steps in an attempt:
//
//   "turn/" turn "/" ( "completion" | "model" [ "/" call ] [ "/failed-at" | "/backoff" ] )

/** A model step, by its place among those of its turn; the first has the plain name. */
export function modelStepName(turn: number, call: number): string {
  return call === 1 ? `turn/${turn}/model` : `turn/${turn}/model/${call}`;
}

/** The steps of the wait that follows a failed model step. */
export function backoffStepNames(turn: number, call: number): { readonly failedAt: string; readonly backoff: string } {
  const model = modelStepName(turn, call);
  return { failedAt: `${model}/failed-at`, backoff: `${model}/backoff` };
}

export function completionStepName(turn: number): string {
  return `turn/${turn}/completion`;
}

export type AgentStepRef =
  | Exclude<AttemptStepRef, { readonly kind: "custom" }>
  | (AttemptRef & { readonly kind: "model" | "backoff" | "completion"; readonly turn: number })
  /** A step of a kind that is not an agent. */
  | (AttemptRef & { readonly kind: "custom"; readonly name: string });

/** Reads the id of a step inside an attempt; undefined for any other. Never throws. */
export function parseAgentStep(stepId: string): AgentStepRef | undefined {
  const step = parseAttemptStep(stepId);
  if (step?.kind !== "custom") return step;
  const { kind: _custom, name, ...attempt } = step;
  const [, turn, completion, wait] = AGENT_STEP.exec(name) ?? [];
  if (turn === undefined) return step;
  const kind = completion !== undefined ? "completion" : wait !== undefined ? "backoff" : "model";
  return { ...attempt, kind, turn: Number(turn) };
}

const AGENT_STEP = /^turn\/(\d+)\/(?:(completion)|model(?:\/\d+)?(\/failed-at|\/backoff)?)$/;
