import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { RunEnd } from "@sluice/core";
import type { JournalStore } from "@sluice/core/host";
import { expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { chainOf, open, plain, scratch, startRun } from "../support/sqlite-store.ts";

const LONG = JSON.stringify("x".repeat(300_000));
const END: RunEnd = { status: "completed", value: null };

/** A finished run that holds these values, given up by its owner. */
async function finished(store: JournalStore, runId: string, values: readonly string[]): Promise<void> {
  const next = chainOf(runId);
  const epoch = await startRun(store, runId, next);
  for (const value of values) await store.append(plain(runId, epoch, next({ value })));
  await store.append({ ...plain(runId, epoch, next({ phase: "lifecycle", ordinal: -1, stepId: "end" })), end: END });
  await store.release(runId);
}
const blobsIn = (folder: string): readonly string[] => readdirSync(join(folder, "blobs"));

test("a text that only removed runs named is gone with them, one that another run names stays", async () => {
  const folder = scratch();
  const store = open(folder);
  const own = JSON.stringify("y".repeat(300_000));
  await finished(store, "ra", [LONG, own]);
  await finished(store, "rb", [LONG]);
  expect(blobsIn(folder)).toHaveLength(2);
  expect(await store.remove(["ra", "none"])).toEqual(["ra"]);
  expect(blobsIn(folder)).toHaveLength(1);
  expect((await store.records("rb", 1))[0]?.value).toBe(LONG);
  expect(await store.remove(["rb"])).toEqual(["rb"]);
  expect(blobsIn(folder)).toEqual([]);
});

test("a text that is removed while a commit that names it waits for the lock is written again", async () => {
  const folder = scratch();
  const clock = handClock();
  const writer = open(folder, { clock });
  const pruner = open(folder);
  await finished(pruner, "ra", [LONG]);
  const next = chainOf("rb");
  const epoch = await startRun(writer, "rb", next);
  const lock = new DatabaseSync(join(folder, "journal.db"));
  lock.exec("BEGIN IMMEDIATE");
  const record = next({ value: LONG });
  const waiting = Promise.resolve(writer.append(plain("rb", epoch, record)));
  lock.exec("COMMIT");
  lock.close();
  expect(await pruner.remove(["ra"])).toEqual(["ra"]);
  expect(blobsIn(folder)).toEqual([]);
  clock.turn(1_000);
  await waiting;
  expect(await writer.records("rb", 1)).toEqual([record]);
});

test("space is given back to the disk when no run is at work, and left to later runs when one is", async () => {
  const folder = scratch();
  const size = (): number => statSync(join(folder, "journal.db")).size;
  const values = Array.from({ length: 30 }, (_, at) => JSON.stringify(`${at}`.repeat(50_000)));
  const before = open(folder);
  await finished(before, "ra", values);
  await finished(before, "rb", values);
  await before.close();
  const full = size();
  const working = open(folder);
  await startRun(working, "rw");
  const pruner = open(folder);
  expect(await pruner.remove(["ra", "rw"])).toEqual(["ra"]);
  expect(size()).toBe(full);
  await working.close();
  expect(await pruner.remove(["rb"])).toEqual(["rb"]);
  expect(size()).toBeLessThan(full / 4);
  expect((await pruner.runs()).map(({ runId }) => runId)).toEqual(["rw"]);
});

test("a store that is only looked at can be backed up, and nothing can be removed from it", async () => {
  const folder = scratch();
  const from = join(folder, "store");
  const store = open(from);
  await finished(store, "ra", [LONG]);
  const looking = open(from, { readOnly: true });
  looking.backupTo(join(folder, "copy"));
  await expect(looking.remove(["ra"])).rejects.toMatchObject({ code: "store_read_only" });
  const copy = open(join(folder, "copy"), { readOnly: true });
  expect((await copy.records("ra", 1))[0]?.value).toBe(LONG);
});
