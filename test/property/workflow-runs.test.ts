import { SluiceError } from "@sluice/core";
import { forkPointsOf } from "@sluice/core/host";
import fc from "fast-check";
import { expect, test } from "vitest";
import { expectCutShort, expectSame } from "../support/compared-runs.ts";
import { type ClosedRun, machineWorld } from "../support/machine-runs.ts";
import { randomWorkflow } from "../support/random-workflows.ts";
import type { Expectation } from "../support/reference-machine.ts";
import { interpret } from "../support/reference-run.ts";

const MACHINES = Number(process.env.SLUICE_TEST_MACHINES ?? 500);
const TIMEOUT = 300_000 + 200 * MACHINES;
/** What enough random machines come to, by the types of their events. */
const REACHED = [
  ...["transition.accepted", "transition.rejected", "interrupt.started", "interrupt.returned", "fanOut.joined"],
  ...["context.changed", "limit.reached", "route.rejected"],
];

/**
 * Machines whose runs can be foreseen, which are 97 of 100. The others have a fork in which several branches can be the first to
 * succeed, or a route that reads how children ended of which one cancelled the rest; or they start more child runs than a test has
 * time for. Of children that cancel each other, each ends as it would alone, or is cancelled on its way there.
 */
const foreseeable = randomWorkflow
  .map((machine) => ({ machine, expected: interpret(machine) }))
  .filter(({ expected }) => expected.isOpen !== true && expected.runs.size <= MOST_RUNS);
const MOST_RUNS = 40;

test(
  "the run of a machine as files make it does what files mean, in each of its child runs",
  async () => {
    const world = machineWorld();
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(foreseeable, async ({ machine, expected }) => {
        tally(expected, seen);
        const started = world.start(machine);
        expectSame(await world.observe(started, await started.handle), machine, "the run");
        expect(started.play.faults).toEqual([]);
      }),
      { numRuns: MACHINES },
    );
    for (const what of REACHED) expect(seen.get(what) ?? 0, what).toBeGreaterThanOrEqual(Math.floor(MACHINES / 250));
    if (process.env.SLUICE_TEST_MACHINES !== undefined)
      console.log(Object.fromEntries([...seen].toSorted(([a], [b]) => (a < b ? -1 : 1))));
  },
  TIMEOUT,
);

test(
  "a machine's run that stops at any record ends, when it is resumed, as if it had not stopped",
  async () => {
    const world = machineWorld();
    const stopped = { crashed: 0, suspended: 0 };
    const how = fc.constantFrom("crashed" as const, "suspended" as const);
    await fc.assert(
      fc.asyncProperty(foreseeable, fc.nat(10_000), how, async ({ machine, expected }, at, by) => {
        const last = at % recordsOf(expected);
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
    for (const times of Object.values(stopped)) expect(times).toBeGreaterThan(MACHINES / 5);
  },
  TIMEOUT,
);

test(
  "a machine's run that is forked before any of its executions, those of its children included, ends as it did",
  async () => {
    const world = machineWorld();
    const inside = { root: 0, child: 0, grandchild: 0 };
    const unraced = foreseeable.filter(({ expected }) => [...expected.runs.values()].every(({ raced }) => !raced));
    await fc.assert(
      fc.asyncProperty(unraced, fc.nat(10_000), async ({ machine }, at) => {
        const started = world.start(machine);
        await started.handle;
        const points = forkPointsOf(await world.host.journal(started.handle.runId));
        // Most executions are those of the root.
        const inner = points.filter(({ inside }) => inside !== undefined);
        const some = inner.length === 0 || at % 3 === 0 ? points : inner;
        const point = some[at % some.length];
        if (point === undefined) return;
        inside[point.inside === undefined ? "root" : point.inside.inside === undefined ? "child" : "grandchild"] += 1;
        const forked = world.fork(started, point.executionId);
        expectSame(await world.observe(forked, await forked.handle), machine, `forked before ${point.executionId}`);
        expect(started.play.faults).toEqual([]);
      }),
      { numRuns: MACHINES },
    );
    for (const times of Object.values(inside)) expect(times).toBeGreaterThan(MACHINES / 250);
  },
  TIMEOUT,
);

test(
  "a machine's run that is cancelled while any state works, a handler included, ends cancelled and enters no other state",
  async () => {
    const world = machineWorld();
    let cancelled = 0;
    await fc.assert(
      fc.asyncProperty(foreseeable, fc.nat(10_000), async ({ machine, expected }, at) => {
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
        // A child that was to be cancelled may have ended before it worked.
        if (!isOver) return expectSame(seen, machine, "the run");
        cancelled += 1;
        expect(seen.end).toMatchObject({ status: "cancelled", code: "cancelled" });
        expectCutShort(seen, expected);
      }),
      { numRuns: Math.ceil(MACHINES / 2) },
    );
    expect(cancelled).toBeGreaterThan(MACHINES / 5);
  },
  TIMEOUT,
);

test(
  "a machine's run that is cancelled after its process ended enters no state, whatever its last record is",
  async () => {
    const world = machineWorld();
    let cancelled = 0;
    await fc.assert(
      fc.asyncProperty(foreseeable, fc.nat(10_000), async ({ machine, expected }, at) => {
        const last = at % recordsOf(expected);
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
        expectCutShort(await world.observe(started, closed), expected);
      }),
      { numRuns: Math.ceil(MACHINES / 2) },
    );
    expect(cancelled).toBeGreaterThan(MACHINES / 5);
  },
  TIMEOUT,
);

/** About how many records a run writes. */
function recordsOf({ stages, runs }: Expectation): number {
  const events = [...runs.values()].flatMap((run) => run.events).length;
  return Math.max(2, 2 * stages.length + Math.floor(events / 2));
}

function tally({ runs }: Expectation, into: Map<string, number>): void {
  const count = (what: string): void => void into.set(what, (into.get(what) ?? 0) + 1);
  for (const [run, { events }] of runs)
    for (const { type } of events) {
      count(type);
      if (run !== "") count(`${type} in a child`);
    }
}
