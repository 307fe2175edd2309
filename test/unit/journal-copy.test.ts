import type { EventDraft, Json, RunCopy, RunEnd, RunJournal } from "@sluice/core";
import { createHost, createMemoryJournals, readEvents, verifyJournal } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import type { WholeRun } from "../../packages/core/src/journal/store/journal-store.ts";
import { chain, life, type RecordDraft, step } from "../support/chains.ts";
import { handClock } from "../support/hand-clock.ts";
import { changed, endOf, start, turns, waiting } from "../support/journal.ts";

const started: readonly EventDraft[] = [{ type: "run.started", data: { pipeline: "copied" } }];
const forked: readonly EventDraft[] = [{ type: "run.forked", data: { of: "r1" } }];
const copy: RunCopy = { runId: "r2", of: "r1", before: 3, started, forked };

const withEvent = (draft: RecordDraft, type: string, data: Json, at = 5): RecordDraft => ({
  ...draft,
  events: JSON.stringify([{ at, type, data }]),
});
function whole(runId: string, rootId: string, drafts: readonly RecordDraft[], parentId?: string): WholeRun {
  const records = chain(runId, drafts);
  const last = records.at(-1);
  const over = last?.stepId === "end" || last?.stepId === "closed";
  const input: Json = JSON.parse(records[0]?.value ?? "null");
  const row = { runId, rootId, createdAt: 5, input, ...(parentId === undefined ? {} : { parentId }) };
  return { row, records, head: last?.hash ?? "", ...(over ? { end: JSON.parse(last?.value ?? "") } : {}) };
}
const begin = (parent: string): RecordDraft =>
  withEvent(
    life("start", '{"parent":"r1","children":{"r1/fan/b":"r1"}}'),
    "run.started",
    { pipeline: "r1", state: "r1/fan/b", parent },
    7,
  );
const over = (end: RunEnd): RecordDraft =>
  withEvent(life("end", JSON.stringify(end)), "run.finished", { status: end.status, reason: "r1" });

/** The head of a run below `r1`, as a reader may have written it down somewhere. */
const KNOWN: string = treeOf("r1", "").find(({ row }) => row.runId === "r1/fan/r1/deep/x")?.head ?? "";

/**
 * A run that forked into `r1`, which forked into `x`, and `b`, which was closed with `y` below it. Whatever is said in it is about
 * `r1`, where ids and heads have no place: a copy has to say the same.
 */
function treeOf(root: string, known: string = KNOWN): readonly WholeRun[] {
  const [a, b] = [`${root}/fan/r1`, `${root}/fan/b`];
  const done: RunEnd = { status: "completed", value: { head: known, parent: "r1" } };
  const saying = withEvent(step(0, "say", "done", { list: ["r1", known], to: { head: known } }), "stage.init", {
    run: "r1",
    head: known,
  });
  const x = whole(`${a}/deep/x`, root, [begin(a), saying, over(done)], a);
  const joinOf = (ordinal: number, name: string, ends: readonly (readonly [string, WholeRun])[]): RecordDraft =>
    withEvent(
      step(
        ordinal,
        name,
        "done",
        Object.fromEntries(
          ends.map(([key, { head, records, end }]) => [key, { ...end, records: records.length, head }]),
        ),
      ),
      "fanOut.joined",
      { fanOut: "r1", outcomes: ends.map(([key, { head }]) => ({ name: key, status: "r1", head })) },
    );
  const first = whole(
    a,
    root,
    [begin(root), saying, step(1, "deep", "open", { children: ["x"] }), joinOf(1, "deep", [["x", x]]), over(done)],
    root,
  );
  const closed = (children: readonly WholeRun[]): RecordDraft => {
    const heads = Object.fromEntries(children.map(({ row, head }) => [row.runId, head]));
    const named = children.map(({ row, head }) => ({ run: row.runId, head }));
    const end: RunEnd = { status: "cancelled", value: { reason: "r1", children: heads } };
    const data = { status: "cancelled", reason: "r1", children: named };
    return withEvent(life("closed", JSON.stringify(end)), "run.finished", data);
  };
  const y = whole(`${b}/deep/y`, root, [life("start", "7"), life("resume"), closed([])], b);
  const second = whole(b, root, [begin(root), step(0, "deep", "open", { children: ["y"] }), closed([y])], root);
  const top = whole(root, root, [
    withEvent(life("start", '"input"'), "run.started", { pipeline: "p" }),
    step(0, "fan", "open", { children: ["r1", "b"] }),
    joinOf(0, "fan", [
      ["r1", first],
      ["b", second],
    ]),
    step(1, "last", "done", 1),
    over(done),
  ]);
  return [top, first, x, second, y];
}
const journalsIn = (runs: readonly WholeRun[]): readonly RunJournal[] =>
  runs.map(({ row: { runId, parentId, input }, records, head, end }) => ({
    runId,
    input,
    records,
    claimed: { records: records.length, head },
    ...(parentId === undefined ? {} : { parentId }),
    ...(end === undefined ? {} : { end }),
  }));

function hostOver(runs: readonly WholeRun[]) {
  const clock = handClock(9_000);
  const store = createMemoryJournals().connect();
  void store.createWhole(runs);
  return { clock, store, host: createHost(store, { clock }) };
}

describe("a copy of a run that forked", () => {
  test("has below it what a run of its own id would have recorded, and nothing else is changed", async () => {
    const { host } = hostOver(treeOf("r1"));
    expect(verifyJournal(await host.journal("r1")).faults).toEqual([]);
    await host.copy(copy);
    const made = await host.journal("r2");
    expect(verifyJournal(made).faults).toEqual([]);
    expect(made.slice(1)).toEqual(journalsIn(treeOf("r2")).slice(1));
    for (const { runId, records, end } of made.slice(1)) {
      expect(await host.get(runId)).toMatchObject({ createdAt: runId.endsWith("/y") ? 9_000 : 7, end });
      expect(records[0]?.value).not.toContain("r2");
    }
    expect(await host.journal("r1")).toEqual(journalsIn(treeOf("r1")));
  });

  test("itself begins when the other did, with its own words, and says where its past ends", async () => {
    const { host } = hostOver(treeOf("r1"));
    await host.copy(copy);
    const [made] = await host.journal("r2");
    const [begun, open, joined, last, ...more] = made?.records ?? [];
    expect(more).toEqual([]);
    const [wanted] = treeOf("r2");
    const unchained = ({ records }: WholeRun, at: number) => {
      const { hash: _hash, ...unhashed } = records[at] ?? expect.fail();
      return unhashed;
    };
    expect(open).toMatchObject(unchained(wanted ?? expect.fail(), 1));
    expect(joined).toMatchObject(unchained(wanted ?? expect.fail(), 2));
    expect(begun).toMatchObject({ seq: 0, ordinal: -1, stepId: "start", phase: "lifecycle", value: '"input"' });
    expect(readEvents("r2", begun ?? expect.fail())).toMatchObject([{ ...started[0], at: 5 }]);
    expect(last).toMatchObject({ seq: 3, ordinal: -1, stepId: "forked", phase: "lifecycle", value: "" });
    expect(readEvents("r2", last ?? expect.fail())).toMatchObject([{ ...forked[0], at: 9_000 }]);
    expect(begun?.incarnation).toBe(last?.incarnation);
    expect(begun?.incarnation).not.toBe("i1");
    expect(await host.get("r2")).toMatchObject({ createdAt: 9_000, input: "input", status: "suspended" });
  });
});

describe("of a fork that is open", () => {
  const fan = step(0, "fan", "open", { children: ["done", "failed", "open", "none"] });
  const below = (key: string, drafts: readonly RecordDraft[]): WholeRun =>
    whole(`r1/fan/${key}`, "r1", [begin("r1"), ...drafts], "r1");
  const tree = [
    whole("r1", "r1", [life("start", "null"), fan]),
    below("done", [over({ status: "completed", value: 1 })]),
    below("failed", [over({ status: "failed", value: 1 })]),
    below("open", [step(0, "s", "done", 1)]),
  ];
  const copied = async (more: Partial<RunCopy>): Promise<readonly string[]> => {
    const { host } = hostOver(tree);
    await host.copy({ ...copy, before: 2, ...more });
    const made = await host.journal("r2");
    expect(verifyJournal(made).faults).toEqual([]);
    return made.map(({ runId }) => runId);
  };

  test("come along those that completed, unless they are to begin again", async () => {
    expect(await copied({})).toEqual(["r2", "r2/fan/done"]);
    expect(await copied({ again: [] })).toEqual(["r2", "r2/fan/done"]);
    expect(await copied({ again: ["failed", "none"] })).toEqual(["r2", "r2/fan/done"]);
    expect(await copied({ again: ["done"] })).toEqual(["r2"]);
  });

  test("comes nothing where the copy ends before it", async () => {
    expect(await copied({ before: 1 })).toEqual(["r2"]);
  });

  test("begins a copy when it is made where nothing says when the other began", async () => {
    const { host } = hostOver(tree);
    await host.copy({ ...copy, before: 2 });
    const [made] = await host.journal("r2");
    expect(readEvents("r2", made?.records[0] ?? expect.fail())[0]?.at).toBe(9_000);
  });
});

describe("a copy is refused", () => {
  const asking = (id: string, type = "request.opened"): RecordDraft =>
    withEvent(step(0, "ask", "done", null), type, { requestId: id, kind: "askUser", digest: "d", body: {} });
  const place = (before: number, why: string) => ({
    class: "Validation",
    code: "copy_point",
    message: `run r1 cannot be copied up to record ${before}: ${why}`,
    detail: { runId: "r1", before },
  });
  const numbered = (drafts: readonly RecordDraft[]): readonly RecordDraft[] =>
    drafts.map((draft, ordinal) => ({ ...draft, ordinal }));
  const refusal = async (drafts: readonly RecordDraft[], before: number): Promise<unknown> => {
    const { host } = hostOver([whole("r1", "r1", [life("start", "null"), ...drafts])]);
    const thrown = await host.copy({ ...copy, before }).catch((error: unknown) => error);
    expect((await host.get("r2"))?.runId).toBe(thrown === undefined ? "r2" : undefined);
    return thrown;
  };

  test("before the first record, and behind the last, of a run that is open too", async () => {
    const steps = [step(0, "a", "done", 1), step(1, "b", "done", 1)];
    expect(await refusal(steps, 0)).toMatchObject(place(0, "no record precedes it"));
    for (const before of [4, 9, -1, 1.5])
      expect(await refusal(steps, before)).toMatchObject(place(before, "the run has no such record"));
    const { host } = hostOver([whole("r1", "r1", [life("start", "null"), over({ status: "failed", value: 1 })])]);
    await expect(host.copy({ ...copy, before: 2 })).rejects.toMatchObject(place(2, "the run has no such record"));
  });

  test("where a step is open, which is named", async () => {
    const steps = [step(0, "a", "open", { x: 1 }), step(0, "a", "done", 1)];
    expect(await refusal(steps, 2)).toMatchObject(place(2, "step a is open there"));
  });

  test("where a request is open, until it is closed, and by nothing but what closes it", async () => {
    const closing = (id: string, type: string) => asking(id, type);
    for (const [opens, closes] of [
      ["request.opened", "request.answered"],
      ["request.opened", "request.expired"],
      ["grant.requested", "grant.answered"],
      ["grant.requested", "grant.expired"],
    ] as const) {
      const drafts = numbered([asking("q1", opens), asking("q2", opens), closing("q2", closes), closing("q1", closes)]);
      expect(await refusal(drafts, 2)).toMatchObject(place(2, 'request "q1" is open there'));
      expect(await refusal(drafts, 4)).toMatchObject(place(4, 'request "q1" is open there'));
      expect(await refusal(drafts, 5)).toBeUndefined();
    }
    const spoken = numbered([
      asking("q1"),
      asking("q1", "grant.consumed"),
      asking("q1", "stage.init"),
      asking("", "stage.init"),
    ]);
    expect(await refusal(spoken, 4)).toMatchObject(place(4, 'request "q1" is open there'));
    const { requestId: _id, ...nameless } = { requestId: 1, kind: "askUser" };
    const unnamed = numbered([
      withEvent(step(0, "ask", "done", null), "request.opened", nameless),
      asking("q1", "request.answered"),
    ]);
    expect(await refusal(unnamed, 3)).toMatchObject(place(3, "request null is open there"));
  });

  test("where the other is not as it was written, which is named, or went away meanwhile", async () => {
    const [top, ...below] = treeOf("r1");
    const [first, ...others] = below;
    const records = first?.records.map((record) => (record.seq === 1 ? { ...record, value: "2" } : record)) ?? [];
    const { host } = hostOver([top ?? expect.fail(), { ...(first ?? expect.fail()), records }, ...others]);
    const why = "record 1 (say) was changed after it was written";
    await expect(host.copy(copy)).rejects.toMatchObject({
      class: "Host",
      code: "journal_damaged",
      message: `run r1/fan/r1 was changed after it was written (${why}) and cannot be copied`,
      detail: { runId: "r1/fan/r1" },
    });
    const { store, clock } = hostOver(treeOf("r1"));
    const going = createHost(changed(store, { runs: () => [] }), { clock });
    await expect(going.copy(copy)).rejects.toMatchObject({ class: "Session", code: "run_unknown" });
  });
});

test("what a step says of heads stays as it was said, also where no run comes along", async () => {
  const said: Json = { a: { head: "r1" }, b: [{ head: "r1" }], head: "r1", parent: "r1" };
  const intent = withEvent(step(1, "b", "open", { head: "r1" }), "stage.init", { run: "r1" });
  const drafts = [
    life("start", "null"),
    withEvent(step(0, "a", "done", said), "stage.init", { run: "r1", parent: "r1" }),
    intent,
    step(1, "b", "done", said),
    withEvent(step(2, "none", "open", { children: [] }), "fanOut.started", { siblings: ["r1"], run: "r1" }),
    step(2, "none", "done", { x: null, y: "r1", z: [1], head: "r1" }),
    withEvent(step(3, "start", "done", said), "stage.init", { parent: "r1" }),
    withEvent(step(4, "closed", "done", { children: { r1: "r1" } }), "stage.init", { run: "r1" }),
    withEvent(life("resume"), "run.resumed", { run: "r1" }),
  ];
  const { host } = hostOver([whole("r1", "r1", drafts)]);
  await host.copy({ ...copy, before: 9 });
  const [made] = await host.journal("r2");
  const spoken = (records: RunJournal["records"]) => records.slice(1, 9).map(({ value, events }) => [value, events]);
  expect(spoken(made?.records ?? [])).toEqual(spoken(chain("r1", drafts)));
  await host.close();
});

test("a run that is at work can be copied, and continues", async () => {
  const clock = handClock();
  const host = createHost(createMemoryJournals().connect(), { clock });
  const task = await start(host, async (steps) => {
    await steps.run("a", () => 1);
    return await waiting(steps);
  });
  await turns();
  await host.copy({ ...copy, before: 2 });
  expect((await host.get("r2"))?.records).toBe(3);
  await host.signal("r1", { name: "go", payload: 4, by: "me" });
  expect((await endOf(task)).value).toBe(4);
  await host.close();
});
