import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { AuditFault, RunHost, RunJournal } from "@sluice/core";
import { exportLines, type RunExport, readExport, verifyJournal } from "@sluice/core/host";
import { messageOf } from "@sluice/core/runtime";
import { count, oneLine } from "@sluice/view/words";
import { usageError } from "./output.ts";
import { fileNameOf, hasCode, writeWhole } from "./output-file.ts";

export interface WrittenExport {
  readonly runId: string;
  readonly file: string;
  readonly bytes: number;
  readonly records: number;
  /** The number of journals: of the run and its child runs. */
  readonly journals: number;
  /** The last hash of the chain, which identifies the content. */
  readonly head: string;
  /** Whether the journals are unchanged. */
  readonly verified: boolean;
  /** Whether it includes model output and tool results. */
  readonly values: boolean;
}
/**
 * Writes the journals of a run and its child runs to a self-verifying file, atomically. Returns undefined if the file exists and
 * `force` is false. Throws Validation `usage` if it cannot be written.
 */
export async function writeExport(
  host: Pick<RunHost, "journal">,
  runId: string,
  { file, force, values = false }: { readonly file: string; readonly force: boolean; readonly values?: boolean },
): Promise<WrittenExport | undefined> {
  const journals = await host.journal(runId);
  const bytes = writeWhole(file, exportLines(journals, { values }), { force });
  if (bytes === undefined) return undefined;
  const { records, head, verified } = chainOf(journals);
  return { runId, file, bytes, records, journals: journals.length, head, verified, values };
}

export function chainOf(journals: readonly RunJournal[]): Pick<WrittenExport, "records" | "head" | "verified"> {
  const { faults, head, records } = verifyJournal(journals);
  return { records, head, verified: faults.length === 0 };
}

/** The default file of an export. */
export function exportName(runId: string): string {
  return fileNameOf(runId, "jsonl");
}

export function writtenText({ runId, file, records, head, values }: WrittenExport): readonly string[] {
  return [
    `${count(records, "record")} of run ${oneLine(runId)} are in ${oneLine(file, 1_000)}, ${values ? "with" : "without"} their values`,
    ...(values ? ["the file holds model output and tool results: review it before you share it"] : []),
    `head ${head}`,
  ];
}

export function damagedText(runId: string): string {
  return `the journal of run ${oneLine(runId)} was changed; sluice audit --verify shows where`;
}

/** Whether an argument is the path of an export. Its form decides, so that no existing file can pose as a run. */
export function isExportPath(of: string): boolean {
  return of.endsWith(".jsonl") || /^(?:\.{0,2}[/\\]|[A-Za-z]:[/\\])/.test(of);
}

/** A fault with its run; a file that is not an export names none. */
export function faultLine({ runId, fault }: AuditFault): string {
  return runId === "" ? fault : `${runId}: ${fault}`;
}

/** Reads an export. Throws Validation `usage` if the file cannot be read. */
export async function readExportFile(path: string, here: string): Promise<RunExport> {
  const file = resolve(here, path);
  try {
    return readExport(await readFile(file));
  } catch (cause) {
    const fault = hasCode(cause, "ENOENT") ? `there is no file ${file}` : `${file} cannot be read: ${messageOf(cause)}`;
    throw usageError(fault, { cause });
  }
}
