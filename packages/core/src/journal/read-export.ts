import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { field, type Json, parseJson } from "../base/json.ts";
import {
  EXPORT_VERSION,
  type ExportedJournal,
  type ExportedRecord,
  endLine,
  headerLine,
  journalLine,
  recordLine,
} from "./export.ts";
import type { RecordPhase } from "./seam.ts";
import type { AuditFault } from "./verify-tree.ts";

/** What an export holds. */
export interface RunExport {
  readonly runId: string;
  readonly journals: readonly ExportedJournal[];
  /** Where the file is not what was written, its chains aside. */
  readonly faults: readonly AuditFault[];
}

interface Reading extends Omit<ExportedJournal, "records"> {
  readonly records: ExportedRecord[];
}

/**
 * Reads an export, whatever it is: each line has to be the very bytes that would be written for what it says. Stops at the
 * first line that is not, and says which record that is.
 */
export function readExport(file: Uint8Array): RunExport {
  const text = Buffer.from(file.buffer, file.byteOffset, file.byteLength).toString("utf8");
  const lines = text.split("\n");
  const [header = ""] = lines;
  const known = parsed(header);
  const runId = textIn(known, "runId") ?? "";
  const journals: Reading[] = [];
  const faults: AuditFault[] = [];
  const fault = (what: string): void => void faults.push({ runId: journals.at(-1)?.runId ?? runId, fault: what });
  const done = (): RunExport => ({ runId, journals, faults });

  const version = field(known, "version");
  if (textIn(known, "sluice") !== "run" || typeof version !== "number") {
    fault("the file is no export of a run: its first line does not say so");
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
      journals.push({ ...journal, records: [] });
      continue;
    }
    const current = journals.at(-1);
    const record = recordIn(read);
    if (current !== undefined && record !== undefined && recordLine(record) === line) {
      current.records.push(record);
      continue;
    }
    const where = current === undefined ? "" : `, where record ${current.records.length} should be,`;
    if (lines[at] === "" && at === lines.length - 1) fault("the file was cut: its last line is missing");
    else fault(`line ${at + 1}${where} is not as it was written`);
    return done();
  }
  if (at === lines.length) fault("the file was cut: its last line is missing");
  else if (headerLine(journals) !== `${header}\n`) fault("the first line is not that of the journals in the file");
  // Bytes that are no text read like the sign that stands for them.
  else if (!isUtf8(file) || !isWhole(lines, at))
    fault("the file is not as it was written: it has another digest than its last line says");
  return done();
}

/** Whether the line at `at` is the last one, and counts and digests those before it. */
function isWhole(lines: readonly string[], at: number): boolean {
  const before = `${lines.slice(0, at).join("\n")}\n`;
  return lines.slice(at).join("\n") === endLine(at, hash("sha256", before));
}

function journalIn(read: Json | undefined): Omit<ExportedJournal, "records"> | undefined {
  const runId = textIn(read, "runId");
  const parentId = textIn(read, "parentId");
  const [records, head] = [numberIn(read, "records"), textIn(read, "head")];
  if (runId === undefined || records === undefined || head === undefined) return undefined;
  return { runId, claimed: { records, head }, ...(parentId === undefined ? {} : { parentId }) };
}

function recordIn(read: Json | undefined): ExportedRecord | undefined {
  const [seq, ordinal, phase] = [numberIn(read, "seq"), numberIn(read, "ordinal"), phaseIn(read)];
  const [stepId, incarnation] = [textIn(read, "stepId"), textIn(read, "incarnation")];
  const [valueDigest, events, hashed] = [textIn(read, "valueDigest"), textIn(read, "events"), textIn(read, "hash")];
  if (seq === undefined || ordinal === undefined || phase === undefined || stepId === undefined) return undefined;
  if (incarnation === undefined || valueDigest === undefined || events === undefined || hashed === undefined)
    return undefined;
  return { seq, ordinal, stepId, phase, incarnation, valueDigest, events, hash: hashed };
}

function phaseIn(read: Json | undefined): RecordPhase | undefined {
  const phase = textIn(read, "phase");
  return phase === "open" || phase === "done" || phase === "life" ? phase : undefined;
}

function parsed(line: string): Json | undefined {
  const read = parseJson(line);
  return read.ok ? read.value : undefined;
}

function textIn(read: Json | undefined, key: string): string | undefined {
  const value = field(read, key);
  return typeof value === "string" ? value : undefined;
}

function numberIn(read: Json | undefined, key: string): number | undefined {
  const value = field(read, key);
  return typeof value === "number" ? value : undefined;
}
