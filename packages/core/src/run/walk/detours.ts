import { SluiceError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { EventDraft } from "../../journal/events.ts";
import type { SecretFilter } from "../../journal/redaction.ts";
import type { Interruption, StepRunner } from "../../journal/seam.ts";
import type { Transition } from "../../machine/transition-types.ts";
import type { Decided, DetourEnd, Detours, Interrupted } from "../execution.ts";

/** How a handler ended: back in the execution that it interrupted, or with a move of its own. */
export type Detour =
  | { readonly kind: "returned"; readonly by: StageResult<Json> }
  | { readonly kind: "left"; readonly next: Transition; readonly reason: string };

/**
 * What ends one execution before its time, whose signal aborts with the run's, or alone: the detours whose handlers do not return,
 * and people who interrupt it.
 */
export class OwnDetours implements Detours {
  readonly #controller = new AbortController();
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #steps: StepRunner;
  readonly #secrets: SecretFilter;
  readonly #perform: (decided: Decided) => Promise<Detour>;
  readonly #onRunAbort: () => void;
  acting: { check(): void } | undefined;
  #unwatch: (() => void) | undefined;
  handling: Promise<unknown> | undefined;
  fault: { readonly thrown: unknown } | undefined;
  left: Transition | undefined;
  interrupted: Interrupted | undefined;

  constructor(steps: StepRunner, secrets: SecretFilter, perform: (decided: Decided) => Promise<Detour>) {
    const { signal: run } = steps;
    this.#steps = steps;
    this.#secrets = secrets;
    this.#perform = perform;
    // A constant first: V8 takes a function that is assigned to a member for one that lives long, and keeps all that it reaches.
    const onRunAbort = (): void => this.#abort(run.reason);
    this.#onRunAbort = onRunAbort;
    if (run.aborted) onRunAbort();
    else run.addEventListener("abort", onRunAbort, { once: true });
  }

  async take(decided: Decided): Promise<DetourEnd> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.handling = promise;
    try {
      return await this.#handled(decided);
    } catch (thrown) {
      this.fault = { thrown };
      throw thrown;
    } finally {
      resolve();
    }
  }

  async #handled(decided: Decided): Promise<DetourEnd> {
    // Between two states of the handler, nothing can be interrupted.
    const watched = this.#steps.interruptible(undefined);
    const detour = await this.#perform(decided);
    watched();
    this.handling = undefined;
    if (detour.kind === "returned") return detour;
    this.left = detour.next;
    this.#abort(new SluiceError("Cancellation", "interrupted", detour.reason));
    return { kind: "left" };
  }

  watch(event: (data: JsonObject) => EventDraft): void {
    this.#unwatch = this.#steps.interruptible((interruption) => this.#interrupt(interruption, event));
  }

  unwatch(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  close(): void {
    this.unwatch();
    this.#steps.signal.removeEventListener("abort", this.#onRunAbort);
  }

  #abort(reason: unknown): void {
    if (Reflect.get(AbortSignal.prototype, "aborted", this.signal)) return;
    this.#controller.abort(reason);
    this.acting?.check();
  }

  /** A later interruption is part of the first one. */
  #interrupt(interruption: Interruption, event: (data: JsonObject) => EventDraft): readonly EventDraft[] {
    const { count } = interruption;
    const [by, reason] = [this.#secrets.text(interruption.by), this.#secrets.text(interruption.reason)];
    const first = this.interrupted;
    if (first !== undefined) {
      this.interrupted = { by: joined(", ", first.by, by), reason: joined("; ", first.reason, reason) };
      return [];
    }
    this.interrupted = { by, reason };
    const why = [`interrupted by ${by === "" ? "a person" : by}`, reason].filter((part) => part !== "").join(": ");
    this.#abort(new SluiceError("Cancellation", "interrupted", why));
    return [event({ by, ...(reason === "" ? {} : { reason }), count })];
  }
}

function joined(separator: string, before: string, after: string): string {
  if (after === "" || before.split(separator).includes(after)) return before;
  return before === "" ? after : `${before}${separator}${after}`;
}
