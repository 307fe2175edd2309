import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type AuditFault, messageOf, type RunExport, readExport, SluiceError } from "@sluice/core";

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
