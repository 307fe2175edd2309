import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JournalRecord } from "@sluice/core";
import { type Commit, GENESIS, hashRecord, type JournalStore } from "@sluice/core/host";
import { openJournalStore, type SqliteHostOptions, type SqliteStore } from "@sluice/sqlite";
import { onTestFinished } from "vitest";

/** A folder that goes with the test. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A store that is closed with the test. */
export function open(folder: string, options: SqliteHostOptions = {}): SqliteStore {
  const store = openJournalStore(folder, options);
  onTestFinished(async () => store.close());
  return store;
}

/** Makes the records of one run, each hashed onto the one before. */
export function chainOf(runId: string): (parts?: Partial<JournalRecord>) => JournalRecord {
  let seq = 0;
  let head: string = GENESIS;
  return (parts = {}) => {
    const unhashed = {
      seq,
      ordinal: seq,
      stepId: `step/${seq}`,
      phase: "done" as const,
      incarnation: "i1",
      value: "null",
      events: "[]",
      ...parts,
    };
    const hash = hashRecord(head, runId, unhashed);
    seq += 1;
    head = hash;
    return { ...unhashed, hash };
  };
}

/** A commit that only adds its record. */
export function plain(runId: string, epoch: number, record: JournalRecord): Commit {
  return { runId, epoch, record, opened: [], closed: [] };
}

/** Starts a root run with one record. */
export async function startRun(store: JournalStore, runId: string, next = chainOf(runId)): Promise<number> {
  const record = next({ ordinal: -1, stepId: "start", phase: "lifecycle" });
  return await store.create({ runId, rootId: runId, createdAt: 1, input: {} }, { record, opened: [], closed: [] });
}

/** What lies in a folder, with content: to see that a refusal changed nothing. */
export function snapshot(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    const path = join(folder, name);
    const { mode } = statSync(path);
    const content = statSync(path).isDirectory() ? "folder" : readFileSync(path).toString("base64");
    found[name] = `${(mode & 0o777).toString(8)} ${content}`;
  }
  return found;
}
