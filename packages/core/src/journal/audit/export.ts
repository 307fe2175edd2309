import { createHash } from "node:crypto";
import { digestOf } from "../record.ts";
import type { JournalRecord, RunJournal } from "../seam.ts";

/** Format version that is written and read. */
export const EXPORT_VERSION = 1;

/** A record of an export: everything that its hash covers, with the value's digest instead of the value. */
export interface ExportedRecord extends Omit<JournalRecord, "value"> {
  /** SHA-256 in hex; empty if there is no value. */
  readonly valueDigest: string;
}
/** One run's records, with what its row claims about them. */
export interface ExportedJournal {
  readonly runId: string;
  readonly parentId?: string;
  readonly records: readonly ExportedRecord[];
  readonly claimed: { readonly records: number; readonly head: string };
}

export interface ExportOptions {
  /** Includes values: what models and tools returned. Such a file can be replayed, and is as private as the store. */
  readonly values?: boolean;
}

/**
 * The lines of an export, each with its line break: a header, each journal (the root's first) with its records, and the digest
 * of all lines before. Without values the file can still be verified and audited; it holds what events hold.
 */
export function* exportLines(
  journals: readonly RunJournal[],
  { values = false }: ExportOptions = {},
): Generator<string, void, undefined> {
  const digest = createHash("sha256");
  let lines = 0;
  const counted = (line: string): string => {
    lines += 1;
    digest.update(line);
    return line;
  };
  yield counted(headerLine(journals, values));
  for (const journal of journals) {
    yield counted(journalLine(journal));
    for (const { value, ...record } of journal.records) {
      yield counted(
        values ? valuedLine({ ...record, value }) : recordLine({ ...record, valueDigest: digestOf(value) }),
      );
    }
  }
  yield endLine(lines, digest.digest("hex"));
}

interface Counted {
  readonly runId: string;
  readonly claimed: ExportedJournal["claimed"];
}

export function headerLine(journals: readonly Counted[], values: boolean): string {
  const [top] = journals;
  const records = journals.reduce((sum, { claimed }) => sum + claimed.records, 0);
  return line({
    sluice: "run",
    version: EXPORT_VERSION,
    ...(values ? { values } : {}),
    runId: top?.runId ?? "",
    journals: journals.length,
    records,
    head: top?.claimed.head ?? "",
  });
}

export function journalLine({ runId, parentId, claimed }: Omit<ExportedJournal, "records">): string {
  // JSON.stringify omits the undefined parentId of a root.
  return line({ runId, parentId, records: claimed.records, head: claimed.head });
}

/** Lists the fields in order, since a reader compares the exact bytes. */
export function recordLine(record: ExportedRecord): string {
  const { seq, ordinal, stepId, phase, incarnation, valueDigest, events, hash } = record;
  return line({ seq, ordinal, stepId, phase, incarnation, valueDigest, events, hash });
}

/** The same for a record with its value. */
export function valuedLine(record: JournalRecord): string {
  const { seq, ordinal, stepId, phase, incarnation, value, events, hash } = record;
  return line({ seq, ordinal, stepId, phase, incarnation, value, events, hash });
}

export function endLine(lines: number, sha256: string): string {
  return line({ lines, sha256 });
}

function line(of: object): string {
  return `${JSON.stringify(of)}\n`;
}
