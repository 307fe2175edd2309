import assert from "node:assert/strict";
import { verifyJournal } from "../../journal/audit/verify.ts";
import { hashRecord } from "../../journal/record.ts";
import type { JournalRecord, ProgramEnd, RunJournal, StepRunner } from "../../journal/seam.ts";
import {
  cancelled,
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  failed,
  fanOutOptions,
  start,
  type World,
} from "../world.ts";

/** Everything a journal can hold: intents, events, nested fan-outs, a failure, a long value, waits. */
async function everyKind(steps: StepRunner): Promise<ProgramEnd> {
  const depth = steps.runId.split("/fan/").length;
  await steps.run("odd", () => "\ufffd");
  await steps.run("write", () => "x".repeat(depth === 1 ? 300_000 : 3), {
    open: { events: [{ type: "call.started", data: { callId: "c1" } }], intent: { file: "a" } },
  });
  if (depth < 3) await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
  if (depth === 1) await steps.waitForSignal("go");
  return steps.runId.endsWith("b") ? failed("why") : completed({ depth });
}

async function journalsOf({ connect }: World): Promise<readonly RunJournal[]> {
  const { host } = await connect();
  const task = await start(host, everyKind);
  await host.signal("r1", { name: "go", payload: null, by: "test" });
  await endOf(task);
  await expectWhole(host);
  return await host.journal("r1");
}

function expectFaults(journals: readonly RunJournal[], what: string, head?: string): void {
  assert.notEqual(verifyJournal(journals, head).faults.length, 0, `no fault detected: ${what}`);
}

type Change = (journal: RunJournal) => RunJournal;
function changing(journals: readonly RunJournal[], at: number, change: Change): readonly RunJournal[] {
  return journals.map((journal, index) => (index === at ? change(journal) : journal));
}

/** Hashes a changed journal again, as an attacker with write access to the whole store can. */
function rehashed(journal: RunJournal): RunJournal {
  const records: JournalRecord[] = [];
  let head = "sluice-journal-1";
  for (const [seq, record] of journal.records.entries()) {
    const { hash: _old, ...unhashed } = { ...record, seq };
    head = hashRecord(head, journal.runId, unhashed);
    records.push({ ...unhashed, hash: head });
  }
  return { ...journal, records, claimed: { records: records.length, head } };
}

const edits: Readonly<Record<string, (record: JournalRecord) => JournalRecord>> = {
  seq: (record) => ({ ...record, seq: record.seq + 1 }),
  ordinal: (record) => ({ ...record, ordinal: record.ordinal + 1 }),
  stepId: (record) => ({ ...record, stepId: `${record.stepId}x` }),
  phase: (record) => ({ ...record, phase: record.phase === "open" ? "done" : "open" }),
  incarnation: (record) => ({ ...record, incarnation: `${record.incarnation}x` }),
  value: (record) => ({ ...record, value: record.value === "" ? "null" : "" }),
  "value with an added space": (record) => ({ ...record, value: `${record.value} ` }),
  "value that is not JSON": (record) => ({ ...record, value: "{" }),
  events: (record) => ({ ...record, events: record.events === "[]" ? "[{}]" : "[]" }),
  "events that are not JSON": (record) => ({ ...record, events: "[" }),
  hash: (record) => ({ ...record, hash: record.hash.replace(/./, (digit) => (digit === "0" ? "1" : "0")) }),
};

/** An audit detects every change of a journal. */
export const auditFacts: Facts = {
  "every edit of every field of every record is detected": async (world) => {
    const journals = await journalsOf(world);
    assert.equal(journals.length, 7);
    for (const [at, { runId, records }] of journals.entries()) {
      for (const index of records.keys()) {
        for (const [name, edit] of Object.entries(edits)) {
          const changed = changing(journals, at, (journal) => ({
            ...journal,
            records: journal.records.map((record, i) => (i === index ? edit(record) : record)),
          }));
          expectFaults(changed, `${name} of record ${index} of ${runId}`);
        }
      }
    }
  },

  "a lone surrogate in place of U+FFFD, which has the same UTF-8 bytes, is detected": async (world) => {
    const journals = await journalsOf(world);
    const changed = changing(journals, 0, (journal) => ({
      ...journal,
      records: journal.records.map((record) => ({ ...record, value: record.value.replace("\ufffd", "\ud800") })),
    }));
    expectFaults(changed, "a lone surrogate");
  },

  "every removal, addition and reordering of records is detected": async (world) => {
    const journals = await journalsOf(world);
    for (const [at, { runId, records }] of journals.entries()) {
      for (const [index, record] of records.entries()) {
        const variants: Record<string, readonly JournalRecord[]> = {
          removed: records.filter((_record, i) => i !== index),
          doubled: records.toSpliced(index, 0, record),
          cut: records.slice(0, index),
          ...(index === 0
            ? {}
            : { swapped: records.toSpliced(index - 1, 2, record, ...records.slice(index - 1, index)) }),
        };
        for (const [name, changed] of Object.entries(variants)) {
          const edited = changing(journals, at, (journal) => ({ ...journal, records: changed }));
          expectFaults(edited, `record ${index} of ${runId} ${name}`);
        }
      }
    }
  },

  "the row of a run is checked against its journal": async (world) => {
    const journals = await journalsOf(world);
    const changes: Record<string, Change> = {
      count: (journal) => ({ ...journal, claimed: { ...journal.claimed, records: journal.claimed.records - 1 } }),
      head: (journal) => ({ ...journal, claimed: { ...journal.claimed, head: "0".repeat(64) } }),
      value: (journal) => ({ ...journal, end: { status: journal.end?.status ?? "failed", value: "other" } }),
      status: (journal) => ({ ...journal, end: { status: "cancelled", value: journal.end?.value ?? null } }),
      input: (journal) => ({ ...journal, input: { task: "another" } }),
      "no end": ({ end: _end, ...journal }) => journal,
      "no records": (journal) => ({ ...journal, records: [], claimed: { records: 0, head: "" } }),
    };
    for (const [at, { runId }] of journals.entries()) {
      for (const [name, change] of Object.entries(changes))
        expectFaults(changing(journals, at, change), `${name} of ${runId}`);
    }
  },

  "children that are missing, exchanged, added or moved are detected": async (world) => {
    const journals = await journalsOf(world);
    const [root, ...children] = journals;
    assert.ok(root !== undefined);
    for (const [index, { runId }] of children.entries()) {
      expectFaults(journals.toSpliced(index + 1, 1), `${runId} removed`);
      expectFaults([...journals, ...children.slice(index, index + 1)], `${runId} doubled`);
      const [other] = children.filter((each) => each.runId !== runId);
      expectFaults(
        changing(journals, index + 1, (journal) => ({ ...(other ?? journal), runId })),
        `${runId} exchanged`,
      );
      const parent = children.find((each) => each.runId !== runId && each.runId !== children[index]?.parentId);
      expectFaults(
        changing(journals, index + 1, (journal) => ({ ...journal, parentId: parent?.runId ?? "" })),
        `${runId} moved`,
      );
      // A completely rewritten child is consistent in itself, but contradicts its parent.
      const rewritten = changing(journals, index + 1, (journal) =>
        rehashed({ ...journal, records: journal.records.map((record) => ({ ...record, incarnation: "other" })) }),
      );
      expectFaults(rewritten, `${runId} rewritten`);
    }
    const leaf = children.at(-1);
    const unknownChild = rehashed({ ...(leaf ?? root), runId: "r1/fan/c", parentId: "r1" });
    expectFaults([...journals, unknownChild], "a child that the fan-out does not have");
    expectFaults(
      [...journals, rehashed({ ...(leaf ?? root), runId: "r2/fan/a", parentId: "r2" })],
      "a run of another tree",
    );
    const { parentId: _parent, ...second } = rehashed({ ...(leaf ?? root), runId: "r2" });
    expectFaults([...journals, second], "another root");
    const [first] = root.records;
    const late = { ...(first ?? assert.fail()), stepId: "suspend", value: "", events: "[]" };
    expectFaults([rehashed({ ...root, records: [...root.records, late] }), ...children], "a record after the end");
  },

  "a tail that was cut off together with the row is detected with a head that was stored elsewhere": async (world) => {
    const journals = await journalsOf(world);
    const head = verifyJournal(journals).head;
    assert.deepEqual(verifyJournal(journals, head).faults, []);
    const [root] = journals;
    assert.ok(root !== undefined);
    for (let length = 1; length < root.records.length; length += 1) {
      const { end: _end, ...cut } = rehashed({ ...root, records: root.records.slice(0, length) });
      // The children of a removed fan-out are removed too, so the cut is detected only with the head.
      const children = length > 4 ? journals.slice(1) : [];
      const changed = [cut, ...children];
      if (length !== 5) assert.deepEqual(verifyJournal(changed).faults, [], `cut after ${length}`);
      expectFaults(changed, `cut after ${length}`, head);
    }
    const rewritten = rehashed({
      ...root,
      records: root.records.map((record) => ({ ...record, incarnation: "other" })),
    });
    assert.deepEqual(verifyJournal([rewritten, ...journals.slice(1)]).faults, []);
    expectFaults([rewritten, ...journals.slice(1)], "the root rewritten as a whole", head);
  },

  "a child that a running run never started is detected, and one that its fan-out never joined": async ({
    connect,
  }) => {
    const { host } = await connect();
    const gate = createGate();
    const task = await start(host, async (steps) => {
      await steps.runChildren("fan", steps.runId === "r1" ? [child("a")] : [], fanOutOptions());
      if (steps.runId === "r1") await gate.wait();
      return completed();
    });
    await gate.reached;
    const unfinished = await host.journal("r1");
    const [, inside] = unfinished;
    assert.deepEqual(verifyJournal(unfinished).faults, []);
    expectFaults(
      [...unfinished, rehashed({ ...(inside ?? assert.fail()), runId: "r1/fan/b" })],
      "a child that was never started",
    );
    gate.open();
    await endOf(task);
    const journals = await host.journal("r1");
    const unjoined = changing(journals, 0, (journal) =>
      rehashed({ ...journal, records: journal.records.filter(({ phase }) => phase !== "done") }),
    );
    expectFaults(unjoined, "a child that was never joined");
  },

  "a child's journal can be verified without its parent's": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, everyKind);
    await host.signal("r1", { name: "go", payload: null, by: "test" });
    await endOf(task);
    const within = await host.journal("r1/fan/a");
    assert.deepEqual(
      within.map(({ runId }) => runId),
      ["r1/fan/a", "r1/fan/a/fan/a", "r1/fan/a/fan/b"],
    );
    assert.deepEqual(verifyJournal(within).faults, []);
  },

  "a closed run holds the heads of its children": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    await start(first.host, async (steps) => {
      if (steps.runId.split("/fan/").length < 3) {
        await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
        return cancelled(steps);
      }
      await steps.run("stuck", async () => {
        await gate.wait();
        return null;
      });
      return completed();
    });
    await gate.reached;
    await first.crash();
    gate.open();
    const { host } = await connect();
    await host.cancel("r1", "enough", "me");
    await expectWhole(host);
    const journals = await host.journal("r1");
    for (let at = 1; at < journals.length; at += 1) {
      const { runId } = journals[at] ?? assert.fail();
      const rewrite: Change = (journal) =>
        rehashed({ ...journal, records: journal.records.map((record) => ({ ...record, incarnation: "other" })) });
      expectFaults(changing(journals, at, rewrite), `${runId} rewritten`);
      expectFaults(journals.toSpliced(at, 1), `${runId} removed`);
    }
  },
};
