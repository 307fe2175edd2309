import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { type ProjectPaths, storeOpener } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";
import { executeRun, type RunExecution } from "../../runs/execute-run.ts";
import { withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import {
  pathsOfRun,
  planResume,
  type ResumePlanRequest,
  type RunSnapshot,
  readRun,
  refuseAdoptedFile,
} from "../../runs/resume-plan.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";

export interface ResumeRequest {
  readonly runId: string;
  readonly flags: ExecuteFlags & { readonly allowChanged?: boolean };
}

/** `sluice resume`: the run goes on as it was started; what is given here wins. */
export async function resume(
  { runId, flags }: ResumeRequest,
  context: CommandContext,
  projects: Projects = projectsHere(flags, context),
  said: Pick<RunExecution, "answered"> = {},
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "resume");
  const at = await projects.place();
  const soFar = await withStore(at, (host) => readRun(host, at, runId));
  return await resumeRun({ runId, flags }, soFar, { at, projects }, context, said);
}

/** Goes on with a recorded run, or with a fork of it: where it worked, as it was started, under the trust it needs. */
export async function resumeRun(
  { runId, flags, from }: ResumeRequest & Pick<ResumePlanRequest, "from">,
  soFar: RunSnapshot,
  { at, projects }: { readonly at: ProjectPaths; readonly projects: Projects },
  context: CommandContext,
  said: Pick<RunExecution, "notices" | "extraJson" | "answered"> = {},
): Promise<number> {
  const place = pathsOfRun(soFar, flags, at, context.here);
  // Before the store is adopted: afterwards it is as good as any.
  refuseAdoptedFile(soFar, flags);
  // The store says which file to load, so it has to be this machine's own before anything is loaded.
  const host = (await storeOpener(at, { adopt: flags.adoptStore === true }))();
  try {
    const plan = await planResume(
      { runId, flags, ...(from === undefined ? {} : { from }) },
      soFar,
      { projects, cwd: place.cwd },
      context,
    );
    const { past, open } = soFar;
    const { exitCode } = await executeRun({ place, flags, plan, host, past, open, ...said }, context);
    return exitCode;
  } finally {
    await host.close();
  }
}
