import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { field, type Json, numberField, parseJson, textField } from "../../base/json.ts";
import { digestOf } from "../record.ts";
import type { RecordPhase, RunJournal } from "../seam.ts";
import { RECORD_PHASES, readEnd } from "../step-id.ts";
import {
  EXPORT_VERSION,
  type ExportedJournal,
  type ExportedRecord,
  endLine,
  headerLine,
  journalLine,
  recordLine,
  valuedLine,
} from "./export.ts";
import type { AuditFault } from "./verify-tree.ts";

/** The content of an export. */
export interface RunExport {
  readonly runId: string;
  readonly journals: readonly ExportedJournal[];
  /** Where the file was changed after it was written, apart from its chains. */
  readonly faults: readonly AuditFault[];
  /** The journals as `RunHost.journal` returns them, if the file holds values and is complete. */
  readonly recorded?: readonly RunJournal[];
}

interface Reading extends Omit<ExportedJournal, "records"> {
  readonly records: ExportedRecord[];
  /** The records' values, in a file that holds them. */
  readonly values: string[];
}

/**
 * Reads an export of any origin: each line must be byte for byte what `exportLines` writes for its content. Stops at the first
 * other line and names its record.
 */
export function readExport(file: Uint8Array): RunExport {
  const text = Buffer.from(file.buffer, file.byteOffset, file.byteLength).toString("utf8");
  const lines = text.split("\n");
  const [header = ""] = lines;
  const known = parsed(header);
  const runId = textField(known, "runId") ?? "";
  const journals: Reading[] = [];
  const faults: AuditFault[] = [];
  const valued = field(known, "values") === true;
  const fault = (what: string): void => void faults.push({ runId: journals.at(-1)?.runId ?? runId, fault: what });
  const done = (): RunExport => ({
    runId,
    journals: journals.map(({ values: _values, ...journal }) => journal),
    faults,
    ...(valued && faults.length === 0 ? { recorded: journals.map(withValues) } : {}),
  });

  const version = field(known, "version");
  if (textField(known, "sluice") !== "run" || typeof version !== "number") {
    fault("the file is not an export of a run: its first line is not an export header");
    return done();
  }
  if (version !== EXPORT_VERSION) {
    fault(`the export has version ${version}, and this Sluice reads ${EXPORT_VERSION}; update Sluice`);
    return done();
  }
  let at = 1;
  for (; at < lines.length; at += 1) {
    const line = `${lines[at] ?? ""}\n`;
    const read = parsed(line);
    if (field(read, "sha256") !== undefined) break;
    const journal = journalIn(read);
    if (journal !== undefined && journalLine(journal) === line) {
      journals.push({ ...journal, records: [], values: [] });
      continue;
    }
    const current = journals.at(-1);
    const value = valued ? textField(read, "value") : undefined;
    const record = valued && value === undefined ? undefined : recordIn(read, value);
    if (current !== undefined && record !== undefined && lineOf(record, value) === line) {
      current.records.push(record);
      if (value !== undefined) current.values.push(value);
      continue;
    }
    const where = current === undefined ? "" : `, where record ${current.records.length} should be,`;
    if (lines[at] === "" && at === lines.length - 1) fault("the file was cut: its last line is missing");
    else fault(`line ${at + 1}${where} is not as it was written`);
    return done();
  }
  if (at === lines.length) fault("the file was cut: its last line is missing");
  else if (headerLine(journals, valued) !== `${header}\n`)
    fault("the first line is not that of the journals in the file");
  // Bytes that are not UTF-8 decode to the replacement character.
  else if (!isUtf8(file) || !endsAt(lines, at))
    fault("the file is not as it was written: it has another digest than its last line says");
  return done();
}

/** Whether the line at `at` is the last one and has the count and digest of those before it. */
function endsAt(lines: readonly string[], at: number): boolean {
  const before = `${lines.slice(0, at).join("\n")}\n`;
  return lines.slice(at).join("\n") === endLine(at, hash("sha256", before));
}

function journalIn(read: Json | undefined): Omit<ExportedJournal, "records"> | undefined {
  const runId = textField(read, "runId");
  const parentId = textField(read, "parentId");
  const [records, head] = [numberField(read, "records"), textField(read, "head")];
  if (runId === undefined || records === undefined || head === undefined) return undefined;
  return { runId, claimed: { records, head }, ...(parentId === undefined ? {} : { parentId }) };
}

function lineOf(record: ExportedRecord, value: string | undefined): string {
  if (value === undefined) return recordLine(record);
  const { valueDigest: _digest, ...rest } = record;
  return valuedLine({ ...rest, value });
}

function digestIn(read: Json | undefined, value: string | undefined): string | undefined {
  if (value === undefined) return textField(read, "valueDigest");
  return value.isWellFormed() ? digestOf(value) : undefined;
}

function withValues({ records, values, ...journal }: Reading): RunJournal {
  const whole = records.map(({ valueDigest: _digest, ...record }, at) => ({ ...record, value: values[at] ?? "" }));
  const last = whole.at(-1);
  const end = last === undefined ? undefined : readEnd(last);
  return { ...journal, input: parsed(values[0] ?? "") ?? null, records: whole, ...(end === undefined ? {} : { end }) };
}

function recordIn(read: Json | undefined, value: string | undefined): ExportedRecord | undefined {
  const record = {
    seq: numberField(read, "seq"),
    ordinal: numberField(read, "ordinal"),
    stepId: textField(read, "stepId"),
    phase: phaseIn(read),
    incarnation: textField(read, "incarnation"),
    valueDigest: digestIn(read, value),
    events: textField(read, "events"),
    hash: textField(read, "hash"),
  };
  return isWhole(record) ? record : undefined;
}

/** Whether no member is missing. */
function isWhole<T extends object>(of: T): of is { [K in keyof T]: Exclude<T[K], undefined> } & T {
  return !Object.values(of).includes(undefined);
}

function phaseIn(read: Json | undefined): RecordPhase | undefined {
  const phase = textField(read, "phase");
  return RECORD_PHASES.find((known) => known === phase);
}

function parsed(line: string): Json | undefined {
  const read = parseJson(line);
  return read.ok ? read.value : undefined;
}
