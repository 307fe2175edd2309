import { isSluiceError, type RunHost } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore, verifyJournal } from "@sluice/core/host";
import { expect, onTestFinished, test, vi } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { changed, completed, endOf, eventsOf, slowly, start, turns, waiting } from "../support/journal.ts";

const clock = handClock();

/** A run that was suspended in this store. */
async function suspendedIn(store: JournalStore): Promise<RunHost> {
  const host = createHost(store, { clock });
  const task = await start(host, waiting);
  await turns();
  await task.suspend("interrupted");
  return host;
}
async function refusalOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => "no refusal",
    (thrown: unknown) => (isSluiceError(thrown) ? [thrown.code, thrown.detail] : thrown),
  );
}

test("a run that cannot be resumed says why; a lock that cannot be given back then is only reported", async () => {
  const store = createMemoryJournals().connect();
  await suspendedIn(store);
  const [unreadable, stuck] = [new Error("unreadable"), new Error("stuck")];
  const broken = changed(store, {
    records: () => Promise.reject(unreadable),
    release: () => Promise.reject(stuck),
  });
  const faults: unknown[] = [];
  const host = createHost(broken, { clock, onFault: (fault) => faults.push(fault) });
  expect(await refusalOf(host.resume("r1", waiting))).toBe(unreadable);
  expect(faults).toEqual([stuck]);
});

test("faults that concern no caller are warnings of the process where no one takes them", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warned.mockRestore());
  const host = createHost(createMemoryJournals().connect(), { clock });
  host.onChange(() => {
    throw new Error("a watcher's bug");
  });
  await endOf(await start(host, async () => completed()));
  await turns();
  expect(warned.mock.calls).toEqual([["a watcher's bug", "SluiceWarning"]]);
});

test("a host says where its journals are kept, if they are in a folder", () => {
  const store = createMemoryJournals().connect();
  expect(createHost(changed(store, { folder: "/journals" }), { clock }).folder).toBe("/journals");
  expect(createHost(store, { clock })).not.toHaveProperty("folder");
});

test("a resumed run records its incarnation, and nothing else", async () => {
  const host = await suspendedIn(createMemoryJournals().connect());
  const task = await host.resume("r1", waiting);
  const [record] = (await host.records("r1")).filter(({ stepId }) => stepId === "resume");
  expect(record?.value).toBe("");
  const [resumed] = (await eventsOf(host)).filter(({ type }) => type === "run.resumed");
  expect(resumed?.data).toEqual({ incarnation: record?.incarnation });
  await task.suspend("interrupted");
});

test("a run that is here, there already or a part of another is refused by its id", async () => {
  const host = await suspendedIn(createMemoryJournals().connect());
  const task = await host.resume("r1", waiting);
  expect(await refusalOf(host.resume("r1", waiting))).toEqual(["run_owned", { runId: "r1" }]);
  expect(await refusalOf(start(host, waiting))).toEqual(["run_exists", { runId: "r1" }]);
  await task.suspend("interrupted");
  const fork = { onFailure: "settle", failed: () => false, open: { events: [] }, joined: () => [] } as const;
  const parent = await start(
    host,
    async (steps) => {
      if (steps.runId !== "r2") return await waiting(steps);
      await steps.runChildren("fan", [{ key: "a", input: null, events: [] }], fork);
      return completed();
    },
    "r2",
  );
  await turns();
  await expect(host.cancel("r2/fan/a", "enough", "me")).rejects.toThrow("r2/fan/a is part of run r2; cancel that one");
  await expect(host.resume("r2/fan/a", waiting)).rejects.toThrow("r2/fan/a is part of run r2; resume that one");
  await parent.suspend("interrupted");
});

test("a cancel that comes while a host resumes the run is seen by that host", async () => {
  const memory = createMemoryJournals().connect();
  await suspendedIn(memory);
  const host = createHost(slowly(memory), { clock });
  const resuming = host.resume("r1", waiting);
  await turns(5);
  expect(await host.cancel("r1", "enough", "me")).toBe("requested");
  await endOf(await resuming);
  expect((await host.records("r1")).map(({ stepId }) => stepId)).toContain("cancel");
});

test("a run that is cancelled before it resumes ends without its code", async () => {
  const store = createMemoryJournals().connect();
  const host = await suspendedIn(store);
  await store.requestCancel("r1", "enough", "me", 1);
  const program = vi.fn(waiting);
  const task = await host.resume("r1", program);
  expect((await endOf(task)).status).toBe("cancelled");
  const leave = task.onLive(() => undefined);
  leave();
  await task.suspend("interrupted");
  expect(program).not.toHaveBeenCalled();
});

test("a cancel finds a run finished that ended by itself in the last moment", async () => {
  const store = createMemoryJournals().connect();
  const host = await suspendedIn(store);
  const task = await host.resume("r1", waiting);
  await host.signal("r1", { name: "go", payload: 7, by: "me" });
  await endOf(task);
  let looks = 0;
  const late = changed(store, {
    run: async (runId) => {
      const row = await store.run(runId);
      looks += 1;
      if (row === undefined || looks > 1) return row;
      const { end: _end, ...before } = row;
      return before;
    },
  });
  expect(await createHost(late, { clock }).cancel("r1", "enough", "me")).toBe("finished");
});

test("a listener of a host is not notified after it leaves, nor of the close", async () => {
  const host = createHost(createMemoryJournals().connect(), { clock });
  const notified: string[] = [];
  let leave = (): void => undefined;
  host.onChange(() => {
    notified.push("first");
    leave();
  });
  leave = host.onChange(() => notified.push("second"));
  await endOf(await start(host, async () => completed()));
  await turns();
  const before = notified.length;
  expect(before).toBeGreaterThan(0);
  expect(notified).not.toContain("second");
  await host.close();
  await turns();
  expect(notified).toHaveLength(before);
});

test("a run that records faster than it is read is read as it was at one moment, and can be copied", async () => {
  const store = createMemoryJournals().connect();
  let isReading = false;
  let next = Promise.withResolvers<boolean>();
  const busy = changed(store, {
    records: async (...given) => {
      // Each reading comes after another record.
      if (isReading) {
        next.resolve(true);
        next = Promise.withResolvers();
        await turns();
      }
      return await store.records(...given);
    },
  });
  const host = createHost(busy, { clock });
  const task = await start(host, async (steps) => {
    for (let step = 0; await next.promise; step += 1) await steps.run(`step${step}`, () => step);
    return completed();
  });
  isReading = true;
  const journals = await host.journal("r1");
  expect(journals[0]?.records.length).toBeGreaterThan(1);
  expect(verifyJournal(journals).faults).toEqual([]);
  await host.copy({ of: "r1", runId: "r2", before: 2, started: [], forked: [] });
  isReading = false;
  next.resolve(false);
  await endOf(task);
  expect(verifyJournal(await host.journal("r2")).faults).toEqual([]);
});
