import { SluiceError } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { expectCutShort, expectSame } from "../support/compared-runs.ts";
import { type ClosedRun, machineWorld } from "../support/machine-runs.ts";
import { randomMachine, tally } from "../support/random-machines.ts";
import type { Machine } from "../support/reference-machine.ts";
import { interpret } from "../support/reference-run.ts";

const MACHINES = Number(process.env.SLUICE_TEST_MACHINES ?? 2_000);
const TIMEOUT = 300_000 + 100 * MACHINES;
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
    if (process.env.SLUICE_TEST_MACHINES !== undefined)
      console.log(Object.fromEntries([...seen].toSorted(([a], [b]) => (a < b ? -1 : 1))));
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

/** About how many records a run of the machine writes. */
function recordsOf(machine: Machine): number {
  return 4 * interpret(machine).stages.length;
}
