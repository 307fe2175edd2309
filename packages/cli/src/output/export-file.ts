import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  type AuditFault,
  exportLines,
  messageOf,
  type RunExport,
  type RunHost,
  type RunJournal,
  readExport,
  SluiceError,
  verifyJournal,
} from "@sluice/core";
import { count, oneLine } from "@sluice/view/words";
import { fileNameOf, writeWhole } from "./output-file.ts";

/** An export as it was written. */
export interface WrittenExport {
  readonly runId: string;
  readonly file: string;
  readonly bytes: number;
  readonly records: number;
  /** Of the run and its siblings. */
  readonly journals: number;
  /** The end of the chain, by which the file is known again. */
  readonly head: string;
  /** Whether the record is as it was written. */
  readonly verified: boolean;
  /** Whether it holds what models said and tools returned. */
  readonly values: boolean;
}
export interface ExportFileRequest {
  readonly file: string;
  readonly force: boolean;
  /** Writes values too. */
  readonly values?: boolean;
}

/**
 * Writes the record of a run and its siblings to a file that verifies by itself; all of it or nothing. Undefined when a file is
 * there and stays, since `force` was not given. Throws Validation `usage` where it cannot be written.
 */
export async function writeExport(
  host: Pick<RunHost, "journal">,
  runId: string,
  { file, force, values = false }: ExportFileRequest,
): Promise<WrittenExport | undefined> {
  const journals = await host.journal(runId);
  const bytes = writeWhole(file, exportLines(journals, { values }), force);
  if (bytes === undefined) return undefined;
  const { records, head, verified } = chainOf(journals);
  return { runId, file, bytes, records, journals: journals.length, head, verified, values };
}

export function chainOf(journals: readonly RunJournal[]): Pick<WrittenExport, "records" | "head" | "verified"> {
  const { faults, head, records } = verifyJournal(journals);
  return { records, head, verified: faults.length === 0 };
}

/** The file an export goes to when nobody names one. */
export function exportName(runId: string): string {
  return fileNameOf(runId, "jsonl");
}

export function writtenText({ runId, file, records, head, values }: WrittenExport): readonly string[] {
  return [
    `${count(records, "record")} of run ${oneLine(runId)} are in ${oneLine(file, 1_000)}, ${values ? "with" : "without"} their values`,
    ...(values ? ["it holds what models said and tools returned: look at it before you share it"] : []),
    `head ${head}`,
  ];
}

/** What is said of a record that is not as it was written. */
export function damagedText(runId: string): string {
  return `the record of run ${oneLine(runId)} is not as it was written; sluice audit --verify says where`;
}

/** Whether a word names an export: by how it is written, not by what is there, since no file may stand in for a run. */
export function isExportPath(of: string): boolean {
  return of.endsWith(".jsonl") || /^(?:\.{0,2}[/\\]|[A-Za-z]:[/\\])/.test(of);
}

/** What is wrong, and in which run; a file that is no export names none. */
export function faultLine({ runId, fault }: AuditFault): string {
  return runId === "" ? fault : `${runId}: ${fault}`;
}

/** Reads an export, whatever it is. Throws Validation `usage` for a file that cannot be read. */
export async function readExportFile(path: string, here: string): Promise<RunExport> {
  const file = resolve(here, path);
  try {
    return readExport(await readFile(file));
  } catch (cause) {
    const missing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
    const fault = missing ? `there is no file ${file}` : `${file} cannot be read: ${messageOf(cause)}`;
    throw new SluiceError("Validation", "usage", fault, { cause });
  }
}
