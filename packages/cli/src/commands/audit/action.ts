import {
  type AuditFault,
  type AuditReport,
  isJsonObject,
  isSluiceError,
  messageOf,
  readEvents,
  SluiceError,
  type SluiceEvent,
  verifyExport,
  verifyJournal,
} from "@sluice/core";
import {
  type AuditFacets,
  count,
  decisionIn,
  detailOf,
  facetsOf,
  hasFacets,
  inForkOrder,
  oneLine,
} from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { faultLine, isExportPath, readExportFile } from "../../output/export-file.ts";
import { write } from "../../output/output.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

export interface AuditRequest {
  /** A run's id, or the path of an export. */
  readonly of: string;
  readonly flags: CommonFlags &
    AuditFacets & { readonly verify?: boolean; readonly json?: boolean; readonly head?: string };
}

/** `sluice audit`: the journal of a run and its children, in the store or in an export, and whether it is what was written. */
export async function audit({ of, flags }: AuditRequest, context: CommandContext): Promise<number> {
  const { terminal } = context;
  const { head } = flags;
  if (head !== undefined && !isHead(head)) {
    throw new SluiceError(
      "Validation",
      "head_invalid",
      `${head} is no head: 64 hexadecimal digits, as sluice show and sluice audit print them`,
    );
  }
  const audited = isExportPath(of) ? await auditFile(of, head, context) : await auditRun(of, flags, context);
  const { runId, report, journals, unreadable } = audited;
  const verify = flags.verify === true || head !== undefined;
  const read = journals.map(readJournal);
  // What cannot be read cannot be shown: that is never passed over, verified or not.
  const faults = [...(verify ? report.faults : unreadable), ...read.flatMap(({ fault }) => fault)];
  const all = inForkOrder(read);
  const events = all.filter(({ event }) => hasFacets(facetsOf(event), flags));
  if (events.length === 0)
    for (const line of unknownLines(
      all.map(({ event }) => event),
      flags,
    ))
      terminal.err(line);
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
      ...events.map(({ event, depth }) => eventLine(event, depth, all[0]?.event.at ?? 0)),
      "",
      ...(events.length === all.length ? [] : [`${events.length} of ${count(all.length, "event")} shown`]),
      ...summaryLines(audited, verify, faults),
    ],
  });
  return faults.length === 0 ? EXIT.completed : EXIT.failed;
}

/** What of a filter that let nothing through is in no event at all, such as a stage of another pipeline. */
function unknownLines(all: readonly SluiceEvent[], { stage, tool }: AuditFacets): readonly string[] {
  const known = all.map(facetsOf);
  const line = (what: "stage" | "tool", wanted: string | undefined): readonly string[] => {
    const names = [...new Set(known.flatMap((facets) => facets[what] ?? []))];
    if (wanted === undefined || names.includes(wanted)) return [];
    const there = names.length === 0 ? "none" : oneLine(names.join(", "), 1_000);
    return [`sluice: no event is of ${what} ${oneLine(wanted, 100)}; those there are: ${there}\n`];
  };
  return [...line("stage", stage), ...line("tool", tool)];
}

function isHead(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** A journal as far as an audit shows it. */
interface AuditedJournal {
  readonly runId: string;
  readonly records: readonly { readonly seq: number; readonly events: string }[];
}
interface Audited {
  readonly runId: string;
  readonly journals: readonly AuditedJournal[];
  readonly report: AuditReport;
  /** What could not even be read. */
  readonly unreadable: readonly AuditFault[];
  /** Lines about the whole. */
  readonly notes: readonly string[];
}

async function auditRun(runId: string, flags: AuditRequest["flags"], context: CommandContext): Promise<Audited> {
  const place = await projectsHere(flags, context).place();
  return await withStore(place, async (host) => {
    try {
      const { status, end } = await requireRun(host, place, runId);
      const journals = await host.journal(runId);
      const notes = [end === undefined ? "the run has no end yet" : `the run is ${status}`];
      return { runId, journals, report: verifyJournal(journals, flags.head), unreadable: [], notes };
    } catch (thrown) {
      if (!DAMAGE.some((code) => isSluiceError(thrown, code))) throw thrown;
      const unreadable = [{ runId, fault: messageOf(thrown) }];
      return { runId, journals: [], report: { faults: unreadable, records: 0, head: "" }, unreadable, notes: [] };
    }
  });
}

/** Something beside the rows, or in one, that is not what was written and cannot even be read: an audit is there to say so. */
const DAMAGE = ["blob_damaged", "blob_missing", "journal_damaged"];

async function auditFile(path: string, head: string | undefined, { here }: CommandContext): Promise<Audited> {
  const read = await readExportFile(path, here);
  const report = verifyExport(read, head);
  const left = read.recorded === undefined ? ", values left out" : ", with their values";
  // Of a file that is not whole nobody can tell which it was.
  const notes = [`an export: events as they were recorded${read.faults.length === 0 ? left : ""}`];
  if (report.unnamed.length > 0) notes.push(`nothing here binds these to the head: ${report.unnamed.join(", ")}`);
  return { runId: read.runId, journals: read.journals, report, unreadable: read.faults, notes };
}

interface ReadJournal {
  readonly runId: string;
  readonly events: readonly SluiceEvent[];
  /** Records whose events cannot be read any more. */
  readonly fault: readonly AuditFault[];
}

function readJournal({ runId, records }: AuditedJournal): ReadJournal {
  const events: SluiceEvent[] = [];
  const fault: AuditFault[] = [];
  for (const record of records) {
    try {
      const own = readEvents(runId, record);
      // A file may say anything and still have the right hashes.
      if (!own.every(isEvent)) throw new SluiceError("Host", "journal_damaged", "they are no events");
      events.push(...own);
    } catch (thrown) {
      fault.push({ runId, fault: `the events of record ${record.seq} cannot be read: ${messageOf(thrown)}` });
    }
  }
  return { runId, events, fault };
}

function isEvent({ at, type, executionId = "", data }: SluiceEvent): boolean {
  return Number.isFinite(at) && typeof type === "string" && typeof executionId === "string" && isJsonObject(data);
}

const SEQ = 7;
const TYPE = 20;
const WHO = 14;

/** Record, seconds since the start, who, what, the data as it stands, and who decided and why. */
function eventLine(event: SluiceEvent, depth: number, startedAt: number): string {
  const { id, runId, at, type, executionId = "", attempt, data } = event;
  const seq = id.slice(runId.length + 1);
  const seconds = `+${((at - startedAt) / 1_000).toFixed(3)}`;
  const who = attempt === undefined || attempt === 1 ? executionId : `${executionId}/a${attempt}`;
  const child = depth > 0 && type === "run.started" ? ` ${runId}` : "";
  const { by, why } = decisionIn(event);
  const decided = [by, why].filter((part) => part !== "").join(": ");
  const said = `${detailOf(data)}${decided === "" ? "" : ` — ${decided}`}`;
  const line = `${oneLine(seq).padEnd(SEQ)} ${seconds.padStart(9)}  ${"  ".repeat(depth)}${oneLine(type).padEnd(TYPE)} ${oneLine(who, 60).padEnd(WHO)}${oneLine(child)} ${said}`;
  return line.trimEnd();
}

function summaryLines(
  { report, journals, notes }: Audited,
  verified: boolean,
  faults: readonly AuditFault[],
): readonly string[] {
  const of = `${count(report.records, "record")}${journals.length > 1 ? ` in ${count(journals.length, "journal")}` : ""}`;
  // Where no record is as it was written there is no head.
  const head = isHead(report.head) ? `, head ${report.head}` : "";
  const lines = [`${of}${head}`, ...notes.map((note) => oneLine(note, 1_000))];
  if (!verified && faults.length === 0) return [...lines, "not verified; --verify checks every record's hash"];
  if (faults.length === 0) return [...lines, "verified: every record is as it was written"];
  return [
    ...lines,
    `NOT as it was written, ${count(faults.length, "fault")}:`,
    ...faults.map((one) => `  ${oneLine(faultLine(one), 1_000)}`),
  ];
}
