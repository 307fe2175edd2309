import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { StageContext } from "../definition/result.ts";
import type { GuardedCall, GuardHook } from "../definition/state-rules.ts";

/** A guard hook and its owner for the event and the denial: `session`, `pipeline`, `state`. */
export interface NamedGuard {
  readonly name: string;
  readonly hook: GuardHook;
}

export interface GuardOptions {
  readonly clock: Clock;
  /** Per hook; 5 000 when omitted. */
  readonly timeoutMs?: number;
  /** An abort counts as a veto. */
  readonly signal?: AbortSignal;
}
export interface GuardVerdict {
  readonly vetoed?: { readonly hook: string; readonly reason: string };
}

const HOOK_MS = 5_000;

/** Calls the hooks in order until one vetoes. Only a return value of undefined allows the call; a throw or a timeout is a veto. */
export async function runGuardHooks(
  guards: readonly NamedGuard[],
  call: GuardedCall,
  ctx: StageContext,
  options: GuardOptions,
): Promise<GuardVerdict> {
  for (const { name, hook } of guards) {
    const reason = await vetoOf(hook, { ...call }, ctx, options);
    if (reason !== undefined) return { vetoed: { hook: name, reason } };
  }
  return {};
}

function vetoOf(
  hook: GuardHook,
  call: GuardedCall,
  ctx: StageContext,
  options: GuardOptions,
): Promise<string | undefined> {
  const { clock, timeoutMs = HOOK_MS, signal } = options;
  return new Promise((resolve) => {
    const settle = (veto: string | undefined): void => {
      cancelTimer();
      signal?.removeEventListener("abort", onAbort);
      resolve(veto);
    };
    const onAbort = (): void => settle("the run was cancelled while the hook was running");
    const cancelTimer = clock.after(timeoutMs, () => settle(`the hook took longer than ${timeoutMs} ms`));
    if (signal?.aborted === true) {
      onAbort();
      return;
    }
    signal?.addEventListener("abort", onAbort);
    const answering = async (): Promise<unknown> => hook(call, ctx);
    answering().then(
      (answer) => settle(vetoIn(answer)),
      (thrown: unknown) => settle(`the hook failed: ${messageOf(thrown)}`),
    );
  });
}

function vetoIn(answer: unknown): string | undefined {
  if (answer === undefined) return undefined;
  // Read once: a getter could return something else the next time.
  const veto = typeof answer === "object" && answer !== null && "veto" in answer ? answer.veto : undefined;
  if (typeof veto === "string") return veto;
  return "the hook returned neither undefined nor { veto: reason }";
}
