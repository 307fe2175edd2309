import {
  isSluiceError,
  type Json,
  type ProgramEnd,
  type RunHost,
  type RunTask,
  type StepCall,
  type StepRunner,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { changed, completed, endOf, eventsOf, start, turns, waiting } from "../support/journal.ts";

function newHost(store: JournalStore = createMemoryJournals().connect()): RunHost {
  return createHost(store, { clock: handClock() });
}
async function faultOf(task: RunTask): Promise<string> {
  const thrown: unknown = await task.settled.then(
    () => "no fault",
    (fault: unknown) => fault,
  );
  return isSluiceError(thrown) ? thrown.code : String(thrown);
}
async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}

describe("a step", () => {
  test.each(["", "\ud800"])("cannot be called %j", async (stepId) => {
    const task = await start(newHost(), async (steps) => {
      await steps.run(stepId, () => null);
      return completed();
    });
    expect(await faultOf(task)).toBe("step_id_invalid");
  });

  test("that is announced without an intent sees its incarnation, and nothing else", async () => {
    const opened: StepCall["opened"][] = [];
    const host = newHost();
    let incarnation = "";
    const task = await start(host, async (steps) => {
      incarnation = steps.incarnation;
      for (const open of [{ events: [] }, { events: [], intent: 0 }])
        await steps.run("one", (call) => opened.push(call.opened), { open });
      return completed();
    });
    await endOf(task);
    expect(opened).toStrictEqual([{ incarnation }, { incarnation, intent: 0 }]);
  });

  test("after one that failed is refused with the same fault, and its function is not called", async () => {
    const called: string[] = [];
    const task = await start(newHost(), async (steps) => {
      const fault = new Error("no");
      const first = await thrownBy(steps.run("a", () => Promise.reject(fault)));
      const second = await thrownBy(steps.run("b", () => called.push("b")));
      expect([first, second]).toEqual([fault, fault]);
      return completed();
    });
    expect(await faultOf(task)).toBe("Error: no");
    expect(called).toEqual([]);
  });

  test("that the program left behind is recorded before the run is given up, whatever was started beside it", async () => {
    const done: string[] = [];
    const memory = createMemoryJournals().connect();
    const store = changed(memory, {
      append: async (commit) => {
        await turns(3);
        await memory.append(commit);
        done.push(commit.record.stepId);
      },
      release: async (rootId) => {
        done.push("released");
        await memory.release(rootId);
      },
    });
    const task = await start(newHost(store), async (steps) => {
      void steps.run("a", () => 1);
      await turns(1);
      void steps.run("beside", () => 2);
      await turns(1);
      throw new Error("no");
    });
    expect(await faultOf(task)).toBe("step_overlap");
    await turns();
    expect(done).toEqual(["a", "released"]);
  });
});

test("what comes by a signal is cleaned before it is recorded, with events, and still says who sent it and when", async () => {
  const host = newHost();
  const task = await start(host, async (steps): Promise<ProgramEnd> => {
    const early: boolean[] = [];
    const take = (payload: Json, isEarlier: boolean) => {
      early.push(isEarlier);
      const event = { type: "message.received", data: { cleaned: payload } } as const;
      return { payload: { cleaned: payload }, events: [event] };
    };
    const received = await steps.waitForSignal("go", { take });
    await steps.waitForSignal("there", { take });
    return completed({ ...received, early });
  });
  await turns();
  await host.signal("r1", { name: "there", payload: 8, by: "me" });
  await host.signal("r1", { name: "go", payload: 7, by: "me" });
  expect((await endOf(task)).value).toEqual({
    ...{ payload: { cleaned: 7 }, by: "me", at: expect.any(Number) },
    early: [false, true],
  });
  const events = await eventsOf(host);
  expect(events.filter(({ type }) => type === "message.received").map(({ data }) => data)).toEqual([
    { cleaned: 7 },
    { cleaned: 8 },
  ]);
});

test("a signal that this process is still sending when the run is suspended is recorded before that", async () => {
  const store = createMemoryJournals().connect();
  const { promise: written, resolve: write } = Promise.withResolvers<void>();
  const host = newHost(changed(store, { putSignal: (...signal) => written.then(() => store.putSignal(...signal)) }));
  const task = await start(host, waiting);
  await turns();
  const sent = host.signal("r1", { name: "go", payload: 7, by: "me" });
  const suspended = task.suspend("interrupted");
  await turns();
  write();
  expect(await sent).toBe("accepted");
  await suspended;
  expect((await host.records("r1")).map(({ stepId, phase }) => `${phase} ${stepId}`)).toContain("done wait/go");
});

describe("a run that is cancelled while it replays", () => {
  /** Records two steps; when it is resumed it meets its cancel between them, and then `after`. */
  async function cancelledInPast(after: (steps: StepRunner, resumed: () => RunTask) => Promise<unknown>) {
    const host = newHost();
    const first = await start(host, async (steps) => {
      for (const stepId of ["a", "b"]) await steps.run(stepId, () => stepId);
      return await waiting(steps);
    });
    await turns();
    await first.suspend("interrupted");
    let resumed: RunTask | undefined;
    const task = await host.resume("r1", async (steps) => {
      await turns();
      await steps.run("a", () => "again");
      await host.cancel("r1", "enough", "me");
      await after(steps, () => resumed ?? expect.fail());
      return completed("its own end");
    });
    resumed = task;
    return { host, task };
  }

  test("takes no further step, not even a recorded one, and ends as cancelled", async () => {
    let refused: unknown;
    const { task } = await cancelledInPast(async (steps) => {
      refused = await thrownBy(steps.run("b", () => "again"));
      throw refused;
    });
    expect((await endOf(task)).status).toBe("cancelled");
    expect(isSluiceError(refused, "run_cancelled")).toBe(true);
  });

  test("and then suspended is suspended first", async () => {
    const { host, task } = await cancelledInPast(async (steps, resumed) => {
      const refused = await thrownBy(steps.run("b", () => "again"));
      void resumed().suspend("interrupted");
      throw refused;
    });
    expect((await endOf(task)).status).toBe("cancelled");
    expect((await eventsOf(host)).map(({ type }) => type).filter((type) => type === "run.suspended")).toHaveLength(2);
  });

  test("has the fault that it met before that", async () => {
    const host = newHost();
    const first = await start(host, async (steps) => {
      await steps.run("a", () => 1);
      return await waiting(steps);
    });
    await turns();
    await first.suspend("interrupted");
    const task = await host.resume("r1", async (steps) => {
      const fault = await thrownBy(steps.run("other", () => 1));
      await host.cancel("r1", "enough", "me");
      throw fault;
    });
    expect(await faultOf(task)).toBe("journal_mismatch");
  });
});
