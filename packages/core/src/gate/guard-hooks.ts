import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { StageContext } from "../definition/result.ts";
import type { GuardedCall, GuardHook } from "../definition/state-rules.ts";

/** A guard hook and whose it is, for the event and the denial: `session`, `pipeline`, `state`. */
export interface NamedGuard {
  readonly name: string;
  readonly hook: GuardHook;
}

export interface GuardOptions {
  readonly clock: Clock;
  /** For each hook; 5 000 when omitted. */
  readonly timeoutMs?: number;
  /** Aborts on cancel: nothing is let through any more, whatever a hook still says. */
  readonly signal?: AbortSignal;
}
export interface GuardVerdict {
  readonly vetoed?: { readonly hook: string; readonly reason: string };
}

const HOOK_MS = 5_000;

/**
 * Asks the hooks in the order given, each once, until one vetoes. A hook lets a call through by returning undefined and in
 * no other way: a throw, too long a wait, or an answer that is neither counts as a veto.
 */
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
    const onAbort = (): void => settle("cancelled while the hook was at work");
    const cancelTimer = clock.after(timeoutMs, () => settle(`the hook took longer than ${timeoutMs} ms`));
    if (signal?.aborted === true) {
      onAbort();
      return;
    }
    signal?.addEventListener("abort", onAbort);
    const ask = async (): Promise<unknown> => hook(call, ctx);
    ask().then(
      (answer) => settle(vetoIn(answer)),
      (thrown: unknown) => settle(`the hook failed: ${messageOf(thrown)}`),
    );
  });
}

function vetoIn(answer: unknown): string | undefined {
  if (answer === undefined) return undefined;
  if (typeof answer === "object" && answer !== null && "veto" in answer && typeof answer.veto === "string")
    return answer.veto;
  return "the hook returned neither undefined nor { veto: reason }";
}
