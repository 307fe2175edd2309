// What every JournalStore does when it is asked itself: what a host could not ask for, or would not notice.
import { join } from "node:path";
import { isSluiceError, type OpenRequest } from "@sluice/core";
import { type Commit, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { openJournalStore } from "@sluice/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { chainOf, plain, scratch, startRun } from "../support/sqlite-store.ts";

/** Gives owners of one store, each a handle of its own. */
const stores: Readonly<Record<string, () => () => JournalStore>> = {
  "in memory": () => {
    const memory = createMemoryJournals();
    return () => memory.connect();
  },
  SQLite: () => {
    const folder = join(scratch(), "store");
    return () => openJournalStore(folder);
  },
};

const ask = (requestId: string, runId: string, more: Partial<OpenRequest> = {}): OpenRequest => ({
  requestId,
  runId,
  kind: "askUser",
  digest: `digest of ${requestId}`,
  body: {},
  openedAt: 1,
  ...more,
});

describe.each(Object.entries(stores))("%s", (_name, make) => {
  function opened() {
    const connect = make();
    const owner = (): JournalStore => {
      const store = connect();
      onTestFinished(async () => store.close());
      return store;
    };
    return { store: owner(), other: owner(), owner };
  }
  const refusal = async (call: () => unknown): Promise<string> => {
    try {
      await call();
    } catch (thrown) {
      if (isSluiceError(thrown)) return `${thrown.class} ${thrown.code}`;
      throw thrown;
    }
    return "none";
  };
  const child = (root: string, key: string) => ({
    runId: `${root}/fan/${key}`,
    rootId: root,
    parentId: root,
    createdAt: 3,
    input: key,
  });
  const begun = (runId: string) => ({ record: chainOf(runId)({ stepId: "start" }), opened: [], closed: [] });

  test("what is asked of a run that is not there is nothing, or an error that says so", async () => {
    const { store } = opened();
    expect(await store.run("none")).toBeUndefined();
    expect([
      await store.runs(),
      await store.runs("none"),
      await store.requests(),
      await store.requests("none"),
    ]).toEqual([[], [], [], []]);
    expect(await store.putSignal("none", { name: "x", payload: 1, by: "me" }, 1)).toBe("unknown");
    expect(await store.requestCancel("none", "why", "me", 1)).toBe(false);
    expect(await store.remove(["none"])).toEqual([]);
    expect(await refusal(() => store.release("none"))).toBe("none");
    expect(await refusal(() => store.records("none", 0))).toBe("Session run_unknown");
    expect(await refusal(() => store.claim("none"))).toBe("Session run_unknown");
    const { record } = begun("none");
    expect(await refusal(() => store.append(plain("none", 1, record)))).toBe("Session run_unknown");
    expect(await refusal(() => store.create(child("none", "a"), { ...begun("none/fan/a"), epoch: 1 }))).toBe(
      "Session run_unknown",
    );
    expect(await store.run("none/fan/a")).toBeUndefined();
  });

  test("a run's row says what it is given, and no more", async () => {
    const { store, other } = opened();
    const next = chainOf("r1");
    const first = next({ ordinal: -1, stepId: "start", phase: "lifecycle" });
    const input = { task: ["x"] };
    const epoch = await store.create(
      { runId: "r1", rootId: "r1", createdAt: 7, input },
      { ...begun("r1"), record: first },
    );
    const owner = { id: store.ownerId, label: expect.any(String), live: true };
    const row = { runId: "r1", rootId: "r1", createdAt: 7, input, records: 1, head: first.hash };
    expect(await other.run("r1")).toEqual({ ...row, owner });
    expect(Object.keys((await store.run("r1")) ?? {}).toSorted()).toEqual([
      "createdAt",
      "head",
      "input",
      "owner",
      "records",
      "rootId",
      "runId",
    ]);
    await store.create(child("r1", "a"), { ...begun("r1/fan/a"), epoch });
    expect(await other.run("r1/fan/a")).toMatchObject({ ...child("r1", "a"), records: 1, owner });
    await store.release("r1");
    expect(await other.run("r1")).toEqual(row);
    expect(await other.run("r1/fan/a")).not.toHaveProperty("owner");
    expect(await other.requestCancel("r1", "why", "me", 9)).toBe(true);
    expect(await store.run("r1")).toEqual({ ...row, cancel: { reason: "why", by: "me", at: 9 } });
  });

  test("a child may be added by the owner of its tree as it is, and a request closed that no one opened", async () => {
    const { store, other } = opened();
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    expect(await refusal(() => other.create(child("r1", "a"), begun("r1/fan/a")))).toBe("Host ownership_lost");
    expect(await store.create(child("r1", "a"), begun("r1/fan/a"))).toBe(epoch);
    await store.append({ ...plain("r1", epoch, next()), closed: ["none"] });
    expect(await store.run("r1")).toMatchObject({ records: 2 });
  });

  test("a run's row is no one's to change", async () => {
    const { store } = opened();
    const input = { list: [1] };
    await store.create({ runId: "r1", rootId: "r1", createdAt: 1, input }, begun("r1"));
    const read = await store.run("r1");
    try {
      Reflect.set(Object(read?.input), "list", "changed");
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(TypeError);
    }
    expect((await store.run("r1"))?.input).toEqual({ list: [1] });
  });

  test("roots are listed newest first, as many as are asked for; a tree in the order it came to be", async () => {
    const { store } = opened();
    for (const id of ["ra", "rb", "rc"]) {
      const epoch = await startRun(store, id);
      for (const key of ["z", "a"]) await store.create(child(id, key), { ...begun(`${id}/fan/${key}`), epoch });
    }
    const ids = async (root?: string, limit?: number) => (await store.runs(root, limit)).map(({ runId }) => runId);
    expect(await ids()).toEqual(["rc", "rb", "ra"]);
    expect([await ids(undefined, 2), await ids(undefined, 0), await ids(undefined, 9)]).toEqual([
      ["rc", "rb"],
      [],
      ["rc", "rb", "ra"],
    ]);
    expect(await ids("rb")).toEqual(["rb", "rb/fan/z", "rb/fan/a"]);
    expect(await ids("rb/fan/z")).toEqual([]);
  });

  test("records are read from a place on, as many as are asked for", async () => {
    const { store } = opened();
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    for (let count = 0; count < 4; count += 1) await store.append(plain("r1", epoch, next()));
    const seqs = async (from: number, limit?: number) => (await store.records("r1", from, limit)).map(({ seq }) => seq);
    expect(await seqs(0)).toEqual([0, 1, 2, 3, 4]);
    expect([await seqs(3), await seqs(5), await seqs(1, 2), await seqs(3, 9), await seqs(1, 0)]).toEqual([
      [3, 4],
      [],
      [1, 2],
      [3, 4],
      [],
    ]);
  });

  test("a root is claimed by one owner at a time, each time again, and given up by its owner alone", async () => {
    const { store, other } = opened();
    const epoch = await startRun(store, "r1");
    expect(await refusal(() => other.claim("r1"))).toBe("Host run_owned");
    await other.release("r1");
    expect(await store.run("r1")).toMatchObject({ owner: { id: store.ownerId, live: true } });
    const again = await store.claim("r1");
    expect(again).toBeGreaterThan(epoch);
    await store.release("r1");
    const taken = await other.claim("r1");
    expect(taken).toBeGreaterThan(again);
    expect(await store.run("r1")).toMatchObject({ owner: { id: other.ownerId, live: true } });
    expect(await refusal(() => store.claim("r1"))).toBe("Host run_owned");
    const late = { runId: "r1", record: chainOf("r1")(), opened: [], closed: [] };
    expect(await refusal(() => store.append({ ...late, epoch: again }))).toBe("Host ownership_lost");
    expect(store.ownerId).not.toBe(other.ownerId);
  });

  test("a run is made once, of whatever tree", async () => {
    const { store, other } = opened();
    const epoch = await startRun(store, "r1");
    await store.create(child("r1", "a"), { ...begun("r1/fan/a"), epoch });
    expect(await refusal(() => startRun(other, "r1"))).toBe("Host run_exists");
    expect(await refusal(() => store.create(child("r1", "a"), { ...begun("r1/fan/a"), epoch }))).toBe(
      "Host run_exists",
    );
    expect(await refusal(() => other.create(child("r1", "b"), { ...begun("r1/fan/b"), epoch }))).toBe(
      "Host ownership_lost",
    );
    expect(await refusal(() => store.create(child("r1", "b"), { ...begun("r1/fan/b"), epoch: epoch + 1 }))).toBe(
      "Host ownership_lost",
    );
    expect((await store.runs("r1")).map(({ runId }) => runId)).toEqual(["r1", "r1/fan/a"]);
  });

  test("whole runs are added together or not at all, and belong to no one", async () => {
    const { store, other } = opened();
    const end = { status: "failed", value: { why: 1 } } as const;
    const runOf = (runId: string) => {
      const { record } = begun(runId);
      return { row: { runId, rootId: runId, createdAt: 1, input: null }, records: [record], head: record.hash };
    };
    const below = (root: string) => ({ ...runOf(`${root}/fan/a`), row: child(root, "a"), end });
    await store.createWhole([runOf("r1"), below("r1")]);
    expect((await other.runs("r1")).map(({ runId }) => runId)).toEqual(["r1", "r1/fan/a"]);
    expect(await other.run("r1")).not.toHaveProperty("owner");
    expect(await other.run("r1")).not.toHaveProperty("end");
    expect(await other.run("r1/fan/a")).toMatchObject({ end, parentId: "r1", records: 1 });
    expect(await other.records("r1", 0)).toEqual([begun("r1").record]);
    expect(await refusal(() => store.createWhole([runOf("r2"), runOf("r1")]))).toBe("Host run_exists");
    expect(await store.run("r2")).toBeUndefined();
    const epoch = await other.claim("r1");
    const next = chainOf("r1");
    next({ stepId: "start" });
    await other.append(plain("r1", epoch, next()));
    expect(await store.run("r1")).toMatchObject({ records: 2 });
    const nextBelow = chainOf("r1/fan/a");
    nextBelow({ stepId: "start" });
    expect(await refusal(() => other.append(plain("r1/fan/a", epoch, nextBelow())))).toBe("Host run_finished");
  });

  test("signals are kept by run and name, in order, until the run has its end", async () => {
    const { store, other } = opened();
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await startRun(store, "r2");
    const send = (runId: string, name: string, payload: string) =>
      other.putSignal(runId, { name, payload, by: "me" }, 5);
    for (const [runId, name, payload] of [
      ["r1", "news", "a"],
      ["r1", "other", "b"],
      ["r2", "news", "c"],
      ["r1", "news", "d"],
    ] as const)
      expect(await send(runId, name, payload)).toBe("accepted");
    expect(await store.signals("r1", "news")).toEqual(["a", "d"].map((payload) => ({ payload, by: "me", at: 5 })));
    expect([await store.signals("r1", "other"), await store.signals("r1", "none")]).toMatchObject([
      [{ payload: "b" }],
      [],
    ]);
    await store.append({ ...plain("r1", epoch, next()), end: { status: "completed", value: null } });
    expect(await send("r1", "news", "late")).toBe("unknown");
    expect(await store.signals("r1", "news")).toHaveLength(2);
  });

  test("an answer is for a request that is open, about what was asked, and the first counts", async () => {
    const { store, other } = opened();
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await startRun(store, "r2");
    await store.append({ ...plain("r1", epoch, next()), opened: [ask("q1", "r1"), ask("q2", "r1"), ask("q3", "r1")] });
    await store.append({ ...plain("r1", epoch, next()), closed: ["q3", "none"] });
    const answer = (id: string, digest?: string, runId = "r1") =>
      other.putSignal(
        runId,
        { name: `request/${id}`, payload: id, by: "me", ...(digest === undefined ? {} : { digest }) },
        1,
      );
    expect(await answer("q1", "another")).toBe("digest_mismatch");
    expect(await answer("q1", "")).toBe("digest_mismatch");
    expect(await answer("q1", "digest of q1")).toBe("accepted");
    expect(await answer("q1", "digest of q1")).toBe("already_answered");
    expect(await answer("q1", "another")).toBe("already_answered");
    expect(await answer("q2")).toBe("accepted");
    expect([await answer("q3"), await answer("q4"), await answer("q1", "digest of q1", "r2")]).toEqual([
      "unknown",
      "unknown",
      "unknown",
    ]);
    expect(await store.signals("r1", "request/q1")).toMatchObject([{ payload: "q1" }]);
    expect(await store.signals("r1", "request/q4")).toEqual([]);
  });

  test("a request that is opened again takes another answer, and the one before stays among the signals", async () => {
    const { store, other } = opened();
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await store.append({ ...plain("r1", epoch, next()), opened: [ask("q1", "r1"), ask("q2", "r1")] });
    const answer = (id: string, payload: string) =>
      other.putSignal("r1", { name: `request/${id}`, payload, by: "me" }, 1);
    const answered = async () => (await store.requests("r1")).map(({ requestId, answered }) => [requestId, answered]);
    expect([await answer("q1", "first"), await answer("q2", "only")]).toEqual(["accepted", "accepted"]);
    expect(await answered()).toEqual([
      ["q1", true],
      ["q2", true],
    ]);
    await store.append({ ...plain("r1", epoch, next()), opened: [ask("q1", "r1")] });
    expect(await answered()).toEqual([
      ["q1", false],
      ["q2", true],
    ]);
    expect([await answer("q1", "second"), await answer("q1", "third"), await answer("q2", "another")]).toEqual([
      "accepted",
      "already_answered",
      "already_answered",
    ]);
    expect(await store.signals("r1", "request/q1")).toMatchObject([{ payload: "first" }, { payload: "second" }]);
  });

  test("open requests are listed oldest first, of a tree or of all, until they are closed or their run ends", async () => {
    const { store } = opened();
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const below = chainOf("r1/fan/a");
    await store.create(child("r1", "a"), {
      record: below({ stepId: "start" }),
      opened: [ask("c1", "r1/fan/a", { openedAt: 2 })],
      closed: [],
      epoch,
    });
    const apart = chainOf("r2");
    const second = await startRun(store, "r2", apart);
    await store.append({ ...plain("r2", second, apart()), opened: [ask("z", "r2", { openedAt: 0 })] });
    const late = ask("q1", "r1", { openedAt: 3, kind: "grantStageTool", body: { tool: "Bash", args: [1] } });
    await store.append({ ...plain("r1", epoch, next()), opened: [late, ask("q2", "r1")] });
    const ids = async (root?: string) => (await store.requests(root)).map(({ requestId }) => requestId);
    expect([await ids(), await ids("r1"), await ids("r2"), await ids("r1/fan/a")]).toEqual([
      ["z", "q2", "c1", "q1"],
      ["q2", "c1", "q1"],
      ["z"],
      [],
    ]);
    expect((await store.requests("r1")).at(-1)).toEqual({ ...late, answered: false });
    await store.append({ ...plain("r1", epoch, next()), closed: ["q2"] });
    expect(await ids("r1")).toEqual(["c1", "q1"]);
    const end: Pick<Commit, "end"> = { end: { status: "completed", value: null } };
    await store.append({ ...plain("r1", epoch, next()), ...end });
    expect([await ids("r1"), await ids()]).toEqual([["c1"], ["z", "c1"]]);
  });

  test("only what is over as a whole, and held by no one, is removed, with all of it", async () => {
    const { store, other, owner } = opened();
    const end = { status: "completed", value: null } as const;
    const over = async (by: JournalStore, root: string, keys: readonly string[], done: readonly string[]) => {
      const epoch = await startRun(by, root, chainOf(root));
      for (const key of keys) {
        const commit = { ...begun(`${root}/fan/${key}`), epoch };
        await by.create(child(root, key), done.includes(key) ? { ...commit, end } : commit);
      }
      const next = chainOf(root);
      next({ ordinal: -1, stepId: "start", phase: "lifecycle" });
      await by.append({ ...plain(root, epoch, next()), end });
    };
    await over(store, "held", [], []);
    await over(store, "gone", ["a"], ["a"]);
    await over(store, "half", ["a", "b"], ["a"]);
    const leaving = owner();
    await over(leaving, "left", [], []);
    await leaving.close();
    for (const id of ["gone", "half"]) await store.release(id);
    await startRun(store, "open");
    await store.release("open");
    expect(await other.remove(["held", "gone", "half", "left", "open", "gone/fan/a"])).toEqual(["gone", "left"]);
    expect((await store.runs()).map(({ runId }) => runId)).toEqual(["open", "half", "held"]);
    expect([await store.run("gone"), await store.run("gone/fan/a"), await store.runs("gone")]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    expect(await refusal(() => store.records("gone", 0))).toBe("Session run_unknown");
    expect((await store.runs("half")).map(({ runId }) => runId)).toEqual(["half", "half/fan/a", "half/fan/b"]);
    await startRun(store, "gone");
    expect(await store.run("gone")).toMatchObject({ records: 1 });
  });

  test("a handle that is closed refuses every call, notifies no one, and its roots can be claimed", async () => {
    const { store, other } = opened();
    const epoch = await startRun(store, "r1");
    const { record } = begun("r2");
    await store.close();
    const calls: readonly (() => unknown)[] = [
      () => store.create({ runId: "r2", rootId: "r2", createdAt: 1, input: null }, begun("r2")),
      () => store.createWhole([]),
      () => store.claim("r1"),
      () => store.append(plain("r1", epoch, record)),
      () => store.run("r1"),
      () => store.runs(),
      () => store.records("r1", 0),
      () => store.putSignal("r1", { name: "x", payload: 1, by: "me" }, 1),
      () => store.signals("r1", "x"),
      () => store.requestCancel("r1", "why", "me", 1),
      () => store.requests(),
      () => store.remove(["r1"]),
    ];
    for (const call of calls) expect(await refusal(call)).toBe("Host store_closed");
    expect((await other.run("r1"))?.owner?.live ?? false).toBe(false);
    expect(await other.claim("r1")).toBeGreaterThan(epoch);
    expect((await other.runs()).map(({ runId }) => runId)).toEqual(["r1"]);
  });
});
