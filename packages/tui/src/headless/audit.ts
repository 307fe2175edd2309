import {
  type AuditReport,
  messageOf,
  type RunJournal,
  readEvents,
  SluiceError,
  type SluiceEvent,
  verifyJournal,
} from "@sluice/core";
import { detailOf, inForkOrder } from "../audit-trail.ts";
import { count, oneLine } from "../words.ts";
import type { CommandContext } from "../work/context.ts";
import { requireRun, withStore } from "../work/lookup.ts";
import { EXIT } from "./exit-code.ts";
import type { CommonFlags } from "./flags.ts";
import { write } from "./output.ts";
import { projectsHere } from "./projects-here.ts";

export interface AuditRequest {
  readonly runId: string;
  readonly flags: CommonFlags & { readonly verify?: boolean; readonly json?: boolean; readonly head?: string };
}

/** `sluice audit`: the journal of a run and its children, and whether it is what was written. */
export async function audit({ runId, flags }: AuditRequest, context: CommandContext): Promise<number> {
  const { terminal } = context;
  if (flags.head !== undefined && !/^[0-9a-f]{64}$/.test(flags.head)) {
    throw new SluiceError(
      "Validation",
      "head_invalid",
      `${flags.head} is no head: 64 hexadecimal digits, as sluice show and sluice audit print them`,
    );
  }
  const place = await projectsHere(flags, context).place();
  const journals = await withStore(place, async (host) => {
    await requireRun(host, place, runId);
    return await host.journal(runId);
  });
  const verify = flags.verify === true || flags.head !== undefined;
  const read = journals.map(readJournal);
  const report = verifyJournal(journals, flags.head);
  // What cannot be read cannot be shown: that is never passed over, verified or not.
  const faults = [...(verify ? report.faults : []), ...read.flatMap(({ fault }) => fault)];
  const events = inForkOrder(read);
  write(flags.json === true ? "json" : flags.outputFormat, terminal, {
    json: {
      runId,
      head: report.head,
      records: report.records,
      verified: verify ? faults.length === 0 : null,
      faults: faults.map((one) => ({ ...one })),
    },
    items: { key: "events", each: events.map(({ event }) => ({ ...event })) },
    text: () => [
      ...events.map(({ event, depth }) => eventLine(event, depth, events[0]?.event.at ?? 0)),
      "",
      ...summaryLines(
        report,
        verify,
        faults.map(({ runId: of, fault }) => `${of}: ${fault}`),
        journals,
      ),
    ],
  });
  return faults.length === 0 ? EXIT.completed : EXIT.failed;
}

interface ReadJournal {
  readonly runId: string;
  readonly events: readonly SluiceEvent[];
  /** Records whose events cannot be read any more. */
  readonly fault: readonly { readonly runId: string; readonly fault: string }[];
}

function readJournal(journal: RunJournal): ReadJournal {
  const events: SluiceEvent[] = [];
  const fault: { runId: string; fault: string }[] = [];
  for (const record of journal.records) {
    try {
      events.push(...readEvents(journal.runId, record));
    } catch (thrown) {
      fault.push({
        runId: journal.runId,
        fault: `the events of record ${record.seq} cannot be read: ${messageOf(thrown)}`,
      });
    }
  }
  return { runId: journal.runId, events, fault };
}

const SEQ = 7;
const TYPE = 20;
const WHO = 14;

/** Record, seconds since the start, who, what, and the data as it stands. */
function eventLine(
  { id, runId, at, type, executionId = "", attempt, data }: SluiceEvent,
  depth: number,
  startedAt: number,
): string {
  const seq = id.slice(runId.length + 1);
  const seconds = `+${((at - startedAt) / 1_000).toFixed(3)}`;
  const who = attempt === undefined || attempt === 1 ? executionId : `${executionId}/a${attempt}`;
  const child = depth > 0 && type === "run.started" ? ` ${runId}` : "";
  const line = `${oneLine(seq).padEnd(SEQ)} ${seconds.padStart(9)}  ${"  ".repeat(depth)}${oneLine(type).padEnd(TYPE)} ${oneLine(who, 60).padEnd(WHO)}${oneLine(child)} ${detailOf(data)}`;
  return line.trimEnd();
}

function summaryLines(
  report: AuditReport,
  verified: boolean,
  faults: readonly string[],
  journals: readonly RunJournal[],
): readonly string[] {
  const children = journals.length - 1;
  const of = `${count(report.records, "record")}${children > 0 ? ` in ${count(journals.length, "journal")}` : ""}`;
  const lines = [`${of}, head ${report.head}`];
  const first = journals[0]?.end;
  lines.push(first === undefined ? "the run has no end yet" : `the run is ${first.status}`);
  if (!verified && faults.length === 0) return [...lines, "not verified; --verify checks every record's hash"];
  if (faults.length === 0) return [...lines, "verified: every record is as it was written"];
  return [
    ...lines,
    `NOT as it was written, ${count(faults.length, "fault")}:`,
    ...faults.map((fault) => `  ${oneLine(fault, 1_000)}`),
  ];
}
