import assert from "node:assert/strict";
import type { JournalRecord, ProgramEnd, RunProgram, StepRunner } from "../../journal/seam.ts";
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
        await steps.fork("fan", [child("a"), child("b")], forkOptions());
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
};
