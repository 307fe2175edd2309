import { getEventListeners } from "node:events";
import { type EventDraft, isSluiceError, type RunHost, type StepRunner } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { changed, completed, endOf, eventsOf, start, turns, waiting } from "../support/journal.ts";

const opens: EventDraft = {
  type: "request.opened",
  data: { requestId: "q1", kind: "askUser", digest: "d1", body: {} },
};

/** Asks a person something and waits for the answer. */
async function asking(steps: StepRunner) {
  await steps.run("ask", ({ event }) => {
    event(opens);
    return null;
  });
  await steps.waitForSignal("request/q1");
  return completed();
}

function newHost(): RunHost {
  return createHost(createMemoryJournals().connect(), { clock: handClock() });
}

describe("the list of runs", () => {
  test("says for each that is suspended whether it waits for an answer, also one that a child waits for", async () => {
    const host = newHost();
    const tasks = [
      await start(host, asking, "asks"),
      await start(host, waiting, "waits"),
      await start(
        host,
        async (steps) => {
          if (steps.runId !== "parent") return await asking(steps);
          const child = { key: "a", input: null, events: [] };
          const alone = { onFailure: "settle", failed: () => false, open: { events: [] }, joined: () => [] } as const;
          await steps.runChildren("fan", [child], alone);
          return completed();
        },
        "parent",
      ),
    ];
    await turns();
    for (const task of tasks) await task.suspend("interrupted");
    const said = async () =>
      (await host.list()).map((run) => [run.runId, run.status === "suspended" ? run.suspended : run.status]);
    expect(await said()).toEqual([
      ["parent", "waiting"],
      ["waits", "interrupted"],
      ["asks", "waiting"],
    ]);
    // What was answered waits for nobody, though nobody took the answer up yet.
    expect(await host.signal("asks", { name: "request/q1", payload: 1, by: "me", digest: "d1" })).toBe("accepted");
    expect(await said()).toContainEqual(["asks", "interrupted"]);
    expect((await host.requests()).map(({ runId }) => runId)).toEqual(["parent/fan/a"]);
    await host.close();
  });

  test("and a journal name a parent where there is one", async () => {
    const host = newHost();
    await endOf(await start(host, async () => completed()));
    expect((await host.list())[0]).not.toHaveProperty("parentId");
    expect((await host.journal("r1"))[0]).not.toHaveProperty("parentId");
    await host.close();
  });
});

test("a step may be called as the end of a run is: it ends nothing", async () => {
  const host = newHost();
  const program = async (steps: StepRunner) => {
    for (const stepId of ["end", "closed"]) await steps.run(stepId, () => null);
    return await waiting(steps);
  };
  const task = await start(host, program);
  await turns();
  await task.suspend("interrupted");
  const again = await host.resume("r1", program);
  await host.signal("r1", { name: "go", payload: 7, by: "me" });
  expect((await endOf(again)).value).toBe(7);
  await host.close();
});

test("a step may be called as the fork of a run is: what was taken before it stays taken", async () => {
  const host = newHost();
  const program = async (steps: StepRunner) => {
    const first = await steps.waitForSignal("go");
    await steps.run("forked", () => null);
    const second = await steps.waitForSignal("go");
    return completed([first?.payload ?? null, second?.payload ?? null]);
  };
  const task = await start(host, program);
  await host.signal("r1", { name: "go", payload: 1, by: "me" });
  await turns();
  await task.suspend("interrupted");
  const again = await host.resume("r1", program);
  await turns();
  await host.signal("r1", { name: "go", payload: 2, by: "me" });
  expect((await endOf(again)).value).toEqual([1, 2]);
  await host.close();
});

describe("events after one that was seen", () => {
  test("are the rest of its record and what came later, however far that is", async () => {
    const host = newHost();
    const program = async (steps: StepRunner) => {
      for (let n = 0; n < 12; n += 1)
        await steps.run(`step/${n}`, ({ event }) => {
          for (let index = 0; index < 12; index += 1) event({ type: "stage.init", data: { n, index } });
          return null;
        });
      return completed();
    };
    await endOf(await start(host, program));
    const all = (await eventsOf(host)).map(({ id }) => id);
    for (const after of ["r1/3/10", "r1/11/2", "r1/12/11"])
      expect((await eventsOf(host, "r1", { after })).map(({ id }) => id)).toEqual(all.slice(all.indexOf(after) + 1));
    await host.close();
  });

  test.each(["", "r1", "r1/0", "r1/0/x", "r1/0/0x", "r1/x0/0", "\nr1/0/0", "r1/0/0\n"])(
    "an id that reads otherwise is refused: %j",
    async (after) => {
      const host = newHost();
      await endOf(await start(host, async () => completed()));
      const refused = await eventsOf(host, "r1", { after }).catch((thrown: unknown) => thrown);
      expect(isSluiceError(refused, "event_id_invalid")).toBe(true);
      await host.close();
    },
  );
});

describe("a follower of a tree that took long to look over", () => {
  /** Every look takes 10 ms, after which it rests. */
  async function following() {
    const clock = handClock();
    const store = createMemoryJournals().connect();
    const runs: JournalStore["runs"] = (rootId) => {
      clock.turn(10);
      return store.runs(rootId);
    };
    const host = createHost(changed(store, { runs }), { clock });
    const task = await start(host, async (steps) => {
      for (let n = 0; n < 9; n += 1) await steps.waitForSignal("go");
      return completed();
    });
    const over = new AbortController();
    const heard: string[] = [];
    const follow = async (): Promise<void> => {
      for await (const { id } of host.events("r1", { follow: true, children: true, signal: over.signal }))
        heard.push(id);
    };
    const done = follow();
    await turns();
    const go = async (): Promise<void> => {
      await host.signal("r1", { name: "go", payload: null, by: "me" });
      await turns();
    };
    const listening = (): number => getEventListeners(over.signal, "abort").length;
    return { clock, host, task, over, done, go, listening };
  }

  test("rests nine times as long before it looks again, and leaves nothing at the signal", async () => {
    const { clock, task, over, done, go, listening } = await following();
    const idle = listening();
    const armed = clock.waiting();
    await go();
    expect([clock.waiting(), listening()]).toEqual([armed + 1, idle + 1]);
    clock.turn(89);
    await turns();
    expect(clock.waiting()).toBe(armed + 1);
    clock.turn(1);
    await turns();
    expect([clock.waiting(), listening()]).toEqual([armed, idle]);
    over.abort();
    await done;
    await task.suspend("interrupted");
  });

  test("ends when its signal aborts, while it rests or is about to, and leaves no timer", async () => {
    const resting = await following();
    const armed = resting.clock.waiting();
    await resting.go();
    resting.over.abort();
    await resting.done;
    expect(resting.clock.waiting()).toBe(armed);
    await resting.task.suspend("interrupted");
    const waitingOnly = await following();
    waitingOnly.over.abort();
    await waitingOnly.done;
    expect(waitingOnly.listening()).toBe(0);
    await waitingOnly.task.suspend("interrupted");
  });
});

describe("a follower", () => {
  test("without a signal rests, too, and hears the end", async () => {
    const clock = handClock();
    const store = createMemoryJournals().connect();
    const run: JournalStore["run"] = (runId) => {
      clock.turn(10);
      return store.run(runId);
    };
    const host = createHost(changed(store, { run }), { clock });
    const task = await start(host, waiting);
    const heard: string[] = [];
    const follow = async (): Promise<void> => {
      for await (const { type } of host.events("r1", { follow: true })) heard.push(type);
    };
    const done = follow();
    await turns();
    await host.signal("r1", { name: "go", payload: 1, by: "me" });
    await turns();
    expect(heard).toEqual(["run.started"]);
    clock.turn(90);
    await done;
    expect(heard).toEqual(["run.started", "run.finished"]);
    await endOf(task);
    await host.close();
  });

  test("misses nothing that happens while it reads", async () => {
    const store = createMemoryJournals().connect();
    let reading = async (): Promise<void> => undefined;
    const records: JournalStore["records"] = async (...asked) => {
      const page = await store.records(...asked);
      await reading();
      return page;
    };
    const host = createHost(changed(store, { records }), { clock: handClock() });
    const task = await start(host, waiting);
    await turns();
    reading = async () => {
      reading = async () => undefined;
      await host.signal("r1", { name: "go", payload: 1, by: "me" });
      await endOf(task);
      await turns();
    };
    const heard: string[] = [];
    const follow = async (): Promise<string> => {
      for await (const { type } of host.events("r1", { follow: true })) heard.push(type);
      return "ended";
    };
    expect(await Promise.race([follow(), turns(200).then(() => "waits")])).toBe("ended");
    expect(heard).toEqual(["run.started", "run.finished"]);
    await host.close();
  });

  test("takes what a store has, though its row claims more", async () => {
    const store = createMemoryJournals().connect();
    let pages = 0;
    const records: JournalStore["records"] = (runId, from, limit) => {
      pages += 1;
      if (pages > 9) expect.fail("reads on and on");
      return from === 0 ? store.records(runId, 0, limit) : [];
    };
    const run: JournalStore["run"] = async (runId) => {
      const row = await store.run(runId);
      return row === undefined ? undefined : { ...row, records: row.records + 1 };
    };
    await endOf(await start(createHost(store), async () => completed()));
    const host = createHost(changed(store, { records, run }));
    expect((await eventsOf(host)).map(({ type }) => type)).toEqual(["run.started", "run.finished"]);
  });
});
