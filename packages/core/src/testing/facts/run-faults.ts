import assert from "node:assert/strict";
import type { AwaitResumeEnd, ExecutionFault, ProgramEnd, StepRunner } from "../../journal/seam.ts";
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
  start,
  turns,
  until,
  untilAsked,
} from "../world.ts";

const MINUTE = 60_000;

function faultOf({ runId }: Pick<StepRunner, "runId">, code: string, retryAt?: number): ExecutionFault {
  const of = { runId, executionId: "work#1", reason: "provider", code, message: `it is ${code}` } as const;
  return retryAt === undefined ? of : { ...of, retryAt };
}
function waitFor(steps: StepRunner, id: string, fault: ExecutionFault): Promise<AwaitResumeEnd> {
  const { runId: _run, executionId: _execution, ...data } = fault;
  return steps.awaitResume(id, {
    fault,
    open: { events: [{ type: "execution.suspended", data }] },
    ended: (by) => [{ type: "execution.continued", data: { by } }],
  });
}
/** Works, waits because of a fault, and works again. */
async function oneFault(steps: StepRunner): Promise<ProgramEnd> {
  await steps.run("before", () => null);
  const by = await waitFor(steps, "wait", faultOf(steps, "down"));
  await steps.run("after", () => null);
  return completed(by);
}

/** Runs that wait because of a fault until they are resumed. */
export const runFaultFacts: Facts = {
  "a fault suspends the run, which continues behind the wait in the process that resumes it": async ({ connect }) => {
    const first = await connect();
    const task = await start(first.host, oneFault);
    const fault = { runId: "r1", executionId: "work#1", reason: "provider", code: "down", message: "it is down" };
    assert.deepEqual(await task.settled, { suspended: "provider", faults: [fault] });
    const run = await first.host.get("r1");
    assert.deepEqual([run?.status, run?.suspended, run?.faults], ["suspended", "provider", [fault]]);
    assert.deepEqual((await first.host.list())[0]?.faults, [fault]);
    assert.deepEqual(await first.host.due(10), { runs: [], next: undefined }, "no time ends it");
    await first.crash();
    const second = await connect();
    assert.equal((await endOf(await second.host.resume("r1", oneFault))).value, "resume");
    assert.equal((await recordsOf(second.host)).filter((record) => record === "done before").length, 1);
    assert.deepEqual(
      (await eventsOf(second.host)).map(({ type }) => type),
      ["run.started", "execution.suspended", "run.suspended", "run.resumed", "execution.continued", "run.finished"],
    );
    assert.equal((await second.host.get("r1"))?.faults, undefined);
    await expectWhole(second.host);
  },

  "a run whose process died while it waited continues too, before and after its suspension was recorded": async ({
    connect,
  }) => {
    const first = await connect();
    const gate = createGate();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        return completed(ends.a?.value ?? null);
      }
      if (steps.runId.endsWith("a")) return completed(await waitFor(steps, "wait", faultOf(steps, "down")));
      await steps.run("work", () => gate.passed.then(() => null));
      return completed();
    };
    await start(first.host, program);
    await until(first.host, async () => (await recordsOf(first.host, "r1/fan/a")).includes("open wait"));
    await first.crash();
    gate.open();
    const second = await connect();
    assert.equal((await endOf(await second.host.resume("r1", program))).value, "resume");
    await expectWhole(second.host);
  },

  "a run with a time at which the fault may end is due then, and not before": async ({ connect, clock }) => {
    const first = await connect();
    const retryAt = clock.now() + MINUTE;
    const program = async (steps: StepRunner): Promise<ProgramEnd> =>
      completed(await waitFor(steps, "wait", faultOf(steps, "limit", retryAt)));
    const task = await start(first.host, program);
    assert.deepEqual(await task.settled, {
      suspended: "provider",
      wakeAt: retryAt,
      faults: [faultOf({ runId: "r1" }, "limit", retryAt)],
    });
    assert.deepEqual(await first.host.due(10), { runs: [], next: retryAt });
    clock.advance(MINUTE);
    assert.deepEqual((await first.host.due(10)).runs, ["r1"]);
    assert.equal((await endOf(await first.host.resume("r1", program))).value, "resume");
  },

  "a tree is suspended when nothing else of it works, with all its faults": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren("fan", [child("a"), child("b"), child("c")], fanOutOptions("cancel"));
        return completed(Object.values(ends).map(({ value }) => value));
      }
      if (steps.runId.endsWith("c")) {
        await steps.run("work", () => gate.wait().then(() => null));
        await steps.run("more", () => null);
        return completed("worked");
      }
      return completed(await waitFor(steps, "wait", faultOf(steps, steps.runId.slice(-1))));
    };
    const task = await start(host, program);
    await gate.reached;
    await until(host, async () => (await recordsOf(host, "r1/fan/b")).includes("open wait"));
    await turns();
    assert.equal(await isSettled(task.settled), false, "a child works");
    gate.open();
    const settled = await task.settled;
    assert.ok("suspended" in settled);
    assert.deepEqual(settled.faults?.map(({ runId, code }) => `${runId} ${code}`).toSorted(), [
      "r1/fan/a a",
      "r1/fan/b b",
    ]);
    assert.ok((await recordsOf(host, "r1/fan/c")).includes("done more"));
    assert.deepEqual((await endOf(await host.resume("r1", program))).value, ["resume", "resume", "worked"]);
    await expectWhole(host);
  },

  "a wait whose time comes while the run still works continues in this process": async ({ connect, clock }) => {
    const { host } = await connect();
    const gate = createGate();
    const retryAt = clock.now() + MINUTE;
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        return completed(ends.a?.value ?? null);
      }
      if (steps.runId.endsWith("b")) await steps.run("work", () => gate.wait().then(() => null));
      else return completed(await waitFor(steps, "wait", faultOf(steps, "limit", retryAt)));
      return completed();
    });
    await clock.untilArmed(1);
    await gate.reached;
    clock.advance(MINUTE);
    await until(host, async () => (await recordsOf(host, "r1/fan/a")).includes("done wait"));
    gate.open();
    assert.equal((await endOf(task)).value, "time");
  },

  "an open question keeps the run here; its answer is taken, and the run is suspended afterwards": async ({
    connect,
  }) => {
    const { host } = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        return completed();
      }
      if (steps.runId.endsWith("a")) await waitFor(steps, "wait", faultOf(steps, "down"));
      else await ask(steps, "question");
      return completed();
    };
    const task = await start(host, program);
    const [request] = await untilAsked(host);
    await turns();
    assert.equal(await isSettled(task.settled), false);
    await host.signal(request?.runId ?? "", { name: "request/question", payload: 1, digest: "d1", by: "test" });
    assert.ok("suspended" in (await task.settled));
    assert.equal((await host.get("r1"))?.suspended, "provider");
  },

  "a sibling that fails cancels one that waits, which ends in order": async ({ connect }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(host, async (steps) => {
      if (steps.runId === "r1") {
        const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions("cancel"));
        return completed(ends.a?.value ?? null);
      }
      if (steps.runId.endsWith("b")) {
        await steps.run("work", () => gate.wait().then(() => null));
        return failed();
      }
      return completed(await waitFor(steps, "wait", faultOf(steps, "down")));
    });
    await gate.reached;
    await until(host, async () => (await recordsOf(host, "r1/fan/a")).includes("open wait"));
    gate.open();
    assert.equal((await endOf(task)).value, "cancelled");
  },

  "a suspended run can be cancelled without its code": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, oneFault);
    await task.settled;
    assert.equal(await host.cancel("r1", "enough", "test"), "cancelled");
    assert.equal((await host.get("r1"))?.status, "cancelled");
  },
};
