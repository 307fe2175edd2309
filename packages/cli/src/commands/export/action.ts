import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { exportLines, messageOf, SluiceError } from "@sluice/core";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { chainOf, damagedText, exportName, writeExport, writtenText } from "../../output/export-file.ts";
import { isThere, write } from "../../output/output.ts";
import { type ProjectPaths, realPath } from "../../project/project-paths.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

export interface ExportRequest {
  readonly runId: string | undefined;
  readonly flags: CommonFlags & {
    readonly output?: string;
    readonly all?: boolean;
    readonly values?: boolean;
    readonly force?: boolean;
  };
}

/** `sluice export`: a run's record as a file that verifies by itself, or a copy of the whole store. */
export async function exportRun({ runId, flags }: ExportRequest, context: CommandContext): Promise<number> {
  // A copy of the store would show a run what the gate keeps it from.
  refuseInsideRun(readSettings(context.env), "export");
  const place = await projectsHere(flags, context).place();
  const { all = false, values = false, output } = flags;
  if (all === (runId !== undefined)) throw usage("name a run, or give --all for the whole store");
  if (runId !== undefined) return await exportOne(runId, place, flags, context);
  if (values) throw usage("--all copies everything, values too; --values goes with a run");
  if (output === undefined || output === "-") throw usage("--all wants a folder for the copy: -o <folder>");
  return await exportAll(place, output, flags, context);
}

async function exportOne(
  runId: string,
  place: ProjectPaths,
  flags: ExportRequest["flags"],
  { terminal, here }: CommandContext,
): Promise<number> {
  const { output = exportName(runId), values = false, force = false, outputFormat } = flags;
  const toStdout = output === "-";
  if (toStdout && outputFormat !== "text") throw usage("-o - writes the export to stdout, where no other has a place");
  const verified = await withStore(place, async (host) => {
    await requireRun(host, place, runId);
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
  // What is left of a damaged record may be all there is to show.
  terminal.err(`sluice: ${damagedText(runId)}\n`);
  return EXIT.failed;
}

async function exportAll(
  place: ProjectPaths,
  output: string,
  { force = false, outputFormat }: ExportRequest["flags"],
  { terminal, here }: CommandContext,
): Promise<number> {
  const folder = resolve(here, output);
  refusePlace(folder, place.store, force);
  const { openJournalStore } = await import("@sluice/sqlite");
  const store = openJournalStore(place.store, { readOnly: true });
  const draft = join(dirname(folder), `.${basename(folder)}.${process.pid}.tmp`);
  const old = `${draft}.old`;
  let runs = 0;
  try {
    store.backupTo(draft);
    // The copy says how many it holds: the store goes on.
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
      `${count(runs, "run")} of ${oneLine(place.store, 1_000)} are copied to ${oneLine(folder, 1_000)}`,
      "the copy holds what tools really returned: keep it as you keep the store",
    ],
  });
  return EXIT.completed;
}

/** Only a backup gives way to a backup, and none lies in the store it is of, or around it. */
function refusePlace(folder: string, store: string, force: boolean): void {
  const [target, from] = [realPath(folder), realPath(store)];
  if (isWithin(target, from) || isWithin(from, target)) throw usage(`${folder} and the store ${store} overlap`);
  if (!existsSync(dirname(folder))) throw usage(`there is no folder ${dirname(folder)}`);
  if (!existsSync(folder)) return;
  if (!force) throw usage(`${folder} is there already; --force replaces an earlier backup`);
  const held = namesIn(folder);
  const stranger = held.find((name) => !BACKUP.has(name));
  if (stranger === undefined && held.includes("journal.db")) return;
  throw usage(`${folder} is no backup of a store (${stranger ?? "there is no journal.db"}); it is left alone`);
}

/** What a backup holds, also one that was opened as a store. */
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
    throw new SluiceError("Validation", "usage", `${folder} is no folder: ${messageOf(cause)}`, { cause });
  }
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`));
}

function usage(message: string): SluiceError {
  return new SluiceError("Validation", "usage", message);
}
