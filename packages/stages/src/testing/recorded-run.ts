import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { exportLines, type RunJournal, readExport, SluiceError, verifyExport } from "@sluice/core";
import { pathOf } from "./workspace.ts";

/**
 * Reads a recorded run from a file that `sluice export --values` or `writeRun` wrote, for `replayRun`. A relative path starts at
 * the process's working directory. Throws Host `journal_damaged` for a file that is not as it was written, and Validation
 * `export_without_values` for an export without values.
 */
export async function readRun(file: string | URL): Promise<readonly RunJournal[]> {
  const path = resolve(pathOf(file));
  const read = readExport(await readFile(path));
  const [fault] = verifyExport(read).faults;
  if (fault !== undefined)
    throw new SluiceError("Host", "journal_damaged", `${path} is not as it was written: ${fault.fault}`);
  if (read.recorded !== undefined) return read.recorded;
  throw new SluiceError(
    "Validation",
    "export_without_values",
    `${path} holds no values, and a replay needs them; write it with sluice export --values, or writeRun`,
  );
}

/**
 * Writes a recorded run to a file that only its owner can read, in place of one that is there, as `host.journal(runId)` gives it. It holds what models said and
 * tools returned: look at it before you commit it.
 */
export async function writeRun(file: string | URL, recorded: readonly RunJournal[]): Promise<void> {
  const path = resolve(pathOf(file));
  const draft = `${path}.${process.pid}.tmp`;
  try {
    // A mode is for a file that is made: what is there keeps its own.
    await writeFile(draft, [...exportLines(recorded, { values: true })].join(""), { mode: 0o600, flag: "wx" });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
