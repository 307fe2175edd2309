import type { Clock, Json, OpenRequest, Pipeline, RunHost } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore, type MemoryJournals } from "@sluice/core/host";
import { createSession, type RunHandle, type RunResult, type Session, type SessionOptions } from "@sluice/stages";
import { onTestFinished } from "vitest";
import { type HandClock, handClock } from "./hand-clock.ts";
import { eventually } from "./run-kit.ts";

// Runs that take days on a clock of their own, in processes that are killed.

export interface LongRun<I> {
  readonly pipeline: Pipeline<I, unknown>;
  readonly input: NoInfer<I>;
  readonly options: Omit<SessionOptions, "clock" | "host" | "wait">;
  /** What people answer to any question. */
  readonly answer: Json;
}

/** Where a process is killed. A wait is a sleep or an open question. Both are counted in the process, from 1. */
export type Kill =
  | { readonly at: "before record" | "after record"; readonly number: number }
  /** `lateMs`: how long after the end of a sleep the next process starts. It starts at once if omitted. */
  | { readonly at: "wait"; readonly number: number; readonly lateMs?: number };

export interface LongRunEnd {
  readonly result: RunResult<unknown>;
  readonly host: RunHost;
  readonly runId: string;
  /** Of the last process. */
  readonly records: number;
  readonly waits: number;
  readonly processes: number;
}

/** Lets a run live to its end, in as many processes as it takes: the n-th is killed where the n-th kill says. */
export async function liveThrough<I>(long: LongRun<I>, kills: readonly Kill[] = []): Promise<LongRunEnd> {
  const clock = handClock(1_000_000);
  const memory = createMemoryJournals();
  const observer = createHost(memory.connect(), { clock });
  let runId: string | undefined;
  for (let processes = 1; ; processes += 1) {
    const process = startProcess(long, { memory, clock, kill: kills[processes - 1] });
    const run: RunHandle<unknown> =
      runId === undefined
        ? process.session.start(long.pipeline, long.input, { answers: "any" })
        : process.session.resume(long.pipeline, runId);
    runId = run.runId;
    const waits = await drive(process, run, { long, observer, clock });
    if (process.isDead()) continue;
    return { result: await run, host: observer, runId, records: process.records(), waits, processes };
  }
}

interface Process {
  readonly session: Session;
  readonly willDieAt: Kill | undefined;
  records(): number;
  isDead(): boolean;
  /** Nothing is suspended, released or recorded any more. */
  kill(): void;
}

function startProcess(
  { options }: Pick<LongRun<unknown>, "options">,
  world: { readonly memory: MemoryJournals; readonly clock: HandClock; readonly kill: Kill | undefined },
): Process {
  const process = killableHost(world);
  const { host, clock } = process;
  const session = createSession({ ...options, clock, host, wait: true });
  // One that was killed waits for its store for ever.
  onTestFinished(async () => {
    if (!process.isDead()) await session.close();
  });
  return { ...process, session, willDieAt: world.kill };
}

/** The store and the clock of a process that is killed at a record. */
export interface KillableHost {
  readonly host: RunHost;
  readonly clock: Clock;
  /** Settles when it is killed. */
  readonly died: Promise<void>;
  records(): number;
  isDead(): boolean;
  /** Nothing is suspended, released or recorded any more. */
  kill(): void;
}

export function killableHost(world: {
  readonly memory: MemoryJournals;
  readonly clock: HandClock;
  readonly kill: Kill | undefined;
}): KillableHost {
  const { memory, kill: willDieAt } = world;
  const store = memory.connect();
  const timers = ownTimers(world.clock);
  const died = Promise.withResolvers<void>();
  let records = 0;
  let dead = false;
  const kill = (): void => {
    dead = true;
    timers.stop();
    void store.close();
    died.resolve();
  };
  /** A killed process does nothing after this, so its call never returns. */
  const written = async <T>(write: () => Promise<T> | T): Promise<T> => {
    if (dead) return await new Promise<never>(() => undefined);
    records += 1;
    const dies = willDieAt !== undefined && willDieAt.at !== "wait" && willDieAt.number === records;
    if (!dies) return await write();
    if (willDieAt.at === "after record") await write();
    kill();
    return await new Promise<never>(() => undefined);
  };
  const counting: JournalStore = {
    ...store,
    create: (run, commit) => written(() => store.create(run, commit)),
    append: (commit) => written(() => store.append(commit)),
  };
  const { clock } = timers;
  const host = createHost(counting, { clock, onFault: () => undefined });
  return { host, clock, died: died.promise, records: () => records, isDead: () => dead, kill };
}

/** Timers that end with their process. */
function ownTimers({ now, after }: Clock): { readonly clock: Clock; stop(): void } {
  const disarms = new Set<() => void>();
  let stopped = false;
  return {
    clock: {
      now,
      after: (ms, fn) => {
        if (stopped) return () => undefined;
        const disarm = after(ms, () => {
          disarms.delete(disarm);
          fn();
        });
        disarms.add(disarm);
        return () => {
          disarms.delete(disarm);
          disarm();
        };
      },
    },
    stop: () => {
      stopped = true;
      for (const disarm of disarms) disarm();
    },
  };
}

type Wait = { readonly id: string; readonly request: OpenRequest } | { readonly id: string; readonly until: number };

/** Turns the clock and answers questions until the run or its process is over. Returns how many waits there were. */
async function drive(
  process: Process,
  run: RunHandle<unknown>,
  {
    long,
    observer,
    clock,
  }: { readonly long: Pick<LongRun<unknown>, "answer">; readonly observer: RunHost; readonly clock: HandClock },
): Promise<number> {
  const { session, willDieAt } = process;
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  run.then(settle, settle);
  const isOver = (): boolean => settled || process.isDead();
  let last: Wait | undefined;
  for (let waits = 0; ; waits += 1) {
    let wait: Wait | undefined;
    await eventually(async () => {
      wait = await waitOf(observer, run.runId, clock.now());
      return isOver() || (wait !== undefined && wait.id !== last?.id);
    });
    if (isOver() || wait === undefined) return waits;
    last = wait;
    if (willDieAt?.at === "wait" && willDieAt.number === waits + 1) {
      process.kill();
      const { lateMs } = willDieAt;
      if ("until" in wait && lateMs !== undefined) clock.turn(wait.until - clock.now() + lateMs);
    } else if ("until" in wait) clock.turn(wait.until - clock.now());
    else {
      const { request } = wait;
      const answer = { kind: "value", value: long.answer } as const;
      await eventually(async () => isOver() || (await session.answer(request, answer, "Ada")) === "accepted");
    }
  }
}

/** What the run waits for now. */
async function waitOf(observer: RunHost, runId: string, now: number): Promise<Wait | undefined> {
  const [request] = await observer.requests(runId);
  if (request !== undefined) return { id: `${request.runId}/${request.requestId}`, request };
  const wakeAt = (await observer.get(runId))?.wakeAt;
  if (wakeAt === undefined || wakeAt <= now) return undefined;
  const open = new Map<string, number>();
  for await (const { type, executionId, runId: of, data } of observer.events(runId, { children: true })) {
    const key = `${of}/${executionId ?? ""}`;
    if (type === "sleep.started") open.set(key, Number(data.until));
    if (type === "sleep.ended") open.delete(key);
  }
  const [sleep] = open;
  return sleep === undefined ? undefined : { id: `${sleep[0]} until ${sleep[1]}`, until: sleep[1] };
}
