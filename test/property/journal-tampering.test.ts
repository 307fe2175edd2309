import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JournalRecord, RunJournal } from "@sluice/core";
import {
  checkChain,
  createHost,
  createMemoryJournals,
  readExport,
  verifyExport,
  verifyJournal,
} from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { assert, integer, nat, property } from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { scratch } from "../support/sqlite-store.ts";
import { exported, longJournal, rehashed, runEverything } from "../support/tampering.ts";

const LONG = longJournal(10_000);
let real: readonly RunJournal[] = [];
let file: Buffer = Buffer.alloc(0);
beforeAll(async () => {
  const host = createHost(createMemoryJournals().connect());
  real = await runEverything(host);
  await host.close();
  file = exported(real);
});

const verified = (bytes: Uint8Array, head?: string) => verifyExport(readExport(bytes), head);
const headOf = ([top]: readonly RunJournal[]): string => top?.claimed.head ?? "";
/** What is wrong with the first journal in which something is. */
const firstFault = (journals: readonly RunJournal[]): string => verifyJournal(journals).faults[0]?.fault ?? "";

/** Another text, one bit of one byte away; it may be none any more. */
function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ (1 << bit);
  return copy;
}
function flippedText(text: string, at: number, bit: number): string {
  if (text === "") return "x";
  const place = at % text.length;
  const unit = text.charCodeAt(place) ^ (1 << bit);
  return text.slice(0, place) + String.fromCharCode(unit) + text.slice(place + 1);
}

const TEXTS = ["stepId", "incarnation", "value", "events", "hash"] as const;
const NUMBERS = ["seq", "ordinal"] as const;

function changedRecord(record: JournalRecord, field: number, at: number, bit: number): JournalRecord {
  const text = TEXTS[field];
  if (text !== undefined) return { ...record, [text]: flippedText(record[text], at, bit) };
  const number = NUMBERS[field - TEXTS.length];
  if (number !== undefined) return { ...record, [number]: record[number] ^ (1 << bit) };
  return { ...record, phase: record.phase === "open" ? "done" : "open" };
}

/** Records in another order, or other ones: never the same. */
const REARRANGED: Readonly<
  Record<string, (records: readonly JournalRecord[], at: number, to: number) => readonly JournalRecord[]>
> = {
  removed: (records, at) => records.toSpliced(at, 1),
  copied: (records, at, to) => records.toSpliced(to, 0, ...records.slice(at, at + 1)),
  "put in another's place": (records, at, to) =>
    records.with(to, records[at === to ? (at + 1) % records.length : at] ?? expect.fail()),
  moved: (records, at, to) => {
    const [moved] = records.slice(at, at + 1);
    return records.toSpliced(at, 1).toSpliced(to === at ? (at + 1) % records.length : to, 0, moved ?? expect.fail());
  },
};

describe.each([
  ["a run of seven journals", () => real, 150],
  ["a journal of 10,000 records", () => [LONG], 6],
] as const)("%s", (_name, journalsOf, numRuns) => {
  test("is whole as it is, and so is its export", () => {
    const journals = journalsOf();
    expect(verifyJournal(journals, headOf(journals)).faults).toEqual([]);
    expect(verified(exported(journals), headOf(journals))).toMatchObject({
      faults: [],
      unnamed: [],
      head: headOf(journals),
    });
  });

  test("a bit that is flipped in a record is found, and the record named", () => {
    const journals = journalsOf();
    assert(
      property(nat(), nat(), nat(7), nat(), nat(7), (which, seq, field, at, bit) => {
        const of = which % journals.length;
        const { records } = journals[of] ?? expect.fail();
        const changed = records.with(
          seq % records.length,
          changedRecord(records[seq % records.length] ?? expect.fail(), field, at, bit),
        );
        const fault = firstFault(journals.map((one, index) => (index === of ? { ...one, records: changed } : one)));
        expect(fault).toMatch(new RegExp(`^record ${seq % records.length} `));
      }),
      { numRuns },
    );
  });

  test.each(Object.keys(REARRANGED))("a record that is %s is found, whatever the row counts", (how) => {
    const journals = journalsOf();
    assert(
      property(nat(), nat(), nat(), (which, first, second) => {
        const of = which % journals.length;
        const { records } = journals[of] ?? expect.fail();
        const other = REARRANGED[how]?.(records, first % records.length, second % records.length) ?? expect.fail();
        const claimed = { records: other.length, head: other.at(-1)?.hash ?? "" };
        const tampered = journals.map((one, index) => (index === of ? { ...one, records: other, claimed } : one));
        // A last record that is gone, where the row agrees, is what a head is kept for.
        const head = headOf(journals);
        expect(verifyJournal(tampered, head).faults).not.toEqual([]);
        expect(verified(exported(tampered), head).faults).not.toEqual([]);
      }),
      { numRuns: Math.ceil(numRuns / 2) },
    );
  });

  test("a cut tail and a journal that was hashed again are found with the head that was kept", () => {
    const journals = journalsOf();
    const [top, ...below] = journals;
    assert(
      property(integer({ min: 1, max: (top?.records.length ?? 0) - 1 }), (length) => {
        const { end: _end, ...open } = top ?? expect.fail();
        const cut = rehashed({ ...open, records: open.records.slice(0, length) });
        // By itself it is whole.
        expect(checkChain(cut.runId, cut.records).fault).toBeUndefined();
        const forged = rehashed({
          ...open,
          records: open.records.with(length, { ...(open.records[0] ?? expect.fail()), ordinal: 7 }),
        });
        for (const tampered of [cut, forged]) {
          expect(verifyJournal([tampered, ...below], headOf(journals)).faults).not.toEqual([]);
          expect(verified(exported([tampered, ...below]), headOf(journals)).faults).not.toEqual([]);
        }
      }),
      { numRuns: Math.ceil(numRuns / 10) },
    );
  });
});

describe("an export", () => {
  test("tells of any byte that was flipped, anywhere in it", () => {
    for (let at = 0; at < file.length; at += at < 200 || file.length - at < 120 ? 1 : 11) {
      const report = verified(flipped(file, at, at % 8));
      if (report.faults.length === 0) expect.fail(`bit ${at % 8} of byte ${at} was missed`);
    }
  });

  test("of 10,000 records tells of any bit that was flipped, and of a child's journal that is another's", () => {
    const long = exported([LONG]);
    assert(
      property(nat(long.length - 1), nat(7), (at, bit) => {
        expect(verified(flipped(long, at, bit)).faults).not.toEqual([]);
      }),
      { numRuns: 8 },
    );
    const [a, b] = real.filter(({ runId }) => /^r1\/fan\/[ab]$/.test(runId));
    const swapped = real.map((one) => (one.runId === a?.runId ? rehashed({ ...(b ?? one), runId: one.runId }) : one));
    expect(verified(exported(swapped)).faults.map(({ fault }) => fault)).toContain(
      "this is not the journal that its parent recorded",
    );
  });

  test("tells of a line that was removed, copied or moved, of bytes behind its end, and of a file that was cut", () => {
    const lines = file.toString().split(/(?<=\n)/);
    assert(
      property(nat(lines.length - 1), nat(lines.length - 1), (at, to) => {
        const [line = ""] = lines.slice(at, at + 1);
        const other = [
          lines.toSpliced(at, 1),
          lines.toSpliced(to, 0, line),
          lines.toSpliced(at, 1).toSpliced(to, 0, line),
        ];
        for (const changed of other) {
          const text = changed.join("");
          if (text !== file.toString()) expect(verified(Buffer.from(text)).faults).not.toEqual([]);
        }
        expect(verified(file.subarray(0, Math.floor((file.length * at) / lines.length))).faults).not.toEqual([]);
      }),
      { numRuns: 60 },
    );
    for (const more of ["\n", " ", "{}\n", "\0"])
      expect(verified(Buffer.concat([file, Buffer.from(more)])).faults).not.toEqual([]);
  });

  test("tells of bytes that are no text, where they read as the sign that is there anyway", () => {
    const at = file.indexOf("\ufffd");
    const bytes = Buffer.concat([file.subarray(0, at), Buffer.from([0xff]), file.subarray(at + 3)]);
    expect(bytes.toString()).toBe(file.toString());
    expect(verified(bytes).faults).not.toEqual([]);
  });

  test("that is no export is reported as none, whatever it is", () => {
    for (const text of [
      "",
      "\n",
      "null",
      "[]",
      '{"sluice":"run"}',
      '{"sluice":"run","version":"1"}',
      "\ufeff",
      "{".repeat(9_999),
    ])
      expect(verified(Buffer.from(text)).faults).not.toEqual([]);
    expect(verified(Buffer.from(file.toString().replace('"version":1', '"version":2'))).faults[0]?.fault).toContain(
      "version 2",
    );
  });
});

test("any byte of a stored text that was flipped is found when its record is read", async () => {
  const folder = join(scratch(), "store");
  const host = sqliteHost(folder);
  await runEverything(host);
  const [name = ""] = readdirSync(join(folder, "blobs"));
  const blob = join(folder, "blobs", name);
  const bytes = readFileSync(blob);
  for (const at of [0, 1, 7_777, bytes.length - 1]) {
    writeFileSync(blob, flipped(bytes, at, at % 8));
    await expect(host.journal("r1")).rejects.toMatchObject({ code: "blob_damaged" });
  }
  writeFileSync(blob, bytes);
  expect(verifyJournal(await host.journal("r1")).faults).toEqual([]);
  await host.close();
});
