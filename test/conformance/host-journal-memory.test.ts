import type { JournalRecord } from "@sluice/core";
import {
  type Commit,
  createHost,
  createMemoryJournals,
  GENESIS,
  hashRecord,
  type JournalStore,
} from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { completed, endOf, start, waiting } from "../support/journal.ts";

function recordAfter(previous: JournalRecord | undefined): JournalRecord {
  const seq = previous === undefined ? 0 : previous.seq + 1;
  const unhashed = {
    seq,
    ordinal: seq - 1,
    stepId: `step/${seq}`,
    phase: "done" as const,
    incarnation: "i1",
    value: "null",
    events: "[]",
  };
  return { ...unhashed, hash: hashRecord(previous?.hash ?? GENESIS, "r1", unhashed) };
}
const first = recordAfter(undefined);
const second = recordAfter(first);

function commit(epoch: number, record: JournalRecord, more: Partial<Commit> = {}): Commit {
  return { runId: "r1", epoch, record, opened: [], closed: [], ...more };
}
async function created(store: JournalStore): Promise<number> {
  return await store.create(
    { runId: "r1", rootId: "r1", createdAt: 1, input: null },
    { record: first, opened: [], closed: [] },
  );
}
const code = (name: string) => expect.objectContaining({ class: "Host", code: name });

test("only the owner appends, at its epoch, the next record, to a run that is not over", async () => {
  const memory = createMemoryJournals();
  const [owner, other] = [memory.connect(), memory.connect()];
  const epoch = await created(owner);
  expect(() => other.append(commit(epoch, second))).toThrow(code("ownership_lost"));
  expect(() => other.claim("r1")).toThrow(code("run_owned"));
  const later = await owner.claim("r1");
  expect(() => owner.append(commit(epoch, second))).toThrow(code("ownership_lost"));
  expect(() => owner.append(commit(later, recordAfter(second)))).toThrow(code("ownership_lost"));
  expect(await owner.records("r1", 0)).toHaveLength(1);
  await owner.append(commit(later, second, { end: { status: "completed", value: 1 } }));
  expect(() => owner.append(commit(later, recordAfter(second)))).toThrow(code("run_finished"));
  expect(await owner.records("r1", 0)).toEqual([first, second]);
});

test("a child is added only by the owner of its tree, at its epoch", async () => {
  const memory = createMemoryJournals();
  const [owner, other] = [memory.connect(), memory.connect()];
  const epoch = await created(owner);
  const child = { runId: "r1/fan/a", rootId: "r1", parentId: "r1", createdAt: 1, input: null };
  const part = { record: first, opened: [], closed: [] };
  expect(() => other.create(child, { ...part, epoch })).toThrow(code("ownership_lost"));
  expect(() => owner.create(child, { ...part, epoch: epoch - 1 })).toThrow(code("ownership_lost"));
  expect(await owner.run("r1/fan/a")).toBeUndefined();
  expect(await owner.create(child, { ...part, epoch })).toBe(epoch);
  expect(() => owner.create(child, { ...part, epoch })).toThrow(code("run_exists"));
});

test("a closed store refuses everything, and its runs are free", async () => {
  const memory = createMemoryJournals();
  const [owner, other] = [memory.connect(), memory.connect()];
  const epoch = await created(owner);
  await owner.close();
  expect(() => owner.append(commit(epoch, second))).toThrow(code("store_closed"));
  expect(() => owner.run("r1")).toThrow(code("store_closed"));
  expect(await other.run("r1")).toMatchObject({ owner: { live: false } });
  expect(await other.claim("r1")).toBe(epoch + 1);
});

test("what a call was given can be changed afterwards without changing what is kept", async () => {
  const store = createMemoryJournals().connect();
  const epoch = await created(store);
  const body = { question: "as asked" };
  const payload = { answer: "as given" };
  const end = { status: "completed" as const, value: { output: "as ended" } };
  const request = { requestId: "q1", runId: "r1", kind: "askUser" as const, digest: "d1", body, openedAt: 1 };
  await store.append(commit(epoch, second, { opened: [request] }));
  await store.putSignal("r1", { name: "news", payload, by: "test" }, 1);
  body.question = "changed";
  payload.answer = "changed";
  expect(await store.requests("r1")).toMatchObject([{ body: { question: "as asked" } }]);
  expect(await store.signals("r1", "news")).toMatchObject([{ payload: { answer: "as given" } }]);
  await store.append(commit(epoch, recordAfter(second), { end }));
  // An end is not copied but frozen: it holds all that a run came to.
  expect(() => Object.assign(end.value, { output: "changed" })).toThrow(TypeError);
  expect(await store.run("r1")).toMatchObject({ end: { value: { output: "as ended" } } });
});

test("finished runs leave memory with their children, oldest first; runs at work stay", async () => {
  const host = createHost(createMemoryJournals({ keepFinished: 5 }).connect());
  const working = await start(host, waiting, "working");
  const options = { onFailure: "settle" as const, failed: () => false, open: { events: [] }, joined: () => [] };
  for (let n = 0; n < 20; n += 1) {
    const task = await start(
      host,
      async (steps) => {
        if (!steps.runId.includes("/"))
          await steps.runChildren("fan", [{ key: "a", input: null, events: [] }], options);
        return completed();
      },
      `r${n}`,
    );
    await endOf(task);
  }
  expect((await host.list()).map(({ runId }) => runId)).toEqual(["r19", "r18", "r17", "r16", "r15", "working"]);
  expect(await host.get("r14/fan/a")).toBeUndefined();
  expect(await host.get("r15/fan/a")).toMatchObject({ status: "completed" });
  await host.signal("working", { name: "go", payload: 1, by: "test" });
  expect(await endOf(working)).toEqual({ status: "completed", value: 1 });
  expect((await host.list()).map(({ runId }) => runId)).toContain("working");
});

test("a run that begins under the id of one that was removed is not taken for that one", async () => {
  const host = createHost(createMemoryJournals({ keepFinished: 2 }).connect());
  await endOf(await start(host, async () => completed(), "ra"));
  expect(await host.prune({ keep: 0 })).toHaveLength(1);
  const working = await start(host, waiting, "ra");
  for (const runId of ["rb", "rc", "rd"]) await endOf(await start(host, async () => completed(), runId));
  expect((await host.list()).map(({ runId }) => runId)).toEqual(["rd", "rc", "ra"]);
  await host.signal("ra", { name: "go", payload: 1, by: "test" });
  expect(await endOf(working)).toEqual({ status: "completed", value: 1 });
});

describe("a listener", () => {
  async function listening() {
    const memory = createMemoryJournals();
    const [store, other] = [memory.connect(), memory.connect()];
    const heard: string[] = [];
    const leave = store.onChange(() => heard.push("store"));
    other.onChange(() => heard.push("other"));
    /** Who was notified by a call. */
    const by = async (call: () => unknown): Promise<readonly string[]> => {
      heard.length = 0;
      await call();
      return [...heard];
    };
    return { store, other, leave, by };
  }
  const both = ["store", "other"];

  test("is notified of all that may have changed, by whichever owner, and of nothing else", async () => {
    const { store, other, by } = await listening();
    const row = { runId: "r2", rootId: "r2", createdAt: 1, input: null };
    expect(await by(() => created(store))).toEqual(both);
    expect(await by(() => store.append(commit(1, second)))).toEqual(both);
    expect(await by(() => store.release("r1"))).toEqual(both);
    expect(await by(() => other.claim("r1"))).toEqual(both);
    expect(await by(() => store.putSignal("r1", { name: "x", payload: 1, by: "me" }, 1))).toEqual(both);
    expect(await by(() => store.requestCancel("r1", "why", "me", 1))).toEqual(both);
    const end = { status: "completed", value: null } as const;
    expect(await by(() => store.createWhole([{ row, records: [first], head: first.hash, end }]))).toEqual(both);
    expect(await by(() => store.remove(["none", "r1"]))).toEqual([]);
    expect(await by(() => store.remove(["r2"]))).toEqual(both);
    const looks = [
      () => store.run("r1"),
      () => store.runs(),
      () => store.records("r1", 0),
      () => store.signals("r1", "x"),
      () => store.requests(),
    ];
    for (const look of looks) expect(await by(look)).toEqual([]);
  });

  test("hears no more after leaving, nor once its own store is closed, which the others hear", async () => {
    const { store, other, leave, by } = await listening();
    const twice: string[] = [];
    const listener = (): void => void twice.push("twice");
    const [one, two] = [store.onChange(listener), store.onChange(listener)];
    await created(store);
    one();
    one();
    await by(() => store.claim("r1"));
    expect(twice).toHaveLength(3);
    two();
    expect(await by(() => store.claim("r1"))).toEqual(both);
    leave();
    expect(await by(() => store.claim("r1"))).toEqual(["other"]);
    expect(twice).toHaveLength(3);
    store.onChange(() => twice.push("closed"));
    expect(await by(() => store.close())).toEqual(["other"]);
    expect(await by(() => other.claim("r1"))).toEqual(["other"]);
    expect(twice).toHaveLength(3);
  });
});
