import type { Clock } from "@sluice/core";

/** Work that may be asked for at any time, is done at once after a rest, and at most once in a beat; never twice at a time. */
export interface Beat {
  ask(): void;
  close(): void;
}

/** `work` must not reject. */
export function createBeat(clock: Clock, ms: number, work: () => Promise<void>): Beat {
  let state: "idle" | "busy" | "closed" = "idle";
  let asked = false;
  let disarm: (() => void) | undefined;
  const isClosed = (): boolean => state === "closed";

  const run = async (): Promise<void> => {
    state = "busy";
    asked = false;
    await work();
    if (isClosed()) return;
    disarm = clock.after(ms, () => {
      state = "idle";
      if (asked) void run();
    });
  };
  return {
    ask() {
      if (state === "idle") void run();
      else asked = true;
    },
    close() {
      state = "closed";
      disarm?.();
    },
  };
}
