import { type EventDraft, type PruneQuery, SluiceError } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { changed, completed, endOf, start, turns, waiting } from "../support/journal.ts";

const all: PruneQuery = { keep: 0 };

/** A store of finished runs, r0 the oldest, each a second after the one before. */
async function storeOf(count: number, changes: (store: JournalStore) => Partial<JournalStore> = () => ({})) {
  const clock = handClock();
  const store = createMemoryJournals({ keepFinished: count + 9 }).connect();
  const host = createHost(changed(store, changes(store)), { clock });
  for (let at = 0; at < count; at += 1) {
    await endOf(await start(host, async () => completed(), `r${at}`));
    clock.turn(1_000);
  }
  const pruned = async (query: PruneQuery) => (await host.prune(query)).map(({ runId }) => runId);
  const left = async () => (await host.list()).map(({ runId }) => runId);
  return { clock, host, pruned, left };
}

/** The last record of a run reads otherwise. */
const lastOf =
  (runId: string, read: () => ReturnType<JournalStore["records"]>) =>
  (store: JournalStore): Partial<JournalStore> => ({
    records: (id, from, limit) => (id === runId && from > 0 ? read() : store.records(id, from, limit)),
  });

test("runs go in portions of a hundred, the oldest first, and only what the store removed is reported", async () => {
  const portions: (readonly string[])[] = [];
  const { pruned, left } = await storeOf(250, (store) => ({
    remove: (ids) => {
      portions.push(ids);
      return store.remove(ids.filter((id) => id !== "r101"));
    },
  }));
  const gone = await pruned(all);
  expect(portions.map((ids) => [ids[0], ids.at(-1), ids.length])).toEqual([
    ["r0", "r99", 100],
    ["r100", "r199", 100],
    ["r200", "r249", 50],
  ]);
  expect([gone.length, gone[0], gone[101], gone.at(-1)]).toEqual([249, "r0", "r102", "r249"]);
  expect(await left()).toEqual(["r101"]);
});

test("a dry run removes nothing, and asks the store for nothing of the kind", async () => {
  const { host, left } = await storeOf(2, () => ({ remove: () => expect.fail("removed") }));
  expect(await host.prune({ ...all, dryRun: true })).toEqual(
    ["r0", "r1"].map((runId, at) => ({
      runId,
      status: "completed",
      createdAt: 1_000 + at * 1_000,
      endedAt: 1_000 + at * 1_000,
      journals: 1,
      records: 2,
    })),
  );
  expect(await left()).toEqual(["r1", "r0"]);
  expect(await host.prune({ endedBefore: 0 })).toEqual([]);
});

test.each(["journal_damaged", "blob_damaged", "blob_missing"])(
  "a run whose end cannot be read (%s) stays, to be looked at, and is one of those that are kept",
  async (code) => {
    const fails = (): never => {
      throw new SluiceError("Host", code, "unreadable");
    };
    const { pruned, left } = await storeOf(4, lastOf("r2", fails));
    expect(await pruned({ keep: 3 })).toEqual(["r0"]);
    expect(await pruned(all)).toEqual(["r1", "r3"]);
    expect(await left()).toEqual(["r2"]);
  },
);

test("so does one whose last record is not there, says not when it was, or says nothing that can be read", async () => {
  const record = {
    seq: 1,
    ordinal: -1,
    stepId: "end",
    phase: "lifecycle",
    incarnation: "i",
    value: "",
    hash: "",
  } as const;
  for (const read of [() => [], () => [{ ...record, events: "[]" }], () => [{ ...record, events: "{" }]]) {
    const { pruned } = await storeOf(3, lastOf("r1", read));
    expect(await pruned(all)).toEqual(["r0", "r2"]);
  }
});

test("a store that fails otherwise ends it before anything is removed", async () => {
  const fails = (): never => {
    throw new SluiceError("Host", "store_io", "the disk is gone");
  };
  const { host, left } = await storeOf(3, lastOf("r1", fails));
  await expect(host.prune(all)).rejects.toMatchObject({ code: "store_io" });
  expect(await left()).toEqual(["r2", "r1", "r0"]);
});

test("an end is as late as its last event, and one that is as late as asked for stays", async () => {
  const { clock, host, pruned } = await storeOf(0);
  const late: readonly EventDraft[] = [
    { type: "request.expired", data: { requestId: "q1" } },
    { type: "run.finished", data: { status: "completed" } },
  ];
  await endOf(await start(host, async () => ({ ...completed(), events: late }), "two"));
  clock.turn(5);
  await endOf(await start(host, async () => completed(), "later"));
  const dry = await host.prune({ keep: 0, dryRun: true });
  expect(dry.map(({ runId, endedAt }) => [runId, endedAt])).toEqual([
    ["two", 1_000],
    ["later", 1_005],
  ]);
  expect(await pruned({ endedBefore: 1_000 })).toEqual([]);
  expect(await pruned({ endedBefore: 1_005 })).toEqual(["two"]);
  expect(await pruned({ endedBefore: Number.POSITIVE_INFINITY })).toEqual(["later"]);
});

test("a run that has an owner stays, finished or not, and one that is not finished counts for nothing", async () => {
  const held = { id: "other", label: "another", live: true };
  const { clock, host, pruned } = await storeOf(2, (store) => ({
    runs: async (rootId, limit) =>
      (await store.runs(rootId, limit)).map((row) => (row.runId === "r0" ? { ...row, owner: held } : row)),
  }));
  const task = await start(host, waiting, "open");
  await turns();
  clock.turn(1);
  expect(await pruned({ keep: 1 })).toEqual([]);
  expect(await pruned(all)).toEqual(["r1"]);
  await task.suspend("interrupted");
  expect(await pruned(all)).toEqual([]);
  await host.close();
});

test("a query that says not which runs may go is refused, before anything is read", async () => {
  const { host } = await storeOf(0, () => ({ runs: () => expect.fail("read") }));
  const queries: readonly PruneQuery[] = [
    {},
    { dryRun: true },
    { keep: -1 },
    { keep: 1.5 },
    { keep: Number.NaN },
    { keep: Number.POSITIVE_INFINITY },
    { endedBefore: Number.NaN },
    { endedBefore: Number.NaN, keep: 1 },
    { endedBefore: 1, keep: -1 },
  ];
  for (const query of queries)
    await expect(host.prune(query)).rejects.toMatchObject({ class: "Validation", code: "prune_query" });
});
