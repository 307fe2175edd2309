import {
  type AuditFault,
  type AuditReport,
  isJsonObject,
  isSluiceError,
  type OpenRequest,
  type RunJournal,
  SluiceError,
  type SluiceEvent,
} from "@sluice/core";
import {
  inTreeOrder,
  type OrderedRecord,
  readEvents,
  type TreeRecord,
  verifyExport,
  verifyJournal,
} from "@sluice/core/host";
import { messageOf } from "@sluice/core/runtime";
import { requestFault } from "@sluice/tui/user";
import {
  type AuditFilter,
  count,
  describeEvent,
  detailOf,
  type EventLine,
  executionName,
  matchesFilter,
  oneLine,
} from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { faultLine, isExportPath, readExportFile } from "../../output/export-file.ts";
import { write } from "../../output/output.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type AuditFlags = CommonFlags &
  AuditFilter & { readonly verify?: boolean; readonly json?: boolean; readonly head?: string };

/**
 * `sluice audit`: the journals of a run and the runs below it, and whether they were changed. `of` is the run's id, or the path
 * of an export.
 */
export async function audit(context: CommandContext, of: string, flags: AuditFlags): Promise<number> {
  const { terminal } = context;
  const { head } = flags;
  if (head !== undefined && !isHead(head)) {
    throw new SluiceError(
      "Validation",
      "head_invalid",
      `${head} is not a head: a head has 64 hexadecimal digits; sluice show and sluice audit print it`,
    );
  }
  const audited = isExportPath(of) ? await auditFile(of, head, context) : await auditRun(of, flags, context);
  const { runId, report, journals, unreadable } = audited;
  const verify = flags.verify === true || head !== undefined;
  // Unreadable records are reported even without --verify.
  const faults = [...(verify ? report.faults : unreadable)];
  const all: AuditLine[] = [];
  for await (const placed of inTreeOrder(journals)) {
    const { events, fault } = readRecord(placed);
    all.push(...events.map((event) => ({ event, depth: placed.depth, line: describeEvent(event) })));
    faults.push(...fault);
  }
  const events = all.filter(({ line }) => matchesFilter(line, flags));
  if (events.length === 0) for (const line of unknownLines(all, flags)) terminal.err(line);
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
      ...events.map((one) => textLine(one, all[0]?.event.at ?? 0)),
      "",
      ...(events.length === all.length ? [] : [`${events.length} of ${count(all.length, "event")} shown`]),
      ...summaryLines(audited, verify, faults),
    ],
  });
  return faults.length === 0 ? EXIT.completed : EXIT.failed;
}

interface AuditLine {
  readonly event: SluiceEvent;
  /** Levels below the root. */
  readonly depth: number;
  readonly line: EventLine;
}

/** Lines about filter values that no event has, such as a stage of another pipeline. */
function unknownLines(all: readonly AuditLine[], filter: AuditFilter): readonly string[] {
  return (["stage", "tool"] as const).flatMap((what) => {
    const wanted = filter[what];
    const names = [...new Set(all.flatMap(({ line }) => line[what] ?? []))];
    if (wanted === undefined || names.includes(wanted)) return [];
    const known = names.length === 0 ? "none" : oneLine(names.join(", "), 1_000);
    return [`sluice: no event has the ${what} ${oneLine(wanted, 100)}; this run has: ${known}\n`];
  });
}

function isHead(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

interface AuditedJournal {
  readonly runId: string;
  readonly parentId?: string;
  readonly records: readonly AuditedRecord[];
}
type AuditedRecord = OrderedRecord & { readonly events: string };

interface Audited {
  readonly runId: string;
  readonly journals: readonly AuditedJournal[];
  readonly report: AuditReport;
  /** Journals and files that could not be read. */
  readonly unreadable: readonly AuditFault[];
  /** Lines at the end of the text output. */
  readonly notes: readonly string[];
}

async function auditRun(named: string, flags: AuditFlags, context: CommandContext): Promise<Audited> {
  const place = await projectsHere(flags, context).place();
  return await withStore(place, async (host) => {
    let runId = named;
    try {
      const known = await requireRun(host, place, named);
      const { status, end } = known;
      runId = known.runId;
      // Read before the journals, so that these contain the events of each.
      const open = end === undefined ? await host.requests(runId) : [];
      const journals = await host.journal(runId);
      const notes = [end === undefined ? "the run has not ended" : `the run is ${status}`];
      const report = verifyJournal(journals, flags.head);
      const faults = [...report.faults, ...(report.faults.length === 0 ? requestFaults(open, journals) : [])];
      return { runId, journals, report: { ...report, faults }, unreadable: [], notes };
    } catch (thrown) {
      if (!DAMAGE.some((code) => isSluiceError(thrown, code))) throw thrown;
      const unreadable = [{ runId, fault: messageOf(thrown) }];
      return { runId, journals: [], report: { faults: unreadable, records: 0, head: "" }, unreadable, notes: [] };
    }
  });
}

/** Open requests in the store that differ from the journals, which have to be intact. */
function requestFaults(open: readonly OpenRequest[], journals: readonly RunJournal[]): readonly AuditFault[] {
  if (open.length === 0) return [];
  const events = journals.flatMap(({ runId, records }) => records.flatMap((record) => readEvents(runId, record)));
  return open.flatMap((request) => {
    const fault = requestFault(request, events);
    return fault === undefined ? [] : [{ runId: request.runId, fault: `open request ${request.requestId}: ${fault}` }];
  });
}

/** Codes of damage that an audit reports instead of failing. */
const DAMAGE = ["blob_damaged", "blob_missing", "journal_damaged"];

async function auditFile(path: string, head: string | undefined, { here }: CommandContext): Promise<Audited> {
  const read = await readExportFile(path, here);
  const report = verifyExport(read, head);
  const values = read.recorded === undefined ? ", without values" : ", with values";
  // A damaged file can be of either kind.
  const notes = [`an export: the recorded events${read.faults.length === 0 ? values : ""}`];
  if (report.unnamed.length > 0) notes.push(`the head does not cover these: ${report.unnamed.join(", ")}`);
  return { runId: read.runId, journals: read.journals, report, unreadable: read.faults, notes };
}

/** The events of a record, or the fault of one that cannot be read. */
function readRecord({ runId, record }: TreeRecord<AuditedRecord>): {
  readonly events: readonly SluiceEvent[];
  readonly fault: readonly AuditFault[];
} {
  try {
    const events = readEvents(runId, record);
    // A file with valid hashes can contain anything.
    if (!events.every(isEvent)) throw new SluiceError("Host", "journal_damaged", "they are not events");
    return { events, fault: [] };
  } catch (thrown) {
    const fault = `the events of record ${record.seq} cannot be read: ${messageOf(thrown)}`;
    return { events: [], fault: [{ runId, fault }] };
  }
}

function isEvent({ at, type, executionId = "", data }: SluiceEvent): boolean {
  return Number.isFinite(at) && typeof type === "string" && typeof executionId === "string" && isJsonObject(data);
}

const SEQ = 7;
const TYPE = 20;
const WHO = 14;

/** Record, seconds since the start, type, execution, data, and who decided and why. */
function textLine({ event, depth, line: { by, why } }: AuditLine, startedAt: number): string {
  const { id, runId, at, type, executionId = "", attempt, data } = event;
  const seq = id.slice(runId.length + 1);
  const seconds = `+${((at - startedAt) / 1_000).toFixed(3)}`;
  const name = executionId === "" ? "" : executionName({ runId, executionId });
  const who = attempt === undefined || attempt === 1 ? name : `${name}/a${attempt}`;
  const child = depth > 0 && type === "run.started" ? ` ${runId}` : "";
  const decision = [by, why].filter((part) => part !== "").join(": ");
  const details = `${detailOf(data)}${decision === "" ? "" : ` — ${decision}`}`;
  const line = `${oneLine(seq).padEnd(SEQ)} ${seconds.padStart(9)}  ${"  ".repeat(depth)}${oneLine(type).padEnd(TYPE)} ${oneLine(who, 80).padEnd(WHO)}${oneLine(child)} ${details}`;
  return line.trimEnd();
}

function summaryLines(
  { report, journals, notes }: Audited,
  verified: boolean,
  faults: readonly AuditFault[],
): readonly string[] {
  const of = `${count(report.records, "record")}${journals.length > 1 ? ` in ${count(journals.length, "journal")}` : ""}`;
  // Without an intact record there is no head.
  const head = isHead(report.head) ? `, head ${report.head}` : "";
  const lines = [`${of}${head}`, ...notes.map((note) => oneLine(note, 1_000))];
  if (!verified && faults.length === 0) return [...lines, "not verified; --verify checks every record's hash"];
  if (faults.length === 0) return [...lines, "verified: every record is unchanged"];
  return [
    ...lines,
    `CHANGED, ${count(faults.length, "fault")}:`,
    ...faults.map((one) => `  ${oneLine(faultLine(one), 1_000)}`),
  ];
}
