import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type RunJournal, SluiceError } from "@sluice/core";
import { exportLines, readExport, verifyExport } from "@sluice/core/host";
import { pathOf } from "./workspace.ts";

/**
 * Reads a recorded run for `replayRun` from a file written by `sluice export --values` or `writeRun`. A relative path starts at the
 * process's working directory. Throws Host `journal_damaged` for a file that was modified, and Validation
 * `export_without_values`.
 */
export async function readRun(file: string | URL): Promise<readonly RunJournal[]> {
  const path = resolve(pathOf(file));
  const read = readExport(await readFile(path));
  const [fault] = verifyExport(read).faults;
  if (fault !== undefined) throw new SluiceError("Host", "journal_damaged", `${path} is damaged: ${fault.fault}`);
  if (read.recorded !== undefined) return read.recorded;
  throw new SluiceError(
    "Validation",
    "export_without_values",
    `${path} contains no values, which a replay needs; write it with sluice export --values or writeRun`,
  );
}

/**
 * Writes a recorded run, the result of `host.journal(runId)`, to a file that only its owner can read; an existing file is
 * replaced. The file contains model replies and tool results: review it before you commit it.
 */
export async function writeRun(file: string | URL, recorded: readonly RunJournal[]): Promise<void> {
  const path = resolve(pathOf(file));
  const draft = `${path}.${process.pid}.tmp`;
  try {
    // The mode applies only to a new file, so the draft must not exist.
    await writeFile(draft, [...exportLines(recorded, { values: true })].join(""), { mode: 0o600, flag: "wx" });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
