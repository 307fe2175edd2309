import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isJsonObject, type Json } from "@sluice/core";
import { checkChain } from "@sluice/core/host";
import { expect, test } from "vitest";
import { startDriver } from "../support/sqlite-process.ts";
import { chainOf, open, plain, scratch, startRun } from "../support/sqlite-store.ts";

function ownerFiles(folder: string): string[] {
  return readdirSync(join(folder, "owners"));
}

test("a killed owner is dead at once: its run is taken over with all it committed, and its file removed", async () => {
  const folder = scratch();
  const owner = await startDriver(folder);
  const epoch = await owner.do("start", { runId: "r1" });
  await owner.do("appendMany", { runId: "r1", epoch, count: 5 });
  const store = open(folder);
  expect(await store.run("r1")).toMatchObject({ owner: { live: true, label: `process ${owner.pid}` }, records: 6 });
  expect(() => store.claim("r1")).toThrow(expect.objectContaining({ class: "Host", code: "run_owned" }));
  await owner.kill();
  expect(await store.run("r1")).toMatchObject({ owner: { live: false } });
  expect(await store.claim("r1")).toBe(2);
  expect(ownerFiles(folder)).toEqual([`${store.ownerId}.db`]);
  const records = await store.records("r1", 0);
  expect(checkChain("r1", records)).toMatchObject({ head: (await store.run("r1"))?.head });
  expect(records).toHaveLength(6);
});

test("a stopped owner still lives", async () => {
  const folder = scratch();
  const owner = await startDriver(folder);
  const epoch = await owner.do("start", { runId: "r1" });
  const store = open(folder);
  owner.signal("SIGSTOP");
  expect(await store.run("r1")).toMatchObject({ owner: { live: true } });
  expect(() => store.claim("r1")).toThrow(expect.objectContaining({ code: "run_owned" }));
  owner.signal("SIGCONT");
  await owner.do("append", { runId: "r1", epoch });
  expect(await store.run("r1")).toMatchObject({ records: 2 });
});

test("a dead owner whose process id another process has now is dead", async () => {
  const folder = scratch();
  const first = open(folder);
  await startRun(first, "r1");
  const db = new DatabaseSync(join(folder, "journal.db"));
  // The id an owner with this very process's number would have left behind.
  db.prepare("UPDATE trees SET owner = ?").run(`${process.pid}-${"a".repeat(24)}`);
  db.close();
  const second = open(folder);
  expect(await second.run("r1")).toMatchObject({ owner: { live: false } });
  expect(await second.claim("r1")).toBe(2);
});

test("another handle of the owner's process does not drop its lock by looking, claiming or closing", async () => {
  const folder = scratch();
  const owner = open(folder);
  await startRun(owner, "r1");
  const watcher = await startDriver(folder);
  const live = { owner: { id: owner.ownerId, live: true } };
  for (let round = 0; round < 3; round += 1) {
    const other = open(folder);
    expect(await other.run("r1")).toMatchObject(live);
    expect(() => other.claim("r1")).toThrow(expect.objectContaining({ code: "run_owned" }));
    await startRun(other, `other-${round}`);
    await other.close();
    expect(await watcher.do("run", { runId: "r1" })).toMatchObject(live);
    await expect(watcher.do("claim", { runId: "r1" })).rejects.toMatchObject({ code: "run_owned" });
  }
});

test("two handles of one process own their runs apart", async () => {
  const folder = scratch();
  const [a, b] = [open(folder), open(folder)];
  await startRun(a, "r1");
  await startRun(b, "r2");
  const watcher = await startDriver(folder);
  await a.close();
  expect(await watcher.do("claim", { runId: "r1" })).toBe(2);
  await expect(watcher.do("claim", { runId: "r2" })).rejects.toMatchObject({ code: "run_owned" });
});

test("an owner that lost its lock to a stray read is fenced off by the epoch, not left to write", async () => {
  const folder = scratch();
  const owner = open(folder);
  const next = chainOf("r1");
  const epoch = await startRun(owner, "r1", next);
  // What no tool may do: POSIX drops a process's locks on a file with the first descriptor it closes.
  readFileSync(join(folder, "owners", `${owner.ownerId}.db`));
  const thief = await startDriver(folder);
  const taken = await thief.do("claim", { runId: "r1" });
  expect(taken).toBe(2);
  expect(() => owner.append(plain("r1", epoch, next()))).toThrow(
    expect.objectContaining({ class: "Host", code: "ownership_lost" }),
  );
  expect(await owner.run("r1")).toMatchObject({ records: 1, owner: { live: true } });
});

test("a stopped owner that wakes after its run was finished elsewhere cannot add to it", async () => {
  const folder = scratch();
  const owner = await startDriver(folder);
  const epoch = await owner.do("start", { runId: "r1" });
  await owner.do("release", { runId: "r1" });
  owner.signal("SIGSTOP");
  const store = open(folder);
  const newEpoch = await store.claim("r1");
  const next = chainOf("r1");
  next({ phase: "lifecycle", ordinal: -1, stepId: "start" });
  await store.append({ ...plain("r1", newEpoch, next()), end: { status: "cancelled", value: null } });
  owner.signal("SIGCONT");
  await expect(owner.do("append", { runId: "r1", epoch })).rejects.toMatchObject({
    class: "Host",
    code: "run_finished",
  });
  expect(await store.records("r1", 0)).toHaveLength(2);
});

test("of several processes that want a dead owner's run exactly one gets it", async () => {
  const folder = scratch();
  const owner = await startDriver(folder);
  await owner.do("start", { runId: "r1" });
  await owner.kill();
  const drivers = await Promise.all([1, 2, 3, 4].map(() => startDriver(folder)));
  const claims = await Promise.allSettled(drivers.map((driver) => driver.do("claim", { runId: "r1" })));
  expect(claims.filter((claim) => claim.status === "fulfilled")).toHaveLength(1);
  for (const claim of claims)
    if (claim.status === "rejected") expect(claim.reason).toMatchObject({ code: "run_owned" });
});

test("two processes append 200 records each side by side, and every chain is whole", async () => {
  const folder = scratch();
  const drivers = await Promise.all([startDriver(folder), startDriver(folder)]);
  await Promise.all(
    drivers.map(async (driver, index) => {
      const runId = `r${index}`;
      const epoch = await driver.do("start", { runId });
      await driver.do("appendMany", { runId, epoch, count: 200 });
    }),
  );
  const store = open(folder);
  for (const runId of ["r0", "r1"]) {
    const records = await store.records(runId, 0);
    const row = await store.run(runId);
    expect(records).toHaveLength(201);
    expect(checkChain(runId, records)).toEqual({ head: row?.head });
  }
});

test("processes that make one store at the same moment make one store", async () => {
  const folder = join(scratch(), "store");
  const drivers = await Promise.all(
    [0, 1, 2, 3].map(async (index) => {
      const driver = await startDriver(folder);
      await driver.do("start", { runId: `r${index}` });
      return driver;
    }),
  );
  expect(await drivers[0]?.do("runs")).toHaveLength(4);
});

test("of competing answers from four processes exactly one is accepted, every time", async () => {
  const folder = scratch();
  const store = open(folder);
  const next = chainOf("r1");
  const epoch = await startRun(store, "r1", next);
  const drivers = await Promise.all(
    ["a", "b", "c", "d"].map(async (by) => ({ by, driver: await startDriver(folder) })),
  );
  for (let round = 0; round < 10; round += 1) {
    const requestId = `q${round}`;
    const opened = [{ requestId, runId: "r1", kind: "askUser" as const, digest: "d", body: {}, openedAt: round }];
    await store.append({ ...plain("r1", epoch, next()), opened });
    const at = Date.now() + 20;
    const outcomes = await Promise.all(
      drivers.map(({ by, driver }) =>
        driver.do("signalAt", {
          runId: "r1",
          at,
          message: { name: `request/${requestId}`, payload: by, digest: "d", by },
        }),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === "accepted")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "already_answered")).toHaveLength(3);
    const winner = drivers[outcomes.indexOf("accepted")]?.by;
    expect(await store.signals("r1", `request/${requestId}`)).toEqual([{ payload: winner, by: winner, at: 1 }]);
  }
});

test("a commit of another process is seen by a listener", async () => {
  const folder = scratch();
  const store = open(folder);
  await startRun(store, "r1");
  const seen = new Promise<void>((resolve) => {
    const stop = store.onChange(() => {
      stop();
      resolve();
    });
  });
  const other = await startDriver(folder);
  await other.do("signal", { runId: "r1", message: { name: "news", payload: 1, by: "ci" } });
  await seen;
  expect(await store.signals("r1", "news")).toHaveLength(1);
});

test("a process with no listener left ends by itself, and leaves no owner behind after close", async () => {
  const folder = scratch();
  const script = `
    import { openJournalStore } from "@sluice/sqlite";
    const store = openJournalStore(${JSON.stringify(folder)});
    store.onChange(() => {})();
    const record = { seq: 0, ordinal: 0, stepId: "s", phase: "done", incarnation: "i", value: "1", events: "[]", hash: "h" };
    store.create({ runId: "r1", rootId: "r1", createdAt: 1, input: 1 }, { record, opened: [], closed: [] });
    await store.close();`;
  const ended = spawnSync(
    process.execPath,
    ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning", "--input-type=module", "-e", script],
    {
      cwd: import.meta.dirname,
      timeout: 20_000,
      encoding: "utf8",
    },
  );
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  expect(ownerFiles(folder)).toEqual([]);
  expect(existsSync(join(folder, "journal.db-wal"))).toBe(false);
  const row: Json = JSON.parse(JSON.stringify(await open(folder).run("r1")));
  expect(isJsonObject(row) && row.owner).toBeUndefined();
});
