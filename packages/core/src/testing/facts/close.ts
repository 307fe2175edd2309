import assert from "node:assert/strict";
import type { ProgramEnd, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  rejects,
  start,
  stepsOf,
  turns,
} from "../world.ts";

/** A closed host releases everything it holds. */
export const closeFacts: Facts = {
  "closing suspends the host's runs, and another host can resume them at once": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId.includes("/")) return completed((await steps.waitForSignal("go"))?.payload ?? null);
      await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
      return completed();
    };
    const tasks = [];
    for (let n = 0; n < 5; n += 1) tasks.push(await start(first.host, program, { runId: `r${n}` }));
    await turns();
    await first.host.close();
    for (const task of tasks) assert.deepEqual(await task.settled, { suspended: "interrupted" });
    for (let n = 0; n < 5; n += 1) {
      const again = await second.host.resume(`r${n}`, program);
      for (const key of ["a", "b"])
        await second.host.signal(`r${n}/fan/${key}`, { name: "go", payload: n, by: "test" });
      assert.equal((await endOf(again)).status, "completed");
      await expectWhole(second.host, `r${n}`);
    }
  },

  "closing waits for writing steps within their grace period": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    await start(first.host, async (steps) => {
      await steps.run(
        "write",
        async () => {
          await gate.wait();
          return null;
        },
        { open: { events: [] }, graceMs: 5_000 },
      );
      return completed();
    });
    await gate.reached;
    const closed = first.host.close();
    await turns();
    gate.open();
    await closed;
    assert.deepEqual(await stepsOf(second.host), ["open write", "done write"]);
    assert.equal((await second.host.get("r1"))?.status, "suspended");
  },

  "a closed host rejects new runs, and closing again has no effect": async ({ connect }) => {
    const { host } = await connect();
    const closing = [host.close(), host.close()];
    await rejects(
      start(host, async () => completed()),
      "host_closed",
      "Host",
    );
    await Promise.all(closing);
    await host.close();
    await rejects(
      start(host, async () => completed()),
      "host_closed",
      "Host",
    );
  },

  "a start and a resume that are pending when the host is closed leave runs that another host can resume": async ({
    connect,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const program = async (steps: StepRunner): Promise<ProgramEnd> =>
      completed((await steps.waitForSignal("go"))?.payload ?? null);
    await assert.rejects((await start(first.host, () => Promise.reject(new Error("stopped")))).settled);
    const calls = [first.host.resume("r1", program), start(first.host, program, { runId: "r2" })];
    const [done] = await Promise.all([Promise.allSettled(calls), first.host.close()]);
    assert.deepEqual(
      done.map(({ status }) => status),
      ["fulfilled", "fulfilled"],
    );
    for (const runId of ["r1", "r2"]) {
      assert.equal((await second.host.get(runId))?.status, "suspended");
      const again = await second.host.resume(runId, program);
      await second.host.signal(runId, { name: "go", payload: null, by: "test" });
      await endOf(again);
      await expectWhole(second.host, runId);
    }
  },

  "waiting for a run through a closed host rejects": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, async (steps) =>
      completed((await steps.waitForSignal("go"))?.payload ?? null),
    );
    const waits = [
      rejects(second.host.result("r1"), "store_closed", "Host"),
      rejects(eventsOf(second.host, "r1", { follow: true }), "store_closed"),
    ];
    await turns();
    await second.host.close();
    await Promise.all(waits);
    await task.suspend("interrupted");
  },

  "a step function that ignores its AbortSignal does not keep the host from closing": async ({ connect, clock }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(host, async (steps) => {
      await steps.run("stuck", async () => {
        await gate.wait();
        return null;
      });
      return completed();
    });
    await gate.reached;
    const closed = host.close();
    await clock.untilArmed(1);
    clock.advance(1_000);
    await closed;
    assert.deepEqual(await task.settled, { suspended: "interrupted" });
    gate.open();
    await turns();
  },
};
