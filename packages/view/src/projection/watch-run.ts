import { type Clock, isSluiceError, type RunHost } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { RunHandle } from "@sluice/stages";
import { RecordReader } from "./read-run.ts";
import { reduceRun } from "./reduce-run.ts";
import type { RunView } from "./run-view.ts";

/** Minimum milliseconds between two updates. */
const UPDATE_MS = 33;
/** Milliseconds between two checks whether the owner is alive: a killed process records nothing. */
const OWNER_CHECK_MS = 2_000;

type LiveSource = Pick<RunHandle<unknown>, "onLive">;

export interface WatchOptions {
  /** The run's handle, if it executes in this process: only then does text stream. */
  readonly handle?: LiveSource;
  readonly clock: Clock;
  /** Receives faults of the watch, which do not affect the run; a repeated fault only once. */
  onError(error: unknown): void;
}

/** A live view of a run of any process. */
export interface RunWatch {
  /** The view of the last notification. */
  view(): RunView;
  /** Calls the listener after a change, at most once in 33 ms. Returns the unsubscriber. */
  subscribe(listener: () => void): () => void;
  /** Receives live text of a run that this process resumed after the watch began. */
  listenTo(handle: LiveSource): void;
  close(): void;
}

/** Follows a run and the runs below it, from its first record on, through suspension and resumption to its end. */
export function watchRun(host: RunHost, runId: string, { handle, clock, onError }: WatchOptions): RunWatch {
  const reducer = reduceRun(runId);
  const listeners = new Set<() => void>();
  let shown = reducer.view();
  let lastFault: string | undefined;
  let changed = true;
  let ownerUnknown = true;
  let closed = false;
  let stopCheck: (() => void) | undefined;
  let stopListening: (() => void) | undefined;

  const report = (fault: unknown): void => {
    const message = messageOf(fault);
    if (message !== lastFault) onError(fault);
    lastFault = message;
  };
  const reader = new RecordReader({
    host,
    runId,
    onRecord: (record) => {
      reducer.record(record);
      if (record.events.some(({ type }) => type === "run.suspended" || type === "run.resumed")) ownerUnknown = true;
    },
    onError: report,
  });

  const readChanges = async (): Promise<void> => {
    await reader.read();
    if (reader.ended) return stop();
    if (reducer.hasRequests()) reducer.requests(await host.requests(runId));
    if (!ownerUnknown) return;
    ownerUnknown = false;
    const run = await host.get(runId);
    if (run !== undefined) reducer.setRunning(run.status !== "suspended");
  };
  const notify = (): void => {
    const view = reducer.view();
    if (view === shown || closed) return;
    shown = view;
    for (const listener of [...listeners]) {
      try {
        listener();
      } catch (thrown) {
        report(thrown);
      }
    }
  };
  const throttle = createThrottle(clock, UPDATE_MS, async () => {
    try {
      if (changed) {
        changed = false;
        await readChanges();
        lastFault = undefined;
      }
    } catch (thrown) {
      report(thrown);
      if (isSluiceError(thrown, "store_closed") || isSluiceError(thrown, "host_closed")) stop();
    }
    notify();
  });
  const onChange = (): void => {
    changed = true;
    throttle.request();
  };
  const unwatch = host.onChange(onChange);
  const checkAlive = (): void => {
    stopCheck = clock.after(OWNER_CHECK_MS, () => {
      ownerUnknown = true;
      onChange();
      checkAlive();
    });
  };
  const stop = (): void => {
    unwatch();
    stopCheck?.();
    stopListening?.();
  };
  const listenTo = (source: LiveSource): void => {
    if (closed || reader.ended) return;
    stopListening?.();
    reducer.setStreams();
    stopListening = source.onLive((chunk) => {
      reducer.live(chunk);
      throttle.request();
    });
  };

  if (handle !== undefined) listenTo(handle);
  shown = reducer.view();
  checkAlive();
  onChange();
  return {
    view: () => shown,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    listenTo,
    close: () => {
      closed = true;
      reader.stop();
      throttle.close();
      stop();
      listeners.clear();
    },
  };
}

/** Runs work on request: at once after a pause, else after the interval; never twice at a time. */
interface Throttle {
  request(): void;
  close(): void;
}

/** `work` must not reject. */
function createThrottle(clock: Clock, ms: number, work: () => Promise<void>): Throttle {
  let [isBusy, isRequested, isClosed] = [false, false, false];
  let disarm: (() => void) | undefined;
  const request = (): void => {
    isRequested = true;
    if (!isBusy) void run();
  };
  const run = async (): Promise<void> => {
    [isBusy, isRequested] = [true, false];
    await work();
    if (isClosed) return;
    disarm = clock.after(ms, () => {
      isBusy = false;
      if (isRequested) request();
    });
  };
  return {
    request,
    close() {
      [isBusy, isClosed] = [true, true];
      disarm?.();
    },
  };
}
