import assert from "node:assert/strict";
import { field, type Json } from "../../base/json.ts";
import type { ProgramEnd, RunProgram, StepCall, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  type Gate,
  start,
  until,
} from "../world.ts";

const news = (payload: Json) => ({ name: "news", payload, by: "test" });
const takes = [
  {
    name: "news",
    count: (value: Json): number => {
      const taken = field(value, "taken");
      return Array.isArray(taken) ? taken.length : 0;
    },
  },
];
async function payloads(call: StepCall): Promise<readonly Json[]> {
  return (await call.signals()).map(({ payload }) => payload);
}

/** A run whose steps take the signals that have arrived: each waits at its gate first, and calls `after` last. */
function taking(gates: readonly Gate<void>[], after: (call: StepCall) => Promise<void> | void = () => undefined) {
  return async (steps: StepRunner): Promise<ProgramEnd> => {
    const taken: Json[] = [];
    for (const [index, gate] of gates.entries()) {
      const value = await steps.run(
        `work/${index}`,
        async (call) => {
          await gate.wait();
          const values = await payloads(call);
          await after(call);
          return { taken: values };
        },
        { open: { events: [] }, takes },
      );
      taken.push(value.taken);
    }
    return completed(taken);
  };
}
function gates(count: number): readonly Gate<void>[] {
  return Array.from({ length: count }, () => createGate());
}

/** A step can consume signals in its own record: each exactly once, despite kills and disk faults. */
export const takeFacts: Facts = {
  "a step takes all signals that arrived before it reads them, each only once, also after a kill": async ({
    connect,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const waits = gates(4);
    const program = taking(waits);
    await start(first.host, program);
    await waits[0]?.reached;
    for (const payload of [1, 2]) assert.equal(await second.host.signal("r1", news(payload)), "accepted");
    waits[0]?.open();
    await waits[1]?.reached;
    waits[1]?.open();
    await waits[2]?.reached;
    await first.crash();
    await second.host.signal("r1", news(3));
    for (const gate of waits) gate.open();
    const end = await endOf(await second.host.resume("r1", program));
    assert.deepEqual(end.value, [[1, 2], [], [3], []]);
    await expectWhole(second.host);
  },

  "signals that a step read before its process died are not consumed": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const [waits, looked] = [gates(2), createGate()];
    let dies = true;
    const program = taking(waits, async () => {
      if (dies) await looked.wait();
    });
    await start(first.host, program);
    await waits[0]?.reached;
    await first.host.signal("r1", news(1));
    for (const gate of waits) gate.open();
    await looked.reached;
    await first.crash();
    dies = false;
    looked.open();
    await second.host.signal("r1", news(2));
    assert.deepEqual((await endOf(await second.host.resume("r1", program))).value, [[1, 2], []]);
  },

  "signals are consumed by the commit of the step's record, and only by it": async ({ connect }) => {
    for (const [runId, fault, taken] of [
      ["r1", "before", [[1, 2], []]],
      ["r2", "after", [[1], [2]]],
    ] as const) {
      const { host, failWrites } = await connect();
      const waits = gates(2);
      const program = taking(waits);
      const task = await start(host, program, { runId });
      await waits[0]?.reached;
      await host.signal(runId, news(1));
      failWrites(({ stepId, phase }) => (phase === "done" && stepId === "work/0" ? fault : undefined));
      for (const gate of waits) gate.open();
      await assert.rejects(task.settled);
      failWrites(undefined);
      await host.signal(runId, news(2));
      assert.deepEqual((await endOf(await host.resume(runId, program))).value, taken, fault);
      await expectWhole(host, runId);
    }
  },

  "signals that a step read but did not count as taken remain for later steps and waits": async ({ connect }) => {
    const first = await connect();
    const [ready, killed] = [createGate(), createGate()];
    const program: RunProgram = async (steps) => {
      const one = await steps.run(
        "one",
        async (call) => {
          await ready.wait();
          return { seen: await payloads(call), taken: [null] };
        },
        { takes },
      );
      const waited = (await steps.waitForSignal("news"))?.payload ?? null;
      await steps.run("pause", async () => {
        await killed.wait();
        return null;
      });
      const two = await steps.run("two", async (call) => ({ taken: await payloads(call) }), { takes });
      const last = await steps.takeSignals("rest", "news");
      return completed([one.seen, waited, two.taken, last.length]);
    };
    await start(first.host, program);
    await ready.reached;
    for (const payload of [1, 2, 3]) await first.host.signal("r1", news(payload));
    ready.open();
    await killed.reached;
    await first.crash();
    killed.open();
    const { host } = await connect();
    await host.signal("r1", news(4));
    assert.deepEqual((await endOf(await host.resume("r1", program))).value, [[1, 2, 3], 2, [3, 4], 0]);
    await expectWhole(host);
  },

  "a step without `takes` sees no signals, and a run sees only its own signals": async ({ connect }) => {
    const { host } = await connect();
    const ready = createGate();
    const program: RunProgram = async (steps) => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        const own = await steps.run("own", async (call) => ({ taken: await payloads(call) }), { takes });
        return completed([...Object.values(ends).map(({ value }) => value), own.taken]);
      }
      const value = await steps.run(
        "work",
        async (call) => {
          await ready.wait();
          return { taken: await payloads(call) };
        },
        steps.runId === "r1/fan/a" ? { takes } : {},
      );
      return completed(value.taken);
    };
    const task = await start(host, program);
    await until(host, async () => (await host.get("r1/fan/b")) !== undefined);
    for (const runId of ["r1", "r1/fan/a", "r1/fan/b"])
      assert.equal(await host.signal(runId, news(`to ${runId}`)), "accepted");
    await host.signal("r1/fan/a", { ...news("other"), name: "other" });
    ready.open();
    assert.deepEqual((await endOf(task)).value, [["to r1/fan/a"], [], ["to r1"]]);
  },
};
