import { createHash } from "node:crypto";
import type { JournalRecord, Json, RunEnd, RunJournal } from "@sluice/core";
import { exportLines, GENESIS, readExport, verifyExport } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { chain, life, type RecordDraft, step } from "../support/chains.ts";
import { rehashed } from "../support/tampering.ts";

const DONE: RunEnd = { status: "completed", value: 1 };
const started = life("start", '{"task":"x"}');
const ended = life("end", JSON.stringify(DONE));

function journal(runId: string, drafts: readonly RecordDraft[], more: Partial<RunJournal> = {}): RunJournal {
  const records = chain(runId, drafts);
  const claimed = { records: records.length, head: records.at(-1)?.hash ?? GENESIS };
  const end = drafts.some(({ stepId }) => stepId === "end") ? { end: DONE } : {};
  return { runId, input: { task: "x" }, records, claimed, ...end, ...more };
}
const said = (draft: RecordDraft, type: string, data: Json): RecordDraft => ({
  ...draft,
  events: JSON.stringify([{ at: 1, type, data }]),
});
const headOf = ({ claimed }: RunJournal): string => claimed.head;

const childA = journal("r1/fan/a", [started, ended], { parentId: "r1" });
const childB = journal("r1/fan/b", [started, step(0, "s", "done", 1), ended], { parentId: "r1" });
const forked = said(step(0, "fan", "open", { children: ["a", "b"] }), "fanOut.started", { siblings: ["a", "b"] });
const joining = (heads: Readonly<Record<string, Json>>): RecordDraft =>
  said(step(0, "fan", "done", {}), "fanOut.joined", {
    outcomes: Object.entries(heads).map(([name, head]) => ({ name, head })),
  });
const both = { a: headOf(childA), b: headOf(childB) };
const parent = journal("r1", [started, forked, joining(both), ended]);
const tree = [parent, childA, childB];

type Options = Parameters<typeof exportLines>[1];
const linesOf = (journals: readonly RunJournal[], options?: Options): string[] => [...exportLines(journals, options)];
const bytes = (lines: readonly string[]): Uint8Array => Buffer.from(lines.join(""));
/** A file of these lines that ends as it should. */
function sealed(lines: readonly string[]): Uint8Array {
  const sha256 = createHash("sha256").update(lines.join("")).digest("hex");
  return bytes([...lines, `${JSON.stringify({ lines: lines.length, sha256 })}\n`]);
}
const faultsIn = (file: Uint8Array): readonly string[] =>
  readExport(file).faults.map(({ runId, fault }) => `${runId}: ${fault}`);
const faultsOf = (journals: readonly RunJournal[], head?: string): readonly string[] =>
  verifyExport(readExport(bytes(linesOf(journals))), head).faults.map(({ runId, fault }) => `${runId}: ${fault}`);

describe("the lines of an export", () => {
  test("are a header, each journal with its records, and a digest of all of them", () => {
    const lines = linesOf([parent, childA]);
    expect(lines.map((line) => JSON.parse(line).stepId ?? Object.keys(JSON.parse(line)).join())).toEqual([
      "sluice,version,runId,journals,records,head",
      "runId,records,head",
      ...["start", "fan", "fan", "end"],
      "runId,parentId,records,head",
      ...["start", "end"],
      "lines,sha256",
    ]);
    const head = headOf(parent);
    const header = { sluice: "run", version: 1, runId: "r1", journals: 2, records: 6, head };
    expect(lines[0]).toBe(`${JSON.stringify(header)}\n`);
    expect(lines[1]).toBe(`${JSON.stringify({ runId: "r1", records: 4, head })}\n`);
    expect(lines[6]).toContain(`{"runId":"r1/fan/a","parentId":"r1","records":2,"head":"${headOf(childA)}"}`);
    const sha256 = createHash("sha256").update(lines.slice(0, -1).join("")).digest("hex");
    expect(lines.at(-1)).toBe(`${JSON.stringify({ lines: 9, sha256 })}\n`);
  });

  test("hold of each record all that its hash covers, and of its value the digest, or the value", () => {
    const [record] = parent.records;
    const { value, ...rest } = record ?? expect.fail();
    const valueDigest = createHash("sha256").update(value).digest("hex");
    const keys = (kept: string): readonly string[] =>
      `seq,ordinal,stepId,phase,incarnation,${kept},events,hash`.split(",");
    const line = (of: object, kept: string): string => `${JSON.stringify(of, [...keys(kept)])}\n`;
    expect(linesOf([parent])[2]).toBe(line({ ...rest, valueDigest }, "valueDigest"));
    expect(linesOf([parent], { values: true })[2]).toBe(line({ ...rest, value }, "value"));
    expect(linesOf([parent], { values: true })[0]).toContain('"version":1,"values":true,"runId":"r1"');
    expect(linesOf([parent], { values: false })).toEqual(linesOf([parent]));
  });

  test("of no journals at all are those of no run", () => {
    expect(linesOf([])[0]).toBe('{"sluice":"run","version":1,"runId":"","journals":0,"records":0,"head":""}\n');
    expect(readExport(bytes(linesOf([])))).toEqual({ runId: "", journals: [], faults: [] });
    expect(verifyExport(readExport(bytes(linesOf([]))))).toEqual({ faults: [], records: 0, head: "", unnamed: [] });
  });
});

describe("an export that is read", () => {
  test("has the journals without their values, and no more", () => {
    const { runId, journals, faults, ...rest } = readExport(bytes(linesOf(tree)));
    expect([runId, faults, rest]).toEqual(["r1", [], {}]);
    expect(journals.map((each) => Object.keys(each).toSorted().join())).toEqual([
      "claimed,records,runId",
      "claimed,parentId,records,runId",
      "claimed,parentId,records,runId",
    ]);
    expect(journals[1]).toMatchObject({ runId: "r1/fan/a", parentId: "r1", claimed: childA.claimed });
    expect(journals[1]?.records.map(({ hash }) => hash)).toEqual(childA.records.map(({ hash }) => hash));
    expect(journals[1]?.records[0]).not.toHaveProperty("value");
  });

  test.each(["completed", "failed", "cancelled"] as const)(
    "with its values has the journals as the host gave them, of a run that is %s too",
    (status) => {
      const end: RunEnd = { status, value: { why: null } };
      for (const id of ["end", "closed"] as const) {
        const over = journal("r1", [started, forked, life(id, JSON.stringify(end))], { end });
        const journals = [over, childA, childB];
        expect(readExport(bytes(linesOf(journals, { values: true }))).recorded).toStrictEqual(journals);
      }
    },
  );

  test("of a run at work has no end, nor has one whose end no one could have written", () => {
    const open = journal("r1", [started, step(0, "end", "done", { ...DONE })]);
    const { end: _end, ...atWork } = open;
    const read = (each: RunJournal): RunJournal | undefined =>
      readExport(bytes(linesOf([each], { values: true }))).recorded?.[0];
    expect(read(atWork)).not.toHaveProperty("end");
    for (const value of ['{"status":"done","value":1}', '{"status":"failed"}', "{", ""])
      expect(read(journal("r1", [started, life("end", value)]))).not.toHaveProperty("end");
  });

  test("of a journal without records, or with an input that is none, has null for it", () => {
    for (const each of [journal("r1", []), journal("r1", [life("start", "{")]), journal("r1", [life("start")])])
      expect(readExport(bytes(linesOf([each], { values: true }))).recorded?.[0]?.input).toBeNull();
  });

  test("may stand anywhere in a buffer", () => {
    const file = bytes(linesOf(tree));
    const wide = Buffer.concat([Buffer.from("before"), file, Buffer.from("behind")]);
    expect(faultsIn(wide.subarray(6, 6 + file.length))).toEqual([]);
  });

  test("says what the file is not: an export at all, or one of a version that is known", () => {
    const none = ": the file is not an export of a run: its first line is not an export header";
    for (const text of ["", "\n", "null\n", '{"sluice":"run"}\n', '{"sluice":"cassette","version":1}\n', "{}\n"])
      expect(faultsIn(Buffer.from(text))).toEqual([none]);
    const named = '{"sluice":"run","version":"1","runId":"r7"}\n';
    expect(faultsIn(Buffer.from(named))).toEqual([`r7${none}`]);
    expect(readExport(Buffer.from(named)).runId).toBe("r7");
    const [header = "", ...rest] = linesOf(tree);
    const version = "the export has version 2, and this Sluice reads 1; update Sluice";
    expect(faultsIn(bytes([header.replace('"version":1', '"version":2'), ...rest]))).toEqual([`r1: ${version}`]);
    expect(readExport(bytes([header.replace('"version":1', '"version":2'), ...rest])).journals).toEqual([]);
  });

  test("says where it stops being what was written, and has what stands before", () => {
    const lines = linesOf(tree);
    const at = (place: number, line: string) => readExport(bytes(lines.with(place, line)));
    const fault = (what: string, runId = "r1") => [{ runId, fault: what }];
    expect(at(1, "{}\n").faults).toEqual(fault("line 2 is not as it was written"));
    expect(at(1, "{}\n").journals).toEqual([]);
    // A record of no journal.
    expect(readExport(bytes(lines.toSpliced(1, 1))).faults).toEqual(fault("line 2 is not as it was written"));
    expect(readExport(bytes([...lines.slice(0, 3), lines[3]?.slice(0, 20) ?? ""])).faults).toEqual(
      fault("line 4, where record 1 should be, is not as it was written"),
    );
    const second = at(3, "x\n");
    expect(second.faults).toEqual(fault("line 4, where record 1 should be, is not as it was written"));
    expect(second.journals.map(({ runId, records }) => [runId, records.length])).toEqual([["r1", 1]]);
    expect(at(7, `${lines[7]?.trim()} \n`).faults).toEqual(
      fault("line 8, where record 0 should be, is not as it was written", "r1/fan/a"),
    );
    expect(at(7, "\n").faults).toEqual(fault("line 8, where record 0 should be, is not as it was written", "r1/fan/a"));
    expect(at(6, (lines[6] ?? "").replace("{", '{"more":1,')).faults).toEqual(
      fault("line 7, where record 4 should be, is not as it was written"),
    );
  });

  test("takes no line whose fields are of another kind, or missing", () => {
    for (const values of [false, true]) {
      const lines = linesOf(tree, { values });
      for (const [place, fault] of [
        [1, "r1: line 2 is not as it was written"],
        [2, "r1: line 3, where record 0 should be, is not as it was written"],
      ] as const) {
        const fields: Record<string, Json> = JSON.parse(lines[place] ?? "");
        for (const [key, value] of Object.entries(fields)) {
          const wrong: Json = typeof value === "number" ? String(value) : 7;
          const { [key]: _gone, ...without } = fields;
          for (const changed of [{ ...fields, [key]: wrong }, { ...fields, [key]: null }, without])
            expect([key, faultsIn(sealed(lines.slice(0, -1).with(place, `${JSON.stringify(changed)}\n`)))]).toEqual([
              key,
              [fault],
            ]);
        }
        const phase = lines.with(2, (lines[2] ?? "").replace('"lifecycle"', '"dead"'));
        expect(faultsIn(sealed(phase.slice(0, -1)))).toEqual([
          "r1: line 3, where record 0 should be, is not as it was written",
        ]);
      }
    }
  });

  test("takes no value that is no text, none where the header speaks of none, and no digest where it speaks of values", () => {
    const lines = linesOf([parent], { values: true }).slice(0, -1);
    const third = "r1: line 3, where record 0 should be, is not as it was written";
    expect(faultsIn(sealed(lines))).toEqual([]);
    expect(faultsIn(sealed(lines.with(2, (lines[2] ?? "").replace("task", "\\ud800"))))).toEqual([third]);
    expect(faultsIn(sealed(lines.with(0, (lines[0] ?? "").replace('"values":true,', ""))))).toEqual([third]);
    // Of some records the values and of others the digests: whose value would the next one be?
    expect(faultsIn(sealed(lines.with(2, linesOf([parent])[2] ?? "")))).toEqual([third]);
  });

  test("says whether it was cut, headed otherwise, or changed after it was sealed", () => {
    const lines = linesOf(tree);
    const cut = "the file was cut: its last line is missing";
    expect(faultsIn(bytes(lines.slice(0, -1)))).toEqual([`r1/fan/b: ${cut}`]);
    expect(faultsIn(bytes(lines.slice(0, 1)))).toEqual([`r1: ${cut}`]);
    expect(faultsIn(Buffer.from(lines.slice(0, -1).join("").trimEnd()))).toEqual([`r1/fan/b: ${cut}`]);
    const head = (key: string, value: Json): string =>
      `${JSON.stringify({ ...JSON.parse(lines[0] ?? ""), [key]: value })}\n`;
    for (const [key, value] of [
      ["runId", "r2"],
      ["journals", 2],
      ["records", 8],
      ["head", "0"],
    ] as const)
      expect(faultsIn(sealed(lines.slice(0, -1).with(0, head(key, value))))).toEqual([
        "r1/fan/b: the first line is not that of the journals in the file",
      ]);
    const other = "r1/fan/b: the file is not as it was written: it has another digest than its last line says";
    const [last = ""] = lines.slice(-1);
    for (const end of [last.replace('"lines":13', '"lines":14'), `${last} `, `${last}\n`, last.trimEnd()])
      expect(faultsIn(bytes([...lines.slice(0, -1), end]))).toEqual([other]);
    expect(faultsIn(sealed([...lines.slice(0, 9), ...lines.slice(9, -1)]))).toEqual([]);
    // Bytes that are no text, where they read like the sign that stands for them.
    const odd = journal("r1", [started, said(step(0, "s", "done", 1), "stage.init", { text: "\ufffd" })]);
    const file = Buffer.from(bytes(linesOf([odd])));
    const sign = file.indexOf("\ufffd");
    const broken = Buffer.concat([file.subarray(0, sign), Buffer.from([0xff]), file.subarray(sign + 3)]);
    expect(faultsIn(file)).toEqual([]);
    expect(faultsIn(broken)).toEqual([other.replace("r1/fan/b", "r1")]);
  });

  test("that is damaged claims no values, though it holds some", () => {
    const lines = linesOf(tree, { values: true });
    expect(readExport(bytes(lines)).recorded).toHaveLength(3);
    expect(readExport(bytes(lines.slice(0, -1)))).not.toHaveProperty("recorded");
  });
});

describe("an export that is verified", () => {
  test("has the root's head and all records, also without the root, and compares the head that was kept", () => {
    const report = { faults: [], records: 9, head: headOf(parent), unnamed: [] };
    expect(verifyExport(readExport(bytes(linesOf(tree))))).toEqual(report);
    expect(verifyExport(readExport(bytes(linesOf(tree, { values: true }))), headOf(parent))).toEqual(report);
    expect(faultsOf(tree, "0")).toEqual([`r1: the head is ${headOf(parent)}, expected 0`]);
    expect(faultsOf([childA])).toEqual([]);
  });

  const claiming = (each: RunJournal, claimed: Partial<RunJournal["claimed"]>): RunJournal => ({
    ...each,
    claimed: { ...each.claimed, ...claimed },
  });
  test.each<readonly [string, RunJournal, string]>([
    ["has no records", journal("r1", []), "the journal is empty"],
    [
      "has fewer records than it claims",
      claiming(journal("r1", [started, ended]), { records: 3 }),
      "3 records are claimed, and 2 there",
    ],
    [
      "claims another head",
      claiming(journal("r1", [started, ended]), { head: "0" }),
      "another head is claimed than the last record has",
    ],
    ["continues after its end", journal("r1", [started, ended, life("suspend")]), "records follow the run's end"],
    ["ends twice", journal("r1", [started, ended, ended]), "records follow the run's end"],
  ])("reports a fault where a journal %s", (_what, each, fault) => {
    expect(faultsOf([each])).toEqual([`r1: ${fault}`]);
  });

  test("reports a changed record alone, though more of its journal differs", () => {
    const records = childB.records.with(1, { ...(childB.records[1] ?? expect.fail()), value: "2" });
    const changed = { ...childB, records };
    expect(faultsOf([parent, childA, changed])).toEqual([
      "r1/fan/b: record 1 (s) was changed after it was written",
      "r1/fan/b: this is not the journal that its parent recorded",
    ]);
    expect(faultsOf([claiming(changed, { records: 9, head: "0" })])).toEqual([
      "r1/fan/b: record 1 (s) was changed after it was written",
    ]);
    // What is missing of a file that was cut says nothing; a record that was changed does.
    const cut = readExport(bytes(linesOf([parent, changed]).slice(0, -1)));
    expect(verifyExport(cut, "0").faults.map(({ fault }) => fault)).toEqual([
      "record 1 (s) was changed after it was written",
      "the file was cut: its last line is missing",
    ]);
    expect(verifyExport(readExport(bytes(linesOf(tree).slice(0, 3)))).faults.map(({ fault }) => fault)).toEqual([
      "the file was cut: its last line is missing",
    ]);
  });

  test("binds children to what the events of the join say", () => {
    const wrong = journal("r1", [started, forked, joining({ ...both, b: "0" }), ended]);
    expect(faultsOf([wrong, childA, childB])).toEqual(["r1/fan/b: this is not the journal that its parent recorded"]);
    expect(faultsOf([parent, childA])).toEqual(["r1/fan/b: the journal of this child is missing"]);
    const more = journal("r1/fan/c", [started, ended], { parentId: "r1" });
    const strange = journal("r1/other/c", [started, ended], { parentId: "r1" });
    expect(faultsOf([...tree, strange])).toEqual(["r1/other/c: its parent r1 never started it"]);
    // Which children a fork has is in its value, which is not here: one more of its step is held by its own chain alone.
    expect(verifyExport(readExport(bytes(linesOf([...tree, more]))))).toMatchObject({
      faults: [],
      unnamed: ["r1/fan/c"],
    });
    const below = journal("r1/fan/a/deep/x", [started, ended], { parentId: "r1" });
    expect(faultsOf([...tree, below])).toEqual(["r1/fan/a/deep/x: its parent r1 never started it"]);
  });

  test("names the children of which no event says how they ended", () => {
    for (const outcomes of [undefined, {}, [], [{ name: "a" }, { name: "b", head: 7 }]]) {
      const join = said(step(0, "fan", "done", {}), "fanOut.joined", outcomes === undefined ? {} : { outcomes });
      const quiet = journal("r1", [started, forked, join, ended]);
      expect(verifyExport(readExport(bytes(linesOf([quiet, childA, childB]))))).toMatchObject({
        faults: [],
        unnamed: ["r1/fan/a", "r1/fan/b"],
      });
      expect(faultsOf([quiet, childA])).toEqual(["r1/fan/b: the journal of this child is missing"]);
    }
    // Nor need it say which there are: the ids of those that are here name the step.
    const silent = journal("r1", [started, step(0, "fan", "open", {}), step(0, "fan", "done", {}), ended]);
    expect(verifyExport(readExport(bytes(linesOf([silent, childA]))))).toMatchObject({
      faults: [],
      unnamed: ["r1/fan/a"],
    });
  });

  test("asks of a fork that is open only that its run does not end without it", () => {
    for (const open of [forked, step(0, "fan", "open", {})]) {
      expect(faultsOf([journal("r1", [started, open]), childA])).toEqual([]);
      expect(verifyExport(readExport(bytes(linesOf([journal("r1", [started, open]), childA])))).unnamed).toEqual([]);
      expect(faultsOf([journal("r1", [started, open, ended]), childA])).toEqual([
        "r1/fan/a: its parent r1 ended without it",
      ]);
    }
  });

  test("reads events where their kind of record has them: elsewhere they name no child", () => {
    const named = { outcomes: [{ name: "a", head: headOf(childA) }] };
    const never = ["r1/fan/a: its parent r1 never started it"];
    const elsewhere: readonly RecordDraft[] = [
      said(step(0, "fan", "done", {}), "fanOut.started", { siblings: ["a"] }),
      said(life("suspend"), "fanOut.started", { siblings: ["a"] }),
      said(step(0, "other", "open", {}), "fanOut.joined", named),
      said(life("fan"), "fanOut.joined", named),
      said(step(0, "s", "done", 1), "run.finished", { children: [{ run: "r1/fan/a", head: headOf(childA) }] }),
    ];
    for (const draft of elsewhere) expect(faultsOf([journal("r1", [started, draft]), childA])).toEqual(never);
    // Events of another type say nothing of children, whatever is in them.
    const strange: readonly (readonly RecordDraft[])[] = [
      [said(step(0, "x", "open", {}), "stage.init", { siblings: ["a"] }), step(0, "x", "done", {})],
      [said(step(0, "x", "open", {}), "fanOut.started", { siblings: [7, null] }), step(0, "x", "done", {})],
      [said(step(0, "x", "done", {}), "stage.init", named)],
      [said(life("end", "{}"), "stage.init", { children: [{ run: "r1/fan/a", head: "0" }] })],
    ];
    for (const drafts of strange) expect(faultsOf([journal("r1", [started, ...drafts])])).toEqual([]);
    // A head of a child without a name is that of one which is not there.
    const unnamed = said(step(0, "fan", "done", {}), "fanOut.joined", { outcomes: [{ head: "0" }] });
    expect(faultsOf([journal("r1", [started, unnamed])])).toEqual(["r1/fan/: the journal of this child is missing"]);
    const odd: readonly RecordDraft[] = [
      said(step(0, "x", "open", {}), "fanOut.started", { siblings: [7, null] }),
      said(step(0, "x", "open", {}), "fanOut.started", { siblings: "a" }),
      { ...step(0, "x", "open", {}), events: "{" },
      { ...step(0, "x", "open", {}), events: '{"type":"fanOut.started"}' },
      { ...step(0, "x", "open", {}), events: "[null,7]" },
    ];
    for (const draft of odd) expect(faultsOf([journal("r1", [started, draft])])).toEqual([]);
  });

  test("binds what was below a run that was closed by the event of its end", () => {
    const closed = (children: Json): RunJournal => {
      const end: RunEnd = { status: "cancelled", value: {} };
      const last = said(life("closed", JSON.stringify(end)), "run.finished", { status: "cancelled", children });
      return journal("r1", [started, forked, last], { end });
    };
    const heads = [
      { run: "r1/fan/a", head: headOf(childA) },
      { run: "r1/fan/b", head: headOf(childB) },
    ];
    expect(faultsOf([closed(heads), childA, childB])).toEqual([]);
    expect(faultsOf([closed(heads), childA])).toEqual(["r1/fan/b: the journal of this child is missing"]);
    expect(faultsOf([closed(heads.with(0, { run: "r1/fan/a", head: "0" })), childA, childB])).toEqual([
      "r1/fan/a: this is not the journal that its parent recorded",
    ]);
    expect(faultsOf([closed([...heads, { head: "0" }]), childA, childB])).toEqual([
      ": the journal of this child is missing",
    ]);
    for (const children of [null, {}, [null], [{ run: "r1/fan/a" }]])
      expect(faultsOf([closed(children), childA])).toEqual(["r1/fan/a: its parent r1 ended without it"]);
  });

  test("finds a journal that was hashed again, though it fits itself", () => {
    const records: readonly JournalRecord[] = childB.records.map((one) => ({ ...one, incarnation: "i2" }));
    expect(faultsOf([parent, childA, rehashed({ ...childB, records })])).toEqual([
      "r1/fan/b: this is not the journal that its parent recorded",
    ]);
  });
});
