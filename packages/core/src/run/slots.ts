import PQueue from "p-queue";

/** Places for stages at work: at most so many in one session, whatever runs they belong to. */
export interface Slots {
  readonly size: number;
  /** Waits for a place. Undefined when the signal aborted first. */
  take(signal: AbortSignal): Promise<Slot | undefined>;
}
export interface Slot {
  /** Gives the place free; calling it again does nothing. */
  free(): void;
}

export function createSlots(size: number): Slots {
  const queue = new PQueue({ concurrency: size });
  return {
    size,
    take: (signal) =>
      new Promise<Slot | undefined>((resolve) => {
        if (signal.aborted) {
          resolve(undefined);
          return;
        }
        let given = false;
        const onAbort = (): void => {
          if (!given) resolve(undefined);
        };
        signal.addEventListener("abort", onAbort, { once: true });
        void queue.add(
          () =>
            new Promise<void>((free) => {
              signal.removeEventListener("abort", onAbort);
              if (signal.aborted) {
                free();
                return;
              }
              given = true;
              resolve({ free });
            }),
        );
      }),
  };
}
