import type { RunHost } from "@sluice/core";
import { SluiceError } from "@sluice/core";
import { createHost } from "@sluice/core/host";
import { openJournalStore } from "@sluice/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { type RunWatch, type WatchOptions, watchRun } from "../../packages/view/src/projection/watch-run.ts";
import { handClock } from "../support/hand-clock.ts";
import { eventually, quiet, twoHosts } from "../support/run-kit.ts";
import { ASKING, begin, SMOOTH, ship } from "../support/run-scenes.ts";
import { answerAll, readRecords, unordered, viewOf } from "../support/run-views.ts";
import { open, scratch } from "../support/sqlite-store.ts";

const BEAT = 33;

function watch(host: RunHost, runId: string, options: Partial<WatchOptions> = {}) {
  const clock = handClock();
  const errors: unknown[] = [];
  const watching = watchRun(host, runId, { clock, onError: (error) => errors.push(error), ...options });
  onTestFinished(() => watching.close());
  /** Turns the watch's clock until what is said holds. */
  const until = (holds: (watching: RunWatch) => boolean, what?: string): Promise<void> =>
    eventually(() => {
      clock.turn(BEAT);
      return holds(watching);
    }, what);
  return { watching, clock, errors, until };
}

test("a run is followed from its first record to its end, and its view is that of its records", async () => {
  const { live, handle, clock } = begin(SMOOTH);
  const { watching, errors, until } = watch(live.host, handle.runId, { handle });
  expect(watching.view()).toMatchObject({ status: "starting", streams: true });
  await until(({ view }) => {
    clock.turn(100);
    return view().endedAt !== undefined;
  });
  await handle;
  const read = viewOf(handle.runId, await readRecords(live.host, handle.runId));
  expect(unordered(watching.view())).toEqual(unordered({ ...read, streams: true }));
  expect(errors).toEqual([]);
});

test("listeners are called at most once a beat, and the view stays the same in between", async () => {
  const { live, handle } = begin(ASKING);
  const { watching, clock } = watch(live.host, handle.runId, { handle });
  let calls = 0;
  watching.subscribe(() => {
    calls += 1;
  });
  await eventually(async () => (await live.host.requests(handle.runId).catch(() => [])).length > 0);
  await quiet();
  // The clock stands still: everything up to the request came in one beat.
  expect(calls).toBeLessThanOrEqual(1);
  const before = watching.view();
  await quiet();
  expect(watching.view()).toBe(before);
  for (let beats = 0; beats < 5; beats += 1) {
    clock.turn(BEAT);
    await quiet();
  }
  expect(watching.view()).toMatchObject({ status: "waiting", requests: [{ kind: "grantStageTool" }] });
  expect(calls).toBeLessThanOrEqual(4);
  const after = calls;
  clock.turn(10 * BEAT);
  await quiet();
  expect(calls).toBe(after);
  await handle.cancel("enough");
});

test("live text is reported once a beat, not once a piece, and is dropped at the end", async () => {
  const { live, handle } = begin(ASKING);
  let speak:
    | ((chunk: { runId: string; channel: string; chunk: { [key: string]: string | number } }) => void)
    | undefined;
  const speaker = {
    onLive: (listener: NonNullable<typeof speak>) => {
      speak = listener;
      return () => {
        speak = undefined;
      };
    },
  };
  const { watching, clock, until } = watch(live.host, handle.runId, { handle: speaker });
  await until(({ view }) => view().status === "waiting");
  clock.turn(BEAT);
  await quiet();
  let calls = 0;
  const unsubscribe = watching.subscribe(() => {
    calls += 1;
  });
  for (let pieces = 0; pieces < 1_000; pieces += 1) {
    const chunk = { executionId: "execute#1", attempt: 1, turn: 2, try: 1, text: "word " };
    speak?.({ runId: handle.runId, channel: "text", chunk });
  }
  await quiet();
  clock.turn(BEAT);
  await quiet();
  expect(calls).toBeLessThanOrEqual(2);
  expect(watching.view().executions[1]?.live?.text).toBe("word ".repeat(1_000));
  unsubscribe();
  await handle.cancel("enough");
  await until(({ view }) => view().status === "cancelled");
  expect(watching.view().executions[1]?.live).toBeUndefined();
  expect(speak).toBeUndefined();
});

test("the text of a real run streams", async () => {
  const { live, handle, clock } = begin({
    ...SMOOTH,
    plan: [{ text: "Thinking it over. ".repeat(20), calls: [] }, ...(SMOOTH.plan ?? [])],
  });
  const { watching, until } = watch(live.host, handle.runId, { handle });
  const seen: string[] = [];
  watching.subscribe(() => {
    for (const { live: streams } of watching.view().executions) if (streams !== undefined) seen.push(streams.text);
  });
  await until(({ view }) => {
    clock.turn(100);
    return view().status === "completed";
  });
  await handle;
  expect(watching.view().executions.every(({ live: streams }) => streams === undefined)).toBe(true);
  for (const text of seen) expect("Thinking it over. ".repeat(20).startsWith(text) || text.startsWith("#")).toBe(true);
});

test("a run of another process is followed over its store, and answered here", async () => {
  const folder = scratch();
  const clock = handClock();
  const owner = createHost(open(folder, { clock }), { clock });
  onTestFinished(() => owner.close());
  const { live, handle } = begin(ASKING, { host: owner, clock });
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  const other = createHost(openJournalStore(folder, { clock }), { clock });
  onTestFinished(() => other.close());
  const { watching, until, errors } = watch(other, runId);
  await until(({ view }) => view().status === "waiting");
  expect(watching.view()).toMatchObject({ streams: false, requests: [{ runId, body: { tool: "change" } }] });
  let answered = 0;
  const turning = (holds: (watching: RunWatch) => boolean): Promise<void> =>
    until((now) => {
      // By this clock the two stores look for each other's commits.
      clock.turn(25);
      return holds(now);
    });
  while (watching.view().endedAt === undefined) {
    answered += await answerAll({ host: other }, runId, { kind: "approve" });
    await turning(({ view }) => view().requests.length === 0);
    await turning(({ view }) => view().requests.length > 0 || view().endedAt !== undefined);
  }
  await handle;
  expect(watching.view()).toMatchObject({ status: "completed", denied: [] });
  expect(unordered(watching.view())).toEqual(unordered(viewOf(runId, await readRecords(owner, runId))));
  expect(answered).toBeGreaterThanOrEqual(3);
  expect(errors).toEqual([]);
});

test("an answer from elsewhere takes the request away", async () => {
  const { clock, first, second } = twoHosts();
  const { handle } = begin(ASKING, { host: first, clock });
  const { watching, until } = watch(second, handle.runId);
  await until(({ view }) => view().requests.length === 1);
  await answerAll({ host: first }, handle.runId, { kind: "deny" });
  await until(({ view }) => view().executions.length === 4 && view().requests.length === 2);
  expect(watching.view().denied).toHaveLength(1);
  await handle.cancel("enough");
  await until(({ view }) => view().status === "cancelled");
  expect(watching.view().requests).toEqual([]);
});

test("a run continues to be followed through suspension and resumption, and is heard again", async () => {
  const { live, handle, clock } = begin(ASKING);
  const { runId } = handle;
  const { watching, until } = watch(live.host, runId, { handle });
  await until(({ view }) => view().status === "waiting");
  await handle.suspend();
  await until(({ view }) => view().status === "suspended");
  expect(watching.view().requests).toHaveLength(1);
  const again = live.resume(ship, runId);
  watching.listenTo(again);
  await until(({ view }) => view().status === "waiting");
  let over = false;
  void again.then(() => {
    over = true;
  });
  await eventually(async () => {
    await answerAll(live, runId, { kind: "approve" });
    clock.turn(100);
    return over;
  });
  await until(({ view }) => view().status === "completed");
  expect(unordered(watching.view())).toEqual(
    unordered({ ...viewOf(runId, await readRecords(live.host, runId)), streams: true }),
  );
});

test("a run whose process is gone is seen to be suspended, though no one said so", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  let alive = true;
  const { host } = live;
  const seen: RunHost = {
    ...host,
    get: async (id) => {
      const run = await host.get(id);
      return run === undefined || alive ? run : { ...run, status: "suspended", suspended: "waiting" };
    },
  };
  const { watching, until } = watch(seen, runId);
  await until(({ view }) => view().status === "waiting");
  alive = false;
  await until(({ view }) => view().status === "suspended");
  expect(watching.view().executions[1]?.status).toBe("waiting");
  alive = true;
  await until(({ view }) => view().status === "waiting");
  await handle.cancel("enough");
});

test("a run that is not there yet is awaited; a store that cannot be read is reported once, and read again", async () => {
  const { clock, first, second } = twoHosts();
  const { live, handle } = begin(SMOOTH, { host: first, clock });
  let broken = true;
  const shaky: RunHost = {
    ...second,
    records: async (runId, from) => {
      if (broken) throw new SluiceError("Host", "store_busy", "the store is busy");
      return await second.records(runId, from);
    },
  };
  const { watching, errors, until, clock: beats } = watch(shaky, handle.runId);
  expect(watching.view().status).toBe("starting");
  for (let times = 0; times < 5; times += 1) {
    beats.turn(2_000);
    await quiet();
  }
  expect(errors).toMatchObject([{ code: "store_busy" }]);
  broken = false;
  await until(({ view }) => {
    clock.turn(100);
    return view().status === "completed";
  });
  await live.close();
});

test("a record whose events cannot be read is reported, and the rest is shown", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  const torn: RunHost = {
    ...live.host,
    records: async (id, from) =>
      (await live.host.records(id, from)).map((record) => (record.seq === 2 ? { ...record, events: "[{" } : record)),
  };
  const { errors, until } = watch(torn, runId);
  await until(({ view }) => view().status === "waiting");
  expect(errors).toMatchObject([{ code: "journal_damaged" }]);
  await handle.cancel("enough");
});

test("what is closed calls no listener and leaves no timer behind", async () => {
  const { live, handle } = begin(ASKING);
  const { watching, clock, until } = watch(live.host, handle.runId, { handle });
  await until(({ view }) => view().status === "waiting");
  let calls = 0;
  watching.subscribe(() => {
    calls += 1;
  });
  watching.close();
  await handle.cancel("enough");
  await quiet();
  clock.turn(10_000);
  await quiet();
  expect(calls).toBe(0);
  expect(clock.waiting()).toBe(0);
});

test("a run that has ended leaves no timer behind", async () => {
  const { live, handle } = begin(ASKING);
  const { clock, until } = watch(live.host, handle.runId, { handle });
  await handle.cancel("enough").catch(() => undefined);
  await until(({ view }) => view().status === "cancelled");
  clock.turn(BEAT);
  await quiet();
  clock.turn(BEAT);
  expect(clock.waiting()).toBe(0);
});
