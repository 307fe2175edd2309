import type { JsonObject } from "../base/json.ts";

// Choices: the target is a literal, the payload rides along, the pipeline checks both.
export interface To<T extends string, I = undefined> {
  readonly kind: "to";
  readonly state: T;
  readonly input: I;
  /** Merged shallowly into `ctx.context` in the same commit as the decision. */
  readonly context?: JsonObject;
}
export interface FanOut<T extends string, J extends string> {
  readonly kind: "fanOut";
  readonly siblings: readonly (T | To<T, unknown>)[];
  readonly join: J;
  /** The join's own input. */
  readonly input?: unknown;
  /** `cancel` (default): one failure cancels the rest and fails the fork; `settle`: all end, the join sees how in `ctx.fork`. */
  readonly onFailure?: "cancel" | "settle";
}
export interface Done<O> {
  readonly kind: "done";
  readonly output: O;
}
export interface Fail {
  readonly kind: "fail";
  readonly reason: string;
}
export interface Cancel {
  readonly kind: "cancel";
  readonly reason: string;
}
/** A choice as a literal: [] = done with the state's own output, one sequential = to, two or more parallel = fanOut. */
export interface StageList<T extends string> {
  readonly stages: readonly T[];
  readonly execution: "sequential" | "parallel";
  readonly join?: T;
}
/** A choice whose names are not checked by the compiler: what is left at run time. */
export type AnyChoice =
  | To<string, unknown>
  | FanOut<string, string>
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<string>;
