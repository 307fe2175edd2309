import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { RunHost } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { openJournalStore, sqliteHost } from "@sluice/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { fileNameOf } from "../../packages/cli/src/output/output-file.ts";
import { chainOf, plain, startRun } from "../support/sqlite-store.ts";

// A store that someone else handed over: it may hold anything, and is only looked at.

const DIGEST = "a".repeat(64);

/** A store with one run of two records, changed by the one who handed it over. */
async function handedOver(change: (folder: string, sql: (text: string) => void) => void): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), "sluice-handed-")), "store");
  onTestFinished(() => rmSync(join(folder, ".."), { recursive: true, force: true }));
  const store = openJournalStore(folder);
  const next = chainOf("r1");
  const epoch = await startRun(store, "r1", next);
  await store.append(plain("r1", epoch, next()));
  await store.close();
  change(folder, (text) => {
    const db = new DatabaseSync(join(folder, "journal.db"));
    db.exec(text);
    db.close();
  });
  return folder;
}

async function looking<T>(folder: string, look: (host: RunHost) => Promise<T>): Promise<T> {
  const host = sqliteHost(folder, { readOnly: true });
  try {
    return await look(host);
  } finally {
    await host.close();
  }
}

describe("a blob that is no plain file is not read, and the record that names it is damaged:", () => {
  const kinds: readonly (readonly [string, (file: string) => void])[] = [
    ["a device that never ends", (file) => symlinkSync("/dev/zero", file)],
    ["a pipe that nobody writes to", (file) => void execFileSync("mkfifo", [file])],
    ["a link to a file of the user's", (file) => symlinkSync(import.meta.filename, file)],
  ];
  test.skipIf(process.platform === "win32").each(kinds)("%s", async (_what, make) => {
    const folder = await handedOver((at, sql) => {
      make(join(at, "blobs", DIGEST));
      sql(`UPDATE records SET value = NULL, value_blob = '${DIGEST}'`);
    });
    await expect(looking(folder, (host) => host.journal("r1"))).rejects.toMatchObject({ code: "blob_damaged" });
    // Nor does it come into a copy.
    const store = openJournalStore(folder, { readOnly: true });
    const copy = join(folder, "../copy");
    store.backupTo(copy);
    await store.close();
    expect(existsSync(join(copy, "blobs", DIGEST))).toBe(false);
    expect(existsSync(join(copy, "journal.db"))).toBe(true);
  });
});

describe("what would work by itself when a store is opened is refused, and nothing is read:", () => {
  const endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";
  const strangers: readonly (readonly [string, string])[] = [
    ["a trigger", "CREATE TRIGGER t AFTER INSERT ON signals BEGIN DELETE FROM requests; END"],
    ["a view that never ends", `CREATE VIEW v AS ${endless}`],
    ["a table that is a view", `ALTER TABLE records RENAME TO kept; CREATE VIEW records AS ${endless}`],
    [
      "a column that is computed",
      "ALTER TABLE runs ADD COLUMN x TEXT GENERATED ALWAYS AS (printf('%.900000000c', 'x'))",
    ],
    ["a table of an extension", "CREATE VIRTUAL TABLE f USING fts5(x)"],
  ];
  test.each(strangers)("%s", async (_what, text) => {
    const folder = await handedOver((_at, sql) => sql(text));
    await expect(looking(folder, (host) => host.list())).rejects.toMatchObject({ code: "store_damaged" });
    expect(() => openJournalStore(folder)).toThrow(expect.objectContaining({ code: "store_damaged" }));
  });

  test.skipIf(process.platform === "win32")("a journal that is a pipe", async () => {
    const folder = await handedOver((at) => {
      rmSync(join(at, "journal.db"));
      execFileSync("mkfifo", [join(at, "journal.db")]);
    });
    await expect(looking(folder, (host) => host.list())).rejects.toMatchObject({ code: "store_damaged" });
  });
});

test("another store's blobs are not pruned through a link", async () => {
  const folder = await handedOver((at) => {
    rmSync(join(at, "blobs"), { recursive: true });
    symlinkSync(mkdtempSync(join(at, "../others-")), join(at, "blobs"));
    writeFileSync(join(at, "blobs", DIGEST), "theirs");
  });
  expect(() => openJournalStore(folder)).toThrow(/is a link, which a run store never contains/);
  expect(existsSync(join(folder, "blobs", DIGEST))).toBe(true);
});

test.each([
  ["[null]"],
  ["[3]"],
  ['[{"type":"run.started"}]'],
  ['[{"type":"run.started","data":null}]'],
  ['[{"type":"run.started","data":[]}]'],
  ['[{"type":7,"data":{}}]'],
  ['[{"type":"run.started","at":"x","data":{}}]'],
  ['[{"type":"run.started","attempt":{},"data":{}}]'],
  ['{"type":"run.started"}'],
  [`[{"type":"run.started","data":{"x":${"[".repeat(5_000)}${"]".repeat(5_000)}}}]`],
])("events of another shape are damage, not a mistake of the reader's: %s", (events) => {
  expect(() => readEvents("r1", { seq: 0, events })).toThrow(expect.objectContaining({ code: "journal_damaged" }));
});

describe("rows that say what no run leaves are damage, wherever they are read:", () => {
  const deep = `${'{"x":'.repeat(5_000)}1${"}".repeat(5_000)}`;
  const read = (folder: string, look: (host: RunHost) => Promise<unknown>): Promise<void> =>
    expect(looking(folder, look)).rejects.toMatchObject({ class: "Host", code: "journal_damaged" });

  test.each([
    ["no JSON", "{"],
    ["deeper than a stack", deep],
  ])("an input that is %s", async (_what, input) => {
    const folder = await handedOver((_at, sql) => sql(`UPDATE runs SET input = '${input}'`));
    await read(folder, (host) => host.get("r1"));
    await read(folder, (host) => host.list());
    await read(folder, (host) => host.journal("r1"));
  });

  test("an end that is deeper than a stack", async () => {
    const folder = await handedOver((_at, sql) =>
      sql(`UPDATE runs SET end_status = 'completed', end_value = '${deep}'`),
    );
    await read(folder, (host) => host.get("r1"));
    await read(folder, (host) => host.result("r1"));
  });

  test.each([
    ["no object", "[]"],
    ["without a reason", '{"by":"me","at":1}'],
    ["at no time", '{"reason":"x","by":"me","at":"now"}'],
  ])("a cancellation that is %s", async (_what, cancel) => {
    const folder = await handedOver((_at, sql) => sql(`UPDATE runs SET cancel = '${cancel}'`));
    await read(folder, (host) => host.list());
  });

  test.each([
    ["a text", '"x"'],
    ["deeper than a stack", deep],
  ])("a request that is %s", async (_what, body) => {
    const folder = await handedOver((_at, sql) =>
      sql(`INSERT INTO requests (run_no, request_id, kind, digest, opened_at, body)
        SELECT no, 'q1', 'askUser', 'd1', 1, '${body}' FROM runs`),
    );
    await read(folder, (host) => host.requests());
    await read(folder, (host) => host.requests("r1"));
  });

  test.each([["null"], ['{"by":"me","at":1}'], ['{"payload":1,"by":7,"at":1}']])(
    "an answer that is %s",
    async (received) => {
      const folder = await handedOver((_at, sql) =>
        sql(`INSERT INTO signals (run_no, name, received) SELECT no, 'request/q1', '${received}' FROM runs`),
      );
      const store = openJournalStore(folder, { readOnly: true });
      expect(() => store.signals("r1", "request/q1")).toThrow(expect.objectContaining({ code: "journal_damaged" }));
      await store.close();
    },
  );
});

test.each(["../r1", "/etc/x", "..", "a\u001b[2Jb\n", "r".repeat(400)])(
  "a run that is called %j is written to a file here",
  (runId) => {
    for (const ending of ["jsonl", "html"]) expect(fileNameOf(runId, ending)).toMatch(/^[\w-]{1,100}\.\w+$/);
    expect(fileNameOf("r7k2m9x4ab", "html")).toBe("r7k2m9x4ab.html");
  },
);
