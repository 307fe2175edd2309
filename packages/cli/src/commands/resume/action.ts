import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import type { ProjectPaths } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";
import { executeRun, type RunExecution } from "../../runs/execute-run.ts";
import { withStore, withWritableStore } from "../../runs/lookup.ts";
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

export type ResumeFlags = ExecuteFlags & { readonly allowChanged?: boolean };

/** `sluice resume`: continues a run as it was started, except for the flags. */
export async function resume(context: CommandContext, runId: string, flags: ResumeFlags): Promise<number> {
  return await resumeIn(projectsHere(flags, context), context, { runId, flags });
}

interface ResumeRequest {
  readonly runId: string;
  readonly flags: ResumeFlags;
}

/** The same in projects that are known already. */
export async function resumeIn(
  projects: Projects,
  context: CommandContext,
  { runId, flags }: ResumeRequest,
  extras: Pick<RunExecution, "answered"> = {},
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "resume");
  const at = await projects.place();
  const snapshot = await withStore(at, (host) => readRun(host, at, runId));
  return await resumeRun({ runId, flags }, snapshot, { at, projects }, context, extras);
}

/** Continues a recorded run or a fork of it. */
export async function resumeRun(
  { runId, flags, from }: ResumeRequest & Pick<ResumePlanRequest, "from">,
  snapshot: RunSnapshot,
  { at, projects }: { readonly at: ProjectPaths; readonly projects: Projects },
  context: CommandContext,
  extras: Pick<RunExecution, "notices" | "extraJson" | "answered"> = {},
): Promise<number> {
  const place = pathsOfRun(snapshot, flags, at, context.here);
  // Before the store is adopted, since afterwards it counts as this machine's own.
  refuseAdoptedFile(snapshot, flags);
  // Before code is loaded: the store names it, so it must belong to this machine.
  return await withWritableStore(at, flags.adoptStore, async (host) => {
    const request = { runId, flags, ...(from === undefined ? {} : { from }) };
    const plan = await planResume(request, snapshot, { projects, cwd: place.cwd }, context);
    const { past, open } = snapshot;
    const { exitCode } = await executeRun({ place, flags, plan, host, past, open, ...extras }, context);
    return exitCode;
  });
}
