import assert from "node:assert/strict";
import type { ProgramEnd, StepCall, StepRunner } from "../../journal/seam.ts";
import type { WriteAttempt, WriteFault } from "../harness.ts";
import {
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  failed,
  recordsOf,
  rejects,
  start,
  stepsOf,
  type World,
} from "../world.ts";

/** Fails the first write of one record. */
function failOnce(name: string, fault: WriteFault): (write: WriteAttempt) => WriteFault | undefined {
  let left = 1;
  return ({ phase, stepId }) => {
    if (`${phase} ${stepId}` !== name || left === 0) return undefined;
    left -= 1;
    return fault;
  };
}

/** A step, then a writing step that collects the open record of each call. */
async function writing(steps: StepRunner, calls: StepCall["opened"][]): Promise<ProgramEnd> {
  await steps.run("before", () => null);
  const value = await steps.run(
    "write",
    ({ opened }) => {
      calls.push(opened);
      return calls.length;
    },
    { open: { events: [{ type: "call.started", data: { callId: "c1" } }], intent: { file: "a", hash: "h" } } },
  );
  return completed(value);
}

/** Fails one record of a writing run, and resumes the run on another host. */
async function overWriteFault({ connect }: World, record: string, fault: WriteFault) {
  const [first, second] = [await connect(), await connect()];
  const calls: StepCall["opened"][] = [];
  first.failWrites(failOnce(record, fault));
  const task = await start(first.host, (steps) => writing(steps, calls));
  await rejects(task.settled, "store_io", "Host");
  const seen = calls.length;
  const status = (await second.host.get("r1"))?.status;
  const resumed = await second.host.resume("r1", (steps) => writing(steps, calls));
  const end = await endOf(resumed);
  await expectWhole(second.host);
  return { seen, calls, status, end, host: second.host };
}

/** A fault suspends the run and never ends it; work without a record is repeated. */
export const faultFacts: Facts = {
  "a step function that rejects records nothing, and the run can be resumed": async ({ connect }) => {
    const { host } = await connect();
    let calls = 0;
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      await steps.run("one", () => 1);
      const value = await steps.run("two", async ({ event }) => {
        calls += 1;
        event({ type: "turn.started", data: { turn: calls } });
        if (calls === 1) throw new TypeError("a fault of the host");
        return calls;
      });
      return completed(value);
    };
    const task = await start(host, program);
    await assert.rejects(task.settled, TypeError);
    assert.deepEqual(await stepsOf(host), ["done one"]);
    assert.deepEqual(await host.get("r1").then((run) => [run?.status, run?.suspended]), ["suspended", "interrupted"]);
    assert.deepEqual(await endOf(await host.resume("r1", program)), { status: "completed", value: 2 });
    await expectWhole(host);
  },

  "a program that catches a fault can take no further step, and the run does not end": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      try {
        await steps.run("one", () => Promise.reject(new TypeError("a fault of the host")));
      } catch (thrown) {
        assert.ok(thrown instanceof TypeError);
      }
      await assert.rejects(
        steps.run("two", () => assert.fail("called after a fault")),
        TypeError,
      );
      return failed("caught");
    });
    await assert.rejects(task.settled, TypeError);
    assert.deepEqual(await recordsOf(host), ["lifecycle start"]);
    assert.equal((await host.get("r1"))?.status, "suspended");
  },

  "a program that throws does not end its run, and the run can be resumed": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, () => Promise.reject(new RangeError("a mistake in the program")));
    await assert.rejects(task.settled, RangeError);
    const again = await host.resume("r1", async () => completed());
    assert.equal((await endOf(again)).status, "completed");
  },

  "if an open record cannot be written, the step function is not called": async (world) => {
    const { seen, calls, status, end } = await overWriteFault(world, "open write", "before");
    assert.deepEqual([seen, status, end.value], [0, "suspended", 1]);
    assert.deepEqual(calls[0]?.intent, { file: "a", hash: "h" });
  },

  "an open record that was stored but reported as failed is found on resume, with its intent": async (world) => {
    const { seen, calls, host } = await overWriteFault(world, "open write", "after");
    assert.equal(seen, 0);
    const [journal] = await host.journal("r1");
    const opened = journal?.records.find((record) => record.phase === "open");
    assert.deepEqual(calls, [{ incarnation: opened?.incarnation, intent: { file: "a", hash: "h" } }]);
    assert.deepEqual(await stepsOf(host), ["done before", "open write", "done write"]);
    assert.notEqual(opened?.incarnation, journal?.records.at(-1)?.incarnation);
  },

  "a done record that cannot be written stops the run, and the step function is called again on resume": async (
    world,
  ) => {
    const { seen, calls, end } = await overWriteFault(world, "done write", "before");
    assert.deepEqual([seen, calls.length, end.value], [1, 2, 2]);
    assert.equal(calls[1]?.incarnation, calls[0]?.incarnation);
  },

  "a step whose done record was stored but reported as failed is not repeated": async (world) => {
    const { seen, calls, end } = await overWriteFault(world, "done write", "after");
    assert.deepEqual([seen, calls.length, end.value], [1, 1, 1]);
  },

  "an end that cannot be written leaves the run resumable": async (world) => {
    const { seen, calls, status, end } = await overWriteFault(world, "lifecycle end", "before");
    assert.deepEqual([seen, calls.length, status, end.value], [1, 1, "suspended", 1]);
  },

  "an end that was stored but reported as failed is final": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    first.failWrites(failOnce("lifecycle end", "after"));
    const task = await start(first.host, (steps) => writing(steps, []));
    await rejects(task.settled, "store_io");
    assert.deepEqual(await second.host.result("r1"), { status: "completed", value: 1 });
    await rejects(
      second.host.resume("r1", async () => completed()),
      "run_finished",
      "Session",
    );
    await expectWhole(second.host);
  },

  "a run whose first record cannot be written does not exist, and its program is not called": async ({ connect }) => {
    const first = await connect();
    first.failWrites(failOnce("lifecycle start", "before"));
    await rejects(
      start(first.host, () => assert.fail("the program was called")),
      "store_io",
    );
    assert.equal(await first.host.get("r1"), undefined);
    assert.equal((await endOf(await start(first.host, async () => completed()))).status, "completed");
  },

  "a run whose first record was stored but reported as failed is suspended and can be resumed": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    first.failWrites(failOnce("lifecycle start", "after"));
    await rejects(
      start(first.host, () => assert.fail("the program was called")),
      "store_io",
    );
    assert.equal((await second.host.get("r1"))?.status, "suspended");
    assert.equal((await endOf(await second.host.resume("r1", async () => completed()))).status, "completed");
  },

  "a resume whose record cannot be written releases the run at once": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    await assert.rejects((await start(first.host, () => Promise.reject(new Error("stopped")))).settled);
    second.failWrites(failOnce("lifecycle resume", "before"));
    await rejects(
      second.host.resume("r1", () => assert.fail("the program was called")),
      "store_io",
    );
    assert.equal((await endOf(await first.host.resume("r1", async () => completed()))).status, "completed");
    await expectWhole(first.host);
  },

  "a suspension that cannot be written is reported, and the run can be resumed": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const task = await start(first.host, async (steps) => {
      await steps.run("one", async () => {
        await gate.wait();
        return null;
      });
      return completed();
    });
    await gate.reached;
    first.failWrites(failOnce("lifecycle suspend", "before"));
    const suspended = rejects(task.suspend("interrupted"), "store_io");
    gate.open();
    await suspended;
    await rejects(task.settled, "store_io");
    assert.equal(
      (await endOf(await second.host.resume("r1", async (steps) => completed(await steps.run("one", () => 1))))).value,
      1,
    );
  },

  "a step sees its open record: its own on the first run, the earlier process's after a kill": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    const seen: { readonly opened: StepCall["opened"]; readonly own: string }[] = [];
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      assert.equal(await steps.run("plain", ({ opened }) => opened === undefined), true);
      const open = { events: [], intent: { before: "h1", after: "h2" } };
      await steps.run(
        "write",
        async ({ opened }) => {
          seen.push({ opened, own: steps.incarnation });
          if (seen.length === 1) await gate.wait();
          return null;
        },
        { open },
      );
      return completed();
    };
    await start(first.host, program);
    await gate.reached;
    await first.crash();
    gate.open();
    const second = await connect();
    await endOf(await second.host.resume("r1", program));
    const [before, after] = seen;
    const intent = { before: "h1", after: "h2" };
    assert.deepEqual(before?.opened, { incarnation: before?.own, intent });
    assert.deepEqual(after?.opened, { incarnation: before?.own, intent });
    assert.notEqual(after?.own, before?.own);
    assert.deepEqual(await stepsOf(second.host), ["done plain", "open write", "done write"]);
    await expectWhole(second.host);
  },

  "every resume has a new incarnation, also in the same process": async ({ connect }) => {
    const { host } = await connect();
    const seen = new Set<string>();
    const gate = createGate();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      seen.add(steps.incarnation);
      await steps.waitForSignal("never");
      return completed();
    };
    let task = await start(host, program);
    for (let round = 0; round < 3; round += 1) {
      await task.suspend("interrupted");
      task = await host.resume("r1", program);
    }
    await task.suspend("interrupted");
    assert.equal(seen.size, 4);
    gate.open();
  },
};
