import { hash } from "node:crypto";
import type { JournalRecord, RunJournal } from "@sluice/core";
import { exportLines, GENESIS, hashRecord, readExport, verifyExport, verifyJournal } from "@sluice/core/host";
import type { Workload, WorkloadOptions } from "../measure.ts";

const recordsOf = ({ quick }: WorkloadOptions): number => (quick ? 200 : 10_000);
const warmUpsOf = ({ quick }: WorkloadOptions): number => (quick ? 1 : 20);

/** A long run: a value of half a kilobyte and an event per record. */
function journalOf(count: number): RunJournal {
  const records: JournalRecord[] = [];
  let head: string = GENESIS;
  for (let seq = 0; seq < count; seq += 1) {
    const value =
      seq === 0 ? "null" : JSON.stringify({ text: `what turn ${seq} says `.repeat(25), usage: { inputTokens: seq } });
    const data = { turn: seq, finishReason: "tool-calls", calls: 1, usage: { inputTokens: seq, outputTokens: 40 } };
    const events = JSON.stringify([{ at: 1_700_000_000_000 + seq, type: "turn.finished", data }]);
    const unhashed = {
      seq,
      ordinal: seq - 1,
      stepId: seq === 0 ? "start" : `plan#1/a1/turn/${seq}/model`,
      phase: seq === 0 ? ("life" as const) : ("done" as const),
      incarnation: "0123456789ab-1",
      value,
      events,
    };
    head = hashRecord(head, "r7k2m9x4ab", unhashed);
    records.push({ ...unhashed, hash: head });
  }
  return { runId: "r7k2m9x4ab", input: null, records, claimed: { records: count, head } };
}

/** The minimum to detect a change: the digests of the same texts. */
export async function bareHashes(options: WorkloadOptions): Promise<Workload> {
  const { records } = journalOf(recordsOf(options));
  return {
    warmUps: warmUpsOf(options),
    slice: async () => {
      let last = "";
      for (const { stepId, incarnation, value, events } of records) {
        last = hash("sha256", last + stepId + incarnation + hash("sha256", value) + events);
      }
      return { units: records.length, facts: { length: last.length } };
    },
  };
}

/** Verifies a journal like `sluice audit --verify`, after it is read. */
export async function verifiedJournal(options: WorkloadOptions): Promise<Workload> {
  const journal = journalOf(recordsOf(options));
  return {
    warmUps: warmUpsOf(options),
    slice: async () => {
      const { faults, records } = verifyJournal([journal]);
      if (faults.length > 0) throw new Error("a journal that is whole was said not to be");
      return { units: records, facts: {} };
    },
  };
}

/** Verifies an export, including reading its bytes. */
export async function verifiedExport(options: WorkloadOptions): Promise<Workload> {
  const file = Buffer.from([...exportLines([journalOf(recordsOf(options))])].join(""));
  return {
    warmUps: warmUpsOf(options),
    slice: async () => {
      const { faults, records } = verifyExport(readExport(file));
      if (faults.length > 0) throw new Error("an export that is whole was said not to be");
      return { units: records, facts: {} };
    },
  };
}
