import { hash } from "node:crypto";
import { resolve } from "node:path";
import { field, type Json, type JsonObject, type RunHost, systemClock } from "@sluice/core";
import { inTreeOrder, verifyJournal } from "@sluice/core/host";
import { messageOf, parsePlace } from "@sluice/core/runtime";

import { type Environment, frameAt, secretMask } from "@sluice/tui/user";
import { reduceRun } from "@sluice/view";
import { reportPage } from "@sluice/view/html";
import { readRecord } from "@sluice/view/records";
import { count, oneLine, readRunStarted } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { isThere, usageError, write } from "../../output/output.ts";
import { fileNameOf, writeWhole } from "../../output/output-file.ts";
import { textOf } from "../../project/load/file-text.ts";
import { commandLine, type ProjectPaths } from "../../project/project-paths.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type ReportFlags = CommonFlags & {
  /** A file, or `-` for stdout; default `<run>.html`. */
  readonly output?: string;
  readonly force?: boolean;
};

/** `sluice report`: a run as one HTML page. */
export async function report(context: CommandContext, named: string, flags: ReportFlags): Promise<number> {
  const { terminal, here, env } = context;
  const { force = false, outputFormat } = flags;
  const toStdout = flags.output === "-";
  if (toStdout && outputFormat !== "text")
    throw usageError("-o - writes the page to stdout and allows no other --output-format");
  const place = await projectsHere(flags, context).place();
  const { view, head, records, journals, faults, started } = await withStore(place, (host) => read(host, place, named));
  const { runId } = view;
  const { output = fileNameOf(runId, "html") } = flags;
  const verify = commandLine(["audit", runId, "--verify", "--head", head], place, here, env);
  const chain = { head, records, journals, faults, verify };
  const frame = view.error?.at === undefined ? undefined : frameOf(view.error.at, started, place, env);
  const facts = frame === undefined ? { view } : { view, frame };
  const page = reportPage({ ...facts, chain, madeAt: systemClock.now(), version: ownVersion() });
  const path = resolve(here, output);
  if (toStdout) terminal.out(page);
  else {
    const bytes = writeWhole(path, [page], { force });
    if (bytes === undefined) throw isThere(path);
    write(outputFormat, terminal, {
      json: { runId, file: path, bytes, head, verified: faults.length === 0 },
      text: () => [`Wrote the report of run ${oneLine(runId)} to ${oneLine(path, 1_000)} (${sizeOf(bytes)})`],
    });
  }
  if (faults.length === 0) return EXIT.completed;
  terminal.err(`sluice: the journal of run ${oneLine(runId)} was changed; the report says where\n`);
  return EXIT.failed;
}

/** A run and its chain, read at one moment, also of a run that continues meanwhile. */
async function read(host: RunHost, place: ProjectPaths, named: string) {
  const run = await requireRun(host, place, named);
  const { runId } = run;
  const journals = await host.journal(runId);
  const faults: { runId: string; fault: string }[] = [];
  const reducer = reduceRun(runId);
  const onError = (thrown: unknown): void =>
    void faults.push({ runId, fault: `a record cannot be read: ${messageOf(thrown)}` });
  for await (const placed of inTreeOrder(journals)) reducer.record(readRecord(placed, onError));
  if (run.end === undefined) {
    reducer.requests(await host.requests(runId));
    reducer.setRunning(run.status !== "suspended");
  }
  const { head, records, faults: damage } = verifyJournal(journals);
  // A journal that was changed may have lost its beginning; the report then shows no code.
  const started = await readRunStarted(host, runId).catch(() => undefined);
  return { view: reducer.view(), started, head, records, journals: journals.length, faults: [...damage, ...faults] };
}

/** The code around the place of an error, as it was when the run started: a file that changed since would show other lines. */
function frameOf(
  at: string,
  started: JsonObject | undefined,
  { cwd }: ProjectPaths,
  env: Environment,
): string | undefined {
  const file = resolve(cwd, parsePlace(at)?.file ?? "");
  const source = field(started, "source");
  const recorded = [field(source, "files"), field(field(source, "config"), "files")]
    .flatMap((files): readonly Json[] => (Array.isArray(files) ? files : []))
    .find((one) => field(one, "file") === file);
  const text = recorded === undefined ? undefined : textOf(file);
  const isUnchanged = text !== undefined && field(recorded, "digest") === hash("sha256", text);
  return isUnchanged ? frameAt(at, cwd, secretMask(env).text) : undefined;
}

function sizeOf(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : count(Math.ceil(bytes / 100_000) / 10, "MB", "MB");
}
