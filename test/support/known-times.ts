import {
  type Clock,
  done,
  fail,
  fanOut,
  type Interactor,
  type Json,
  type Pipeline,
  pipeline,
  type RunHost,
  SluiceError,
  type SluiceEvent,
  stage,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore, readEvents } from "@sluice/core/host";
import { type RunHandle, type RunResult, type Session, scriptedModel, timer } from "@sluice/stages";
import fc from "fast-check";
import { z } from "zod";
import { createSession } from "../../packages/stages/src/session/session.ts";
import { tool } from "./run-kit.ts";

// Runs that are killed, suspended and resumed at random moments by a clock that only the test moves, and a second account of their
// times, from the moments at which records were really written.

/** A clock that jumps with each record, and whose timers fire only when the test says so. */
interface JumpClock extends Clock {
  jump(ms: number): void;
  /** Moves to the next timer and fires it; false if there is none. */
  fireNext(): boolean;
}

function jumpClock(): JumpClock {
  const timers = new Set<{ readonly at: number; readonly fn: () => void }>();
  let now = 1_000_000;
  return {
    now: () => now,
    after: (ms, fn) => {
      const timer = { at: now + ms, fn };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    jump: (ms) => {
      now += ms;
    },
    fireNext: () => {
      const [next] = [...timers].sort((a, b) => a.at - b.at);
      if (next === undefined) return false;
      timers.delete(next);
      now = Math.max(now, next.at);
      next.fn();
      return true;
    },
  };
}

const STATES = ["a", "b", "c", "nap", "d"] as const;
type StateId = (typeof STATES)[number];
const SLEEP_MS = 3_600_000;

/** What one process does: it is killed or suspended before a record, or gets to the end. */
export interface ProcessPlan {
  readonly how: "killed" | "suspended";
  /** Records that it writes before. */
  readonly records: number;
  /** Milliseconds until the next process starts. */
  readonly away: number;
  /** How far the clock is set back meanwhile. */
  readonly setBack: number;
}

export interface RunTimesPlan {
  /** States that run side by side after the first, before `d`; empty for a chain. */
  readonly parallel: readonly StateId[];
  /** Milliseconds after each record; repeated from the start. */
  readonly steps: readonly number[];
  readonly processes: readonly ProcessPlan[];
  /** How the run ends after the last of these processes. */
  readonly last: "resumed" | "cancelled" | "left";
}

export const timesPlan = (setBack: fc.Arbitrary<number>): fc.Arbitrary<RunTimesPlan> =>
  fc.record({
    parallel: fc.shuffledSubarray(["a", "b", "nap"] as StateId[], { minLength: 0 }),
    steps: fc.array(fc.oneof(fc.constant(0), fc.nat(20_000)), { minLength: 5, maxLength: 30 }),
    processes: fc.array(
      fc.record({
        how: fc.constantFrom("killed", "suspended"),
        records: fc.integer({ min: 1, max: 24 }),
        away: fc.oneof(fc.constant(0), fc.nat(100_000)),
        setBack,
      }),
      { maxLength: 3 },
    ),
    last: fc.constantFrom("resumed", "resumed", "cancelled", "left"),
  });

function pipelineOf({ parallel }: RunTimesPlan): Pipeline<{ task: string }, unknown> {
  const step = (allowedTools: readonly string[]) =>
    stage({
      prompt: "Work.",
      allowedTools,
      completionTool: "finish",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 4,
    });
  const failed = ({ message }: { readonly message: string }) => fail(message);
  const lone = { completed: () => done("alone"), failed };
  return pipeline({
    id: "timed",
    input: z.object({ task: z.string() }),
    stages: {
      start: step(["Own"]),
      a: step([]),
      b: step(["Own"]),
      c: step([]),
      nap: timer({ for: SLEEP_MS }),
      d: step([]),
    },
    initial: "start",
    next: {
      start: {
        completed: () =>
          parallel.length < 2 ? to(parallel[0] ?? "nap") : fanOut([...parallel], { join: "d", onFailure: "settle" }),
        failed,
      },
      a: { completed: () => to("d"), failed },
      b: { completed: () => to("nap"), failed },
      c: lone,
      nap: { completed: () => to("d"), failed },
      d: { completed: () => to("c"), failed },
    },
  });
}

const call = (name: string, input: Json) => ({ calls: [{ tool: name, input: JSON.parse(JSON.stringify(input)) }] });
const finish = call("finish", { text: "done" });
const SCRIPT = {
  start: [call("Own", {}), call("Other", {}), finish],
  a: [finish],
  b: [call("Own", {}), finish],
  c: [finish],
  d: [{ text: "not yet" }, finish],
};

/** A record as it was really written. */
interface Written {
  readonly process: number;
  /** By a clock that nobody sets back. */
  readonly at: number;
  /** By the clock of the process. */
  readonly clockAt: number;
  readonly runId: string;
  readonly events: readonly SluiceEvent[];
}

export interface TimedRun {
  readonly runId: string;
  readonly host: RunHost;
  readonly written: readonly Written[];
  /** Undefined for a run that was left without an end. */
  readonly result: RunResult<unknown> | undefined;
  /** Events in the order of the live account: what earlier processes recorded, then what each handle delivered. */
  readonly live: readonly SluiceEvent[];
  readonly isKilled: boolean;
  /** By the clock of the run. */
  now(): number;
}

/** Runs a plan to its end. */
export async function playTimes(plan: RunTimesPlan): Promise<TimedRun> {
  const clock = jumpClock();
  const memory = createMemoryJournals();
  const written: Written[] = [];
  const live: SluiceEvent[] = [];
  const made = pipelineOf(plan);
  let setBack = 0;
  let count = 0;
  const sessions: Session[] = [];

  const begin = (process: number, planned: ProcessPlan | undefined) => {
    let left = planned?.records ?? Number.POSITIVE_INFINITY;
    let isDead = false;
    let handle: RunHandle<unknown> | undefined;
    const store = memory.connect();
    const write = <T>(runId: string, record: Parameters<JournalStore["append"]>[0]["record"], commit: () => T): T => {
      if (left <= 0 && planned?.how === "killed") isDead = true;
      if (isDead) throw new SluiceError("Host", "store_io", "the process was killed");
      const result = commit();
      left -= 1;
      const events = readEvents(runId, record);
      written.push({ process, at: clock.now() + setBack, clockAt: clock.now(), runId, events });
      clock.jump(plan.steps[count % plan.steps.length] ?? 0);
      count += 1;
      if (left === 0 && planned?.how === "suspended") handle?.suspend().catch(() => undefined);
      return result;
    };
    const host = createHost(
      {
        ...store,
        append: (commit) => write(commit.runId, commit.record, () => store.append(commit)),
        create: (seed, commit) => write(seed.runId, commit.record, () => store.create(seed, commit)),
      },
      { clock },
    );
    const person: Interactor = {
      name: "ann",
      answer: async () => {
        clock.jump(plan.steps[count % plan.steps.length] ?? 0);
        return { kind: "approve" };
      },
    };
    const session = createSession({
      env: {},
      cwd: import.meta.dirname,
      sandbox: "off",
      mode: "ask",
      clock,
      host,
      model: scriptedModel({ stages: SCRIPT }, { clock }),
      tools: [tool("Own"), tool("Other")],
      interactors: [person],
      wait: true,
    });
    sessions.push(session);
    return {
      session,
      host,
      to: async (begun: RunHandle<unknown>): Promise<RunResult<unknown> | undefined> => {
        handle = begun;
        const reading = (async () => {
          for await (const event of begun.events) live.push(event);
        })().catch(() => undefined);
        const result = await followed(begun, clock, () => count);
        await reading;
        return result;
      },
    };
  };

  let runId: string | undefined;
  let result: RunResult<unknown> | undefined;
  let wasKilled = false;
  const processes: readonly (ProcessPlan | undefined)[] =
    plan.last === "resumed" || plan.processes.length === 0 ? [...plan.processes, undefined] : plan.processes;
  for (const [index, planned] of processes.entries()) {
    const process = begin(index, planned);
    const begun: RunHandle<unknown> =
      runId === undefined
        ? process.session.start(made, { task: "t" }, { answers: "any" })
        : process.session.resume(made, runId);
    runId = begun.runId;
    result = await process.to(begun);
    wasKilled = result === undefined;
    if (result !== undefined && result.status !== "suspended") break;
    if (planned === undefined) break;
    clock.jump(planned.away - planned.setBack);
    setBack += planned.setBack;
  }
  const { host } = begin(processes.length, undefined);
  if (runId === undefined) throw new Error("nothing was started");
  const known = await host.get(runId);
  if (plan.last === "cancelled" && known !== undefined && known.end === undefined)
    await host.cancel(runId, "enough", "test");
  const after = await host.get(runId);
  return {
    runId,
    host,
    written,
    live,
    result: after?.end === undefined ? undefined : result,
    isKilled: wasKilled && after?.end === undefined,
    now: () => clock.now(),
  };
}

/** Waits for a run, and fires a timer whenever nothing else happens. Undefined if its process was killed. */
async function followed(
  handle: RunHandle<unknown>,
  clock: JumpClock,
  count: () => number,
): Promise<RunResult<unknown> | undefined> {
  const state: { ended: boolean; result: RunResult<unknown> | undefined } = { ended: false, result: undefined };
  handle.then(
    (result) => Object.assign(state, { ended: true, result }),
    () => Object.assign(state, { ended: true }),
  );
  while (!state.ended) {
    const before = count();
    for (let turn = 0; turn < 12 && !state.ended; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    if (!state.ended && count() === before) clock.fireNext();
  }
  return state.result;
}

/** What can be known of an execution's times. */
export interface KnownTimes {
  readonly workedMs: number;
  /** By attempt and turn, of finished turns. */
  readonly turns: ReadonlyMap<string, number>;
}

interface Interval {
  readonly from: number;
  readonly to: number;
}

/** The account of a run's times from what was really written, by execution, and its time without a process. */
export function knownTimes({ written, isKilled }: TimedRun): {
  readonly executions: ReadonlyMap<string, KnownTimes>;
  readonly suspendedMs: number;
  readonly unknownMs: number;
  readonly isUnknownNow: boolean;
} {
  const timed = written.filter(({ events }) => events.length > 0);
  const last = timed.at(-1)?.at ?? 0;
  // A process is known to work from its first to its last record; one that only cancels executes nothing.
  const processes = [...Map.groupBy(timed, ({ process }) => process).values()].map((own) => ({
    from: own[0]?.at ?? 0,
    to: own.at(-1)?.at ?? 0,
    clock: { from: own[0]?.clockAt ?? 0, to: own.at(-1)?.clockAt ?? 0 },
    executes: own.some(({ events }) => events.some(({ type }) => type === "run.started" || type === "run.resumed")),
    isSuspended: own.at(-1)?.events.at(-1)?.type === "run.suspended",
  }));
  const gaps = processes.slice(1).map((process, index) => {
    const before = processes[index];
    // Of a clock that was set back meanwhile, no more is known.
    const away = Math.max(0, process.clock.from - (before?.clock.to ?? 0));
    const closing = process.executes ? 0 : process.to - process.from;
    return { ms: away + closing, isSuspended: before?.isSuspended === true };
  });
  const alive = processes.filter(({ executes }) => executes);
  const executions = new Map<string, KnownTimes>();
  const all = timed.flatMap(({ at, events }) => events.map((event) => ({ ...event, at })));
  const byExecution = Map.groupBy(all, ({ runId, executionId }) =>
    executionId === undefined ? "" : `${runId}:${executionId}`,
  );
  byExecution.delete("");
  for (const [key, own] of byExecution) {
    const [first] = own;
    const exit = own.find(({ type, data }) => type === "stage.exit" && data.phase === "left");
    const runEnd = all.find(({ type, runId }) => type === "run.finished" && runId === first?.runId);
    // What a process that resumed the run only closes is not executed by it.
    const worked = alive.filter(({ from }) => exit !== undefined || own.some(({ at }) => at >= from));
    const until = exit?.at ?? Math.min(runEnd?.at ?? last, worked.at(-1)?.to ?? last);
    const sleeps = own.flatMap(({ type, at }, index): readonly Interval[] => {
      if (type !== "sleep.started") return [];
      const ended = own.slice(index).find((later) => later.type === "sleep.ended");
      return [{ from: at, to: ended?.at ?? until }];
    });
    const msIn = (span: Interval): number => {
      const parts = worked.map(({ from, to }) => ({ from: Math.max(from, span.from), to: Math.min(to, span.to) }));
      return parts.reduce(
        (sum, part) => sum + lengthOf(part) - sleeps.reduce((slept, sleep) => slept + lengthOf(common(part, sleep)), 0),
        0,
      );
    };
    const turns = new Map<string, number>();
    for (const finished of own.filter(({ type }) => type === "turn.finished")) {
      const { attempt = 1, data } = finished;
      const begun = own.find(
        (one) => one.type === "turn.started" && (one.attempt ?? 1) === attempt && one.data.turn === data.turn,
      );
      turns.set(`${attempt}.${String(data.turn)}`, msIn({ from: begun?.at ?? finished.at, to: finished.at }));
    }
    executions.set(key, { workedMs: msIn({ from: first?.at ?? 0, to: until }), turns });
  }
  const sum = (isSuspended: boolean): number =>
    gaps.filter((gap) => gap.isSuspended === isSuspended).reduce((total, { ms }) => total + ms, 0);
  return { executions, suspendedMs: sum(true), unknownMs: sum(false), isUnknownNow: isKilled };
}

function common(a: Interval, b: Interval): Interval {
  return { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) };
}

function lengthOf({ from, to }: Interval): number {
  return Math.max(0, to - from);
}
