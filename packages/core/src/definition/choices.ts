import type { JsonObject } from "../base/json.ts";
import type { Cancel, Done, Fail, FanOut, StageList, To } from "./choice.ts";

/** Goes on in a state. Its input is checked against the state's `inputSchema`; `context` is merged into the run's. */
export function to<const T extends string>(state: T): To<T>;
export function to<const T extends string, I>(
  state: T,
  input: I,
  options?: { readonly context?: JsonObject },
): To<T, I>;
export function to(
  state: string,
  input?: unknown,
  options: { readonly context?: JsonObject } = {},
): To<string, unknown> {
  return { kind: "to", state, input, ...options };
}

/** Goes on in several states at once, each in a run of its own, and then in `join`, which sees their outputs upstream. */
export function fanOut<const T extends string, const J extends string>(
  siblings: readonly (T | To<T, unknown>)[],
  options: { readonly join: J; readonly input?: unknown; readonly onFailure?: "cancel" | "settle" },
): FanOut<T, J> {
  return { kind: "fanOut", siblings, ...options };
}

/** Ends the run as completed. */
export function done<O>(output: O): Done<O> {
  return { kind: "done", output };
}

/** Ends the run as failed. */
export function fail(reason: string): Fail {
  return { kind: "fail", reason };
}

/** Ends the run as cancelled. */
export function cancel(reason: string): Cancel {
  return { kind: "cancel", reason };
}

/** What a route may return that was declared for some targets. Ends are always open to it. */
export type ChoiceAmong<T extends string> =
  | To<T, unknown>
  | FanOut<T, T>
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<T>;
/** A route that says beforehand where it may go. */
export interface DeclaredRoute<Result, Ctx, C> {
  (result: Result, ctx: Ctx): C;
  readonly targets: readonly string[];
}

/**
 * Declares where a route may go, so that checks and graphs know; a bare function may go anywhere. Going elsewhere is refused.
 */
export function route<const T extends string, Result, Ctx, C extends ChoiceAmong<T>>(
  targets: readonly T[],
  fn: (result: Result, ctx: Ctx) => C,
): DeclaredRoute<Result, Ctx, C> {
  return Object.assign((result: Result, ctx: Ctx): C => fn(result, ctx), { targets });
}

/** The targets a route was declared for; undefined for a bare function. */
export function declaredTargets(candidate: unknown): readonly string[] | undefined {
  if (typeof candidate !== "function" || !("targets" in candidate) || !Array.isArray(candidate.targets))
    return undefined;
  return candidate.targets.filter((target) => typeof target === "string");
}
