import assert from "node:assert/strict";
import type { ProgramEnd, RunProgram, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  endOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  recordsOf,
  rejects,
  start,
  until,
} from "../world.ts";

const refused: RunProgram = () => assert.fail("the program of a finished run was called");

/** A run can be resumed any number of times, and ends once. */
export const endFacts: Facts = {
  "an end is final: a finished run accepts no resume, signal, cancel or record": async ({ connect }) => {
    const { host } = await connect();
    const ends = { r1: "completed", r2: "failed", r3: "cancelled" } as const;
    for (const [runId, status] of Object.entries(ends)) {
      const task = await start(host, async () => ({ status, value: status, events: [] }), { runId });
      assert.deepEqual(await endOf(task), { status, value: status });
      await rejects(host.resume(runId, refused), "run_finished");
      assert.equal(await host.signal(runId, { name: "news", payload: 1, by: "test" }), "unknown");
      assert.equal(await host.cancel(runId, "late", "test"), "finished");
      await task.suspend("interrupted");
      assert.deepEqual(await recordsOf(host, runId), ["lifecycle start", "lifecycle end"]);
      assert.deepEqual(await host.get(runId).then((run) => [run?.status, run?.end]), [
        status,
        { status, value: status },
      ]);
      await expectWhole(host, runId);
    }
  },

  "a run that is suspended and resumed twenty times runs no step twice": async ({ connect }) => {
    const hosts = [await connect(), await connect()];
    const calls: string[] = [];
    const rounds = 20;
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      for (let n = 0; n < rounds; n += 1) {
        await steps.run(`step/${n}`, () => calls.push(`step/${n}`));
        if (steps.runId === "r1") {
          await steps.runChildren(`fan/${n}`, [child("a")], fanOutOptions());
          await steps.waitForSignal("go");
        }
      }
      return completed();
    };
    let task = await start(hosts[0]?.host ?? assert.fail(), program);
    for (let n = 1; n <= rounds; n += 1) {
      const { host } = hosts[n % 2] ?? assert.fail();
      const waits = `r1/fan/${n - 1}/a`;
      await until(host, async () => (await host.get(waits))?.status === "completed");
      await task.suspend("interrupted");
      assert.equal(await host.signal("r1", { name: "go", payload: n, by: "test" }), "accepted");
      task = await host.resume("r1", program);
    }
    assert.equal((await endOf(task)).status, "completed");
    assert.equal(new Set(calls.filter((id) => id.startsWith("step"))).size, rounds);
    assert.equal(calls.length, rounds + rounds * rounds);
    const { host } = hosts[0] ?? assert.fail();
    assert.equal((await recordsOf(host)).filter((record) => record === "lifecycle resume").length, rounds);
    await expectWhole(host);
  },
};
