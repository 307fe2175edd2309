import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { OpenRequest } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { chainOf, open, plain, scratch, startRun } from "../support/sqlite-store.ts";

function request(runId: string, requestId: string, openedAt = 5): OpenRequest {
  return {
    requestId,
    runId,
    kind: "grantStageTool",
    digest: "d1",
    body: { tool: "Bash", words: ["ls", "é\u0000"] },
    openedAt,
  };
}

describe("records", () => {
  test("come back exactly as they were written, whatever is in them", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const written = [
      next({
        phase: "open",
        value: "",
        events: JSON.stringify([{ at: 1, type: "turn.started", data: { text: "a\u0000b\ud800 ü 🙂" } }]),
      }),
      next({ value: JSON.stringify({ n: 1.5e300, s: "line\nline", none: null }), stepId: "plan#1/a1/turn/1/model" }),
      next({ ordinal: -1, phase: "lifecycle", stepId: "suspend", value: "" }),
    ];
    for (const record of written) await store.append(plain("r1", epoch, record));
    expect(await store.records("r1", 1)).toEqual(written);
    expect(await store.records("r1", 3)).toEqual(written.slice(2));
    expect(await store.records("r1", 4)).toEqual([]);
    expect(await store.run("r1")).toMatchObject({ records: 4, head: written[2]?.hash });
  });

  test("of a run that no one started are refused", () => {
    const store = open(scratch());
    expect(() => store.records("r1", 0)).toThrow(expect.objectContaining({ code: "run_unknown" }));
  });

  test("that are not the next one are refused and leave nothing", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    next();
    const skipping = next();
    expect(() => store.append(plain("r1", epoch, skipping))).toThrow(
      expect.objectContaining({ code: "ownership_lost" }),
    );
    expect(await store.run("r1")).toMatchObject({ records: 1 });
    expect(await store.records("r1", 0)).toHaveLength(1);
  });

  test("survive closing and opening", async () => {
    const folder = scratch();
    const first = open(folder);
    const next = chainOf("r1");
    const epoch = await startRun(first, "r1", next);
    const record = next({ value: '{"kept":true}' });
    await first.append(plain("r1", epoch, record));
    await first.close();
    expect(await open(folder).records("r1", 1)).toEqual([record]);
  });
});

describe("runs", () => {
  test("are listed newest first, trees in order of creation", async () => {
    const store = open(scratch());
    await startRun(store, "r1");
    const epoch = await startRun(store, "r2");
    for (const runId of ["r2/fan-2/lint", "r2/fan-2/test"]) {
      const record = chainOf(runId)();
      const row = { runId, rootId: "r2", parentId: "r2", createdAt: 9, input: { of: runId } };
      expect(await store.create(row, { record, opened: [], closed: [], epoch })).toBe(epoch);
    }
    expect((await store.runs()).map((run) => run.runId)).toEqual(["r2", "r1"]);
    expect((await store.runs("r2")).map((run) => run.runId)).toEqual(["r2", "r2/fan-2/lint", "r2/fan-2/test"]);
    expect(await store.runs("r2/fan-2/lint")).toEqual([]);
    expect(await store.run("r2/fan-2/test")).toMatchObject({
      rootId: "r2",
      parentId: "r2",
      createdAt: 9,
      input: { of: "r2/fan-2/test" },
      owner: { id: store.ownerId, live: true },
    });
    expect(await store.run("r3")).toBeUndefined();
  });

  test("with path-like ids are rows, never files", async () => {
    const folder = scratch();
    const store = open(join(folder, "store"));
    await startRun(store, "../../escape");
    await startRun(store, "/etc/passwd");
    expect((await store.runs()).map((run) => run.runId)).toEqual(["/etc/passwd", "../../escape"]);
    expect(readdirSync(folder)).toEqual(["store"]);
  });

  test("cannot be made twice", async () => {
    const store = open(scratch());
    await startRun(store, "r1");
    await expect(startRun(store, "r1")).rejects.toMatchObject({ class: "Host", code: "run_exists" });
    expect(await store.records("r1", 0)).toHaveLength(1);
  });

  test("that ended take no more records and have no open requests", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await store.append({ ...plain("r1", epoch, next()), opened: [request("r1", "q1")] });
    const end = { status: "failed" as const, value: { why: "x" } };
    await store.append({ ...plain("r1", epoch, next()), end });
    expect(await store.run("r1")).toMatchObject({ end });
    expect(await store.requests()).toEqual([]);
    expect(() => store.append(plain("r1", epoch, next()))).toThrow(expect.objectContaining({ code: "run_finished" }));
  });

  test("can end in their first record", async () => {
    const store = open(scratch());
    const end = { status: "cancelled" as const, value: null };
    const record = chainOf("r1")();
    await store.create(
      { runId: "r1", rootId: "r1", createdAt: 1, input: null },
      { record, opened: [request("r1", "q1")], closed: [], end },
    );
    expect(await store.run("r1")).toMatchObject({ end });
    expect(await store.requests("r1")).toEqual([]);
  });

  test("keep who asked for their end", async () => {
    const store = open(scratch());
    await startRun(store, "r1");
    expect(await store.requestCancel("r1", "too slow", "me", 7)).toBe(true);
    expect(await store.requestCancel("r2", "too slow", "me", 7)).toBe(false);
    expect(await store.run("r1")).toMatchObject({ cancel: { reason: "too slow", by: "me", at: 7 } });
  });
});

describe("requests", () => {
  test("open and close with the record that says so", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const opened = [request("r1", "q2", 20), request("r1", "q1", 10)];
    await store.append({ ...plain("r1", epoch, next()), opened });
    expect(await store.requests("r1")).toMatchObject(
      [opened[1], opened[0]].map((one) => ({ ...one, answered: false })),
    );
    expect(await store.requests("r9")).toEqual([]);
    await store.append({ ...plain("r1", epoch, next()), closed: ["q1"] });
    expect(await store.requests()).toMatchObject([{ ...opened[0], answered: false }]);
  });

  test("with the same id in two runs are two requests", async () => {
    const store = open(scratch());
    for (const runId of ["r1", "r2"]) {
      const next = chainOf(runId);
      const epoch = await startRun(store, runId, next);
      await store.append({ ...plain(runId, epoch, next()), opened: [request(runId, "q1")] });
    }
    expect(await store.requests()).toHaveLength(2);
    expect(await store.putSignal("r1", { name: "request/q1", payload: true, by: "a" }, 1)).toBe("accepted");
    expect(await store.putSignal("r2", { name: "request/q1", payload: true, by: "a" }, 1)).toBe("accepted");
  });
});

describe("signals", () => {
  test("that come before anybody waits are kept in order", async () => {
    const store = open(scratch());
    await startRun(store, "r1");
    for (const n of [1, 2, 3])
      expect(await store.putSignal("r1", { name: "news", payload: { n }, by: "ci" }, n)).toBe("accepted");
    expect(await store.signals("r1", "news")).toEqual([1, 2, 3].map((n) => ({ payload: { n }, by: "ci", at: n })));
    expect(await store.signals("r1", "other")).toEqual([]);
  });

  test("to a run that is not there or has ended are unknown", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    expect(await store.putSignal("r2", { name: "news", payload: 1, by: "ci" }, 1)).toBe("unknown");
    await store.append({ ...plain("r1", epoch, next()), end: { status: "completed", value: 1 } });
    expect(await store.putSignal("r1", { name: "news", payload: 1, by: "ci" }, 1)).toBe("unknown");
  });

  test("answer a request once, and only what was asked", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const answer = (digest: string, by: string) =>
      store.putSignal("r1", { name: "request/q1", payload: "approve", digest, by }, 2);
    expect(await answer("d1", "early")).toBe("unknown");
    await store.append({ ...plain("r1", epoch, next()), opened: [request("r1", "q1")] });
    expect(await answer("other", "a")).toBe("digest_mismatch");
    expect(await answer("d1", "b")).toBe("accepted");
    expect(await answer("d1", "c")).toBe("already_answered");
    expect(await store.signals("r1", "request/q1")).toEqual([{ payload: "approve", by: "b", at: 2 }]);
  });
});

describe("ownership", () => {
  test("is refused while the owner lives, and passes on when it lets go", async () => {
    const folder = scratch();
    const [a, b] = [open(folder), open(folder)];
    const next = chainOf("r1");
    const epoch = await startRun(a, "r1", next);
    expect(() => b.claim("r1")).toThrow(expect.objectContaining({ code: "run_owned" }));
    expect(() => b.claim("r2")).toThrow(expect.objectContaining({ code: "run_unknown" }));
    await a.release("r1");
    expect((await b.run("r1"))?.owner).toBeUndefined();
    const newEpoch = await b.claim("r1");
    expect(newEpoch).toBeGreaterThan(epoch);
    expect(() => a.append(plain("r1", epoch, next()))).toThrow(
      expect.objectContaining({ class: "Host", code: "ownership_lost" }),
    );
    await a.release("r1");
    expect(await a.run("r1")).toMatchObject({ owner: { id: b.ownerId, live: true } });
  });

  test("of an earlier epoch of the same owner is not enough", async () => {
    const store = open(scratch());
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await store.release("r1");
    await store.claim("r1");
    expect(() => store.append(plain("r1", epoch, next()))).toThrow(expect.objectContaining({ code: "ownership_lost" }));
  });

  test("of the tree is needed to add a child", async () => {
    const folder = scratch();
    const [a, b] = [open(folder), open(folder)];
    const epoch = await startRun(a, "r1");
    const child = { runId: "r1/f/x", rootId: "r1", parentId: "r1", createdAt: 1, input: null };
    const commit = { record: chainOf("r1/f/x")(), opened: [], closed: [] };
    expect(() => b.create(child, { ...commit, epoch })).toThrow(expect.objectContaining({ code: "ownership_lost" }));
    expect(() => a.create(child, { ...commit, epoch: epoch + 1 })).toThrow(
      expect.objectContaining({ code: "ownership_lost" }),
    );
    expect(await a.run("r1/f/x")).toBeUndefined();
    expect(await a.create(child, { ...commit, epoch })).toBe(epoch);
  });

  test("ends with the handle", async () => {
    const folder = scratch();
    const a = open(folder);
    await startRun(a, "r1");
    expect(readdirSync(join(folder, "owners"))).toEqual([`${a.ownerId}.db`]);
    await a.close();
    expect(readdirSync(join(folder, "owners"))).toEqual([]);
    const b = open(folder);
    expect((await b.run("r1"))?.owner).toBeUndefined();
    expect(await b.claim("r1")).toBe(2);
  });
});

describe("long texts", () => {
  const long = JSON.stringify({ text: "ä".repeat(200_000) });

  test("lie in blobs named by their content, and come back whole", async () => {
    const folder = scratch();
    const store = open(folder);
    const next = chainOf("r1");
    const first = next({ value: JSON.stringify(long) });
    await store.create(
      { runId: "r1", rootId: "r1", createdAt: 1, input: long },
      { record: first, opened: [], closed: [] },
    );
    const second = next({ value: long, events: long });
    const end = { status: "completed" as const, value: JSON.parse(long) };
    await store.append({ ...plain("r1", 1, second), end });
    expect(await store.records("r1", 0)).toEqual([first, second]);
    expect(await store.run("r1")).toMatchObject({ input: long, end });
    expect(readdirSync(join(folder, "blobs"))).toHaveLength(2);
  });

  test("up to 256 KB stay in the database", async () => {
    const folder = scratch();
    const store = open(folder);
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const record = next({ value: JSON.stringify("x".repeat(256 * 1024 - 2)) });
    await store.append(plain("r1", epoch, record));
    expect(readdirSync(join(folder, "blobs"))).toEqual([]);
    await store.append(plain("r1", epoch, next({ value: JSON.stringify("x".repeat(256 * 1024 - 1)) })));
    expect(readdirSync(join(folder, "blobs"))).toHaveLength(1);
  });

  test("that were lost or changed are named", async () => {
    const folder = scratch();
    const store = open(folder);
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    await store.append(plain("r1", epoch, next({ value: long })));
    const [blob = ""] = readdirSync(join(folder, "blobs"));
    const file = join(folder, "blobs", blob);
    writeFileSync(file, `${long} `);
    expect(() => store.records("r1", 0)).toThrow(
      expect.objectContaining({ code: "blob_damaged", message: expect.stringContaining(blob) }),
    );
    rmSync(file);
    expect(() => store.records("r1", 0)).toThrow(
      expect.objectContaining({ code: "blob_missing", message: expect.stringContaining("run r1") }),
    );
    // Writing the same text again fixes it.
    await store.append(plain("r1", epoch, next({ value: long })));
    expect((await store.records("r1", 1))[0]?.value).toBe(long);
  });

  test("half written by a process that is gone are removed, by one that lives not", async () => {
    const folder = scratch();
    const owner = open(folder);
    await startRun(owner, "r1");
    const digest = "0".repeat(64);
    const [dead, alive] = [`${digest}.1-${"0".repeat(24)}.tmp`, `${digest}.${owner.ownerId}.tmp`];
    for (const name of [dead, alive]) writeFileSync(join(folder, "blobs", name), "half");
    open(folder);
    expect(readdirSync(join(folder, "blobs"))).toEqual([alive]);
  });
});

describe("changes", () => {
  test("of this handle are reported at once, of another at the next look; without a listener no one looks", async () => {
    const folder = scratch();
    const clock = handClock();
    const [a, b] = [open(folder, { clock }), open(folder)];
    expect(clock.waiting()).toBe(0);
    let calls = 0;
    const stop = a.onChange(() => {
      calls += 1;
    });
    expect(clock.waiting()).toBe(1);
    await startRun(a, "r1");
    expect(calls).toBe(1);
    clock.turn(100);
    expect(calls).toBe(1);
    await startRun(b, "r2");
    expect(calls).toBe(1);
    clock.turn(25);
    expect(calls).toBe(2);
    await b.putSignal("r1", { name: "news", payload: 1, by: "b" }, 1);
    await b.requestCancel("r1", "enough", "b", 1);
    clock.turn(25);
    expect(calls).toBe(3);
    stop();
    expect(clock.waiting()).toBe(0);
  });

  test("are reported to every listener, also to one that was added twice", async () => {
    const store = open(scratch());
    let calls = 0;
    const listener = (): void => {
      calls += 1;
    };
    const stops = [store.onChange(listener), store.onChange(listener)];
    await startRun(store, "r1");
    expect(calls).toBe(2);
    for (const stop of stops) stop();
    await startRun(store, "r2");
    expect(calls).toBe(2);
  });
});

describe("a lock that another connection holds", () => {
  function lockOut(folder: string): () => void {
    const other = new DatabaseSync(join(folder, "journal.db"));
    other.exec("BEGIN IMMEDIATE");
    return () => {
      other.exec("COMMIT");
      other.close();
    };
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  test("is waited for without blocking, and the commit is made once", async () => {
    const folder = scratch();
    const clock = handClock();
    const store = open(folder, { clock });
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const unlock = lockOut(folder);
    const record = next();
    const appended = store.append(plain("r1", epoch, record));
    clock.turn(50);
    await settle();
    expect(await store.records("r1", 1)).toEqual([]);
    unlock();
    clock.turn(50);
    await appended;
    expect(await store.records("r1", 1)).toEqual([record]);
  });

  test("for about five seconds is an error, and nothing is kept", async () => {
    const folder = scratch();
    const clock = handClock();
    const store = open(folder, { clock });
    const next = chainOf("r1");
    const epoch = await startRun(store, "r1", next);
    const unlock = lockOut(folder);
    let failure: unknown;
    const appended = Promise.resolve(store.append(plain("r1", epoch, next()))).catch((thrown: unknown) => {
      failure = thrown;
    });
    for (let tries = 0; tries < 200 && failure === undefined; tries += 1) {
      clock.turn(50);
      await settle();
    }
    await appended;
    unlock();
    expect(failure).toMatchObject({ class: "Host", code: "store_busy" });
    expect(await store.run("r1")).toMatchObject({ records: 1 });
  });

  test("and a store closed meanwhile end in store_closed", async () => {
    const folder = scratch();
    const clock = handClock();
    const store = open(folder, { clock });
    await startRun(store, "r1");
    const unlock = lockOut(folder);
    const asked = store.requestCancel("r1", "x", "y", 1);
    unlock();
    await store.close();
    clock.turn(50);
    await expect(asked).rejects.toMatchObject({ code: "store_closed" });
  });
});

test("a closed store says so to every call", async () => {
  const store = open(scratch());
  const next = chainOf("r1");
  await startRun(store, "r1", next);
  await store.close();
  const closed = expect.objectContaining({ class: "Host", code: "store_closed" });
  await expect(startRun(store, "r2")).rejects.toEqual(closed);
  expect(() => store.append(plain("r1", 1, next()))).toThrow(closed);
  expect(() => store.claim("r1")).toThrow(closed);
  expect(() => store.run("r1")).toThrow(closed);
  expect(() => store.runs()).toThrow(closed);
  expect(() => store.records("r1", 0)).toThrow(closed);
  expect(() => store.putSignal("r1", { name: "n", payload: 1, by: "b" }, 1)).toThrow(closed);
  expect(() => store.signals("r1", "n")).toThrow(closed);
  expect(() => store.requestCancel("r1", "x", "y", 1)).toThrow(closed);
  expect(() => store.requests()).toThrow(closed);
  expect(() => store.onChange(() => undefined)).toThrow(closed);
  await store.close();
});

test("a backup opens as a store of its own, with the blobs", async () => {
  const folder = scratch();
  const store = open(join(folder, "store"));
  const next = chainOf("r1");
  const epoch = await startRun(store, "r1", next);
  const record = next({ value: JSON.stringify("x".repeat(300_000)) });
  await store.append(plain("r1", epoch, record));
  store.backupTo(join(folder, "copy"));
  expect(() => store.backupTo(join(folder, "copy"))).toThrow(expect.objectContaining({ class: "Host" }));
  await store.append(plain("r1", epoch, next()));
  const copy = open(join(folder, "copy"));
  expect(await copy.records("r1", 1)).toEqual([record]);
  expect(await copy.run("r1")).toMatchObject({ owner: { live: false } });
  expect(existsSync(join(folder, "copy", "blobs"))).toBe(true);
});
