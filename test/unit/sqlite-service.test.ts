import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countRuns, lockService, openJournalStore, serviceOf } from "@sluice/sqlite";
import { expect, test } from "vitest";
import { chainOf, open, scratch } from "../support/sqlite-store.ts";

test("a store has one worker at a time, whose process is known while it holds the lock", () => {
  const folder = join(scratch(), "store");
  open(folder);
  expect(serviceOf(folder)).toBeUndefined();
  const lock = lockService(folder);
  expect(serviceOf(folder)).toBe(`process ${process.pid}`);
  expect(() => lockService(folder)).toThrow(expect.objectContaining({ class: "Host", code: "store_served" }));
  lock.release();
  expect(serviceOf(folder)).toBeUndefined();
  lockService(folder).release();
});

test("the lock hinders no owner of runs, and its files are not taken for an owner's", () => {
  const folder = join(scratch(), "store");
  const lock = lockService(open(folder).folder);
  // Opening a store removes the files of dead owners.
  open(folder);
  expect(serviceOf(folder)).toBe(`process ${process.pid}`);
  lock.release();
});

test("a link in the place of the lock is refused, and nothing is written through it", () => {
  for (const name of ["serve.db", "serve.pid"]) {
    const folder = join(scratch(), "store");
    open(folder);
    const target = join(scratch(), "target");
    writeFileSync(target, "mine");
    symlinkSync(target, join(folder, "owners", name));
    expect(() => lockService(folder)).toThrow(expect.objectContaining({ code: "store_folder_in_use" }));
    expect(readFileSync(target, "utf8")).toBe("mine");
  }
});

test("what a foreign store says about the holder is not repeated", () => {
  const folder = join(scratch(), "store");
  open(folder);
  const lock = lockService(folder);
  writeFileSync(join(folder, "owners", "serve.pid"), "1; rm -rf /\n\u001b[2J");
  expect(serviceOf(folder)).toBe("another process");
  rmSync(join(folder, "owners", "serve.pid"));
  expect(serviceOf(folder)).toBe("another process");
  lock.release();
});

test("runs are counted by what they do", async () => {
  const folder = join(scratch(), "store");
  const store = open(folder);
  const nothing = { opened: [], closed: [] };
  const start = async (runId: string, wakeAt?: number | null): Promise<ReturnType<typeof chainOf>> => {
    const next = chainOf(runId);
    const record = next({ phase: "lifecycle", stepId: "start" });
    await store.create({ runId, rootId: runId, createdAt: 1, input: null }, { record, ...nothing, wakeAt });
    return next;
  };
  const other = openJournalStore(folder);
  await start("sleeps", 2_000);
  await start("due", 500);
  await start("stopped", null);
  await start("signalled", 2_000);
  for (const runId of ["sleeps", "due", "stopped", "signalled"]) await store.release(runId);
  await store.putSignal("signalled", { name: "news", payload: 1, by: "test" }, 1);
  await start("running", 0);
  const epoch = 1;
  const done = await start("done");
  const end = { status: "completed" as const, value: null };
  await store.append({ runId: "done", epoch, record: done({ phase: "lifecycle", stepId: "end" }), ...nothing, end });
  expect(countRuns(folder, 1_000)).toEqual({
    completed: 1,
    failed: 0,
    cancelled: 0,
    running: 1,
    sleeping: 1,
    suspended: 3,
    due: 2,
    openRequests: 0,
  });
  await other.close();
});
