import { messageOf } from "@sluice/core";
import type { TelemetryFault } from "./telemetry.ts";

/** Keeps what telemetry does apart from what runs do. */
export interface Guarded {
  /** What `ask` returns; undefined when it throws. A promise that rejects is told as well. */
  ask<T>(ask: () => T): T | undefined;
  /** What `work` returns or throws: it runs once, and at once, whatever `around` does with it. */
  within<T>(around: (work: () => void) => void, work: () => T): T;
}

export function guarded(onFault: (fault: TelemetryFault) => void): Guarded {
  let told = false;
  const tell = (cause: unknown): void => {
    // Once: what fails at one call fails at thousands.
    if (told) return;
    told = true;
    try {
      onFault({ by: "telemetry", message: `telemetry failed: ${messageOf(cause)}`, cause });
    } catch (thrown) {
      process.emitWarning(messageOf(thrown), "SluiceWarning");
    }
  };
  const ask = <T>(question: () => T): T | undefined => {
    try {
      const answer = question();
      // An async method is no mistake that may end the process.
      if (answer instanceof Promise) answer.catch(tell);
      return answer;
    } catch (cause) {
      tell(cause);
      return undefined;
    }
  };
  return {
    ask,
    within: (around, work) => {
      const once = new Once(work);
      ask(() => around(once.run));
      return once.result();
    },
  };
}

/** Work that is done once, and keeps what came of it. */
class Once<T> {
  readonly #work: () => T;
  #begun = false;
  #done: { readonly ok: true; readonly value: T } | { readonly ok: false; readonly thrown: unknown } | undefined;

  constructor(work: () => T) {
    this.#work = work;
  }

  readonly run = (): void => {
    if (this.#begun) return;
    this.#begun = true;
    try {
      this.#done = { ok: true, value: this.#work() };
    } catch (thrown) {
      this.#done = { ok: false, thrown };
    }
  };

  result(): T {
    this.run();
    if (this.#done?.ok === true) return this.#done.value;
    throw this.#done?.thrown;
  }
}
