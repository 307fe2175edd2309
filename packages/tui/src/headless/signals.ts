import { STOPPED, type StopSignal } from "./exit-code.ts";

/** Two signals closer than this are one key press that reached the process twice, by its terminal and by npm. */
const SAME_PRESS_MS = 100;

/** Calls back at the first SIGINT or SIGTERM; a second one ends the process at once. Returns the unsubscriber. */
export function onStopSignal(first: (signal: StopSignal) => void): () => void {
  let since: number | undefined;
  const onSignal = (signal: StopSignal): void => {
    const now = performance.now();
    if (since === undefined) {
      since = now;
      first(signal);
    } else if (now - since > SAME_PRESS_MS) {
      process.exit(STOPPED[signal]);
    }
  };
  const onInterrupt = (): void => onSignal("SIGINT");
  const onTerminate = (): void => onSignal("SIGTERM");
  process.on("SIGINT", onInterrupt);
  process.on("SIGTERM", onTerminate);
  return () => {
    process.off("SIGINT", onInterrupt);
    process.off("SIGTERM", onTerminate);
  };
}
