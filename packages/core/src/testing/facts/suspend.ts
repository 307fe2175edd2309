import assert from "node:assert/strict";
import { isSluiceError } from "../../base/errors.ts";
import type { ProgramEnd, RunProgram, StepRunner } from "../../journal/seam.ts";
import {
  ask,
  child,
  completed,
  createGate,
  endOf,
  eventsOf,
  expectWhole,
  type Facts,
  failed,
  fanOutOptions,
  isSettled,
  recordsOf,
  rejects,
  start,
  stepsOf,
  until,
  untilAsked,
} from "../world.ts";

const refused: RunProgram = () => assert.fail("the program of a rejected resume was called");

/** A suspended run stops without ending, and any host can resume it. */
export const suspendFacts: Facts = {
  "suspending aborts the open step, and no step that the program requests afterwards is run or recorded": async ({
    connect,
  }) => {
    const { host } = await connect();
    const gate = createGate();
    const reasons: unknown[] = [];
    const task = await start(host, async (steps) => {
      await steps.run("one", () => null);
      try {
        await steps.run("two", async ({ signal }) => {
          void gate.wait();
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          reasons.push(signal.reason);
          return null;
        });
      } catch (thrown) {
        reasons.push(thrown);
        for (const id of ["exit", "hook"]) {
          await rejects(
            steps.run(id, () => assert.fail(`${id} ran`)),
            "run_stopped",
          );
        }
        await rejects(steps.waitForSignal("news"), "run_stopped");
        await rejects(steps.runChildren("fan", [child("a")], fanOutOptions()), "run_stopped");
      }
      return failed("ignored");
    });
    await gate.reached;
    await task.suspend("interrupted");
    assert.deepEqual(await task.settled, { suspended: "interrupted" });
    assert.equal(reasons.length, 2);
    for (const reason of reasons) assert.ok(isSluiceError(reason, "run_stopped"));
    assert.deepEqual(await recordsOf(host), ["lifecycle start", "done one", "lifecycle suspend"]);
    const last = (await eventsOf(host)).at(-1);
    assert.deepEqual([last?.type, last?.data], ["run.suspended", { reason: "interrupted" }]);
    await expectWhole(host);
  },

  "a program that returns because its signal was aborted is suspended, not ended": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const program: RunProgram = async (steps) => {
      await steps.run("one", () => null);
      if (!steps.signal.aborted) {
        void gate.wait();
        await Promise.race([
          gate.passed,
          new Promise<void>((resolve) => steps.signal.addEventListener("abort", () => resolve())),
        ]);
      }
      return steps.signal.aborted ? failed("stopped") : completed();
    };
    const task = await start(host, program);
    await gate.reached;
    await task.suspend("interrupted");
    assert.deepEqual(await task.settled, { suspended: "interrupted" });
    gate.open();
    assert.deepEqual(await endOf(await host.resume("r1", program)), { status: "completed", value: null });
    await expectWhole(host);
  },

  "a suspended run is `waiting` if it was suspended for a request, and `interrupted` otherwise": async ({
    connect,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      await steps.waitForSignal("go");
      return completed((await ask(steps, "q1"))?.payload ?? null);
    };
    const status = async () => {
      const run = await second.host.get("r1");
      return [run?.status, run?.suspended];
    };
    let task = await start(first.host, program);
    assert.deepEqual(await status(), ["running", undefined]);
    await task.suspend("interrupted");
    assert.deepEqual(await status(), ["suspended", "interrupted"]);
    task = await first.host.resume("r1", program);
    await second.host.signal("r1", { name: "go", payload: null, by: "test" });
    await untilAsked(second.host);
    assert.deepEqual(await status(), ["running", undefined]);
    await task.suspend("waiting");
    assert.deepEqual(await task.settled, { suspended: "waiting" });
    assert.deepEqual(await status(), ["suspended", "waiting"]);
    await second.host.signal("r1", { name: "request/q1", payload: "yes", by: "test", digest: "d1" });
    assert.equal((await endOf(await second.host.resume("r1", program))).value, "yes");
    assert.deepEqual(await status(), ["completed", undefined]);
    await expectWhole(second.host);
  },

  "a writing step may finish within its grace period after a suspension, and is recorded": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      const value = await steps.run(
        "write",
        async ({ signal }) => {
          await gate.wait();
          return signal.aborted;
        },
        { open: { events: [] }, graceMs: 5_000 },
      );
      return completed(await steps.run("next", () => value));
    };
    const task = await start(host, program);
    await gate.reached;
    const suspended = task.suspend("interrupted");
    assert.equal(await isSettled(suspended), false);
    gate.open();
    await suspended;
    assert.deepEqual(await stepsOf(host), ["open write", "done write"]);
    assert.equal((await endOf(await host.resume("r1", program))).value, false);
    await expectWhole(host);
  },

  "after its grace period a step is aborted, and the run stays owned while the step function runs": async ({
    connect,
    clock,
  }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    let aborted = false;
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      await steps.run(
        "write",
        async ({ signal }) => {
          signal.addEventListener("abort", () => {
            aborted = true;
          });
          await gate.wait();
          return "late";
        },
        { open: { events: [] }, graceMs: 5_000 },
      );
      return completed();
    };
    const task = await start(first.host, program);
    await gate.reached;
    const suspended = task.suspend("interrupted");
    await clock.untilArmed(1);
    clock.advance(4_999);
    assert.equal(aborted, false);
    clock.advance(1);
    assert.equal(aborted, true);
    // The suspension does not wait for a function that ignores its AbortSignal.
    await clock.untilArmed(1);
    clock.advance(1_000);
    await suspended;
    assert.deepEqual(await task.settled, { suspended: "interrupted" });
    await rejects(second.host.resume("r1", refused), "run_owned");
    await rejects(first.host.resume("r1", refused), "run_owned");
    gate.open();
    await until(second.host, async () => (await second.host.get("r1"))?.status === "suspended");
    assert.deepEqual(await stepsOf(second.host), ["open write"]);
    assert.equal((await endOf(await second.host.resume("r1", program))).status, "completed");
    await expectWhole(second.host);
  },

  "work passed to `hold` keeps the run owned until it settles": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    const gates = [createGate(), createGate()];
    const task = await start(first.host, async (steps) => {
      await steps.run("call", ({ hold }) => {
        // Held work may hold more work when it ends.
        hold(gates[0]?.passed.then(() => hold(gates[1]?.passed ?? Promise.resolve())) ?? Promise.resolve());
        return "abandoned";
      });
      return completed();
    });
    await clock.untilArmed(1);
    assert.deepEqual(await second.host.result("r1"), { status: "completed", value: null });
    assert.equal(await isSettled(task.settled), false);
    gates[0]?.open();
    assert.equal(await isSettled(task.settled), false);
    gates[1]?.open();
    assert.equal((await endOf(task)).status, "completed");
    assert.equal(clock.armed(), 0);
  },

  "a step of a run that is suspended between the open record and the step function is not called": async ({
    connect,
  }) => {
    const first = await connect();
    let suspended: Promise<void> | undefined;
    const stops: (() => Promise<void>)[] = [];
    first.failWrites(({ phase }) => {
      // The run is suspended while the record is being written.
      if (phase === "open") suspended = stops[0]?.();
      return undefined;
    });
    const program =
      (calls: string[]): RunProgram =>
      async (steps) => {
        await steps.run("one", () => null);
        const open = { events: [], intent: "writes" };
        await steps.run("write", ({ opened }) => calls.push(opened?.incarnation ?? ""), { open });
        return completed();
      };
    const calls: string[] = [];
    const gate = createGate();
    const task = await start(first.host, async (steps, input) => {
      await gate.passed;
      return await program(calls)(steps, input);
    });
    stops.push(() => task.suspend("interrupted"));
    gate.open();
    assert.deepEqual(await task.settled, { suspended: "interrupted" });
    await suspended;
    first.failWrites(undefined);
    assert.deepEqual(calls, []);
    assert.deepEqual(await stepsOf(first.host), ["done one", "open write"]);
    await endOf(await first.host.resume("r1", program(calls)));
    assert.equal(calls.length, 1);
    await expectWhole(first.host);
  },

  "a child whose journal is being created when the run is suspended takes no step": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const opening = createGate<undefined>();
    first.failWrites(({ runId, stepId }) => (runId === "r1/fan/a" && stepId === "start" ? opening.wait() : undefined));
    const calls: string[] = [];
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
      else await steps.run("one", () => calls.push(steps.runId));
      return completed();
    };
    const task = await start(first.host, program);
    await opening.reached;
    const suspended = task.suspend("interrupted");
    opening.open(undefined);
    await suspended;
    assert.deepEqual(calls, []);
    assert.equal(await second.host.get("r1/fan/b"), undefined);
    assert.equal((await endOf(await second.host.resume("r1", program))).status, "completed");
    assert.deepEqual(calls, ["r1/fan/a", "r1/fan/b"]);
    await expectWhole(second.host);
  },

  "a suspended run suspends its children, and a resume resumes them": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        return completed(Object.values(ends).map(({ value }) => value));
      }
      if (steps.runId.endsWith("a")) return completed(await steps.run("one", () => "a"));
      return completed((await ask(steps, "q1"))?.payload ?? null);
    };
    const task = await start(first.host, program);
    await untilAsked(first.host);
    await until(first.host, async () => (await first.host.get("r1/fan/a"))?.status === "completed");
    await task.suspend("waiting");
    const statuses = await Promise.all(["r1", "r1/fan/a", "r1/fan/b"].map((runId) => second.host.get(runId)));
    assert.deepEqual(
      statuses.map((run) => [run?.status, run?.suspended]),
      [
        ["suspended", "waiting"],
        ["completed", undefined],
        ["suspended", "waiting"],
      ],
    );
    const again = await second.host.resume("r1", program);
    await second.host.signal("r1/fan/b", { name: "request/q1", payload: "b", by: "test", digest: "d1" });
    assert.deepEqual((await endOf(again)).value, ["a", "b"]);
    await expectWhole(second.host);
  },
};
