import { SluiceError } from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ClosedRun, machineWorld, type Observation } from "../support/machine-runs.ts";
import { randomMachine, tally } from "../support/random-machines.ts";
import type { Asked, Expectation, Machine, RunTrace, TraceEvent } from "../support/reference-machine.ts";
import { interpret } from "../support/reference-run.ts";

const MACHINES = Number(process.env.SLUICE_TEST_MACHINES ?? 2_000);
const TIMEOUT = 120_000 + 100 * MACHINES;
/** What enough random machines come to. */
const REACHED = [
  "end completed",
  "end cancelled cancelled",
  "end failed failed",
  "end failed fan_out",
  "end failed tool",
  "maxHops",
  "maxVisits",
  "fan-out failed",
  "fan-out joined",
  "fan-out settled a failure",
  "routes that read a fork",
  "table fanOut",
  "refused rows",
  "route.rejected",
  "context.changed",
];

type Trace = Omit<RunTrace, "raced">;

/** What was seen, with the words that Sluice chooses left out, and with time's choices made as the reference makes them. */
function comparable(seen: Observation, expected: Expectation): Observation {
  const runs = new Map<string, Trace>();
  for (const [run, { raced, ...wanted }] of expected.runs) {
    const trace = seen.runs.get(run);
    if (trace === undefined ? raced : raced && wasCutShort(trace, wanted)) runs.set(run, wanted);
    else if (trace !== undefined) runs.set(run, settled(trace, wanted));
  }
  for (const [run, trace] of seen.runs) if (!expected.runs.has(run)) runs.set(run, trace);
  const { end } = seen;
  const isWorded = "message" in expected.end;
  return {
    runs,
    stages: sorted(seen.stages.filter(({ execution }) => !isRaced(execution, expected))),
    end: end.status === "completed" || isWorded ? end : { status: end.status, code: end.code },
  };
}

function wanted(expected: Expectation): Observation {
  const runs = [...expected.runs].map(([run, trace]): [string, Trace] => [run, unmarked(trace)]);
  const stages = expected.stages.filter(({ execution }) => !isRaced(execution, expected));
  return { runs: new Map(runs), stages: sorted(stages.map(({ raced: _raced, ...stage }) => stage)), end: expected.end };
}

/** A trace without the marks of what time decides. */
function unmarked({ events, entered, asked }: Trace): Trace {
  return {
    events: events.map((event): TraceEvent => {
      if (event.type !== "fanOut.joined") return event;
      const { raced: _raced, ...joined } = event;
      return joined;
    }),
    entered,
    asked: asked.map(({ raced: _raced, ...one }) => one),
  };
}

/** Siblings end in any order; the order of the others is that of the root's own events. */
function sorted<T extends { readonly execution: string }>(stages: readonly T[]): readonly T[] {
  return stages.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function isRaced(execution: string, { stages }: Expectation): boolean {
  return stages.some((stage) => stage.raced && stage.execution === execution);
}

function isCancelled(event: TraceEvent): boolean {
  if (event.type === "attempt.finished") return event.outcome === "cancelled";
  return event.type === "fanOut.joined" && event.outcomes.some(({ status }) => status === "cancelled");
}

/** Whether a run was cancelled on its way to the end that it would have had. */
function wasCutShort({ events, entered }: Trace, expected: Trace): boolean {
  const whole = unmarked(expected);
  const end = events.at(-1);
  if (end?.type !== "run.finished" || end.status !== "cancelled") return false;
  const before = events.slice(0, -1);
  const parted = before.findIndex((event, index) => !isSame(event, whole.events[index]));
  return (
    (parted === -1 || before.slice(parted).every(isCancelled)) &&
    entered.every((entry, index) => isSame(entry, whole.entered[index]))
  );
}

function settled(trace: Trace, whole: Trace): Trace {
  const events = trace.events.map((event, index): TraceEvent => {
    const like = whole.events[index];
    if (event.type === "run.finished" && like?.type === "run.finished" && !("message" in like)) {
      const { message: _words, ...rest } = event;
      return rest;
    }
    if (event.type !== "fanOut.joined" || like?.type !== "fanOut.joined" || like.raced === undefined) return event;
    const outcomes = event.outcomes.map((outcome, at) =>
      outcome.status === "cancelled" ? { ...outcome, status: like.outcomes[at]?.status ?? "none" } : outcome,
    );
    // Another child must have failed first.
    const isFirst = event.outcomes.some(
      ({ status }, at) => status !== "completed" && status === like.outcomes[at]?.status,
    );
    return isFirst ? { ...event, outcomes } : event;
  });
  const asked = trace.asked.map((one, index): Asked => {
    const like = whole.asked[index];
    if (like?.raced === undefined) return one;
    const { fork = {}, items = {} } = one.sight;
    const forks = Object.entries(fork).map(([name, how]) => [
      name,
      how.status === "cancelled" ? like.sight.fork?.[name] : how,
    ]);
    const lists = Object.entries(items).map(([list, ends]) => [
      list,
      ends.map((end, at) => (end.status === "cancelled" ? like.sight.items?.[list]?.[at] : end)),
    ]);
    return {
      ...one,
      sight: {
        ...one.sight,
        ...(one.sight.fork === undefined ? {} : { fork: Object.fromEntries(forks) }),
        ...(one.sight.items === undefined ? {} : { items: Object.fromEntries(lists) }),
      },
    };
  });
  return { ...trace, events, asked };
}

function expectSame(seen: Observation, machine: Machine, what: string): void {
  const expected = interpret(machine);
  const [there, here] = [comparable(seen, expected), wanted(expected)];
  if (isSame(listed(there), listed(here))) return;
  expect(there, what).toEqual(here);
  expect(textOf(listed(there)), what).toBe(textOf(listed(here)));
}
const listed = ({ runs, ...rest }: Observation): unknown => [[...runs].toSorted(byKey), rest];

function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right) || textOf(left) === textOf(right);
}

/** A value as text that does not depend on the order of keys, which nobody promises. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isObject(part) && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).toSorted(byKey)) : part,
  );
}
function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

test(
  "a machine's run goes where the documentation says, and reads and records what it says",
  async () => {
    const world = machineWorld();
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(randomMachine, async (machine) => {
        tally(interpret(machine), seen);
        const started = world.start(machine);
        const result = await started.handle;
        expectSame(await world.observe(started, result), machine, "the run");
        expect(started.play.faults).toEqual([]);
      }),
      { numRuns: MACHINES },
    );
    for (const what of REACHED) expect(seen.get(what) ?? 0, what).toBeGreaterThanOrEqual(Math.floor(MACHINES / 500));
    if (process.env.SLUICE_TEST_MACHINES !== undefined) console.log(Object.fromEntries([...seen].toSorted(byKey)));
  },
  TIMEOUT,
);

test(
  "a run that stops at any record ends, when it is resumed, as if it had not stopped",
  async () => {
    const world = machineWorld();
    const stopped = { crashed: 0, suspended: 0 };
    const how = fc.constantFrom("crashed" as const, "suspended" as const);
    await fc.assert(
      fc.asyncProperty(randomMachine, fc.nat(10_000), how, async (machine, at, by) => {
        const last = at % recordsOf(machine);
        const started = world.start(machine, {
          beforeRecord: () => {
            if (started.play.written < last) return;
            if (by === "crashed") throw new SluiceError("Host", "store_gone", "the process has ended");
            void started.handle.suspend();
          },
        });
        const first = await started.handle.then(
          (result) => result,
          () => undefined,
        );
        const isOver = first !== undefined && first.status !== "suspended";
        if (!isOver) stopped[by] += 1;
        const result = isOver ? first : await world.resume(started);
        expectSame(await world.observe(started, result), machine, `${by} after ${last} records`);
        expect(started.play.faults).toEqual([]);
      }),
      { numRuns: MACHINES },
    );
    for (const times of Object.values(stopped)) expect(times).toBeGreaterThan(MACHINES / 4);
  },
  TIMEOUT,
);

test(
  "a run that is cancelled while any state works ends cancelled, and enters no other state",
  async () => {
    const world = machineWorld();
    let cancelled = 0;
    await fc.assert(
      fc.asyncProperty(randomMachine, fc.nat(10_000), async (machine, at) => {
        const expected = interpret(machine);
        const works = expected.stages.filter(({ status }) => status !== "skipped").length;
        const last = at % Math.max(1, works);
        let begun = 0;
        let isOver = false;
        const late: string[] = [];
        const started = world.start(machine, {
          onAct: async (run, signal) => {
            if (isOver) late.push(run);
            begun += 1;
            if (begun !== last + 1) return;
            const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
            void started.handle.cancel("enough");
            await aborted;
            isOver = true;
          },
        });
        const result = await started.handle;
        const seen = await world.observe(started, result);
        expect(late).toEqual([]);
        expect(started.play.faults).toEqual([]);
        // A sibling that was to be cancelled may have ended before it worked.
        if (!isOver) return expectSame(seen, machine, "the run");
        cancelled += 1;
        expect(seen.end).toMatchObject({ status: "cancelled", code: "cancelled" });
        expectCutShort(seen, expected);
      }),
      { numRuns: Math.ceil(MACHINES / 2) },
    );
    expect(cancelled).toBeGreaterThan(MACHINES / 4);
  },
  TIMEOUT,
);

test(
  "a run that is cancelled after its process ended enters no state, whatever its last record is",
  async () => {
    const world = machineWorld();
    let cancelled = 0;
    await fc.assert(
      fc.asyncProperty(randomMachine, fc.nat(10_000), async (machine, at) => {
        const last = at % recordsOf(machine);
        const started = world.start(machine, {
          beforeRecord: () => {
            if (started.play.written >= last) throw new SluiceError("Host", "store_gone", "the process has ended");
          },
        });
        const { runId } = started.handle;
        const result = await started.handle.then(
          (ended) => ended,
          () => undefined,
        );
        if (result !== undefined) return expectSame(await world.observe(started, result), machine, "the run");
        cancelled += 1;
        const { entered, asked } = started.play;
        const before = [entered.size, asked.size];
        expect(await world.host.cancel(runId, "enough", "me")).toBe("cancelled");
        expect(await world.host.result(runId)).toMatchObject({ status: "cancelled" });
        expect([entered.size, asked.size]).toEqual(before);
        const closed: ClosedRun = { status: "cancelled", stages: [], error: { code: "cancelled", message: "enough" } };
        expectCutShort(await world.observe(started, closed), interpret(machine));
      }),
      { numRuns: Math.ceil(MACHINES / 2) },
    );
    expect(cancelled).toBeGreaterThan(MACHINES / 4);
  },
  TIMEOUT,
);

function expectCutShort(seen: Observation, expected: Expectation): void {
  for (const [run, trace] of seen.runs) {
    const whole = expected.runs.get(run);
    if (whole === undefined) throw new Error(`nothing runs as ${run}`);
    const like = settled(trace, whole);
    if (!wasCutShort(like, whole)) expect(like, run).toEqual(unmarked(whole));
  }
}

/** About how many records a run of the machine writes. */
function recordsOf(machine: Machine): number {
  return 4 * interpret(machine).stages.length;
}
