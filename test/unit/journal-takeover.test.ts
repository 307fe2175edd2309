import { type EventDraft, SluiceError, type StepRunner } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { cancelLeaf, cancelOrphan, cancelWithChildren } from "../../packages/core/src/journal/host/cancel-orphans.ts";
import {
  draftCommit,
  genesisPosition,
  lifecycleRecord,
  type RunPosition,
} from "../../packages/core/src/journal/record.ts";
import { LIFECYCLE_STEP } from "../../packages/core/src/journal/step-id.ts";
import { handClock } from "../support/hand-clock.ts";
import { changed, endOf, eventsOf, start, turns, waiting } from "../support/journal.ts";

const clock = handClock();
const asked = (requestId: string, kind: "grantStageTool" | "askUser"): EventDraft => ({
  type: kind === "grantStageTool" ? "grant.requested" : "request.opened",
  data: { requestId, kind, digest: "d1", body: {} },
});

/** A run that was started in this store, where its journal stands. */
async function begun(store: JournalStore, runId: string, parentId?: string, events: readonly EventDraft[] = []) {
  const at = genesisPosition(runId, "i1");
  const commit = draftCommit(at, lifecycleRecord(LIFECYCLE_STEP.start, events, "null"), clock);
  const ids = { runId, rootId: "r1", createdAt: 0, input: null };
  const epoch = await store.create(parentId === undefined ? ids : { ...ids, parentId }, { ...commit, epoch: 1 });
  const position: RunPosition = { ...at, epoch, seq: 1, head: commit.record.hash };
  return position;
}
const endOfRow = async (store: JournalStore, runId: string) => (await store.run(runId))?.end?.status;

describe("a run that is ended without its code", () => {
  async function abandoned(store: JournalStore = createMemoryJournals().connect()) {
    const host = createHost(store, { clock });
    const task = await start(host, async (steps: StepRunner) => {
      await steps.run("ask", ({ event }) => {
        event(asked("q1", "grantStageTool"));
        event(asked("q2", "askUser"));
        return null;
      });
      return await waiting(steps);
    });
    await turns();
    await task.suspend("interrupted");
    return host;
  }

  test("says of each request that no one answered that it expired, by what it was, and why", async () => {
    const host = await abandoned();
    expect(await host.cancel("r1", "enough", "me")).toBe("cancelled");
    const expired = (await eventsOf(host)).filter(({ type }) => type.endsWith(".expired"));
    expect(expired.map(({ type, data }) => ({ type, data }))).toEqual([
      { type: "grant.expired", data: { requestId: "q1", cause: "cancelled" } },
      { type: "request.expired", data: { requestId: "q2", cause: "cancelled" } },
    ]);
    expect(await host.requests()).toEqual([]);
  });

  test("says how it ended and why, and of children only where there are some", async () => {
    const host = await abandoned();
    await host.cancel("r1", "enough", "me");
    const [last] = (await eventsOf(host)).slice(-1);
    expect([last?.type, last?.data]).toEqual([
      "run.finished",
      { status: "cancelled", reason: "enough", unattended: true },
    ]);
  });

  test("is left to the process that resumed it in between; another fault is thrown", async () => {
    const faults: readonly (readonly [unknown, unknown])[] = [
      [new SluiceError("Host", "run_owned", "theirs"), "requested"],
      [new SluiceError("Host", "store_busy", "locked"), "store_busy"],
      [new Error("disk full"), "disk full"],
    ];
    for (const [fault, outcome] of faults) {
      const store = createMemoryJournals().connect();
      const claim = (): never => {
        throw fault;
      };
      const host = await abandoned(changed(store, { claim }));
      const answer = await host.cancel("r1", "enough", "me").catch((thrown: unknown) => thrown);
      expect([
        answer,
        answer instanceof SluiceError ? answer.code : answer instanceof Error ? answer.message : "",
      ]).toContain(outcome);
      expect(await endOfRow(store, "r1")).toBeUndefined();
    }
  });

  test("is one whose cancel was requested, and that has not ended by itself", async () => {
    const store = createMemoryJournals().connect();
    const of = { store, clock, rootId: "r1", incarnation: () => "i2" };
    const host = createHost(store, { clock });
    const first = await start(host, waiting);
    await turns();
    await first.suspend("interrupted");
    const records = (await store.records("r1", 0)).length;
    expect(await cancelOrphan(of)).toBeUndefined();
    expect(await store.records("r1", 0)).toHaveLength(records);
    const again = await host.resume("r1", waiting);
    await host.signal("r1", { name: "go", payload: 7, by: "me" });
    const end = await endOf(again);
    await store.requestCancel("r1", "late", "me", 1);
    expect(await cancelOrphan(of)).toEqual(end);
    expect((await store.records("r1", 0)).filter(({ stepId }) => stepId === "closed")).toEqual([]);
  });
});

test("a child that is ended alone lets its own requests expire, also those of its first record's successors", async () => {
  const store = createMemoryJournals().connect();
  await begun(store, "r1");
  const fresh = await begun(store, "r1/fan/a", "r1");
  const older = await begun(store, "r1/fan/b", "r1");
  const record = { ordinal: 0, stepId: "ask", phase: "done" as const, value: "1", events: [asked("q1", "askUser")] };
  const commit = draftCommit(older, record, clock);
  await store.append({ ...commit, runId: older.runId, epoch: older.epoch });
  const of = { store, clock, rootId: "r1" };
  await cancelLeaf(of, fresh, "enough");
  await cancelLeaf(of, { ...older, seq: 2, head: commit.record.hash }, "enough");
  const eventsIn = async (runId: string) => (await store.records(runId, 0)).at(-1)?.events ?? "";
  expect(await eventsIn("r1/fan/a")).not.toContain("request.expired");
  expect(await eventsIn("r1/fan/b")).toContain('"request.expired","data":{"requestId":"q1"');
  expect(await store.requests("r1")).toEqual([]);
});

test("a child that is ended takes what is below it along, and nothing beside it", async () => {
  const store = createMemoryJournals().connect();
  await begun(store, "r1");
  await begun(store, "r1/fan/a", "r1");
  const top = await begun(store, "r1/fan/b", "r1");
  await begun(store, "r1/fan/b/x/c", "r1/fan/b");
  await begun(store, "r1/fan/b/x/c/y/d", "r1/fan/b/x/c");
  await cancelWithChildren({ store, clock, rootId: "r1" }, top, "enough");
  const ends = await Promise.all(
    (await store.runs("r1")).map(async ({ runId }) => [runId, await endOfRow(store, runId)]),
  );
  expect(ends).toEqual([
    ["r1", undefined],
    ["r1/fan/a", undefined],
    ["r1/fan/b", "cancelled"],
    ["r1/fan/b/x/c", "cancelled"],
    ["r1/fan/b/x/c/y/d", "cancelled"],
  ]);
});
