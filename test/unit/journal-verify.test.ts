import type { Json, RunEnd, RunJournal } from "@sluice/core";
import { GENESIS, hashRecord, verifyJournal } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { checkChain } from "../../packages/core/src/journal/audit/verify.ts";
import { chain, life, type RecordDraft, step } from "../support/chains.ts";

const DONE: RunEnd = { status: "completed", value: 1 };
const input = { task: "x" };
const started = life("start", JSON.stringify(input));
const ended = life("end", JSON.stringify(DONE));

/** A run as a store would hand it over: whole, unless `more` says otherwise. */
function journal(runId: string, drafts: readonly RecordDraft[], more: Partial<RunJournal> = {}): RunJournal {
  const records = chain(runId, drafts);
  const claimed = { records: records.length, head: records.at(-1)?.hash ?? GENESIS };
  const end = drafts.some(({ stepId }) => stepId === "end") ? { end: DONE } : {};
  return { runId, input, records, claimed, ...end, ...more };
}
const headOf = (each: RunJournal): string => each.claimed.head;
const faultsOf = (journals: readonly RunJournal[], head?: string): readonly string[] =>
  verifyJournal(journals, head).faults.map(({ runId, fault }) => `${runId}: ${fault}`);

const childA = journal("r1/fan/a", [started, ended], { parentId: "r1" });
const childB = journal("r1/fan/b", [started, step(0, "s", "done", 1), ended], { parentId: "r1" });
const joined = (heads: Readonly<Record<string, Json>>): readonly RecordDraft[] => [
  started,
  step(0, "fan", "open", { children: Object.keys(heads) }),
  step(0, "fan", "done", Object.fromEntries(Object.entries(heads).map(([key, head]) => [key, { head }]))),
];
const both = { a: headOf(childA), b: headOf(childB) };
const parent = journal("r1", [...joined(both), ended]);

describe("a chain", () => {
  const records = chain("r1", [started, step(0, "s", "done", 1), ended]);

  test("that is whole has the hash of its last record as head, and an empty one its beginning", () => {
    expect(checkChain("r1", records)).toEqual({ head: records[2]?.hash });
    expect(checkChain("r1", [])).toEqual({ head: GENESIS });
  });

  test("is reported as broken at the first record that is missing or changed, with the head before it", () => {
    expect(checkChain("r1", [...records.slice(0, 1), ...records.slice(2)])).toEqual({
      head: records[0]?.hash,
      fault: "record 1 is missing (found 2 in its place)",
    });
    expect(checkChain("r1", records.with(1, { ...(records[1] ?? expect.fail()), value: "2" }))).toEqual({
      head: records[0]?.hash,
      fault: "record 1 (s) was changed after it was written",
    });
  });

  test.each(["stepId", "incarnation", "value", "events"] as const)(
    "with half a character in %s was not written by us, whatever its hash says",
    (key) => {
      const [first] = chain("r1", [started]);
      const { hash: _hash, ...unhashed } = { ...(first ?? expect.fail()), [key]: "\ud800" };
      const record = { ...unhashed, hash: hashRecord(GENESIS, "r1", unhashed) };
      expect(checkChain("r1", [record]).fault).toContain("was changed");
    },
  );
});

test("a tree that is whole has no fault, its root's head and all its records", () => {
  expect(verifyJournal([parent, childA, childB])).toEqual({ faults: [], records: 9, head: headOf(parent) });
  expect(faultsOf([parent, childA, childB], headOf(parent))).toEqual([]);
  // A child may be handed over before its parent, or without it.
  expect(verifyJournal([childA, parent, childB])).toEqual({ faults: [], records: 9, head: headOf(parent) });
  expect(verifyJournal([childA])).toEqual({ faults: [], records: 2, head: headOf(childA) });
  expect(verifyJournal([])).toEqual({ faults: [], records: 0, head: "" });
});

test("of no journals at all the head is no text, and so is no head that was kept", () => {
  expect(verifyJournal([])).toEqual({ faults: [], records: 0, head: "" });
  expect(faultsOf([], "h")).toEqual([": the head is , expected h"]);
});

test("a head that was kept elsewhere is compared with the root's", () => {
  expect(faultsOf([parent, childA, childB], "0")).toEqual([`r1: the head is ${headOf(parent)}, expected 0`]);
  expect(faultsOf([], "0")).toEqual([": the head is , expected 0"]);
});

describe("a row that differs from its journal is reported", () => {
  const run = journal("r1", [started, step(0, "s", "done", 1), ended]);
  const atWork = journal("r1", [started, step(0, "s", "done", 1)]);
  const other: RunEnd = { status: "completed", value: 2 };
  const { end: _end, ...endless } = run;

  test.each<readonly [string, RunJournal, readonly string[]]>([
    [
      "count",
      { ...run, claimed: { ...run.claimed, records: 2 } },
      ["the run's row counts 2 records, the journal has 3"],
    ],
    [
      "head",
      { ...run, claimed: { ...run.claimed, head: "0" } },
      ["the run's row has another head than its last record"],
    ],
    [
      "count and head",
      { ...run, claimed: { records: 4, head: "0" } },
      ["the run's row counts 4 records, the journal has 3"],
    ],
    ["input", { ...run, input: null }, ["the run's row has another input than its journal"]],
    ["end", { ...run, end: other }, ["the run's row has another end than its journal"]],
    ["no end", endless, ["the run's row has another end than its journal"]],
    ["an end too many", { ...atWork, end: DONE }, ["the run's row has another end than its journal"]],
    ["a run at work", atWork, []],
    ["nothing", journal("r1", []), ["the journal is empty"]],
    ["records after the end", journal("r1", [started, ended, life("suspend")]), ["records follow the run's end"]],
    ["two ends", journal("r1", [started, ended, ended]), ["records follow the run's end"]],
    [
      "the end of a run that was closed",
      journal("r1", [started, life("closed", JSON.stringify(DONE))], { end: DONE }),
      [],
    ],
    // A step may be called what a record of the run's life is called.
    [
      "a step called end",
      journal("r1", [started, step(0, "end", "done", 1)], { end: DONE }),
      ["the run's row has another end than its journal"],
    ],
  ])("%s", (_, each, faults) => {
    expect(faultsOf([each])).toEqual(faults.map((fault) => `r1: ${fault}`));
  });

  test("once: a broken chain is reported alone", () => {
    const broken = { ...run, input: null, records: run.records.toSpliced(1, 1) };
    expect(faultsOf([broken])).toEqual(["r1: record 1 is missing (found 2 in its place)"]);
  });
});

describe("a tree whose parts do not fit is reported", () => {
  test("a journal that is there twice", () => {
    expect(faultsOf([parent, childA, childB, childB])).toEqual(["r1/fan/b: this journal occurs twice"]);
    // Of two that differ one is not what was recorded, whichever comes first.
    const forged = journal("r1/fan/b", [started, step(0, "s", "done", 2), ended], { parentId: "r1" });
    for (const twice of [
      [childB, forged],
      [forged, childB],
    ])
      expect(faultsOf([parent, childA, ...twice])).toEqual([
        "r1/fan/b: this journal occurs twice",
        "r1/fan/b: this is not the journal that its parent recorded",
      ]);
  });

  test("a run of another tree, and a child whose parent is missing", () => {
    const second = journal("r2", [started, ended]);
    expect(faultsOf([parent, childA, childB, second])).toEqual(["r2: it is not part of this run"]);
    const orphan = journal("r2/fan/a", [started, ended], { parentId: "r2" });
    expect(faultsOf([parent, childA, childB, orphan])).toEqual(["r2/fan/a: its parent r2 is missing"]);
  });

  test("a child that is missing, and one that its parent never started", () => {
    expect(faultsOf([parent, childA])).toEqual(["r1/fan/b: the journal of this child is missing"]);
    const more = journal("r1/fan/c", [started, ended], { parentId: "r1" });
    expect(faultsOf([parent, childA, childB, more])).toEqual(["r1/fan/c: its parent r1 never started it"]);
    const elsewhere = journal("r1/other/a", [started, ended], { parentId: "r1" });
    expect(faultsOf([parent, childA, childB, elsewhere])).toEqual(["r1/other/a: its parent r1 never started it"]);
  });

  test("a child whose head is not the one that was recorded, or none at all", () => {
    for (const head of ["0", 7, null]) {
      const wrong = journal("r1", [...joined({ ...both, b: head }), ended]);
      expect(faultsOf([wrong, childA, childB])).toEqual(["r1/fan/b: this is not the journal that its parent recorded"]);
    }
  });

  test("a child that its parent's join leaves out", () => {
    const drafts = [started, step(0, "fan", "open", { children: ["a", "b"] }), step(0, "fan", "done", {})];
    for (const each of [drafts, [...drafts, ended]])
      expect(faultsOf([journal("r1", each), childA, childB])).toEqual([
        "r1/fan/a: this is not the journal that its parent recorded",
        "r1/fan/b: this is not the journal that its parent recorded",
      ]);
  });

  test("a child that its parent ended without; while the parent is at work it may be anywhere", () => {
    const opened = [started, step(0, "fan", "open", { children: ["a", "b"] })];
    expect(faultsOf([journal("r1", opened), childA])).toEqual([]);
    expect(faultsOf([journal("r1", opened)])).toEqual([]);
    expect(faultsOf([journal("r1", [...opened, ended]), childA])).toEqual(["r1/fan/a: its parent r1 ended without it"]);
  });

  test("two forks, each with its own join", () => {
    const later = journal("r1/more/a", [started, ended], { parentId: "r1" });
    const two = (head: string): RunJournal =>
      journal("r1", [
        ...joined(both),
        step(1, "more", "open", { children: ["a"] }),
        step(1, "more", "done", { a: { head } }),
        ended,
      ]);
    expect(faultsOf([two(headOf(later)), childA, childB, later])).toEqual([]);
    expect(faultsOf([two(headOf(childA)), childA, childB, later])).toEqual([
      "r1/more/a: this is not the journal that its parent recorded",
    ]);
  });

  test("only an open record starts children, whatever a step's value looks like", () => {
    const value = journal("r1", [started, step(0, "fan", "done", { children: ["a"] }), ended]);
    expect(faultsOf([value, childA])).toEqual(["r1/fan/a: its parent r1 never started it"]);
    const intent = journal("r1", [started, step(0, "fan", "open", { not: 1, children: ["a"] })]);
    expect(faultsOf([intent, childA])).toEqual(["r1/fan/a: its parent r1 never started it"]);
  });
});

describe("the heads in the record of a run that was closed", () => {
  const closing = (children: Json): RunJournal => {
    const end: RunEnd = { status: "cancelled", value: { reason: "enough", children } };
    const drafts = [started, step(0, "fan", "open", { children: ["a"] }), life("closed", JSON.stringify(end))];
    return journal("r1", drafts, { end });
  };

  test("are compared with the children", () => {
    expect(faultsOf([closing({ [childA.runId]: headOf(childA) }), childA])).toEqual([]);
    expect(faultsOf([closing({ [childA.runId]: "0" }), childA])).toEqual([
      "r1/fan/a: this is not the journal that its parent recorded",
    ]);
    expect(faultsOf([closing({ [childA.runId]: headOf(childA) })])).toEqual([
      "r1/fan/a: the journal of this child is missing",
    ]);
    expect(faultsOf([closing({ [childA.runId]: 7 }), childA])).toEqual([
      "r1/fan/a: this is not the journal that its parent recorded",
    ]);
  });

  test("count only in that record: a program's own end may look the same", () => {
    const end: RunEnd = { status: "cancelled", value: { children: { [childA.runId]: headOf(childA) } } };
    const drafts = [started, step(0, "fan", "open", { children: ["a"] }), life("end", JSON.stringify(end))];
    expect(faultsOf([journal("r1", drafts, { end }), childA])).toEqual(["r1/fan/a: its parent r1 ended without it"]);
  });

  test("are none where there is no list of them", () => {
    for (const children of [null, [], "x"])
      expect(faultsOf([closing(children), childA])).toEqual(["r1/fan/a: its parent r1 ended without it"]);
  });
});
