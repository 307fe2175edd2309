import { resolve } from "node:path";
import { type RunHost, systemClock } from "@sluice/core";
import { inTreeOrder, verifyJournal } from "@sluice/core/host";
import { messageOf } from "@sluice/core/runtime";
import { reduceRun } from "@sluice/view";
import { reportPage } from "@sluice/view/html";
import { readRecord } from "@sluice/view/records";
import { count, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { isThere, usageError, write } from "../../output/output.ts";
import { fileNameOf, writeWhole } from "../../output/output-file.ts";
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
  const { view, head, records, journals, faults } = await withStore(place, (host) => read(host, place, named));
  const { runId } = view;
  const { output = fileNameOf(runId, "html") } = flags;
  const verify = commandLine(["audit", runId, "--verify", "--head", head], place, here, env);
  const chain = { head, records, journals, faults, verify };
  const page = reportPage({ view, chain, madeAt: systemClock.now(), version: ownVersion() });
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
  return { view: reducer.view(), head, records, journals: journals.length, faults: [...damage, ...faults] };
}

function sizeOf(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : count(Math.ceil(bytes / 100_000) / 10, "MB", "MB");
}
