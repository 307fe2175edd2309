import type { Clock } from "@sluice/core";
import { isBusy, storeFault } from "./faults.ts";

/** How long one call may block this thread for a lock: node:sqlite waits synchronously. */
export const BUSY_TIMEOUT_MS = 10;
const PAUSE_MS = 40;
/** With the pauses in between this is about five seconds. */
const TRIES = 100;

/** Does `attempt` at once; while another process holds the lock, again after a pause that leaves the thread free. */
export function whenFree<T>(clock: Clock, path: string, attempt: () => T): T | Promise<T> {
  try {
    return attempt();
  } catch (thrown) {
    if (isBusy(thrown)) return retry(clock, path, attempt);
    throw storeFault(thrown, path);
  }
}

async function retry<T>(clock: Clock, path: string, attempt: () => T): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    await new Promise<void>((resolve) => {
      clock.after(PAUSE_MS, resolve);
    });
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown) || tries >= TRIES) throw storeFault(thrown, path);
    }
  }
}

/** The same for opening, which is synchronous: nothing of this process can be under way in a store it has not opened. */
export function whenFreeBlocking<T>(path: string, attempt: () => T): T {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 1; ; tries += 1) {
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown) || tries >= TRIES) throw storeFault(thrown, path);
      Atomics.wait(sleeper, 0, 0, PAUSE_MS);
    }
  }
}
