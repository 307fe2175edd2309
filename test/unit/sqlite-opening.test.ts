import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openJournalStore } from "@sluice/sqlite";
import { describe, expect, test } from "vitest";
import { chainOf, open, plain, scratch, snapshot, startRun } from "../support/sqlite-store.ts";

const [HERE, ELSEWHERE] = [{ machineId: "this machine" }, { machineId: "another machine" }];

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

/** A closed store with one run. */
async function madeStore(): Promise<string> {
  const folder = join(scratch(), "store");
  const store = open(folder, HERE);
  await startRun(store, "r1");
  await store.close();
  return folder;
}

function refusal(folder: string, options = {}): unknown {
  try {
    openJournalStore(folder, { ...HERE, ...options });
  } catch (thrown) {
    return thrown;
  }
  throw new Error("the store opened");
}

test("a new store is private, with everything in it", async () => {
  const folder = join(scratch(), "project", ".sluice", "store");
  const umask = process.umask(0);
  try {
    const store = open(folder, HERE);
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await store.append(plain("r1", epoch, next({ value: JSON.stringify("x".repeat(300_000)) })));
    expect(mode(folder)).toBe("700");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(files).toEqual(expect.arrayContaining([".gitignore", "journal.db", "journal.db-wal", "journal.db-shm"]));
    for (const name of files)
      expect([name, mode(join(folder, name))]).toEqual([
        name,
        statSync(join(folder, name)).isDirectory() ? "700" : "600",
      ]);
    expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("*\n");
    expect(store.folder).toBe(folder);
  } finally {
    process.umask(umask);
  }
});

test("a store whose rights were widened is made private again", async () => {
  const folder = await madeStore();
  for (const name of ["", "journal.db", "owners", "blobs"]) chmodSync(join(folder, name), 0o777);
  open(folder, HERE);
  expect(["", "journal.db", "owners", "blobs"].map((name) => mode(join(folder, name)))).toEqual([
    "700",
    "600",
    "700",
    "700",
  ]);
});

test("what was lost beside the journal is made again", async () => {
  const folder = await madeStore();
  const copy = join(scratch(), "copy");
  mkdirSync(copy);
  cpSync(join(folder, "journal.db"), join(copy, "journal.db"));
  writeFileSync(join(copy, ".gitignore"), "");
  expect(await open(copy, HERE).runs()).toHaveLength(1);
  expect(readFileSync(join(copy, ".gitignore"), "utf8")).toBe("*\n");
  expect(readdirSync(copy)).toEqual(expect.arrayContaining([".gitignore", "owners", "blobs"]));
});

test("a store behind a link is the same store", async () => {
  const folder = await madeStore();
  const link = join(scratch(), "link");
  symlinkSync(folder, link);
  expect(open(link, HERE).folder).toBe(folder);
});

test("the owner files of dead processes are removed, those of living ones stay", async () => {
  const folder = await madeStore();
  const living = open(folder, HERE);
  await startRun(living, "r2");
  writeFileSync(join(folder, "owners", `999999-${"a".repeat(24)}.db`), "");
  open(folder, HERE);
  expect(readdirSync(join(folder, "owners"))).toEqual([`${living.ownerId}.db`]);
  await expect(startRun(living, "r3")).resolves.toBe(1);
});

describe("refused, with nothing written:", () => {
  test("a folder with other things in it", () => {
    const folder = scratch();
    writeFileSync(join(folder, "main.ts"), "");
    const before = snapshot(folder);
    expect(refusal(folder)).toMatchObject({
      class: "Host",
      code: "store_folder_in_use",
      message: expect.stringContaining("main.ts"),
    });
    expect(snapshot(folder)).toEqual(before);
  });

  test("a folder whose parts are links to other places", () => {
    for (const name of ["journal.db", "owners", "blobs", ".gitignore"]) {
      const [folder, elsewhere] = [scratch(), scratch()];
      symlinkSync(elsewhere, join(folder, name));
      const rights = mode(elsewhere);
      expect(refusal(folder)).toMatchObject({ code: "store_folder_in_use", message: expect.stringContaining(name) });
      expect([readdirSync(folder), readdirSync(elsewhere), mode(elsewhere)]).toEqual([[name], [], rights]);
    }
  });

  test("a file", () => {
    const file = join(scratch(), "store");
    writeFileSync(file, "");
    expect(refusal(file)).toMatchObject({ code: "store_not_writable", message: expect.stringContaining(file) });
    expect(refusal(join(file, "below"))).toMatchObject({ code: "store_not_writable" });
  });

  test.runIf(existsSync("/proc/self"))("a folder the system will not make is refused at once", () => {
    expect(refusal("/proc/sluice-store/below")).toMatchObject({ class: "Host" });
  });

  test("a journal of a newer version", async () => {
    const folder = await madeStore();
    const db = new DatabaseSync(join(folder, "journal.db"));
    db.exec("PRAGMA user_version = 7");
    db.close();
    const before = snapshot(folder);
    expect(refusal(folder)).toMatchObject({ code: "store_newer_version", detail: { version: 7, known: 1 } });
    expect(refusal(folder, { readOnly: true })).toMatchObject({ code: "store_newer_version" });
    expect(snapshot(folder)).toEqual(before);
  });

  test("a journal of another machine, until it is adopted", async () => {
    const folder = await madeStore();
    const before = snapshot(folder);
    expect(refusal(folder, ELSEWHERE)).toMatchObject({
      class: "Host",
      code: "store_foreign_machine",
      message: expect.stringContaining("--adopt-store"),
    });
    expect(snapshot(folder)).toEqual(before);
    const adopted = open(folder, { ...ELSEWHERE, adopt: true });
    expect(await adopted.claim("r1")).toBe(2);
    await adopted.close();
    await open(folder, ELSEWHERE).close();
    expect(refusal(folder)).toMatchObject({ code: "store_foreign_machine" });
  });

  test("a journal that is no database", async () => {
    const folder = await madeStore();
    writeFileSync(join(folder, "journal.db"), "this is no database ".repeat(500));
    const before = snapshot(folder);
    expect(refusal(folder)).toMatchObject({ code: "store_damaged", message: expect.stringContaining("journal.db") });
    expect(refusal(folder, { readOnly: true })).toMatchObject({ code: "store_damaged" });
    expect(snapshot(folder)).toEqual(before);
  });

  test("a journal that was cut short", async () => {
    const folder = await madeStore();
    const file = join(folder, "journal.db");
    writeFileSync(file, readFileSync(file).subarray(0, 5000));
    expect(refusal(folder)).toMatchObject({ code: "store_damaged" });
  });

  test("another program's database", () => {
    const folder = scratch();
    const db = new DatabaseSync(join(folder, "journal.db"));
    db.exec("CREATE TABLE notes (body TEXT)");
    db.close();
    const before = readFileSync(join(folder, "journal.db"));
    expect(refusal(folder)).toMatchObject({
      code: "store_damaged",
      message: expect.stringContaining("another program"),
    });
    expect(readFileSync(join(folder, "journal.db"))).toEqual(before);
    expect(readdirSync(folder)).toEqual(["journal.db"]);
  });

  test("a journal with tables missing or changed", async () => {
    const folder = await madeStore();
    const db = new DatabaseSync(join(folder, "journal.db"));
    db.exec("DROP TABLE signals");
    db.close();
    expect(refusal(folder)).toMatchObject({ code: "store_damaged" });
  });
});

test("damage that shows only in a row is an error of that call", async () => {
  const folder = await madeStore();
  const db = new DatabaseSync(join(folder, "journal.db"));
  db.exec("UPDATE records SET phase = 'later'");
  db.close();
  const store = open(folder, HERE);
  expect(() => store.records("r1", 0)).toThrow(expect.objectContaining({ class: "Host", code: "store_damaged" }));
});

test.each([
  ["input", "input = '{'"],
  ["end", "end_status = 'failed', end_value = '{'"],
  ["cancel", "cancel = '{'"],
])("a run's %s that is no JSON is an error of the journal", async (member, change) => {
  const folder = await madeStore();
  const db = new DatabaseSync(join(folder, "journal.db"));
  db.exec(`UPDATE runs SET ${change}`);
  db.close();
  const store = open(folder, HERE);
  const read = (): unknown => Object.entries(store.run("r1") ?? {}).find(([name]) => name === member);
  expect(read).toThrow(expect.objectContaining({ class: "Host", code: "journal_damaged" }));
});

describe("opened for reading only", () => {
  test("a store shows everything and takes nothing", async () => {
    const folder = await madeStore();
    const before = snapshot(folder);
    const store = open(folder, { readOnly: true });
    expect(await store.runs()).toMatchObject([{ runId: "r1", records: 1, input: {} }]);
    expect(await store.records("r1", 0)).toHaveLength(1);
    const refused = expect.objectContaining({ class: "Host", code: "store_read_only" });
    await expect(startRun(store, "r2")).rejects.toEqual(refused);
    expect(() => store.claim("r1")).toThrow(refused);
    expect(() => store.putSignal("r1", { name: "n", payload: 1, by: "b" }, 1)).toThrow(refused);
    expect(() => store.requestCancel("r1", "x", "y", 1)).toThrow(refused);
    await store.close();
    expect(snapshot(folder)).toEqual(before);
  });

  test("a store of another machine opens, and one in use shows its owner", async () => {
    const folder = await madeStore();
    const owner = open(folder, HERE);
    const epoch = await owner.claim("r1");
    const store = open(folder, { ...ELSEWHERE, readOnly: true });
    expect(await store.run("r1")).toMatchObject({ owner: { id: owner.ownerId, live: true } });
    await owner.append(plain("r1", epoch, { ...chainOf("r1")(), seq: 1 }));
    expect(await store.run("r1")).toMatchObject({ records: 2 });
  });

  test("a folder without a store is not made one", () => {
    const folder = scratch();
    expect(refusal(join(folder, "none"), { readOnly: true })).toMatchObject({ code: "store_missing" });
    expect(existsSync(join(folder, "none"))).toBe(false);
  });
});
