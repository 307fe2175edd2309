import assert from "node:assert/strict";
import type { JournalRecord, ProgramEnd, RunHost, RunJournal, RunProgram, StepRunner } from "../../journal/seam.ts";
import {
  ask,
  child,
  completed,
  endOf,
  expectWhole,
  type Facts,
  forkOptions,
  recordsOf,
  rejects,
  start,
  stepsOf,
  untilAsked,
  type World,
} from "../world.ts";

/** Damages the journal of a run that was killed while it waited, and lets every call that would go on with it try. */
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
  // It was given back: with a whole journal it goes on.
  assert.equal(await third.host.cancel("r1", "enough", "me"), "cancelled");
  await expectWhole(third.host);
}

/** A run of two steps that was killed while it waited for an answer, as another host reads it. */
async function readBefore({ connect }: World): Promise<{ readonly of: RunHost; readonly read: RunJournal }> {
  const first = await connect();
  await start(first.host, twoSteps);
  await untilAsked(first.host);
  await first.crash();
  const { host: of } = await connect();
  const [read = assert.fail("the run has no journal")] = await of.journal("r1");
  return { of, read };
}

async function twoSteps(steps: StepRunner): Promise<ProgramEnd> {
  const one = await steps.run("one", () => 1);
  return completed([one, (await ask(steps, "q1"))?.payload ?? null]);
}

/** Nothing is built on a journal that is not the one that was written. */
export const damageFacts: Facts = {
  "a run whose journal was changed is not resumed and not closed: nothing of it is run or written": async (world) => {
    await damaged(world, (_runId, records) =>
      records.map((record) => (record.stepId === "one" ? { ...record, value: "2" } : record)),
    );
  },

  "a run whose journal lost its tail is not resumed and not closed": async (world) => {
    await damaged(world, (_runId, records) => records.slice(0, -1));
  },

  "a run whose journal lost everything is not resumed and not closed": async (world) => {
    await damaged(world, () => []);
  },

  "a run with a damaged child stops where it would take the child up, and goes on once it is mended": async ({
    connect,
  }) => {
    const first = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("a"), child("b")], forkOptions());
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

  "a run with a child that ended and was changed since stops before it takes its end, and goes on once it is mended":
    async ({ connect }) => {
      const first = await connect();
      const program = async (steps: StepRunner): Promise<ProgramEnd> => {
        if (steps.runId === "r1")
          return completed(Object.keys(await steps.runChildren("fan", [child("a"), child("b")], forkOptions())));
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

  "a journal that was read before the resume is taken as it is while the run stands where it ended": async (world) => {
    const { read } = await readBefore(world);
    const { host, tamper } = await world.connect();
    // Reading it again would show another.
    tamper(() => []);
    const again = await host.resume("r1", twoSteps, { read });
    tamper((_runId, records) => records);
    await host.signal("r1", { name: "request/q1", payload: 2, by: "test", digest: "d1" });
    assert.deepEqual((await endOf(again)).value, [1, 2]);
    await expectWhole(host);
  },

  "a journal that was read before the run went on, or of another run, is not taken up: nothing is run or written":
    async (world) => {
      const { of, read } = await readBefore(world);
      const refused: RunProgram = () => assert.fail("the program was called");
      const task = await of.resume("r1", twoSteps);
      await task.suspend("interrupted");
      const before = await recordsOf(of);
      await rejects(of.resume("r1", refused, { read }), "run_continued_elsewhere", "Host");
      assert.deepEqual(await recordsOf(of), before);
      await endOf(await start(of, async (steps) => completed(await steps.run("two", () => 2)), { runId: "r2" }));
      await of.copy({ runId: "r3", of: "r2", before: 2, started: [], forked: [] });
      const [now = assert.fail("the run has no journal")] = await of.journal("r1");
      await rejects(of.resume("r3", refused, { read: now }), "run_continued_elsewhere", "Host");
      // Both were given back: read again, they go on.
      const again = await of.resume("r1", twoSteps, { read: now });
      await of.signal("r1", { name: "request/q1", payload: 2, by: "test", digest: "d1" });
      assert.deepEqual((await endOf(again)).value, [1, 2]);
      const other = await of.resume("r3", async (steps) => completed(await steps.run("two", () => 3)));
      assert.deepEqual((await endOf(other)).value, 2);
      for (const runId of ["r1", "r3"]) await expectWhole(of, runId);
    },

  "a journal that is given as read, and is not what was written, is refused: nothing of it is run or written": async (
    world,
  ) => {
    const { of, read } = await readBefore(world);
    const before = await recordsOf(of);
    const refused: RunProgram = () => assert.fail("the program was called");
    const { records } = read;
    const last = records.at(-1) ?? assert.fail("the journal is empty");
    const changed = records.map((record) => (record.stepId === "one" ? { ...record, value: "2" } : record));
    for (const forged of [changed, [last], [...records.slice(0, 1), last], [...records, last]])
      await rejects(of.resume("r1", refused, { read: { ...read, records: forged } }), "journal_damaged", "Host");
    assert.deepEqual(await recordsOf(of), before);
    await of.cancel("r1", "enough", "me");
  },
};
