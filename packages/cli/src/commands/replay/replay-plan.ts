import { existsSync } from "node:fs";
import { type JsonObject, type RunJournal, readEvents, SluiceError } from "@sluice/core";
import type { PipelineSource, ReplayRunOptions } from "@sluice/stages";
import { textAt } from "@sluice/view/words";
import { findCode } from "../../project/code.ts";
import type { LoadedPipeline } from "../../project/load.ts";
import { type FoundPipeline, findAgain, findPipeline } from "../../project/pipelines.ts";
import { type ProjectPaths, shellWord, workspaceOf } from "../../project/project-paths.ts";
import type { Project, Projects } from "../../project/projects.ts";
import { sourceOf } from "../../runs/resume-plan.ts";
import type { RunFlags } from "../../runs/run-flags.ts";
import type { CallerContext } from "../../runs/run-plan.ts";

/** A replay that can begin. */
export interface ReplayPlan {
  readonly pipeline: LoadedPipeline;
  readonly options: ReplayRunOptions;
}

export interface ReplayRequest {
  readonly flags: RunFlags & { readonly pipeline?: string };
  /** Whether the record was handed over as a file: it may come from anybody. */
  readonly handedOver: boolean;
}

/**
 * Finds the pipeline of a recorded run again, as it is today and through the same trust as for a resume, with what the project's
 * config has that decides. MCP servers of the config are not started: what they did is in the record.
 */
export async function planReplay(
  journals: readonly RunJournal[],
  { flags, handedOver }: ReplayRequest,
  { projects, place }: { readonly projects: Projects; readonly place: ProjectPaths },
  { env, here }: CallerContext,
): Promise<ReplayPlan> {
  const { runId, data } = startIn(journals);
  const source = sourceOf(data);
  const config = "config" in source ? source.config : undefined;
  const project = await projects.reopen(folderOf(data, flags, place, here), { runId, config, allowChanged: true });
  const { pipeline, source: found } =
    flags.pipeline === undefined
      ? await findRecorded(source, runId, project, handedOver)
      : await findPipeline(flags.pipeline, project);
  const settings = project.config?.settings;
  if (settings === undefined) return { pipeline, options: { env, source: found } };
  const { tools, executors, onCall, secrets, passEnv, prices } = settings;
  return {
    pipeline,
    options: {
      env,
      source: found,
      tools,
      executors,
      secrets,
      passEnv,
      ...(prices === undefined ? {} : { prices }),
      ...(onCall === undefined ? {} : { onCall }),
    },
  };
}

async function findRecorded(
  source: PipelineSource,
  runId: string,
  project: Project,
  handedOver: boolean,
): Promise<FoundPipeline> {
  if (source.kind === "programmatic")
    throw new SluiceError(
      "Validation",
      "run_programmatic",
      `run ${runId} was started by a program, which alone knows its pipeline; name the file that has it: --pipeline <file>`,
    );
  // --trust is for a folder: of the files that a stranger's record names, only those are loaded that the user named, too.
  const finding = handedOver ? { ...project, trusted: false, orElse: "name it with --pipeline" } : project;
  return await findAgain(source, runId, finding);
}

/** Where the run worked, when that is on this machine. Throws Validation `folder_untrusted`. */
function folderOf(data: JsonObject, { cwd, trust }: RunFlags, place: ProjectPaths, here: string): string {
  const recorded = textAt(data, "cwd");
  if (cwd !== undefined || !existsSync(recorded)) return place.cwd;
  const folder = workspaceOf({ cwd: recorded }, here);
  // A record may come from anywhere and name any folder: whose code --trust is about is for the user to say.
  if (trust === true && folder !== place.cwd && holdsCode(folder))
    throw new SluiceError(
      "Validation",
      "folder_untrusted",
      `the record says that the run worked in ${folder}, and --trust is for the folder you are in, or name; look at the code of that one, then say --cwd ${shellWord(folder)} --trust`,
    );
  return folder;
}

function holdsCode(folder: string): boolean {
  const { configs, pipelines } = findCode(folder);
  return configs.length > 0 || pipelines.length > 0;
}

function startIn(journals: readonly RunJournal[]): { readonly runId: string; readonly data: JsonObject } {
  const [root] = journals;
  const [first] = root?.records ?? [];
  const events = root === undefined || first === undefined ? [] : readEvents(root.runId, first);
  const start = events.find(({ type }) => type === "run.started");
  if (start !== undefined) return start;
  throw new SluiceError("Host", "journal_damaged", "the record does not say how the run was started; verify it");
}
