import assert from "node:assert/strict";
import { hashRecord } from "../../journal/chain.ts";
import type { JournalRecord, ProgramEnd, RunJournal, RunProgram, StepRunner } from "../../journal/seam.ts";
import { verifyJournal } from "../../journal/verify.ts";
import {
  ask,
  cancelled,
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  failed,
  forkOptions,
  recordsOf,
  rejects,
  start,
  stepsOf,
  untilAsked,
  type World,
} from "../world.ts";

/** Everything a journal can hold: intents, events, nested forks, a failure, a long value, waits. */
async function full(steps: StepRunner): Promise<ProgramEnd> {
  const depth = steps.runId.split("/fan/").length;
  await steps.run("write", () => "x".repeat(depth === 1 ? 300_000 : 3), {
    open: { events: [{ type: "call.started", data: { callId: "c1" } }], intent: { file: "a" } },
  });
  if (depth < 3) await steps.fork("fan", [child("a"), child("b")], forkOptions());
  if (depth === 1) await steps.waitForSignal("go");
  return steps.runId.endsWith("b") ? failed("why") : completed({ depth });
}

async function journalsOf({ connect }: World): Promise<readonly RunJournal[]> {
  const { host } = await connect();
  const task = await start(host, full);
  await host.signal("r1", { name: "go", payload: null, by: "test" });
  await endOf(task);
  await expectWhole(host);
  return await host.journal("r1");
}

function found(journals: readonly RunJournal[], what: string, head?: string): void {
  assert.notEqual(verifyJournal(journals, head).faults.length, 0, `not found: ${what}`);
}

type Change = (journal: RunJournal) => RunJournal;
function changing(journals: readonly RunJournal[], at: number, change: Change): readonly RunJournal[] {
  return journals.map((journal, index) => (index === at ? change(journal) : journal));
}

/** Makes a journal whole again after a change, as somebody who can write the whole store would. */
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
  "value by a blank": (record) => ({ ...record, value: `${record.value} ` }),
  "value that is no JSON": (record) => ({ ...record, value: "{" }),
  events: (record) => ({ ...record, events: record.events === "[]" ? "[{}]" : "[]" }),
  "events that are no JSON": (record) => ({ ...record, events: "[" }),
  hash: (record) => ({ ...record, hash: record.hash.replace(/./, (digit) => (digit === "0" ? "1" : "0")) }),
};

/** Damages the journal of a run that was killed while it waited, and lets every call that would go on with it try. */
async function damaged(
  { connect }: World,
  change: (runId: string, records: readonly JournalRecord[]) => readonly JournalRecord[],
) {
  const first = await connect();
  await start(first.host, async (steps) => {
    await steps.run("one", () => 1);
    await ask(steps, "q1");
    return completed();
  });
  await untilAsked(first.host);
  await first.crash();
  const [second, third] = [await connect(), await connect()];
  const before = await recordsOf(third.host);
  second.tamper(change);
  const refused: RunProgram = () => assert.fail("the program of a damaged run was called");
  await rejects(second.host.resume("r1", refused), "journal_damaged", "Host");
  await rejects(second.host.cancel("r1", "enough", "me"), "journal_damaged", "Host");
  assert.deepEqual(await recordsOf(third.host), before);
  // It was given back: with a whole journal it goes on.
  assert.equal(await third.host.cancel("r1", "enough", "me"), "cancelled");
  await expectWhole(third.host);
}

/** Nothing of a journal can be changed without being found. */
export const auditFacts: Facts = {
  "every edit of every field of every record is found": async (world) => {
    const journals = await journalsOf(world);
    assert.equal(journals.length, 7);
    for (const [at, { runId, records }] of journals.entries()) {
      for (const index of records.keys()) {
        for (const [name, edit] of Object.entries(edits)) {
          const changed = changing(journals, at, (journal) => ({
            ...journal,
            records: journal.records.map((record, place) => (place === index ? edit(record) : record)),
          }));
          found(changed, `${name} of record ${index} of ${runId}`);
        }
      }
    }
  },

  "every removal, addition and reordering of records is found": async (world) => {
    const journals = await journalsOf(world);
    for (const [at, { runId, records }] of journals.entries()) {
      for (const [index, record] of records.entries()) {
        const places: Record<string, readonly JournalRecord[]> = {
          removed: records.filter((_each, place) => place !== index),
          doubled: records.toSpliced(index, 0, record),
          cut: records.slice(0, index),
          ...(index === 0
            ? {}
            : { swapped: records.toSpliced(index - 1, 2, record, ...records.slice(index - 1, index)) }),
        };
        for (const [name, changed] of Object.entries(places)) {
          const edited = changing(journals, at, (journal) => ({ ...journal, records: changed }));
          found(edited, `record ${index} of ${runId} ${name}`);
        }
      }
    }
  },

  "what a run's row says is checked against its journal": async (world) => {
    const journals = await journalsOf(world);
    const changes: Record<string, Change> = {
      count: (journal) => ({ ...journal, claimed: { ...journal.claimed, records: journal.claimed.records - 1 } }),
      head: (journal) => ({ ...journal, claimed: { ...journal.claimed, head: "0".repeat(64) } }),
      value: (journal) => ({ ...journal, end: { status: journal.end?.status ?? "failed", value: "other" } }),
      status: (journal) => ({ ...journal, end: { status: "cancelled", value: journal.end?.value ?? null } }),
      "no end": ({ end: _end, ...journal }) => journal,
      "no records": (journal) => ({ ...journal, records: [], claimed: { records: 0, head: "" } }),
    };
    for (const [at, { runId }] of journals.entries()) {
      for (const [name, change] of Object.entries(changes))
        found(changing(journals, at, change), `${name} of ${runId}`);
    }
  },

  "children that are missing, exchanged, added or moved are found": async (world) => {
    const journals = await journalsOf(world);
    const [root, ...children] = journals;
    assert.ok(root !== undefined);
    for (const [index, { runId }] of children.entries()) {
      found(journals.toSpliced(index + 1, 1), `${runId} removed`);
      found([...journals, ...children.slice(index, index + 1)], `${runId} doubled`);
      const [other] = children.filter((each) => each.runId !== runId);
      found(
        changing(journals, index + 1, (journal) => ({ ...(other ?? journal), runId })),
        `${runId} exchanged`,
      );
      const parent = children.find((each) => each.runId !== runId && each.runId !== children[index]?.parentId);
      found(
        changing(journals, index + 1, (journal) => ({ ...journal, parentId: parent?.runId ?? "" })),
        `${runId} moved`,
      );
      // One that was rewritten as a whole fits itself, not its parent.
      const rewritten = changing(journals, index + 1, (journal) =>
        rehashed({ ...journal, records: journal.records.map((record) => ({ ...record, incarnation: "other" })) }),
      );
      found(rewritten, `${runId} rewritten`);
    }
    const stranger = rehashed({ ...root, runId: "r1/fan/c", parentId: "r1" });
    found([...journals, stranger], "a child that was never forked");
    found([...journals, rehashed({ ...root, runId: "r2" })], "a run of another tree");
  },

  "a tail that was cut off together with the row is found by a head that was kept elsewhere": async (world) => {
    const journals = await journalsOf(world);
    const head = verifyJournal(journals).head;
    assert.deepEqual(verifyJournal(journals, head).faults, []);
    const [root] = journals;
    assert.ok(root !== undefined);
    for (let kept = 1; kept < root.records.length; kept += 1) {
      const { end: _end, ...cut } = rehashed({ ...root, records: root.records.slice(0, kept) });
      // The children that were forked later go too: this is how far nobody can tell without the head.
      const rest = kept > 3 ? journals.slice(1) : [];
      const changed = [cut, ...rest];
      if (kept !== 4) assert.deepEqual(verifyJournal(changed).faults, [], `cut after ${kept}`);
      found(changed, `cut after ${kept}`, head);
    }
    const rewritten = rehashed({
      ...root,
      records: root.records.map((record) => ({ ...record, incarnation: "other" })),
    });
    assert.deepEqual(verifyJournal([rewritten, ...journals.slice(1)]).faults, []);
    found([rewritten, ...journals.slice(1)], "the root rewritten as a whole", head);
  },

  "a child's journal can be verified without its parent's": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, full);
    await host.signal("r1", { name: "go", payload: null, by: "test" });
    await endOf(task);
    const within = await host.journal("r1/fan/a");
    assert.deepEqual(
      within.map(({ runId }) => runId),
      ["r1/fan/a", "r1/fan/a/fan/a", "r1/fan/a/fan/b"],
    );
    assert.deepEqual(verifyJournal(within).faults, []);
  },

  "a closed run holds the heads of what was below it": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    await start(first.host, async (steps) => {
      if (steps.runId.split("/fan/").length < 3) {
        await steps.fork("fan", [child("a"), child("b")], forkOptions());
        return cancelled(steps);
      }
      await steps.run("deaf", async () => {
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
      found(changing(journals, at, rewrite), `${runId} rewritten`);
      found(journals.toSpliced(at, 1), `${runId} removed`);
    }
  },

  "a run whose journal was changed is not resumed and not closed: nothing of it is run or written": async (world) => {
    await damaged(world, (_runId, records) =>
      records.map((record) => (record.stepId === "one" ? { ...record, value: "2" } : record)),
    );
  },

  "a run whose journal lost its tail is not resumed and not closed": async (world) => {
    await damaged(world, (_runId, records) => records.slice(0, -1));
  },

  "a run whose journal lost everything is not resumed and not closed": async (world) => {
    await damaged(world, () => []);
  },

  "a run with a damaged child stops where it would take the child up, and goes on once it is mended": async ({
    connect,
  }) => {
    const first = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId === "r1") {
        await steps.fork("fan", [child("a"), child("b")], forkOptions());
        return completed();
      }
      await steps.run("one", () => 1);
      return completed((await ask(steps, `q${steps.runId.at(-1)}`))?.payload ?? null);
    };
    await start(first.host, program);
    await untilAsked(first.host, 2);
    await first.crash();
    const second = await connect();
    second.tamper((runId, records) => (runId === "r1/fan/b" ? records.slice(0, 2) : records));
    const task = await second.host.resume("r1", program);
    await rejects(task.settled, "journal_damaged", "Host");
    assert.equal((await second.host.get("r1"))?.status, "suspended");
    const third = await connect();
    const again = await third.host.resume("r1", program);
    for (const key of ["a", "b"]) {
      await third.host.signal(`r1/fan/${key}`, { name: `request/q${key}`, payload: 1, by: "test", digest: "d1" });
    }
    assert.equal((await endOf(again)).status, "completed");
    assert.deepEqual(
      (await stepsOf(third.host, "r1/fan/b")).filter((record) => record === "done one"),
      ["done one"],
    );
    await expectWhole(third.host);
  },
};
