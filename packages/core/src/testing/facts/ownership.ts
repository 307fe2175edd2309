import assert from "node:assert/strict";
import { isSluiceError } from "../../base/errors.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../../journal/seam.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  forkOptions,
  isSettled,
  recordsOf,
  rejects,
  start,
  stepsOf,
  turns,
} from "../world.ts";

/** Waits for `go` and then ends. */
async function waiting(steps: StepRunner): Promise<ProgramEnd> {
  return completed((await steps.waitForSignal("go"))?.payload ?? null);
}
const refused: RunProgram = () => assert.fail("the program of a refused call was called");
const go = { name: "go", payload: 1, by: "test" };

/** Only one host owns a run, only its owner writes to it. */
export const ownershipFacts: Facts = {
  "a run with a live owner is not taken up, there or here": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, waiting);
    await rejects(second.host.resume("r1", refused), "run_owned", "Host");
    await rejects(first.host.resume("r1", refused), "run_owned", "Host");
    assert.equal(await second.host.signal("r1", go), "accepted");
    assert.equal((await endOf(task)).value, 1);
    assert.deepEqual(await recordsOf(first.host), ["lifecycle start", "done wait/go", "lifecycle end"]);
  },

  "a run that is unknown, over, or part of another is not taken up": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") await steps.runChildren("fan", [child("a")], forkOptions());
      return completed();
    });
    await endOf(task);
    await rejects(host.resume("r2", refused), "run_unknown", "Session");
    await rejects(host.resume("r1", refused), "run_finished", "Session");
    await rejects(host.resume("r1/fan/a", refused), "run_is_child", "Session");
  },

  "an id that is taken, empty or a child's starts nothing": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, waiting);
    await rejects(start(first.host, refused), "run_exists", "Host");
    await rejects(start(second.host, refused), "run_exists", "Host");
    for (const runId of ["", "r1/fan/a"])
      await rejects(start(first.host, refused, { runId }), "run_id_invalid", "Validation");
    await first.host.signal("r1", go);
    await endOf(task);
    await rejects(start(second.host, refused), "run_exists", "Host");
    assert.deepEqual(await recordsOf(first.host), ["lifecycle start", "done wait/go", "lifecycle end"]);
  },

  "of two starts of one id at the same time one is refused": async ({ connect }) => {
    const { host } = await connect();
    const starts = await Promise.allSettled([start(host, waiting), start(host, waiting)]);
    assert.deepEqual(starts.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    await host.signal("r1", go);
    assert.equal((await host.result("r1")).status, "completed");
    await expectWhole(host);
  },

  "of many resumes at the same time, on two hosts, exactly one takes the run": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    await assert.rejects((await start(first.host, () => Promise.reject(new Error("stopped")))).settled);
    let worked = 0;
    const program: RunProgram = async (steps) => {
      worked += 1;
      return await waiting(steps);
    };
    const hosts = [first.host, second.host, first.host, second.host];
    const resumes = await Promise.allSettled(hosts.map((host) => host.resume("r1", program)));
    assert.equal(resumes.filter(({ status }) => status === "fulfilled").length, 1);
    for (const resume of resumes) {
      if (resume.status === "rejected") assert.ok(isSluiceError(resume.reason, "run_owned"), String(resume.reason));
    }
    await first.host.signal("r1", go);
    assert.equal((await second.host.result("r1")).status, "completed");
    assert.equal(worked, 1);
    await expectWhole(first.host);
  },

  "a run whose owner is gone is taken up at once, and goes on there": async ({ connect }) => {
    const first = await connect();
    await start(first.host, waiting);
    await first.crash();
    const second = await connect();
    assert.equal((await second.host.get("r1"))?.status, "suspended");
    const task = await second.host.resume("r1", waiting);
    assert.equal((await second.host.get("r1"))?.status, "running");
    await second.host.signal("r1", go);
    await endOf(task);
    await expectWhole(second.host);
  },

  "an owner that was taken for dead cannot write any more: its run stops there and goes on where it was taken": async ({
    connect,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const calls: string[] = [];
    const program =
      (name: string, stays: boolean): RunProgram =>
      async (steps) => {
        await steps.run("one", async () => {
          calls.push(`${name} one`);
          if (stays) await gate.wait();
          return name;
        });
        await steps.run("two", () => {
          calls.push(`${name} two`);
          return name;
        });
        return await waiting(steps);
      };
    const loser = await start(first.host, program("first", true));
    await gate.reached;
    await first.loseLock();
    const winner = await second.host.resume("r1", program("second", false));
    await turns();
    gate.open();
    await rejects(loser.settled, "ownership_lost", "Host");
    assert.deepEqual(calls, ["first one", "second one", "second two"]);
    // What the loser gives up is not the winner's.
    assert.equal((await second.host.get("r1"))?.status, "running");
    await second.host.signal("r1", go);
    assert.equal((await endOf(winner)).status, "completed");
    assert.deepEqual(await stepsOf(second.host), ["done one", "done two", "done wait/go"]);
    const [journal] = await second.host.journal("r1");
    assert.equal(
      new Set(journal?.records.filter(({ phase }) => phase === "done").map(({ incarnation }) => incarnation)).size,
      1,
    );
    await expectWhole(second.host);
  },

  "an owner that hears that its run was taken stops before its next record": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const reasons: unknown[] = [];
    const loser = await start(first.host, async (steps) => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("a"), child("b")], forkOptions());
        return completed();
      }
      await steps.run(
        "one",
        async ({ signal }) => {
          if (steps.runId.endsWith("b")) void gate.wait();
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          reasons.push(signal.reason);
          return null;
        },
        // A grace is for a run that is suspended: this one may act for somebody else by now.
        { graceMs: 60_000 },
      );
      return completed();
    });
    await gate.reached;
    const hear = await first.loseLock();
    const winner = await second.host.resume("r1", async (steps) => {
      if (steps.runId === "r1") await steps.runChildren("fan", [child("a"), child("b")], forkOptions());
      else await steps.run("one", () => null);
      return await (steps.runId === "r1" ? waiting(steps) : completed());
    });
    assert.equal(await isSettled(loser.settled), false);
    hear();
    await rejects(loser.settled, "ownership_lost", "Host");
    assert.equal(reasons.length, 2);
    for (const reason of reasons) assert.ok(isSluiceError(reason, "ownership_lost"));
    await second.host.signal("r1", go);
    assert.equal((await endOf(winner)).status, "completed");
    await expectWhole(second.host);
  },
};
