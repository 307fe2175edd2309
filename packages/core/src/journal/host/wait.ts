import type { RunAtWork } from "./active-run.ts";
import { OneAtATime } from "./store-changes.ts";

export interface Wait {
  /** Epoch milliseconds at which the wait is over anyway. */
  readonly until?: number;
  /** Whether what is waited for is there; asked again whenever the store may have changed. */
  readonly arrived?: () => Promise<boolean>;
}

/** Waits until it arrived, the time has come, or the run is cancelled. Rejects when the run has to stop. */
export async function waitFor(
  run: Pick<RunAtWork, "control" | "clock" | "tree">,
  { until, arrived }: Wait,
): Promise<void> {
  const { control, clock, tree } = run;
  if (arrived !== undefined && (await arrived())) return;
  await new Promise<void>((resolve, reject) => {
    const cleanups: (() => void)[] = [];
    let over = false;
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      for (const cleanup of cleanups) cleanup();
      settle();
    };
    const controlChanged = (): void => {
      if (control.stopped !== undefined) end(() => reject(control.stopped));
      else if (control.cancelled !== undefined) end(resolve);
    };
    const look = async (): Promise<void> => {
      try {
        // What came in the last moment counts: its sender was told that it was accepted.
        const late = until !== undefined && clock.now() >= until;
        if (over) return;
        if ((arrived !== undefined && (await arrived())) || late) end(resolve);
      } catch (thrown) {
        end(() => reject(thrown));
      }
    };
    const looking = new OneAtATime({ look });
    const arm = (until: number): void => {
      // A timer may fire a moment before the clock says so, and a clock may be set back.
      const onTime = (): void => (clock.now() < until ? arm(until) : looking.ask());
      disarm = clock.after(until - clock.now(), onTime);
    };
    let disarm: (() => void) | undefined;

    const listener = { controlChanged };
    control.listen(listener);
    cleanups.push(
      () => control.unlisten(listener),
      () => disarm?.(),
    );
    if (arrived !== undefined) cleanups.push(tree.onSignal(() => looking.ask()));
    if (until !== undefined) arm(until);
    controlChanged();
    if (!over) looking.ask();
  });
}
