import type {
  ChildRun,
  JournalRecord,
  ProgramEnd,
  RunChildrenOptions,
  RunHost,
  RunJournal,
  StepRunner,
} from "@sluice/core";
import { exportLines, GENESIS, hashRecord } from "@sluice/core/host";
import { endOf, start } from "./journal.ts";

const child = (key: string): ChildRun => ({
  key,
  input: key,
  events: [{ type: "run.started", data: { pipeline: "p" } }],
});
const fork = (keys: readonly string[]): RunChildrenOptions => ({
  onFailure: "settle",
  failed: ({ status }) => status === "failed",
  open: { events: [{ type: "fanOut.started", data: { fanOut: "fan", siblings: [...keys], join: "end" } }] },
  joined: (ends) => [
    {
      type: "fanOut.joined",
      data: {
        fanOut: "fan",
        outcomes: Object.entries(ends).map(([name, { status, head }]) => ({ name, status, head })),
      },
    },
  ],
});

/** What a journal can hold: intents, events, forks of forks, a failure, signs of many bytes, a text that becomes a blob. */
async function everything(steps: StepRunner): Promise<ProgramEnd> {
  const depth = steps.runId.split("/fan/").length;
  await steps.run("odd", (call) => {
    call.event({ type: "limit.near", data: { limit: "x", message: "Grüße \ufffd \u2028 😀", used: 1, max: 2 } });
    return "\ufffd";
  });
  await steps.run("write", () => (depth === 1 ? "ä".repeat(150_000) : "short"), {
    open: { events: [{ type: "call.started", data: { callId: "c1", tool: "Write" } }], intent: { file: "a" } },
  });
  if (depth < 3) await steps.runChildren("fan", [child("a"), child("b")], fork(["a", "b"]));
  const status = steps.runId.endsWith("b") ? "failed" : "completed";
  return { status, value: { depth }, events: [{ type: "run.finished", data: { status } }] };
}

/** The journals of a run of seven. */
export async function runEverything(host: RunHost): Promise<readonly RunJournal[]> {
  await endOf(await start(host, everything));
  return await host.journal("r1");
}

/** One journal of so many records, as a long run leaves it. */
export function longJournal(records: number): RunJournal {
  const made: JournalRecord[] = [];
  let head = GENESIS;
  const add = (stepId: string, phase: JournalRecord["phase"], value: string, data: object): void => {
    const seq = made.length;
    const events = JSON.stringify([{ at: 1_700_000_000_000 + seq, type: "turn.finished", data }]);
    const ordinal = phase === "lifecycle" ? -1 : seq;
    const unhashed = { seq, ordinal, stepId, phase, incarnation: "i1", value, events };
    head = hashRecord(head, "long", unhashed);
    made.push({ ...unhashed, hash: head });
  };
  add("start", "lifecycle", "null", {});
  for (let turn = 1; made.length < records - 1; turn += 1) {
    const value = JSON.stringify({ text: `answer ${turn} `.repeat(20), usage: { inputTokens: turn, outputTokens: 9 } });
    add(`plan#1/a1/turn/${turn}/model`, "done", value, { turn, finishReason: "tool-calls", calls: turn % 3 });
  }
  add("end", "lifecycle", '{"status":"completed","value":1}', { status: "completed" });
  const end = { status: "completed", value: 1 } as const;
  return { runId: "long", input: null, records: made, claimed: { records: made.length, head }, end };
}

/** Makes a journal whole again, as someone does who can write all of it. */
export function rehashed(journal: RunJournal): RunJournal {
  let head: string = GENESIS;
  const records = journal.records.map(({ hash: _old, ...record }, seq) => {
    const unhashed = { ...record, seq };
    head = hashRecord(head, journal.runId, unhashed);
    return { ...unhashed, hash: head };
  });
  return { ...journal, records, claimed: { records: records.length, head } };
}

export function exported(journals: readonly RunJournal[]): Buffer {
  return Buffer.from([...exportLines(journals)].join(""));
}
