import type { Clock, PersonRequest } from "@sluice/core";
import type { RunView } from "@sluice/view";

/** The open requests of the views that a session has shown. */
export interface ShownRequests {
  /** To be called once the updates of a view were sent. */
  show(view: RunView): void;
  /** Waits until a view with the request was shown. */
  until(request: PersonRequest, signal: AbortSignal): Promise<void>;
}

/** A person is asked nevertheless if a run cannot be read. */
const LONGEST_WAIT_MS = 5_000;

export function createShownRequests(clock: Clock): ShownRequests {
  const looks = new Set<() => void>();
  let shown: RunView["requests"] = [];
  return {
    show: ({ requests }) => {
      shown = requests;
      for (const look of [...looks]) look();
    },
    until: ({ runId, requestId }, signal) =>
      new Promise((resolve) => {
        const end = (): void => {
          disarm();
          looks.delete(look);
          signal.removeEventListener("abort", end);
          resolve();
        };
        const look = (): void => {
          if (shown.some((one) => one.runId === runId && one.requestId === requestId)) end();
        };
        const disarm = clock.after(LONGEST_WAIT_MS, end);
        signal.addEventListener("abort", end, { once: true });
        looks.add(look);
        if (signal.aborted) end();
        else look();
      }),
  };
}
