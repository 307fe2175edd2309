import { existsSync } from "node:fs";
import { type JsonObject, type RunJournal, SluiceError } from "@sluice/core";
import { readEvents, verifyExport } from "@sluice/core/host";
import { visible } from "@sluice/core/runtime";
import { type PipelineSource, type RunReplay, replayRun } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { agentOf, count, oneLine, textAt } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { faultLine, isExportPath, readExportFile } from "../../output/export-file.ts";
import { usageError, write } from "../../output/output.ts";
import { findCode, untrustedFolder } from "../../project/code.ts";
import { type FoundPipeline, findAgain, findPipeline } from "../../project/pipelines.ts";
import { commandLine, type ProjectPaths, shellWord, workspaceOf } from "../../project/project-paths.ts";
import type { Project } from "../../project/projects.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { codeOptionsOf } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import { sourceOf } from "../../runs/resume-plan.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type ReplayFlags = CommonFlags & {
  /** The name or file of a pipeline; default: the run's own. */
  readonly pipeline?: string;
  readonly trust?: boolean;
  readonly config?: boolean;
  /** Not supported: an option of `sluice fork`. */
  readonly from?: string;
};

/**
 * `sluice replay`: runs the current pipeline over a recorded run, without calling or writing anything. `of` is the run's id, or
 * the path of an export with values.
 */
export async function replay(context: CommandContext, of: string, flags: ReplayFlags): Promise<number> {
  const { env, here, terminal } = context;
  // A replay shows tool results that the gate may deny a run.
  refuseInsideRun(readSettings(env), "replay");
  const projects = projectsHere(flags, context);
  const place = await projects.place();
  if (flags.from !== undefined) {
    const forkLine = commandLine(["fork", of, "--from", flags.from], place, here, env);
    throw usageError(`a replay starts no run; to continue from there in a new run: ${forkLine}`);
  }
  const isExport = isExportPath(of);
  const journals = isExport
    ? await journalsIn(of, here)
    : await withStore(place, async (host) => {
        const { runId } = await requireRun(host, place, of);
        return await host.journal(runId);
      });
  const { runId, data } = startIn(journals);
  const source = sourceOf(data);
  const config = "config" in source ? source.config : undefined;
  // The same trust as for a resume.
  const project = await projects.reopen(folderOf(data, flags, place, here), { runId, config, allowChanged: true });
  const { pipeline, source: found } =
    flags.pipeline === undefined
      ? await findRecorded(source, runId, project, isExport)
      : await findPipeline(flags.pipeline, project);
  // MCP servers are not started: their results are in the record.
  const options = { ...codeOptionsOf(project.config), env, source: found };
  const report = await replayRun(pipeline, journals, options);
  const { divergence, ...rest } = report;
  const json = { ...rest, divergence: divergence === undefined ? null : { ...divergence } };
  write(flags.outputFormat, terminal, {
    json: JSON.parse(JSON.stringify(json)),
    text: () => linesOf(report, agentOf(data)),
  });
  return report.identical ? EXIT.completed : EXIT.failed;
}

async function findRecorded(
  source: PipelineSource,
  runId: string,
  project: Project,
  isExport: boolean,
): Promise<FoundPipeline> {
  if (source.kind === "programmatic")
    throw new SluiceError(
      "Validation",
      "run_programmatic",
      `run ${runId} was started by a program, which has its pipeline; name the pipeline's file with --pipeline <file>`,
    );
  // --trust applies to a folder: files that only an export from elsewhere names are not loaded.
  const search = isExport ? { ...project, trusted: false, orElse: "use --pipeline" } : project;
  return await findAgain(source, runId, search);
}

/** The run's workspace, if it exists on this machine. Throws Validation `folder_untrusted`. */
function folderOf(data: JsonObject, { cwd, trust }: ReplayFlags, place: ProjectPaths, here: string): string {
  const recorded = textAt(data, "cwd");
  if (cwd !== undefined || !existsSync(recorded)) return place.cwd;
  const folder = workspaceOf({ cwd: recorded }, here);
  // A record can come from elsewhere and name any folder: --trust applies only to folders that the user names.
  const { configs, pipelines, workflows } = findCode(folder);
  if (trust === true && folder !== place.cwd && [...configs, ...pipelines, ...workflows].length > 0)
    throw untrustedFolder(
      `the run was recorded in ${folder}, but --trust applies only to the current folder or that of --cwd; review the code of ${folder}, then use --cwd ${shellWord(folder)} --trust`,
    );
  return folder;
}

function startIn(journals: readonly RunJournal[]): { readonly runId: string; readonly data: JsonObject } {
  const [root] = journals;
  const [first] = root?.records ?? [];
  const events = root === undefined || first === undefined ? [] : readEvents(root.runId, first);
  const start = events.find(({ type }) => type === "run.started");
  if (start !== undefined) return start;
  throw new SluiceError(
    "Host",
    "journal_damaged",
    "the record has no run.started event; verify it with sluice audit --verify",
  );
}

async function journalsIn(path: string, here: string): Promise<readonly RunJournal[]> {
  const read = await readExportFile(path, here);
  const [fault] = verifyExport(read).faults;
  if (fault !== undefined) throw new SluiceError("Host", "journal_damaged", `${path} was changed: ${faultLine(fault)}`);
  if (read.recorded !== undefined) return read.recorded;
  throw new SluiceError(
    "Validation",
    "export_without_values",
    `${path} has no values, which a replay needs; write it with sluice export --values`,
  );
}

function linesOf(report: RunReplay, agent: string): readonly string[] {
  const { runId, pipeline, identical, status, records, decided, taken, changes, divergence } = report;
  const steps = `${count(decided, "step")} evaluated again, ${taken} read from the record`;
  const run = `run ${oneLine(runId)} of ${oneLine(pipeline)}`;
  const changesHead = identical
    ? "the pipeline has changed since, without effect on this run:"
    : "changes of the pipeline since the run was started:";
  const head = identical
    ? `${run}: the replay matches the record: ${count(records, "record")}, ${steps}`
    : `${run}: the replay differs from the record. First difference:`;
  return [
    head,
    ...(agent === ""
      ? []
      : [
          `compared: what the gate and the workflow decide about the recorded calls of ${oneLine(agent)}, which is not asked again`,
        ]),
    ...(status === "unfinished" ? ["the run is unfinished: it was replayed to the end of its record"] : []),
    ...(divergence === undefined ? [] : ["", ...visible(divergence.message).split("\n")]),
    ...(changes.length === 0 ? [] : ["", changesHead, ...changes.map((one) => `  ${oneLine(one, 1_000)}`)]),
  ];
}
