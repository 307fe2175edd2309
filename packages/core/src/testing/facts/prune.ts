import assert from "node:assert/strict";
import type { PruneQuery, RunHost, StepRunner } from "../../journal/seam.ts";
import { child, completed, createGate, endOf, type Facts, failed, fanOutOptions, rejects, start } from "../world.ts";

const ids = async (host: RunHost): Promise<readonly string[]> => (await host.list()).map(({ runId }) => runId);
const pruned = async (host: RunHost, query: PruneQuery): Promise<readonly string[]> =>
  (await host.prune(query)).map(({ runId }) => runId);

/** Removal of finished runs. */
export const pruneFacts: Facts = {
  "a list can be limited to the newest runs": async ({ connect }) => {
    const { host } = await connect();
    for (const runId of ["ra", "rb", "rc"]) {
      const program = async () => completed();
      await endOf(await start(host, program, { runId }));
    }
    assert.deepEqual(
      (await host.list({ limit: 2 })).map(({ runId }) => runId),
      ["rc", "rb"],
    );
    assert.deepEqual((await host.list({ limit: 9 })).length, 3);
  },

  "finished runs are removed by the time of their end, with their children, and their ids can be used again": async ({
    connect,
    clock,
  }) => {
    const { host } = await connect();
    const fansOut = async (steps: StepRunner) => {
      if (!steps.runId.includes("/")) await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
      return failed("why");
    };
    await endOf(await start(host, fansOut, { runId: "old" }));
    const late = createGate();
    const lateTask = await start(
      host,
      async (steps) => {
        await steps.run("wait", () => late.passed.then(() => null));
        return completed();
      },
      { runId: "late" },
    );
    const [before] = await host.list({ limit: 9 }).then((all) => all.filter(({ runId }) => runId === "old"));
    const oldJournals = await host.journal("old");
    clock.advance(10_000);
    const cut = clock.now();
    late.open();
    await endOf(lateTask);
    assert.deepEqual(await pruned(host, { endedBefore: cut - 10_000 }), []);
    const query = { endedBefore: cut };
    const report = await host.prune({ ...query, dryRun: true });
    assert.deepEqual(report, [
      {
        runId: "old",
        status: "failed",
        createdAt: before?.createdAt,
        endedAt: cut - 10_000,
        journals: 3,
        records: oldJournals.reduce((sum, { records }) => sum + records.length, 0),
      },
    ]);
    assert.deepEqual(await ids(host), ["late", "old"]);
    assert.deepEqual(await host.prune(query), report);
    assert.deepEqual(await ids(host), ["late"]);
    assert.equal(await host.get("old/fan/a"), undefined);
    assert.deepEqual(await host.journal("old"), []);
    assert.equal(await host.signal("old", { name: "x", payload: null, by: "test" }), "unknown");
    assert.deepEqual(await host.prune(query), []);
    await endOf(await start(host, async () => completed(), { runId: "old" }));
    assert.equal((await host.get("old"))?.status, "completed");
  },

  "`keep` keeps that many of the newest finished runs, not counting unfinished ones": async ({ connect }) => {
    const { host } = await connect();
    for (const runId of ["ra", "rb", "rc", "rd"]) await endOf(await start(host, async () => completed(), { runId }));
    const task = await start(host, async (steps) => completed((await steps.waitForSignal("go"))?.payload ?? null));
    assert.deepEqual(await pruned(host, { keep: 3, endedBefore: 0 }), []);
    assert.deepEqual(await pruned(host, { keep: 2 }), ["ra", "rb"]);
    assert.deepEqual(await ids(host), ["r1", "rd", "rc"]);
    assert.deepEqual(await pruned(host, { keep: 0 }), ["rc", "rd"]);
    await host.signal("r1", { name: "go", payload: null, by: "test" });
    await endOf(task);
  },

  "a run that is running, suspended or held by unfinished work is not removed": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const unfinished = createGate();
    const running = await start(
      first.host,
      async (steps) => completed((await steps.waitForSignal("go"))?.payload ?? null),
      {
        runId: "rw",
      },
    );
    await start(first.host, async (steps) => completed((await steps.waitForSignal("go"))?.payload ?? null), {
      runId: "rs",
    }).then((task) => task.suspend("waiting"));
    const held = await start(
      first.host,
      async (steps) => {
        await steps.run("tool", (call) => {
          call.hold(unfinished.passed);
          return null;
        });
        return completed();
      },
      { runId: "rh" },
    );
    await second.host.result(held.runId);
    assert.deepEqual(await pruned(second.host, { keep: 0 }), []);
    assert.deepEqual(await ids(second.host), ["rh", "rs", "rw"]);
    unfinished.open();
    await first.host.signal("rw", { name: "go", payload: null, by: "test" });
    await endOf(running);
    await first.crash();
    assert.deepEqual(await pruned(second.host, { keep: 0 }), ["rw", "rh"]);
    assert.equal((await second.host.get("rs"))?.status, "suspended");
  },

  "a text that two runs share stays readable when one of them is removed": async ({ connect }) => {
    const { host } = await connect();
    const long = "x".repeat(300_000);
    const other = "y".repeat(300_000);
    for (const runId of ["ra", "rb"]) {
      const program = async (steps: StepRunner) => {
        await steps.run("read", () => (steps.runId === "ra" ? [long, other] : [long]).join(""));
        await steps.run("same", () => long);
        return completed(long);
      };
      await endOf(await start(host, program, { runId, input: long }));
    }
    assert.deepEqual(await pruned(host, { keep: 1 }), ["ra"]);
    const [journal] = await host.journal("rb");
    assert.deepEqual([journal?.input, journal?.end?.value], [long, long]);
  },

  "a query without a valid limit is rejected": async ({ connect }) => {
    const { host } = await connect();
    for (const query of [{}, { dryRun: true }, { keep: -1 }, { keep: 1.5 }, { endedBefore: Number.NaN }]) {
      await rejects(host.prune(query), "prune_query");
    }
  },
};
