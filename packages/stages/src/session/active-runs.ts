import { type Clock, createHost, createJournalMemory, type RunHost, type RunTask, SluiceError } from "@sluice/core";
import type { SessionOptions } from "./options.ts";

/** The runs that a session has at work. */
export interface SessionWorks {
  /** By run id; whoever waits for a run takes it out. */
  readonly tasks: Map<string, RunTask>;
  /** Takes a run up by `begin`, unless the session is closing: then nobody would end it. */
  add(begin: () => Promise<RunTask>): Promise<RunTask>;
  closing(): boolean;
  /** Suspends all runs, those that are being started too, and takes no more. */
  suspendAll(): Promise<void>;
}

export function sessionWorks(): SessionWorks {
  const tasks = new Map<string, RunTask>();
  const beginning = new Set<Promise<unknown>>();
  let closing = false;

  const begun = async (begin: () => Promise<RunTask>): Promise<RunTask> => {
    const task = await begin();
    tasks.set(task.runId, task);
    return task;
  };

  return {
    tasks,
    add: async (begin) => {
      if (closing) throw sessionClosed();
      const work = begun(begin);
      const drop = (): void => {
        beginning.delete(work);
      };
      beginning.add(work);
      work.then(drop, drop);
      return await work;
    },
    closing: () => closing,
    suspendAll: async () => {
      closing = true;
      await Promise.allSettled([...beginning]);
      await Promise.allSettled([...tasks.values()].map((task) => task.suspend("interrupted")));
    },
  };
}

export function sessionClosed(): SluiceError {
  return new SluiceError("Session", "session_closed", "this session was closed; make another one");
}

/** Where a session keeps its runs. */
export interface SessionStore {
  /** Opened by the first call. */
  host(): RunHost;
  /** Closes what was opened here; a host that was given is its opener's. */
  close(): Promise<void>;
}

export function sessionStore(given: SessionOptions["store"], clock: Clock): SessionStore {
  if (given !== undefined && typeof given !== "function") return { host: () => given, close: async () => undefined };
  const open = given ?? (() => createHost(createJournalMemory().connect(), { clock }));
  let opened: RunHost | undefined;
  let closed = false;
  return {
    host: () => {
      if (opened === undefined && closed) throw sessionClosed();
      opened ??= open();
      return opened;
    },
    close: async () => {
      closed = true;
      await opened?.close();
    },
  };
}
