import { setTimeout as after } from "node:timers/promises";
import { runInNewContext } from "node:vm";
import { withJsonSchema } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { compileSchema } from "../../packages/core/src/schema/compile-schema.ts";
import { changed, completed, endOf, start } from "../support/journal.ts";

// Promises of another realm, such as those that Node makes for a store under some test runners, are promises as others are.

const ForeignPromise: PromiseConstructor = runInNewContext("Promise");

/** A store that commits a moment later, or fails to. */
function foreignStore(said: string[], fails: (commit: number) => boolean = () => false): JournalStore {
  const memory = createMemoryJournals().connect();
  let commits = 0;
  return changed(memory, {
    append: (commit) => {
      commits += 1;
      const number = commits;
      return ForeignPromise.resolve(after(1)).then(async () => {
        if (fails(number)) throw new Error("the disk is full");
        await memory.append(commit);
        said.push(commit.record.phase);
      });
    },
    signals: (runId, name) => ForeignPromise.resolve(memory.signals(runId, name)),
  });
}

async function pay(store: JournalStore, said: string[]) {
  return await start(createHost(store), async (steps) => {
    await steps.run("pay", () => said.push("paid"), { open: { events: [], intent: 1 } });
    return completed();
  });
}

describe("a store whose promises are of another realm", () => {
  test("has the open record of a step before its effect", async () => {
    const said: string[] = [];
    const task = await pay(foreignStore(said), said);
    await endOf(task);
    expect(said.slice(0, 3)).toEqual(["open", "paid", "done"]);
  });

  test("stops the run before an effect that it could not announce", async () => {
    const said: string[] = [];
    const task = await pay(
      foreignStore(said, (commit) => commit === 1),
      said,
    );
    await expect(task.settled).rejects.toThrow("the disk is full");
    expect(said).toEqual([]);
  });

  test("gives a step its signals", async () => {
    const host = createHost(foreignStore([]));
    const takes = [{ name: "steer", count: () => 0 }];
    const task = await start(host, async (steps) =>
      completed(await steps.run("read", async (call) => (await call.signals()).length, { takes })),
    );
    expect(await endOf(task)).toMatchObject({ value: 0 });
  });
});

test("a schema whose verdict is a promise of another realm refuses what it refuses", async () => {
  const validate = () => ForeignPromise.resolve({ issues: [{ message: "no" }] });
  const schema = { "~standard": { ...z.string()["~standard"], validate } };
  const compiled = compileSchema(withJsonSchema(schema, { type: "string" }), "a value");
  expect(await compiled.check("text")).toEqual({ ok: false, issues: [{ path: "$", message: "no" }] });
});
