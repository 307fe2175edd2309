import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { at, printed } from "../support/command.ts";
import { type DeskHere, deskHere, forkedRun } from "../support/command-here.ts";

async function idsIn(here: DeskHere): Promise<readonly unknown[]> {
  const { runs } = printed(await here.sluice(["runs", "--output-format", "json"]));
  return Array.isArray(runs) ? runs.map((run) => at(run, "runId")) : [];
}

test("prune removes finished runs by count, says first what would go, and leaves nothing of them in the store", async () => {
  const here = deskHere();
  const word = "unmistakable-in-the-file";
  const older = await forkedRun(here, "long ".repeat(60_000));
  const old = await forkedRun(here, word);
  const recent = await forkedRun(here);
  const blobs = (): readonly string[] => readdirSync(join(here.store, "blobs"));
  expect(blobs().length).toBeGreaterThan(0);

  const dry = await here.sluice(["prune", "--keep", "1", "--dry-run", "--output-format", "json"]);
  expect(printed(dry)).toMatchObject({
    dryRun: true,
    runs: [{ runId: older, status: "completed", journals: 3 }, { runId: old }],
  });
  expect(await idsIn(here)).toEqual([recent, old, older]);
  expect(readFileSync(join(here.store, "journal.db")).includes(word)).toBe(true);

  const { code, stdout } = await here.sluice(["prune", "--keep", "1"]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/removed 2 runs with \d+ records/)]);
  expect(await idsIn(here)).toEqual([recent]);
  expect(blobs()).toEqual([]);
  for (const name of ["journal.db", "journal.db-wal"]) {
    if (readdirSync(here.store).includes(name)) expect(readFileSync(join(here.store, name)).includes(word)).toBe(false);
  }
  const db = new DatabaseSync(join(here.store, "journal.db"));
  const counts = ["runs", "trees", "chains"].map((table) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n);
  db.close();
  expect(counts).toEqual([3, 1, 3]);
  expect((await here.sluice(["audit", recent, "--verify"])).code).toBe(0);
  expect((await here.sluice(["show", old])).code).toBe(4);
});

test("prune by age takes what ended before; without an option, or with a wrong one, nothing goes", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const { code, stdout } = await here.sluice(["prune", "--older-than", "1h"]);
  expect([code, stdout]).toEqual([0, expect.stringContaining("no finished runs")]);
  for (const args of [[], ["--older-than", "soon"], ["--keep", "-1"], ["--keep", ""], ["--keep", "1.5"]])
    expect((await here.sluice(["prune", ...args])).code).toBe(2);
  expect(await idsIn(here)).toEqual([runId]);
  expect((await here.sluice(["prune", "--older-than", "1ms", "--keep", "1"])).code).toBe(0);
  expect(await idsIn(here)).toEqual([runId]);
  expect((await here.sluice(["prune", "--older-than", "1ms"])).code).toBe(0);
  expect(await idsIn(here)).toEqual([]);
});

test("prune removes what the scripts of removed runs printed, and keeps that of others", async () => {
  const here = deskHere();
  const old = await forkedRun(here);
  const recent = await forkedRun(here);
  const outputs = join(here.folder, ".sluice", "output");
  for (const runId of [old, recent]) {
    mkdirSync(join(outputs, runId), { recursive: true });
    writeFileSync(join(outputs, runId, "build#1.1.command.stdout.txt"), "long");
  }
  expect((await here.sluice(["prune", "--keep", "1", "--dry-run"])).code).toBe(0);
  expect(readdirSync(outputs).toSorted()).toEqual([old, recent].toSorted());
  expect((await here.sluice(["prune", "--keep", "1"])).code).toBe(0);
  expect(readdirSync(outputs)).toEqual([recent]);
});

test("prune makes no store where there is none", async () => {
  const here = deskHere();
  expect((await here.sluice(["prune", "--keep", "1"])).code).toBe(4);
  expect(readdirSync(here.folder)).toEqual([]);
});

test("a run whose end cannot be read stays, and keeps no other from going", async () => {
  const here = deskHere();
  const gone = await forkedRun(here);
  const damaged = await forkedRun(here);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  db.prepare("UPDATE runs SET end_value = '{' WHERE run_id = ?").run(damaged);
  db.close();
  const { code, stdout } = await here.sluice(["prune", "--keep", "0", "--output-format", "json"]);
  expect([code, at(JSON.parse(stdout), "runs", 0, "runId"), at(JSON.parse(stdout), "runs", 1)]).toEqual([
    0,
    gone,
    undefined,
  ]);
});
