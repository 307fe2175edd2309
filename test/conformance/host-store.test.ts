// What the host makes of a store that fails, lies or is slow, and of listeners that throw: asked of the host itself, since
// not every store can be made to.

import { type JournalRecord, type ProgramEnd, type RunProgram, SluiceError, type StepRunner } from "@sluice/core";
import { createHost, createMemoryJournals, GENESIS, hashRecord, type JournalStore } from "@sluice/core/host";
import { createHandClock } from "@sluice/core/testing";
import { expect, test } from "vitest";
import { changed, completed, endOf, eventsOf, start, turns, waiting } from "../support/journal.ts";

const refused: RunProgram = () => expect.fail("the program was called");

/** A chain of records as a store keeps it. */
function chained(runId: string, parts: readonly Partial<JournalRecord>[]): readonly JournalRecord[] {
  let head: string = GENESIS;
  return parts.map((part, seq) => {
    const unhashed = {
      seq,
      ordinal: -1,
      stepId: "start",
      phase: "lifecycle" as const,
      incarnation: "i1",
      value: "null",
      events: "[]",
      ...part,
    };
    head = hashRecord(head, runId, unhashed);
    return { ...unhashed, hash: head };
  });
}

/** A run that is in the store with these records, and owned by nobody. */
async function kept(store: JournalStore, runId: string, parts: readonly Partial<JournalRecord>[]): Promise<void> {
  const [first, ...rest] = chained(runId, [{}, ...parts]);
  if (first === undefined) throw new Error("no records");
  const none = { opened: [], closed: [] };
  const epoch = await store.create({ runId, rootId: runId, createdAt: 1, input: null }, { record: first, ...none });
  for (const record of rest) await store.append({ runId, epoch, record, ...none });
  await store.release(runId);
}

test("a journal that lacks a step in its middle is not replayed, though its chain is whole", async () => {
  const store = createMemoryJournals().connect();
  await kept(store, "r1", [
    { ordinal: 0, stepId: "a", phase: "done" },
    { ordinal: 2, stepId: "c", phase: "done" },
  ]);
  await kept(store, "r2", [
    { ordinal: 0, stepId: "a", phase: "open", value: "" },
    { ordinal: 1, stepId: "b", phase: "done" },
  ]);
  const host = createHost(store);
  for (const runId of ["r1", "r2"]) {
    const task = await host.resume(runId, async (steps) => {
      for (const id of ["a", "b", "c"]) await steps.run(id, () => expect.fail(`${id} was called`));
      return completed();
    });
    await expect(task.settled).rejects.toMatchObject({ class: "Host", code: "journal_mismatch" });
  }
});

test("a run is resumed with the input in its journal, whatever its row says", async () => {
  const store = createMemoryJournals().connect();
  const host = createHost(store);
  const task = await start(host, waiting, "r1", { task: "as recorded" });
  await task.suspend("interrupted");
  const lying = changed(store, {
    run: async (runId) => {
      const row = await store.run(runId);
      return row === undefined ? undefined : { ...row, input: { task: "changed in the row" } };
    },
  });
  const again = await createHost(lying).resume("r1", async (_steps, input) => completed(input));
  expect(await endOf(again)).toEqual({ status: "completed", value: { task: "as recorded" } });
});

test("a row that says a run is not over does not open it again", async () => {
  const store = createMemoryJournals().connect();
  const host = createHost(store);
  await endOf(await start(host, async () => completed()));
  const lying = changed(store, {
    run: async (runId) => {
      const row = await store.run(runId);
      if (row === undefined) return undefined;
      const { end: _end, ...open } = row;
      return open;
    },
  });
  const resumed = createHost(lying).resume("r1", refused);
  await expect(resumed).rejects.toMatchObject({ class: "Host", code: "journal_damaged" });
});

test("two ways to put a child's id together do not lead to one run", async () => {
  const host = createHost(createMemoryJournals().connect());
  const options = { onFailure: "settle" as const, failed: () => false, open: { events: [] }, joined: () => [] };
  const child = (key: string) => ({ key, input: null, events: [] });
  const program = async (steps: StepRunner): Promise<ProgramEnd> => {
    if (steps.runId === "r1/a/b") await steps.runChildren("c", [child("d")], options);
    if (steps.runId !== "r1") return completed();
    await steps.runChildren("a", [child("b")], options);
    await steps.runChildren("a/b/c", [child("d")], options);
    return completed();
  };
  const task = await start(host, program);
  await expect(task.settled).rejects.toMatchObject({ class: "Host", code: "run_exists" });
  const again = await host.resume("r1", program);
  await expect(again.settled).rejects.toMatchObject({ class: "Host", code: "run_exists" });
});

test("a follower is not left waiting for what was committed while it read", async () => {
  const store = createMemoryJournals().connect();
  const reading = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const slow = changed(store, {
    records: async (runId, from) => {
      const records = await store.records(runId, from);
      reading.resolve();
      await goOn.promise;
      return records;
    },
  });
  const host = createHost(slow);
  const gate = Promise.withResolvers<null>();
  const task = await start(host, async (steps) => {
    await steps.run("one", () => gate.promise);
    return completed();
  });
  const following = eventsOf(host, "r1", { follow: true });
  await reading.promise;
  gate.resolve(null);
  await endOf(task);
  await turns();
  goOn.resolve();
  expect((await following).map((event) => event.type)).toEqual(["run.started", "run.finished"]);
});

test("a timer that fires early ends no wait early", async () => {
  let now = 1_000;
  const timers: (() => void)[] = [];
  const host = createHost(createMemoryJournals().connect(), {
    clock: {
      now: () => now,
      after: (_ms, fn) => {
        timers.push(fn);
        return () => undefined;
      },
    },
  });
  const task = await start(host, async (steps) => {
    await steps.sleepUntil("sleep", 2_000);
    const signal = await steps.waitForSignal("never", { timeoutMs: 1_000 });
    return completed([await steps.now("end"), signal === undefined]);
  });
  for (const at of [1_500, 1_999, 2_000, 2_999, 3_000]) {
    while (timers.length === 0) await turns(1);
    now = at;
    timers.shift()?.();
  }
  expect(await endOf(task)).toEqual({ status: "completed", value: [3_000, true] });
});

test("a follower of a tree that takes long to look over rests in between", async () => {
  const store = createMemoryJournals().connect();
  const clock = createHandClock();
  let looks = 0;
  const large = changed(store, {
    runs: (rootId) => {
      looks += 1;
      clock.advance(10);
      return store.runs(rootId);
    },
  });
  const host = createHost(large, { clock });
  const gate = Promise.withResolvers<void>();
  const task = await start(host, async (steps) => {
    await gate.promise;
    for (let n = 0; n < 50; n += 1) {
      await steps.run(`step/${n}`, async ({ event }) => {
        event({ type: "turn.started", data: { turn: n } });
        await turns(2);
        return null;
      });
    }
    return completed();
  });
  const following = eventsOf(host, "r1", { follow: true, children: true });
  await turns();
  gate.resolve();
  await endOf(task);
  expect(looks).toBeLessThan(3);
  await clock.untilArmed(1);
  clock.advance(1_000);
  expect(await following).toHaveLength(52);
});

test("no one listens to the store once no run works and no one waits", async () => {
  const store = createMemoryJournals().connect();
  let listening = 0;
  const host = createHost(
    changed(store, {
      onChange: (listener) => {
        const stop = store.onChange(listener);
        listening += 1;
        return () => {
          listening -= 1;
          stop();
        };
      },
    }),
  );
  const task = await start(host, waiting);
  const waits = [host.result("r1"), eventsOf(host, "r1", { follow: true })];
  expect(listening).toBe(1);
  await host.signal("r1", { name: "go", payload: 1, by: "test" });
  await endOf(task);
  await Promise.all(waits);
  expect(listening).toBe(0);
  const suspended = await start(host, waiting, "r2");
  await suspended.suspend("interrupted");
  const faulty = await start(host, () => Promise.reject(new Error("a mistake")), "r3");
  await expect(faulty.settled).rejects.toThrow("a mistake");
  expect(listening).toBe(0);
});

test("a listener that throws is reported and not called again; the run and the other listeners continue", async () => {
  const faults: unknown[] = [];
  const host = createHost(createMemoryJournals().connect(), { onFault: (fault) => faults.push(fault) });
  const [broken, whole] = [
    { changes: 0, chunks: 0 },
    { changes: 0, chunks: 0 },
  ];
  host.onChange(() => {
    broken.changes += 1;
    throw new Error("a broken screen");
  });
  host.onChange(() => {
    whole.changes += 1;
  });
  const gate = Promise.withResolvers<void>();
  const task = await start(host, async (steps) => {
    await gate.promise;
    for (let n = 0; n < 3; n += 1) {
      steps.emit("text", n);
      await steps.run(`step/${n}`, () => null);
      await turns(2);
    }
    return completed();
  });
  task.onLive(() => {
    broken.chunks += 1;
    throw new Error("a broken pane");
  });
  task.onLive(() => {
    whole.chunks += 1;
  });
  gate.resolve();
  await endOf(task);
  await turns();
  expect(broken).toEqual({ changes: 1, chunks: 1 });
  expect(whole.chunks).toBe(3);
  expect(whole.changes).toBeGreaterThan(1);
  expect(faults.map(String).sort()).toEqual(["Error: a broken pane", "Error: a broken screen"]);
});

test("a lock that cannot be given back is reported, and the run's end stands", async () => {
  const faults: unknown[] = [];
  const store = createMemoryJournals().connect();
  const stuck = changed(store, {
    release: () => {
      throw new SluiceError("Host", "store_io", "the disk failed");
    },
  });
  const host = createHost(stuck, { onFault: (fault) => faults.push(fault) });
  expect(await endOf(await start(host, async () => completed(1)))).toEqual({ status: "completed", value: 1 });
  const task = await start(host, waiting, "r2");
  await task.suspend("interrupted");
  expect(await task.settled).toEqual({ suspended: "interrupted" });
  expect(faults).toHaveLength(2);
  // The lock is still this host's: it may take the run up again itself.
  const again = await host.resume("r2", waiting);
  await host.signal("r2", { name: "go", payload: 2, by: "test" });
  expect(await endOf(again)).toEqual({ status: "completed", value: 2 });
});

test("a run whose store cannot be read any more stops, and can be resumed", async () => {
  const memory = createMemoryJournals();
  const store = memory.connect();
  let broken = false;
  const failing = changed(store, {
    run: (runId) => {
      if (broken) throw new SluiceError("Host", "store_io", "the disk failed");
      return store.run(runId);
    },
  });
  const host = createHost(failing, { onFault: () => undefined });
  const reasons: unknown[] = [];
  const task = await start(host, async (steps) => {
    await steps.run("one", async ({ signal }) => {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      reasons.push(signal.reason);
      return null;
    });
    return completed();
  });
  await turns();
  broken = true;
  await host.signal("r1", { name: "news", payload: 1, by: "test" });
  await expect(task.settled).rejects.toMatchObject({ code: "store_io" });
  expect(reasons).toMatchObject([{ code: "store_io" }]);
  broken = false;
  expect((await endOf(await host.resume("r1", async () => completed()))).status).toBe("completed");
});

test("a store that cannot be listened to starts no program, and leaves a run that can be resumed", async () => {
  const store = createMemoryJournals().connect();
  let broken = true;
  const failing = changed(store, {
    onChange: (listener) => {
      if (broken) throw new SluiceError("Host", "store_busy", "the store is locked");
      return store.onChange(listener);
    },
  });
  const host = createHost(failing);
  const task = await start(host, refused);
  await expect(task.settled).rejects.toMatchObject({ code: "store_busy" });
  await expect(host.result("r1")).rejects.toMatchObject({ code: "store_busy" });
  broken = false;
  expect((await endOf(await host.resume("r1", async () => completed()))).status).toBe("completed");
});

test("promises that a program drops bring nothing down", async () => {
  const host = createHost(createMemoryJournals().connect());
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => {
    unhandled.push(reason);
  };
  process.on("unhandledRejection", note);
  try {
    const task = await start(host, async (steps) => {
      void steps.run("rejects", () => Promise.reject(new Error("a fault")));
      void steps.run("overlaps", () => null);
      void steps.waitForSignal("news");
      throw new Error("the program's own");
    });
    await turns();
    await expect(task.settled).rejects.toMatchObject({ code: "step_overlap" });
    const suspended = await start(host, waiting, "r2");
    void suspended.suspend("interrupted");
    const gaveUp = await start(
      host,
      async (steps) => {
        await steps.run("late", async ({ signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          throw new Error("rejected after it was given up");
        });
        return completed();
      },
      "r3",
    );
    await gaveUp.suspend("interrupted");
    await turns();
  } finally {
    process.off("unhandledRejection", note);
  }
  expect(unhandled).toEqual([]);
});
