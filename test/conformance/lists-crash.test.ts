import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunJournal } from "@sluice/core";
import { verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { createSession } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ITEMS, reviewer, reviewing } from "../support/reviewer.ts";
import { nodeArguments } from "../support/sqlite-process.ts";
import { scratch } from "../support/sqlite-store.ts";

const DIE_AT = join(import.meta.dirname, "../fixtures/crash/die-at.mjs");

interface Life {
  readonly signal: string | undefined;
  readonly stdout: string;
}
/** Runs the list, until the process kills itself at a commit if one is given. */
function live(folder: string, dieAt?: string): Promise<Life> {
  const own = dieAt === undefined ? [] : ["--import", DIE_AT];
  const env = { ...process.env, ...(dieAt === undefined ? {} : { DIE_AT: dieAt }) };
  return new Promise((resolve) => {
    execFile(process.execPath, [...own, ...nodeArguments("reviewer.ts", folder)], { env }, (error, stdout) =>
      resolve({ signal: error?.signal ?? undefined, stdout }),
    );
  });
}

/** The steps that have a record, as the executor writes them down. */
function recordedIn(journals: readonly RunJournal[]): ReadonlySet<string> {
  return new Set(
    journals.flatMap(({ runId, records }) =>
      records.flatMap(({ phase, stepId }) => {
        const [, execution, part] = /^([^/]+)\/a1\/(read|write)$/.exec(stepId) ?? [];
        return phase === "done" && execution !== undefined ? [`${runId} ${execution} ${part}`] : [];
      }),
    ),
  );
}

function doneIn(folder: string): readonly string[] {
  const file = join(folder, "done.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

test("a list whose process is killed at any commit is resumed with its outputs in order and no recorded step repeated", async () => {
  const { stdout } = await live(scratch());
  const commits = Number(/^completed after (\d+) commits$/m.exec(stdout)?.[1]);
  expect(commits).toBeGreaterThan(ITEMS.length);
  // The first commits make the store and the run.
  const places = fc.tuple(fc.constantFrom("before", "after"), fc.integer({ min: 5, max: commits - 3 }));
  await fc.assert(
    fc.asyncProperty(places, async ([when, commit]) => {
      const folder = scratch();
      expect((await live(folder, `${when}:${commit}`)).signal).toBe("SIGKILL");
      const host = sqliteHost(folder);
      const session = createSession({ host, executors: [reviewer(folder)], sandbox: "off" });
      try {
        const [{ runId } = { runId: "" }] = await host.list();
        const recorded = recordedIn(await host.journal(runId));
        const earlier = doneIn(folder);
        const result = await session.resume(reviewing, runId);
        expect(result).toMatchObject({ status: "completed", output: ITEMS });
        const later = doneIn(folder).slice(earlier.length);
        expect(later.filter((step) => recorded.has(step))).toEqual([]);
        expect(new Set(later).size).toBe(later.length);
        const after = await host.journal(runId);
        expect(verifyJournal(after).faults).toEqual([]);
        expect(recordedIn(after).size).toBe(2 * (ITEMS.length + 2));
        expect(new Set(doneIn(folder))).toEqual(recordedIn(after));
      } finally {
        await session.close();
        await host.close();
      }
    }),
    { numRuns: 6 },
  );
});
