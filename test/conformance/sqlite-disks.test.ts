import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { isSluiceError } from "@sluice/core";
import { checkChain } from "@sluice/core/host";
import { openJournalStore } from "@sluice/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { startBareDriver } from "../support/sqlite-process.ts";
import { chainOf, open, plain, scratch, snapshot, startRun } from "../support/sqlite-store.ts";

/** A user nobody logs in as. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Whether this process may mount things: containers and users mostly may not. */
function mayMount(): boolean {
  if (!isRoot || process.platform !== "linux") return false;
  return spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
}

function mountSmall(kilobytes: number): string {
  const folder = join(scratch(), "disk");
  mkdirSync(folder);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k`, "tmpfs", folder]);
  onTestFinished(() => {
    execFileSync("umount", ["--lazy", folder]);
  });
  return folder;
}

/** Takes all the room that is left but some. */
function fill(folder: string, leave: number): string {
  const file = join(folder, "fill");
  const handle = openSync(file, "w");
  try {
    for (;;) writeSync(handle, Buffer.alloc(4096));
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ENOSPC")) throw thrown;
  } finally {
    closeSync(handle);
  }
  execFileSync("truncate", ["--size", `-${leave}`, file]);
  return file;
}

describe.skipIf(!mayMount())("a full disk", () => {
  test("refuses the record, keeps everything before it, and continues when there is room again", async () => {
    const disk = mountSmall(4096);
    const store = open(join(disk, "store"));
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const full = fill(disk, 20_000);
    let refused: unknown;
    let record = next();
    for (let n = 0; n < 100; n += 1) {
      try {
        await store.append(plain("r1", epoch, record));
      } catch (thrown) {
        refused = thrown;
        break;
      }
      record = next({ value: JSON.stringify("y".repeat(3000)) });
    }
    expect(refused).toMatchObject({ class: "Host", code: "store_full" });
    expect(await store.run("r1")).toMatchObject({ records: record.seq });
    rmSync(full);
    await store.append(plain("r1", epoch, record));
    const records = await store.records("r1", 0);
    expect(checkChain("r1", records)).toEqual({ head: record.hash });
    await store.close();
    expect(await open(join(disk, "store")).records("r1", 0)).toEqual(records);
  });

  test("refuses a record whose blob finds no room, and the next opening clears what was left", async () => {
    const disk = mountSmall(4096);
    const store = open(join(disk, "store"));
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const full = fill(disk, 100_000);
    const long = next({ value: JSON.stringify("z".repeat(300_000)) });
    expect(() => store.append(plain("r1", epoch, long))).toThrow(
      expect.objectContaining({ class: "Host", code: "store_full" }),
    );
    expect(await store.run("r1")).toMatchObject({ records: 1 });
    rmSync(full);
    await store.append(plain("r1", epoch, long));
    expect(await store.records("r1", 1)).toEqual([long]);
    await store.close();
    open(join(disk, "store"));
    expect(readdirSync(join(disk, "store", "blobs"))).toHaveLength(1);
  });

  test("refuses a new store and says why", () => {
    const disk = mountSmall(64);
    fill(disk, 8000);
    let refused: unknown;
    try {
      openJournalStore(join(disk, "store"));
    } catch (thrown) {
      refused = thrown;
    }
    expect(isSluiceError(refused) && refused.class).toBe("Host");
    expect(refused).toMatchObject({ code: expect.stringMatching(/^store_(full|io)$/) });
  });
});

describe.skipIf(!mayMount())("a disk that became read-only", () => {
  async function readOnlyDisk(): Promise<string> {
    const disk = mountSmall(4096);
    const folder = join(disk, "store");
    const store = open(folder);
    await startRun(store, "r1");
    await store.close();
    execFileSync("mount", ["-o", "remount,ro", disk]);
    return folder;
  }

  test("is refused for writing, by its name and with what to do", async () => {
    const folder = await readOnlyDisk();
    const before = snapshot(folder);
    expect(() => openJournalStore(folder)).toThrow(
      expect.objectContaining({
        class: "Host",
        code: "store_not_writable",
        message: expect.stringMatching(new RegExp(`${folder}.*EROFS.*--store`)),
      }),
    );
    expect(snapshot(folder)).toEqual(before);
  });

  test("can still be looked at", async () => {
    const folder = await readOnlyDisk();
    const store = open(folder, { readOnly: true });
    expect(await store.runs()).toMatchObject([{ runId: "r1", records: 1 }]);
    expect(checkChain("r1", await store.records("r1", 0))).toEqual({ head: (await store.run("r1"))?.head });
  });
});

describe.skipIf(!isRoot)("a user without the rights", () => {
  /** A folder all may enter, and a process that is nobody. */
  async function asNobody() {
    const folder = scratch();
    chmodSync(folder, 0o755);
    const driver = await startBareDriver();
    await driver.do("become", { uid: NOBODY });
    return { folder, driver };
  }

  test("cannot make a store, and the error says where", async () => {
    const { folder, driver } = await asNobody();
    await expect(driver.do("open", { folder: join(folder, ".sluice", "store") })).rejects.toMatchObject({
      class: "Host",
      code: "store_not_writable",
      message: expect.stringMatching(new RegExp(`${folder} .*EACCES.*--store`)),
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  test("cannot open another user's store, nor look into it", async () => {
    const { folder, driver } = await asNobody();
    const place = join(folder, "store");
    const store = open(place);
    await startRun(store, "r1");
    await expect(driver.do("open", { folder: place })).rejects.toMatchObject({ code: "store_not_writable" });
    await expect(driver.do("open", { folder: place, options: { readOnly: true } })).rejects.toMatchObject({
      class: "Host",
      code: "store_not_writable",
    });
    expect(await store.claim("r1")).toBe(2);
  });

  test("can look at a store that lets others read it, without leaving a trace", async () => {
    const { folder, driver } = await asNobody();
    const place = join(folder, "store");
    const store = open(place);
    await startRun(store, "r1");
    await store.close();
    chmodSync(place, 0o755);
    chmodSync(join(place, "journal.db"), 0o644);
    const before = snapshot(place);
    await driver.do("open", { folder: place, options: { readOnly: true } });
    expect(await driver.do("records", { runId: "r1" })).toHaveLength(1);
    await driver.do("close");
    expect(snapshot(place)).toEqual(before);
    await expect(driver.do("open", { folder: place })).rejects.toMatchObject({ code: "store_not_writable" });
  });

  test("never takes the runs of an owner whose lock cannot be looked at", async () => {
    const { folder, driver } = await asNobody();
    const place = join(folder, "store");
    const store = open(place);
    await startRun(store, "r1");
    // Everything is handed over but the owner's file.
    const own = `${store.ownerId}.db`;
    for (const name of ["", "journal.db", "journal.db-wal", "journal.db-shm", "owners", "blobs", ".gitignore"]) {
      chownSync(join(place, name), NOBODY, NOBODY);
    }
    await driver.do("open", { folder: place });
    await expect(driver.do("claim", { runId: "r1" })).rejects.toMatchObject({ code: "run_owned" });
    expect(statSync(join(place, "owners", own)).uid).toBe(0);
  });
});

test("a path of the store that is a file of something else is refused", () => {
  const folder = scratch();
  const store = join(folder, "store");
  mkdirSync(store);
  writeFileSync(join(store, "owners"), "");
  expect(() => openJournalStore(store)).toThrow(expect.objectContaining({ class: "Host" }));
});
