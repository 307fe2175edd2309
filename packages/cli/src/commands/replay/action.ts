import { type RunJournal, SluiceError, verifyExport, visible } from "@sluice/core";
import { type RunReplay, replayRun } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { faultLine, isExportPath, readExportFile } from "../../output/export-file.ts";
import { write } from "../../output/output.ts";
import { commandLine, type ProjectPaths } from "../../project/project-paths.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { planReplay } from "./replay-plan.ts";

export interface ReplayCommand {
  /** A run's id, or the path of an export with values. */
  readonly of: string;
  readonly flags: CommonFlags & {
    /** The pipeline to replay it with, by name or file; the run's own when omitted. */
    readonly pipeline?: string;
    readonly trust?: boolean;
    readonly config?: boolean;
    /** Where a fork would begin, which is another command. */
    readonly from?: string;
  };
}

/** `sluice replay`: today's pipeline over a recorded run; nothing is called, and nothing written. */
export async function replay({ of, flags }: ReplayCommand, context: CommandContext): Promise<number> {
  const { env, here, terminal } = context;
  // It shows what tools returned, which the gate keeps from a run.
  refuseInsideRun(readSettings(env), "replay");
  const projects = projectsHere(flags, context);
  const place = await projects.place();
  if (flags.from !== undefined) {
    const forkLine = commandLine(["fork", of, "--from", flags.from], place, here, env);
    throw new SluiceError("Validation", "usage", `a replay begins no run; one that goes on from there: ${forkLine}`);
  }
  const handedOver = isExportPath(of);
  const journals = handedOver ? await journalsIn(of, here) : await journalsOf(of, place);
  const { pipeline, options } = await planReplay(journals, { flags, handedOver }, { projects, place }, context);
  const report = await replayRun(pipeline, journals, options);
  const { divergence, ...rest } = report;
  const json = { ...rest, divergence: divergence === undefined ? null : { ...divergence } };
  write(flags.outputFormat, terminal, { json: JSON.parse(JSON.stringify(json)), text: () => linesOf(report) });
  return report.identical ? EXIT.completed : EXIT.failed;
}

async function journalsOf(runId: string, place: ProjectPaths): Promise<readonly RunJournal[]> {
  return await withStore(place, async (host) => {
    await requireRun(host, place, runId);
    return await host.journal(runId);
  });
}

async function journalsIn(path: string, here: string): Promise<readonly RunJournal[]> {
  const read = await readExportFile(path, here);
  const [fault] = verifyExport(read).faults;
  if (fault !== undefined)
    throw new SluiceError("Host", "journal_damaged", `${path} is not as it was written: ${faultLine(fault)}`);
  if (read.recorded !== undefined) return read.recorded;
  throw new SluiceError(
    "Validation",
    "export_without_values",
    `${path} holds no values, and a replay needs them; write it with sluice export --values`,
  );
}

function linesOf(report: RunReplay): readonly string[] {
  const { runId, pipeline, identical, status, records, decided, taken, changes, divergence } = report;
  const steps = `${count(decided, "step")} decided anew, ${taken} taken from the record`;
  const run = `run ${oneLine(runId)} of ${oneLine(pipeline)}`;
  const head = identical
    ? `${run} is replayed as it was recorded: ${count(records, "record")}, ${steps}`
    : `${run} is NOT replayed as it was recorded; the first difference:`;
  return [
    head,
    ...(status === "unfinished" ? ["the run has no end yet: it was replayed as far as its record goes"] : []),
    ...(divergence === undefined ? [] : ["", ...visible(divergence.message).split("\n")]),
    ...(changes.length === 0 ? [] : ["", changesHead(identical), ...changes.map((one) => `  ${oneLine(one, 1_000)}`)]),
  ];
}

function changesHead(identical: boolean): string {
  return identical
    ? "the pipeline was changed since, which makes no difference to this run:"
    : "what was changed in the pipeline since:";
}
