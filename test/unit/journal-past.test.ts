import { isSluiceError, type JournalRecord, type JsonObject } from "@sluice/core";
import { createMemoryJournals, type JournalStore } from "@sluice/core/host";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  loadForResume,
  NO_RECORDED_STEPS,
  readOpenRecord,
} from "../../packages/core/src/journal/host/recorded-steps.ts";
import { checkChildren } from "../../packages/core/src/journal/host/run-children.ts";
import { childKeys, childRunId, parseSiblingId, rootRunId, runDepth } from "../../packages/core/src/journal/step-id.ts";
import type { RunRow } from "../../packages/core/src/journal/store/journal-store.ts";
import { chain, life, type RecordDraft, step } from "../support/chains.ts";
import { changed } from "../support/journal.ts";

const started = life("start", '{"task":"x"}');
/** A step with an intent, one without, and a fork that is still open. */
const drafts: readonly RecordDraft[] = [
  started,
  step(0, "write", "open", { file: "a" }),
  step(0, "write", "done", "written"),
  life("resume"),
  step(1, "read", "done", "text"),
  step(2, "fan", "open", { children: ["a"] }),
];

interface Kept {
  readonly records: readonly JournalRecord[];
  readonly row: RunRow;
  readonly store: JournalStore;
}
function kept(all: readonly RecordDraft[], row: Partial<RunRow> = {}, keep = chain("r1", all)): Kept {
  const claimed = { records: keep.length, head: keep.at(-1)?.hash ?? "" };
  const store = changed(createMemoryJournals().connect(), { records: () => keep, signals: () => [] });
  return { records: keep, store, row: { runId: "r1", rootId: "r1", createdAt: 1, input: null, ...claimed, ...row } };
}
async function refusal(promise: Promise<unknown>): Promise<readonly unknown[]> {
  return await promise.then(
    () => [],
    (thrown: unknown) =>
      isSluiceError(thrown) ? [thrown.class, thrown.code, thrown.detail, thrown.message] : [thrown],
  );
}
function thrownBy(fn: () => unknown): readonly [string?, string?, (JsonObject | undefined)?] {
  try {
    fn();
  } catch (thrown) {
    if (isSluiceError(thrown)) return [thrown.class, thrown.code, thrown.detail];
    throw thrown;
  }
  return [];
}

describe("a run that is resumed", () => {
  test("has the input that was recorded, its place in the chain, and whether it ever forked", async () => {
    const { records, row, store } = kept(drafts);
    expect(await loadForResume(store, row)).toMatchObject({
      input: { task: "x" },
      seq: 6,
      head: records.at(-1)?.hash,
      forked: true,
    });
    const before = kept(drafts.slice(0, 5));
    expect((await loadForResume(before.store, before.row)).forked).toBe(false);
  });

  test("is taken as it was read before, unless that is not all of it and its children, or of another run", async () => {
    const { records, row, store } = kept(drafts);
    const { head, records: count } = row;
    const read = { runId: "r1", records, input: null, claimed: { records: count, head } };
    for (const before of [
      { ...read, records: [] },
      { ...read, records: records.slice(0, -1) },
      { ...read, runId: "r2" },
    ])
      expect((await refusal(loadForResume(store, row, [before]))).slice(0, 3)).toEqual([
        "Host",
        "run_continued_elsewhere",
        { runId: "r1" },
      ]);
    const now = (...rows: readonly RunRow[]) =>
      changed(store, { records: () => expect.fail("read twice"), runs: () => rows });
    expect(await loadForResume(now(row), row, [read])).toMatchObject({ seq: 6, head });
    const child = { ...row, runId: "r1/fan/a", parentId: "r1" };
    const both = [read, { ...read, runId: child.runId, parentId: "r1" }];
    expect(await loadForResume(now(row, child), row, both)).toMatchObject({ seq: 6, head });
    for (const [later, before] of [
      [now(row, child), [read]],
      [now(row, { ...child, head: "later" }), both],
    ] as const)
      expect((await refusal(loadForResume(later, row, before)))[1]).toBe("run_continued_elsewhere");
  });

  const cut = chain("r1", drafts).slice(0, -1);
  test.each<readonly [string, Kept, string]>([
    ["has no records", kept([]), "empty"],
    ["has lost its tail", kept(drafts, { records: 6, head: "h" }, cut), "has 5 records, its row counts 6"],
    ["has another last record", kept(drafts, { head: "h" }), "another head than its last record"],
    [
      "has a record that was changed",
      kept(drafts, {}, cut.with(1, { ...(cut[1] ?? expect.fail()), value: "" })),
      "write",
    ],
    ["ended, though its row does not say so", kept([started, life("end", "{}")]), "has an end"],
    ["was closed, though its row does not say so", kept([started, life("closed", "{}")]), "has an end"],
  ])("is refused when its journal %s", async (_, { store, row }, why) => {
    const damage = ["Host", "journal_damaged", { runId: "r1" }, expect.stringContaining(why)];
    expect(await refusal(loadForResume(store, row))).toEqual(damage);
  });
});

describe("the past of a run", () => {
  const pastOf = async (all: readonly RecordDraft[]) => {
    const { store, row } = kept(all);
    return (await loadForResume(store, row)).recorded;
  };

  test("is read back step by step, each with its open and its done record, until none is left", async () => {
    const past = await pastOf(drafts);
    expect(past.left).toBe(true);
    expect(past.take(0, "write")).toMatchObject({ stepId: "write", open: { seq: 1 }, done: { seq: 2 } });
    const read = past.take(1, "read");
    expect([read?.open, read?.done?.seq]).toEqual([undefined, 4]);
    const fan = past.take(2, "fan");
    expect([fan?.open?.seq, fan?.done]).toEqual([5, undefined]);
    expect(past.left).toBe(false);
    expect(past.take(3, "anything")).toBeUndefined();
    past.finish();
  });

  test("refuses a step of another name, one too early, and an end before all was asked for", async () => {
    const past = await pastOf(drafts);
    const mismatch = (ordinal: number, recorded: string | null, taken: string | null) => [
      "Host",
      "journal_mismatch",
      { ordinal, recorded, taken },
    ];
    expect(thrownBy(() => past.take(0, "other"))).toEqual(mismatch(0, "write", "other"));
    expect(thrownBy(() => past.take(7, "late"))).toEqual(mismatch(7, null, "late"));
    expect(thrownBy(() => past.finish())).toEqual(mismatch(0, "write", null));
    past.take(0, "write");
    expect(thrownBy(() => past.finish())).toEqual(mismatch(1, "read", null));
  });

  test("says what is recorded and what the program did instead", async () => {
    const past = await pastOf(drafts);
    const why = "the pipeline or Sluice changed since the run started";
    expect(() => past.take(0, "other")).toThrow(
      `run r1: step 0 is recorded as write, but the program took other; ${why}`,
    );
    expect(() => past.take(7, "late")).toThrow(
      `run r1: step 7 is not recorded, though later ones are, but the program took late; ${why}`,
    );
    expect(() => past.finish()).toThrow(`run r1: step 0 is recorded as write, but the program ended; ${why}`);
  });

  test("refuses a journal in which a step that is not done has others after it", async () => {
    const past = await pastOf([started, step(0, "write", "open", 1), step(1, "read", "done", 1)]);
    expect(thrownBy(() => past.take(0, "write"))).toEqual([
      "Host",
      "journal_mismatch",
      { ordinal: 1, recorded: null, taken: "write" },
    ]);
  });

  test("of a run that begins here is empty", () => {
    expect(NO_RECORDED_STEPS.left).toBe(false);
    expect(NO_RECORDED_STEPS.take(0, "a")).toBeUndefined();
    expect(NO_RECORDED_STEPS.finish()).toBeUndefined();
  });

  test("an open record tells its incarnation, and its intent if it has one", () => {
    const [, open] = chain("r1", drafts);
    expect(readOpenRecord(open ?? expect.fail())).toStrictEqual({ incarnation: "i1", intent: { file: "a" } });
    expect(readOpenRecord({ ...(open ?? expect.fail()), value: "" })).toStrictEqual({ incarnation: "i1" });
    expect(readOpenRecord({ ...(open ?? expect.fail()), value: "null" })).toStrictEqual({
      incarnation: "i1",
      intent: null,
    });
  });
});

describe("a fork", () => {
  const children = (...keys: readonly string[]) => keys.map((key) => ({ key, input: null, events: [] }));
  const recordOf = (draft: RecordDraft): JournalRecord => chain("r1", [draft])[0] ?? expect.fail();
  const open = recordOf(step(0, "fan", "open", { children: ["a", "b"] }));

  test("names its children by run, step and key", () => {
    expect(childRunId("r1", "fan-1", "a")).toBe("r1/fan-1/a");
    for (const state of ["a", "Plan_2", "fix-tests", "constructor"])
      expect(childRunId("r1", "fan-1", state)).toBe(`r1/fan-1/${state}`);
  });

  test("names each child by an id of its own, from which its key is read, whatever the key is", () => {
    const key = fc.oneof(
      fc.string({ unit: "binary", minLength: 1 }),
      fc.stringMatching(/^[./%\\ 2Ff~'()*!-]{1,6}$/),
      fc.constantFrom("..", ".", "/", "%2F", "%2f", "%", "a/../b", "é", "%C3%A9"),
    );
    fc.assert(
      fc.property(key, key, (one, other) => {
        const [id, otherId] = [childRunId("r1", "fan-1", one), childRunId("r1", "fan-1", other)];
        expect(id === otherId).toBe(one === other);
        expect(id).toMatch(/^r1\/fan-1\/(?!\.)[\w.%-]+$/);
        expect(parseSiblingId(id)).toEqual({ parentId: "r1", fanOut: "fan-1", key: one });
      }),
    );
  });

  test("keeps the id of its root, and is one level deeper than its parent", () => {
    const child = childRunId("r1", "fan-1", "a/b");
    const grandchild = childRunId(child, "fan-2", "c");
    expect([rootRunId("r1"), rootRunId(child), rootRunId(grandchild)]).toEqual(["r1", "r1", "r1"]);
    expect([runDepth("r1"), runDepth(child), runDepth(grandchild)]).toEqual([0, 1, 2]);
  });

  test("never throws at an id from elsewhere, and reads no two ids as the same child", () => {
    for (const odd of ["%61", "%zz", "%2f", "a b", "%E0%A4", "..", "\ud800"])
      expect(parseSiblingId(`r1/fan-1/${odd}`)?.key).toBe(odd);
    expect(childRunId("r1", "fan-1", "\ud800")).toBe("r1/fan-1/%EF%BF%BD");
  });

  test.each([[["a", ""]], [["a\ud800"]], [["a", "b", "a"]]])("with the keys %j is refused", (keys) => {
    expect(thrownBy(() => checkChildren("r1", "fan", children(...keys), undefined)).slice(0, 2)).toEqual([
      "Validation",
      "fork_key",
    ]);
  });

  test("is the recorded one only with the same children in the same order", () => {
    expect(thrownBy(() => checkChildren("r1", "fan", children("a", "b"), undefined))).toEqual([]);
    expect(thrownBy(() => checkChildren("r1", "fan", children("a", "b"), open))).toEqual([]);
    expect(thrownBy(() => checkChildren("r1", "fan", [], undefined))).toEqual([]);
    for (const keys of [[], ["a"], ["b", "a"], ["a", "b", "c"]])
      expect(thrownBy(() => checkChildren("r1", "fan", children(...keys), open)).slice(0, 2)).toEqual([
        "Host",
        "journal_mismatch",
      ]);
    const other = recordOf(step(0, "fan", "open", { file: "a" }));
    expect(thrownBy(() => checkChildren("r1", "fan", [], other))[1]).toBe("journal_mismatch");
  });

  test("is known by its open record and by no other", () => {
    expect(childKeys(open)).toEqual(["a", "b"]);
    expect(childKeys(recordOf(step(0, "fan", "open", { children: [] })))).toEqual([]);
    expect(childKeys(recordOf(step(0, "fan", "done", { children: ["a"] })))).toBeUndefined();
    expect(childKeys(recordOf(step(0, "fan", "open", { children: "a" })))).toBeUndefined();
    expect(childKeys(recordOf(step(0, "fan", "open", { a: 1, children: ["a"] })))).toBeUndefined();
    expect(childKeys({ ...open, value: '{"children":["a"' })).toBeUndefined();
    expect(childKeys({ ...open, value: '{"children":["a",7]}' })).toEqual(["a"]);
  });
});
