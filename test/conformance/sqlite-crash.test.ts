import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { checkChain } from "@sluice/core/host";
import { expect, test } from "vitest";
import { nodeArguments } from "../support/sqlite-process.ts";
import { chainOf, open, scratch, startRun } from "../support/sqlite-store.ts";

interface Life {
  /** What the store had confirmed. */
  readonly confirmed: readonly string[];
  /** Calls it made, when it came through. */
  readonly calls: number | undefined;
}

/** Runs the fixture until it kills itself before its n-th call. */
async function live(folder: string, call: number, cache: string): Promise<Life> {
  return await new Promise((resolve, reject) => {
    const env = { ...process.env, NODE_COMPILE_CACHE: cache };
    execFile(
      process.execPath,
      nodeArguments("killed-at.ts", folder, String(call)),
      { env },
      (error, stdout, stderr) => {
        if (error !== null && error.signal !== "SIGKILL") {
          reject(new Error(`the fixture failed: ${stderr}`));
          return;
        }
        const confirmed = stdout.split("\n").filter((line) => line !== "");
        const calls = /^calls (\d+)$/.exec(confirmed.at(-1) ?? "")?.[1];
        resolve({ confirmed, calls: calls === undefined ? undefined : Number(calls) });
      },
    );
  });
}

/** Everything a store must still promise after its writer was killed anywhere. */
async function inspect(folder: string, confirmed: readonly string[]): Promise<void> {
  const store = open(folder);
  const row = await store.run("r1");
  const records = row === undefined ? [] : await store.records("r1", 0);
  const promised = confirmed.filter((line) => line.startsWith("record")).length;
  // What was confirmed is there; of what was not, at most the one commit under way.
  expect(records.length).toBeGreaterThanOrEqual(promised);
  expect(records.length).toBeLessThanOrEqual(promised + 1);
  if (row === undefined) {
    await startRun(store, "r1", chainOf("r1"));
    await store.close();
    return;
  }
  const checked = checkChain("r1", records);
  expect(checked.fault).toBeUndefined();
  expect({ head: checked.head, count: records.length }).toEqual({ head: row.head, count: row.records });
  // A commit is whole: its requests and its end come and go with its record.
  expect(await store.requests("r1")).toHaveLength(records.length === 2 ? 1 : 0);
  expect(row.end?.status).toBe(records.length === 4 ? "completed" : undefined);
  const answers = await store.signals("r1", "request/q1");
  if (confirmed.includes("answer")) expect(answers).toHaveLength(1);
  expect(answers.length).toBeLessThanOrEqual(1);
  expect(readdirSync(join(folder, "blobs")).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  expect(row.owner?.live ?? false).toBe(false);
  await store.claim("r1");
  expect(readdirSync(join(folder, "owners"))).toEqual([`${store.ownerId}.db`]);
  await store.close();
}

test("a store whose writer is killed before any one of its calls to the disk keeps every promise", async () => {
  const root = scratch();
  const cache = join(root, "cache");
  const { calls } = await live(join(root, "whole"), Number.MAX_SAFE_INTEGER, cache);
  if (calls === undefined) throw new Error("the fixture did not come through");
  expect(calls).toBeGreaterThan(60);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < calls) {
      const call = next;
      next += 1;
      const folder = join(root, String(call));
      const died = await live(folder, call, cache);
      expect(died.calls).toBeUndefined();
      await inspect(folder, died.confirmed);
    }
  };
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, worker));
});
