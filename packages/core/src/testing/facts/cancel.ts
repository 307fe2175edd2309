import assert from "node:assert/strict";
import { isSluiceError } from "../../base/errors.ts";
import { field } from "../../base/json.ts";
import type { RunProgram } from "../../journal/seam.ts";
import { nested } from "../programs.ts";
import {
  cancelIn,
  cancelled,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  recordsOf,
  rejects,
  start,
  stepsOf,
  turns,
  untilAsked,
} from "../world.ts";

/** A run whose step runs until it is aborted, and whose program then ends the run. */
function endsOnAbort(reached: () => void, reasons: unknown[] = []): RunProgram {
  return async (steps) => {
    await steps.run("work", async ({ signal }) => {
      reached();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      reasons.push(signal.reason);
      return "aborted";
    });
    await steps.run("clean up", () => null);
    return cancelled(steps);
  };
}

/** The owner of a cancelled run carries the cancel out. */
export const cancelFacts: Facts = {
  "another host can cancel a running run: its signal aborts, and its own code ends it": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const reasons: unknown[] = [];
    const task = await start(
      first.host,
      endsOnAbort(() => void gate.wait(), reasons),
    );
    await gate.reached;
    clock.advance(10);
    const at = clock.now();
    assert.equal(await second.host.cancel("r1", "not needed any more", "operator"), "requested");
    const end = await endOf(task);
    assert.deepEqual(end, { status: "cancelled", value: "not needed any more" });
    const [reason] = reasons;
    assert.ok(isSluiceError(reason, "run_cancelled") && reason.class === "Cancellation");
    assert.deepEqual(await stepsOf(first.host), ["done work", "done clean up"]);
    assert.deepEqual(await cancelIn(first.host), { reason: "not needed any more", by: "operator", at });
    assert.equal(await second.host.cancel("r1", "again", "operator"), "finished");
    await expectWhole(first.host);
  },

  "the owner can cancel a running run": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(
      host,
      endsOnAbort(() => void gate.wait()),
    );
    await gate.reached;
    assert.equal(await host.cancel("r1", "enough", "me"), "requested");
    assert.equal((await endOf(task)).status, "cancelled");
    assert.equal(field(JSON.parse(JSON.stringify(await cancelIn(host))), "by"), "me");
    await expectWhole(host);
  },

  "only an unfinished root run can be cancelled": async ({ connect }) => {
    const { host } = await connect();
    assert.equal(await host.cancel("r1", "why", "me"), "unknown");
    const task = await start(host, nested);
    await untilAsked(host);
    await rejects(host.cancel("r1/fan/b", "why", "me"), "run_is_child", "Session");
    await host.cancel("r1", "why", "me");
    await endOf(task);
    assert.equal(await host.cancel("r1", "why", "me"), "finished");
    await expectWhole(host);
  },

  "a step that starts after the cancel has an aborted signal, and waits and sleeps return at once": async ({
    connect,
    clock,
  }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(host, async (steps) => {
      await steps.run("one", async () => {
        await gate.wait();
        return null;
      });
      const seen = await steps.run("two", ({ signal }) => signal.aborted);
      const signal = await steps.waitForSignal("never");
      await steps.sleepUntil("long", clock.now() + 1_000_000);
      const timed = await steps.waitForSignal("never", { timeoutMs: 1_000 });
      return { ...cancelled(steps), value: [seen, signal === undefined, timed === undefined] };
    });
    await gate.reached;
    await host.cancel("r1", "enough", "me");
    gate.open();
    assert.deepEqual((await endOf(task)).value, [true, true, true]);
    await expectWhole(host);
  },

  "a cancel ends the wait of a run": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, async (steps) => {
      const received = await steps.waitForSignal("never");
      assert.equal(received, undefined);
      return cancelled(steps);
    });
    await turns();
    await second.host.cancel("r1", "enough", "me");
    assert.equal((await endOf(task)).status, "cancelled");
  },

  "a cancelled run cancels its children on all levels, and waits for them": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, nested);
    await untilAsked(second.host);
    assert.equal(await second.host.cancel("r1", "enough", "me"), "requested");
    assert.equal((await endOf(task)).status, "cancelled");
    const journals = await second.host.journal("r1");
    assert.deepEqual(
      journals.map(({ runId, end }) => [runId, end?.status]),
      [
        ["r1", "cancelled"],
        ["r1/fan/a", "completed"],
        ["r1/fan/b", "cancelled"],
        ["r1/fan/b/deep/c", "cancelled"],
      ],
    );
    assert.deepEqual(await second.host.requests(), []);
    await expectWhole(second.host);
  },

  "a run that is cancelled and suspended at the same time ends as cancelled, in either order": async ({ connect }) => {
    for (const [index, first] of ["suspend", "cancel"].entries()) {
      const [owner, other] = [await connect(), await connect()];
      const runId = `r${index}`;
      const gate = createGate();
      const task = await start(
        owner.host,
        async (steps) => {
          await steps.run(
            "write",
            async () => {
              await gate.wait();
              return null;
            },
            { graceMs: 1_000 },
          );
          await steps.run("next", () => null);
          return steps.signal.aborted ? cancelled(steps) : completed();
        },
        { runId },
      );
      await gate.reached;
      const suspended = first === "suspend" ? task.suspend("interrupted") : undefined;
      assert.equal(await other.host.cancel(runId, "enough", "me"), "requested");
      const late = suspended ?? task.suspend("interrupted");
      gate.open();
      await late;
      assert.equal((await endOf(task)).status, "cancelled");
      assert.equal((await other.host.get(runId))?.status, "cancelled");
      await expectWhole(other.host, runId);
    }
  },

  "concurrent cancels and the run's own end result in exactly one end": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const task = await start(first.host, async (steps) => {
      await steps.run("one", async () => {
        await gate.wait();
        return null;
      });
      return steps.signal.aborted ? cancelled(steps) : completed();
    });
    await gate.reached;
    gate.open();
    const outcomes = await Promise.all([
      first.host.cancel("r1", "a", "a"),
      second.host.cancel("r1", "b", "b"),
      endOf(task),
      second.host.cancel("r1", "c", "c"),
    ]);
    for (const outcome of outcomes) if (typeof outcome === "string") assert.match(outcome, /^(requested|finished)$/);
    assert.deepEqual((await recordsOf(first.host)).filter((record) => record === "lifecycle end").length, 1);
    await expectWhole(first.host);
  },

  "a cancel during a resume takes effect": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    await assert.rejects((await start(first.host, () => Promise.reject(new Error("stopped")))).settled);
    const resuming = createGate<undefined>();
    second.failWrites(({ stepId }) => (stepId === "resume" ? resuming.wait() : undefined));
    const resumed = second.host.resume("r1", async (steps) => {
      await steps.waitForSignal("never");
      return cancelled(steps);
    });
    await resuming.reached;
    assert.equal(await first.host.cancel("r1", "enough", "me"), "requested");
    resuming.open(undefined);
    assert.equal((await endOf(await resumed)).status, "cancelled");
    await expectWhole(first.host);
  },

  "a cancel that races with a resume is never lost": async ({ connect }) => {
    for (let round = 0; round < 4; round += 1) {
      const [first, second] = [await connect(), await connect()];
      const runId = `r${round}`;
      await assert.rejects((await start(first.host, () => Promise.reject(new Error("stopped")), { runId })).settled);
      const program: RunProgram = async (steps) => {
        await steps.waitForSignal("never");
        return cancelled(steps);
      };
      const resume = (): Promise<unknown> => second.host.resume(runId, program);
      const cancel = (): Promise<unknown> => first.host.cancel(runId, "enough", "me");
      const calls = round % 2 === 0 ? [resume(), cancel()] : [cancel(), resume()];
      await Promise.allSettled(calls);
      // In either order the run is cancelled: by its new owner, or before it has one.
      assert.equal((await first.host.result(runId)).status, "cancelled");
      await expectWhole(first.host, runId);
    }
  },
};
