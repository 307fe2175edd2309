import { isPromiseLike, messageOf } from "@sluice/core/runtime";
import type { TelemetryFault } from "./telemetry.ts";

export type Guarded = ReturnType<typeof guarded>;

/** Keeps failures of telemetry from affecting runs. */
export function guarded(onFault: (fault: TelemetryFault) => void) {
  let reported = false;
  const report = (cause: unknown): void => {
    // Only once: the same fault may occur at thousands of calls.
    if (reported) return;
    reported = true;
    try {
      onFault({ by: "telemetry", message: `telemetry failed: ${messageOf(cause)}`, cause });
    } catch (thrown) {
      process.emitWarning(messageOf(thrown), "SluiceWarning");
    }
  };
  /** Returns the result of `call`, or undefined and reports a fault if it throws. A rejected promise is reported too. */
  const ask = <T>(call: () => T): T | undefined => {
    try {
      const result = call();
      // An async method must not end the process with an unhandled rejection.
      if (isPromiseLike(result)) Promise.resolve(result).catch(report);
      return result;
    } catch (cause) {
      report(cause);
      return undefined;
    }
  };
  return {
    ask,
    /** Returns or throws what `work` does. `work` runs exactly once and synchronously, whatever `around` does. */
    within: <T>(around: (work: () => void) => void, work: () => T): T => {
      let begun = false;
      const done: { result: () => T } = { result: () => work() };
      const once = (): void => {
        if (begun) return;
        begun = true;
        try {
          const value = work();
          done.result = () => value;
        } catch (thrown) {
          done.result = () => {
            throw thrown;
          };
        }
      };
      ask(() => around(once));
      once();
      return done.result();
    },
  };
}
