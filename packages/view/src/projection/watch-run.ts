import { type Clock, isSluiceError, messageOf, type RunHost } from "@sluice/core";
import type { RunHandle } from "@sluice/stages";
import { RecordReader } from "./record-reader.ts";
import { createRunReducer } from "./reduce-run.ts";
import type { RunView } from "./run-view.ts";

/** Milliseconds between two notices, and between two looks at the store. */
const BEAT_MS = 33;
/** A process that is killed says nothing: whether a run is still at work is looked at this often, in milliseconds. */
const ALIVE_MS = 2_000;

type Speaker = Pick<RunHandle<unknown>, "onLive">;

export interface WatchOptions {
  /** The run's handle, where it works in this process: only then does text stream. */
  readonly handle?: Speaker;
  readonly clock: Clock;
  /** Takes what went wrong in looking: the run goes on all the same. The same fault is told once in a row. */
  onError(error: unknown): void;
}

/** A run as it goes on, whoever owns it. */
export interface RunWatch {
  /** As of the last notice: the same object until the next one. */
  view(): RunView;
  /** Calls the listener when the view has changed, at most once in 33 ms. Returns the unsubscriber. */
  subscribe(listener: () => void): () => void;
  /** Hears the text of a run that was taken up in this process after the watch began. */
  hear(handle: Speaker): void;
  close(): void;
}

/** Follows a run and the runs below it, from its first record on, through suspension and resumption to its end. */
export function watchRun(host: RunHost, runId: string, { handle, clock, onError }: WatchOptions): RunWatch {
  const reducer = createRunReducer(runId);
  const listeners = new Set<() => void>();
  let shown = reducer.view();
  let lastFault: string | undefined;
  let changed = true;
  let doubtful = true;
  let closed = false;
  let disarm: (() => void) | undefined;
  let unhear: (() => void) | undefined;

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
      // Its owner has come or gone.
      if (record.events.some(({ type }) => type === "run.suspended" || type === "run.resumed")) doubtful = true;
    },
    onError: report,
  });

  const look = async (): Promise<void> => {
    await reader.read();
    if (reader.ended) return leave();
    if (reducer.asks()) reducer.requests(await host.requests(runId));
    if (!doubtful) return;
    doubtful = false;
    const run = await host.get(runId);
    if (run !== undefined) reducer.atWork(run.status !== "suspended");
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
  const beat = createThrottle(clock, BEAT_MS, async () => {
    try {
      if (changed) {
        changed = false;
        await look();
        lastFault = undefined;
      }
    } catch (thrown) {
      report(thrown);
      if (isSluiceError(thrown, "store_closed") || isSluiceError(thrown, "host_closed")) leave();
    }
    notify();
  });
  const stir = (): void => {
    changed = true;
    beat.ask();
  };
  const unwatch = host.onChange(stir);
  const checkAlive = (): void => {
    disarm = clock.after(ALIVE_MS, () => {
      doubtful = true;
      stir();
      checkAlive();
    });
  };
  /** Nothing more comes. */
  const leave = (): void => {
    unwatch();
    disarm?.();
    unhear?.();
  };
  const hear = (speaker: Speaker): void => {
    if (closed || reader.ended) return;
    unhear?.();
    reducer.streams();
    unhear = speaker.onLive((chunk) => {
      reducer.live(chunk);
      beat.ask();
    });
  };

  if (handle !== undefined) hear(handle);
  shown = reducer.view();
  checkAlive();
  stir();
  return {
    view: () => shown,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    hear,
    close: () => {
      closed = true;
      reader.stop();
      beat.close();
      leave();
      listeners.clear();
    },
  };
}

/** Work that may be asked for at any time, is done at once after a rest, and at most once in a beat; never twice at a time. */
export interface Throttle {
  ask(): void;
  close(): void;
}

/** `work` must not reject. */
export function createThrottle(clock: Clock, ms: number, work: () => Promise<void>): Throttle {
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
