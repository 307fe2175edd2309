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
  fanOutOptions,
  isSettled,
  recordsOf,
  rejects,
  start,
  stepsOf,
  turns,
} from "../world.ts";

/** Waits for `go`, then completes. */
async function waiting(steps: StepRunner): Promise<ProgramEnd> {
  return completed((await steps.waitForSignal("go"))?.payload ?? null);
}
const refused: RunProgram = () => assert.fail("the program of a rejected call was called");
const go = { name: "go", payload: 1, by: "test" };

/** One host owns a run, and only the owner appends to its journal. */
export const ownershipFacts: Facts = {
  "a run with a live owner cannot be resumed by the owner or another host": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, waiting);
    await rejects(second.host.resume("r1", refused), "run_owned", "Host");
    await rejects(first.host.resume("r1", refused), "run_owned", "Host");
    assert.equal(await second.host.signal("r1", go), "accepted");
    assert.equal((await endOf(task)).value, 1);
    assert.deepEqual(await recordsOf(first.host), ["lifecycle start", "done wait/go", "lifecycle end"]);
  },

  "a run that is unknown, finished or a child cannot be resumed": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") await steps.runChildren("fan", [child("a")], fanOutOptions());
      return completed();
    });
    await endOf(task);
    await rejects(host.resume("r2", refused), "run_unknown", "Session");
    await rejects(host.resume("r1", refused), "run_finished", "Session");
    await rejects(host.resume("r1/fan/a", refused), "run_is_child", "Session");
  },

  "a start with an id that exists, is empty or is a child's is rejected": async ({ connect }) => {
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

  "of two concurrent starts with the same id, one is rejected": async ({ connect }) => {
    const { host } = await connect();
    const starts = await Promise.allSettled([start(host, waiting), start(host, waiting)]);
    assert.deepEqual(starts.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    await host.signal("r1", go);
    assert.equal((await host.result("r1")).status, "completed");
    await expectWhole(host);
  },

  "of many concurrent resumes on two hosts, exactly one owns the run": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    await assert.rejects((await start(first.host, () => Promise.reject(new Error("stopped")))).settled);
    let calls = 0;
    const program: RunProgram = async (steps) => {
      calls += 1;
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
    assert.equal(calls, 1);
    await expectWhole(first.host);
  },

  "a run whose owner is dead can be resumed by another host at once": async ({ connect }) => {
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

  "an owner that was presumed dead can no longer write: its run stops there and continues at its new owner": async ({
    connect,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const calls: string[] = [];
    const program =
      (name: string, waits: boolean): RunProgram =>
      async (steps) => {
        await steps.run("one", async () => {
          calls.push(`${name} one`);
          if (waits) await gate.wait();
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
    // The loser's release does not affect the winner's claim.
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

  "an owner that is notified of a new owner stops before its next record": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const reasons: unknown[] = [];
    const loser = await start(first.host, async (steps) => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
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
        // The grace period applies to a suspension only: here another process may already own the run.
        { graceMs: 60_000 },
      );
      return completed();
    });
    await gate.reached;
    const restoreNotifications = await first.loseLock();
    const winner = await second.host.resume("r1", async (steps) => {
      if (steps.runId === "r1") await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
      else await steps.run("one", () => null);
      return await (steps.runId === "r1" ? waiting(steps) : completed());
    });
    assert.equal(await isSettled(loser.settled), false);
    restoreNotifications();
    await rejects(loser.settled, "ownership_lost", "Host");
    assert.equal(reasons.length, 2);
    for (const reason of reasons) assert.ok(isSluiceError(reason, "ownership_lost"));
    await second.host.signal("r1", go);
    assert.equal((await endOf(winner)).status, "completed");
    await expectWhole(second.host);
  },
};
