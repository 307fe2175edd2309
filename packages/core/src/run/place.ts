import type { Stopwatch } from "./limits.ts";
import type { Slot, Slots } from "./slots.ts";

/** One execution's place among the session's stages at work. Its clocks run while it holds the place. */
export interface Place {
  take(): Promise<void>;
  /** Waits for people, timers and joins happen without the place and outside every timeout. */
  whileFree<T>(wait: () => Promise<T>): Promise<T>;
  leave(): void;
  /** Leaves, but lets nobody in before the end of this execution has been heard: that of a sibling may end all others. */
  leaveLast(): void;
}

export function createPlace(slots: Slots, clocks: readonly Stopwatch[], signal: AbortSignal): Place {
  let slot: Slot | undefined;
  const take = async (): Promise<void> => {
    if (slot !== undefined) return;
    slot = await slots.take(signal);
    // A cancelled execution gets no place, and needs none to be taken down.
    if (slot !== undefined) for (const clock of clocks) clock.start();
  };
  const giveUp = (): Slot | undefined => {
    const held = slot;
    if (held !== undefined) for (const clock of clocks) clock.stop();
    slot = undefined;
    return held;
  };
  const leave = (): void => giveUp()?.free();
  return {
    take,
    leave,
    leaveLast: () => {
      const held = giveUp();
      if (held !== undefined) setImmediate(held.free);
    },
    whileFree: async (wait) => {
      leave();
      const value = await wait();
      await take();
      return value;
    },
  };
}
