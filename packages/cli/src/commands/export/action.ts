import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { exportLines } from "@sluice/core/host";
import { messageOf } from "@sluice/core/runtime";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { chainOf, damagedText, exportName, writeExport, writtenText } from "../../output/export-file.ts";
import { isThere, usageError, write } from "../../output/output.ts";
import { isWithin, type ProjectPaths, realPath } from "../../project/project-paths.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type ExportFlags = CommonFlags & {
  readonly output?: string;
  readonly all?: boolean;
  readonly values?: boolean;
  readonly force?: boolean;
};

/** `sluice export`: writes a run's journals to a self-verifying file, or copies the whole store. */
export async function exportRun(
  context: CommandContext,
  named: string | undefined,
  flags: ExportFlags,
): Promise<number> {
  // A copy of the store would give a run access to what the gate denies.
  refuseInsideRun(readSettings(context.env), "export");
  const place = await projectsHere(flags, context).place();
  const { all = false, values = false, output } = flags;
  if (all === (named !== undefined)) throw usageError("name a run, or use --all for the whole store");
  if (named !== undefined) return await exportOne(named, place, flags, context);
  if (values) throw usageError("--all always includes values; --values needs a run");
  if (output === undefined || output === "-") throw usageError("--all needs an output folder: -o <folder>");
  return await exportAll(place, output, flags, context);
}

async function exportOne(
  named: string,
  place: ProjectPaths,
  flags: ExportFlags,
  { terminal, here }: CommandContext,
): Promise<number> {
  const { values = false, force = false, outputFormat } = flags;
  const toStdout = flags.output === "-";
  if (toStdout && outputFormat !== "text")
    throw usageError("-o - writes the export to stdout, so --output-format must be text");
  const { runId } = await withStore(place, (host) => requireRun(host, place, named));
  const { output = exportName(runId) } = flags;
  const verified = await withStore(place, async (host) => {
    if (toStdout) {
      const journals = await host.journal(runId);
      for (const line of exportLines(journals, { values })) terminal.out(line);
      return chainOf(journals).verified;
    }
    const file = resolve(here, output);
    const written = await writeExport(host, runId, { file, force, values });
    if (written === undefined) throw isThere(file);
    write(outputFormat, terminal, { json: { ...written }, text: () => [...writtenText(written)] });
    return written.verified;
  });
  if (verified) return EXIT.completed;
  // A damaged journal is exported too: it may be the only evidence left.
  terminal.err(`sluice: ${damagedText(runId)}\n`);
  return EXIT.failed;
}

async function exportAll(
  place: ProjectPaths,
  output: string,
  { force = false, outputFormat }: ExportFlags,
  { terminal, here }: CommandContext,
): Promise<number> {
  const folder = resolve(here, output);
  refuseTarget(folder, place.store, force);
  const { openJournalStore } = await import("@sluice/sqlite");
  const store = openJournalStore(place.store, { readOnly: true });
  const draft = join(dirname(folder), `.${basename(folder)}.${process.pid}.tmp`);
  const old = `${draft}.old`;
  let runs = 0;
  try {
    store.backupTo(draft);
    // Count the runs of the copy: the store may change meanwhile.
    const copy = openJournalStore(draft, { readOnly: true });
    runs = (await copy.runs()).length;
    await copy.close();
    if (force && existsSync(folder)) renameSync(folder, old);
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    if (existsSync(old) && !existsSync(folder)) renameSync(old, folder);
    rmSync(old, { recursive: true, force: true });
    await store.close();
  }
  write(outputFormat, terminal, {
    json: { store: place.store, folder, runs },
    text: () => [
      `copied ${count(runs, "run")} of ${oneLine(place.store, 1_000)} to ${oneLine(folder, 1_000)}`,
      "the copy holds the values of all runs: it is as private as the store",
    ],
  });
  return EXIT.completed;
}

/** A backup replaces only an earlier backup, and must not overlap with its store. */
function refuseTarget(folder: string, store: string, force: boolean): void {
  const [target, from] = [realPath(folder), realPath(store)];
  if (isWithin(target, from) || isWithin(from, target)) throw usageError(`${folder} and the store ${store} overlap`);
  if (!existsSync(dirname(folder))) throw usageError(`there is no folder ${dirname(folder)}`);
  if (!existsSync(folder)) return;
  if (!force) throw usageError(`${folder} exists; use --force to replace an earlier backup`);
  const held = namesIn(folder);
  const stranger = held.find((name) => !BACKUP.has(name));
  if (stranger === undefined && held.includes("journal.db")) return;
  throw usageError(
    `${folder} is not a backup of a store (${stranger === undefined ? "it has no journal.db" : `it contains ${stranger}`})`,
  );
}

/** The entries of a backup, also of one that was opened as a store. */
const BACKUP: ReadonlySet<string> = new Set([
  ".gitignore",
  "journal.db",
  "journal.db-wal",
  "journal.db-shm",
  "owners",
  "blobs",
]);

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    throw usageError(`${folder} is not a folder: ${messageOf(cause)}`, { cause });
  }
}
