import assert from "node:assert/strict";
import { field } from "../../base/json.ts";
import type { RunProgram } from "../../journal/seam.ts";
import { nested } from "../programs.ts";
import {
  cancelIn,
  cancelled,
  child,
  completed,
  createGate,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  recordsOf,
  rejects,
  start,
  untilAsked,
} from "../world.ts";

const refused: RunProgram = () => assert.fail("the program of a cancelled run was called");

/** A cancelled run without a live owner is closed by the host that cancels or resumes it, without running its code. */
export const orphanCancelFacts: Facts = {
  "a run without a live owner is closed with its children, and none of its code runs": async ({ connect, clock }) => {
    const first = await connect();
    await start(first.host, nested);
    await untilAsked(first.host);
    await first.crash();
    const { host } = await connect();
    assert.equal(await host.cancel("r1", "enough", "me"), "cancelled");
    const journals = await host.journal("r1");
    assert.deepEqual(
      journals.map(({ runId, end }) => [runId, end?.status]),
      [
        ["r1", "cancelled"],
        ["r1/fan/a", "completed"],
        ["r1/fan/b", "cancelled"],
        ["r1/fan/b/deep/c", "cancelled"],
      ],
    );
    assert.deepEqual(await cancelIn(host), { reason: "enough", by: "me", at: clock.now() });
    // Children are closed before their parents, so a kill in between leaves no open child below an ended run.
    const ends = await Promise.all(journals.map(({ runId }) => recordsOf(host, runId)));
    assert.deepEqual(
      ends.map((records) => records.at(-1)),
      ["lifecycle closed", "lifecycle end", "lifecycle closed", "lifecycle closed"],
    );
    const finished = (await eventsOf(host)).at(-1);
    const children = journals
      .filter(({ parentId }) => parentId === "r1")
      .map(({ runId, records }) => ({ run: runId, head: records.at(-1)?.hash }));
    const data = { status: "cancelled", reason: "enough", unattended: true, children: children.toReversed() };
    assert.deepEqual([finished?.type, finished?.data], ["run.finished", data]);
    assert.equal(field((await host.result("r1")).value, "reason"), "enough");
    await expectWhole(host);
  },

  "the open requests of a closed run expire": async ({ connect }) => {
    const first = await connect();
    await start(first.host, nested);
    await untilAsked(first.host);
    await first.crash();
    const { host } = await connect();
    assert.equal((await host.requests("r1")).length, 1);
    await host.cancel("r1", "enough", "me");
    assert.deepEqual(await host.requests(), []);
    const expired = (await eventsOf(host, "r1", { children: true })).filter(({ type }) => type === "request.expired");
    assert.deepEqual(
      expired.map(({ runId, data }) => [runId, data.requestId]),
      [["r1/fan/b/deep/c", "q1"]],
    );
    assert.equal(await host.signal("r1/fan/b/deep/c", { name: "request/q1", payload: 1, by: "late" }), "unknown");
  },

  "a cancel that its owner did not carry out takes effect on resume": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    await start(first.host, async (steps) => {
      await steps.run("stuck", async () => {
        await gate.wait();
        return null;
      });
      return completed();
    });
    await gate.reached;
    assert.equal(await first.host.cancel("r1", "enough", "me"), "requested");
    await first.crash();
    gate.open();
    const { host } = await connect();
    assert.equal((await host.get("r1"))?.status, "suspended");
    const end = await endOf(await host.resume("r1", refused));
    assert.equal(end.status, "cancelled");
    assert.equal((await host.get("r1"))?.status, "cancelled");
    await expectWhole(host);
  },

  "a run that is cancelled during recovery is closed too, since its code could leave the recorded path": async ({
    connect,
  }) => {
    const first = await connect();
    const gates = [createGate(), createGate()];
    const calls: string[] = [];
    let resumes = 0;
    const program: RunProgram = async (steps) => {
      await steps.run("one", () => calls.push("one"));
      if (steps.runId === "r1") {
        const gate = resumes > 0 ? gates[1] : undefined;
        await gate?.wait();
        // The signal aborts between two recorded steps, unlike on the first run.
        if (steps.signal.aborted) return cancelled(steps);
        await steps.run("two", () => calls.push("two"));
        await steps.runChildren("fan", [child("a")], fanOutOptions());
      } else {
        await steps.run("stuck", async () => {
          await gates[0]?.wait();
          return null;
        });
      }
      return completed();
    };
    await start(first.host, program);
    await gates[0]?.reached;
    await first.crash();
    gates[0]?.open();
    resumes += 1;
    const second = await connect();
    const task = await second.host.resume("r1", program);
    await gates[1]?.reached;
    assert.equal(await second.host.cancel("r1", "enough", "me"), "requested");
    gates[1]?.open();
    assert.equal((await endOf(task)).status, "cancelled");
    assert.deepEqual(calls, ["one", "two", "one"]);
    assert.equal((await second.host.get("r1/fan/a"))?.status, "cancelled");
    assert.equal((await recordsOf(second.host)).at(-1), "lifecycle closed");
    await expectWhole(second.host);
  },

  "a run that is cancelled and suspended during recovery ends as cancelled": async ({ connect }) => {
    const first = await connect();
    const gates = [createGate(), createGate()];
    let resumes = 0;
    const program: RunProgram = async (steps) => {
      await steps.run("one", () => null);
      await gates[resumes]?.wait();
      await steps.run("two", () => null);
      return steps.signal.aborted ? cancelled(steps) : completed();
    };
    await start(first.host, async (steps) => {
      for (const id of ["one", "two"]) await steps.run(id, () => null);
      await gates[0]?.wait();
      return completed();
    });
    await gates[0]?.reached;
    await first.crash();
    gates[0]?.open();
    resumes = 1;
    const { host } = await connect();
    const task = await host.resume("r1", program);
    await gates[1]?.reached;
    await host.cancel("r1", "enough", "me");
    const suspended = task.suspend("interrupted");
    gates[1]?.open();
    await suspended;
    assert.equal((await endOf(task)).status, "cancelled");
    await expectWhole(host);
  },

  "a close that failed halfway is completed by the next cancel": async ({ connect }) => {
    const first = await connect();
    await start(first.host, nested);
    await untilAsked(first.host);
    await first.crash();
    const [second, third] = [await connect(), await connect()];
    second.failWrites(({ runId }) => (runId === "r1/fan/b" ? "before" : undefined));
    await rejects(second.host.cancel("r1", "enough", "me"), "store_io");
    assert.deepEqual(
      (await third.host.journal("r1")).map(({ end }) => end?.status),
      [undefined, "completed", undefined, "cancelled"],
    );
    assert.equal(await third.host.cancel("r1", "still", "operator"), "cancelled");
    await expectWhole(third.host);
  },
};
