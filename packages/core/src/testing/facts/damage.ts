import assert from "node:assert/strict";
import type { JournalRecord, ProgramEnd, RunHost, RunJournal, RunProgram, StepRunner } from "../../journal/seam.ts";
import {
  ask,
  child,
  completed,
  endOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  recordsOf,
  rejects,
  start,
  stepsOf,
  untilAsked,
  type World,
} from "../world.ts";

/** Damages the journal of a run that was killed while it waited; resume and cancel must both reject it. */
async function damaged(
  { connect }: World,
  change: (runId: string, records: readonly JournalRecord[]) => readonly JournalRecord[],
) {
  const first = await connect();
  await start(first.host, async (steps) => {
    await steps.run("one", () => 1);
    await ask(steps, "q1");
    return completed();
  });
  await untilAsked(first.host);
  await first.crash();
  const [second, third] = [await connect(), await connect()];
  const before = await recordsOf(third.host);
  second.tamper(change);
  const refused: RunProgram = () => assert.fail("the program of a damaged run was called");
  await rejects(second.host.resume("r1", refused), "journal_damaged", "Host");
  await rejects(second.host.cancel("r1", "enough", "me"), "journal_damaged", "Host");
  assert.deepEqual(await recordsOf(third.host), before);
  // The claim was released: with an intact journal the cancel succeeds.
  assert.equal(await third.host.cancel("r1", "enough", "me"), "cancelled");
  await expectWhole(third.host);
}

/** The journal of a run that was killed while it waited for an answer, as read by another host. */
async function readBefore({
  connect,
}: World): Promise<{ readonly host: RunHost; readonly read: readonly RunJournal[] }> {
  const first = await connect();
  await start(first.host, twoSteps);
  await untilAsked(first.host);
  await first.crash();
  const { host } = await connect();
  return { host, read: await host.journal("r1") };
}

async function twoSteps(steps: StepRunner): Promise<ProgramEnd> {
  const one = await steps.run("one", () => 1);
  return completed([one, (await ask(steps, "q1"))?.payload ?? null]);
}

/** A journal that differs from what was written is rejected. */
export const damageFacts: Facts = {
  "a run with a changed journal is neither resumed nor closed: nothing is run or written": async (world) => {
    await damaged(world, (_runId, records) =>
      records.map((record) => (record.stepId === "one" ? { ...record, value: "2" } : record)),
    );
  },

  "a run whose journal lost its tail is neither resumed nor closed": async (world) => {
    await damaged(world, (_runId, records) => records.slice(0, -1));
  },

  "a run whose journal lost all records is neither resumed nor closed": async (world) => {
    await damaged(world, () => []);
  },

  "a run stops before it resumes a child with a damaged journal, and continues with the intact one": async ({
    connect,
  }) => {
    const first = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        return completed();
      }
      await steps.run("one", () => 1);
      return completed((await ask(steps, `q${steps.runId.at(-1)}`))?.payload ?? null);
    };
    await start(first.host, program);
    await untilAsked(first.host, 2);
    await first.crash();
    const second = await connect();
    second.tamper((runId, records) => (runId === "r1/fan/b" ? records.slice(0, 2) : records));
    const task = await second.host.resume("r1", program);
    await rejects(task.settled, "journal_damaged", "Host");
    assert.equal((await second.host.get("r1"))?.status, "suspended");
    const third = await connect();
    const again = await third.host.resume("r1", program);
    for (const key of ["a", "b"]) {
      await third.host.signal(`r1/fan/${key}`, { name: `request/q${key}`, payload: 1, by: "test", digest: "d1" });
    }
    assert.equal((await endOf(again)).status, "completed");
    assert.deepEqual(
      (await stepsOf(third.host, "r1/fan/b")).filter((record) => record === "done one"),
      ["done one"],
    );
    await expectWhole(third.host);
  },

  "a run stops before it uses the end of a child with a damaged journal, and continues with the intact one": async ({
    connect,
  }) => {
    const first = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1")
        return completed(Object.keys(await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions())));
      if (steps.runId === "r1/fan/b") await ask(steps, "qb");
      return completed(await steps.run("one", () => 1));
    };
    await start(first.host, program);
    await untilAsked(first.host);
    await first.host.result("r1/fan/a");
    await first.crash();
    const { host } = await connect();
    await host.signal("r1/fan/b", { name: "request/qb", payload: 1, by: "test", digest: "d1" });
    const changes: readonly ((records: readonly JournalRecord[]) => readonly JournalRecord[])[] = [
      (records) => records.map((record) => (record.stepId === "end" ? { ...record, value: "{}" } : record)),
      (records) => records.map((record) => (record.stepId === "one" ? { ...record, value: "2" } : record)),
      (records) => records.slice(0, -1),
      () => [],
    ];
    for (const change of changes) {
      const next = await connect();
      next.tamper((runId, records) => (runId === "r1/fan/a" ? change(records) : records));
      const task = await next.host.resume("r1", program);
      await rejects(task.settled, "journal_damaged", "Host");
    }
    const last = await connect();
    const again = await last.host.resume("r1", program);
    assert.deepEqual((await endOf(again)).value, ["a", "b"]);
    await expectWhole(last.host);
  },

  "a resume uses a journal that was read before, if the run has no later records": async (world) => {
    const { read } = await readBefore(world);
    const { host, tamper } = await world.connect();
    // Another read would return an empty journal.
    tamper(() => []);
    const again = await host.resume("r1", twoSteps, { read });
    tamper((_runId, records) => records);
    await host.signal("r1", { name: "request/q1", payload: 2, by: "test", digest: "d1" });
    assert.deepEqual((await endOf(again)).value, [1, 2]);
    await expectWhole(host);
  },

  "a resume with an outdated journal or one of another run is rejected: nothing is run or written": async (world) => {
    const { host, read } = await readBefore(world);
    const refused: RunProgram = () => assert.fail("the program was called");
    const task = await host.resume("r1", twoSteps);
    await task.suspend("interrupted");
    const before = await recordsOf(host);
    await rejects(host.resume("r1", refused, { read }), "run_continued_elsewhere", "Host");
    assert.deepEqual(await recordsOf(host), before);
    await endOf(await start(host, async (steps) => completed(await steps.run("two", () => 2)), { runId: "r2" }));
    await host.copy({ runId: "r3", of: "r2", before: 2, started: [], forked: [] });
    const current = await host.journal("r1");
    await rejects(host.resume("r3", refused, { read: current }), "run_continued_elsewhere", "Host");
    // Both claims were released: with current journals both runs continue.
    const again = await host.resume("r1", twoSteps, { read: current });
    await host.signal("r1", { name: "request/q1", payload: 2, by: "test", digest: "d1" });
    assert.deepEqual((await endOf(again)).value, [1, 2]);
    const other = await host.resume("r3", async (steps) => completed(await steps.run("two", () => 3)));
    assert.deepEqual((await endOf(other)).value, 2);
    for (const runId of ["r1", "r3"]) await expectWhole(host, runId);
  },

  "a resume with a forged journal is rejected: nothing is run or written": async (world) => {
    const { host, read } = await readBefore(world);
    const before = await recordsOf(host);
    const refused: RunProgram = () => assert.fail("the program was called");
    const [own = assert.fail("the run has no journal")] = read;
    const { records } = own;
    const last = records.at(-1) ?? assert.fail("the journal is empty");
    const changed = records.map((record) => (record.stepId === "one" ? { ...record, value: "2" } : record));
    for (const forged of [changed, [last], [...records.slice(0, 1), last], [...records, last]])
      await rejects(host.resume("r1", refused, { read: [{ ...own, records: forged }] }), "journal_damaged", "Host");
    assert.deepEqual(await recordsOf(host), before);
    await host.cancel("r1", "enough", "me");
  },
};
