import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { type Place, storeOpener } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";
import { type Work, work } from "../../runs/execute-run.ts";
import { withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import {
  placeOfRun,
  planResume,
  type ResumeWish,
  type RunSoFar,
  readRun,
  refuseAdoptedFile,
} from "../../runs/resume-plan.ts";
import type { WorkFlags } from "../../runs/run-flags.ts";

export interface ResumeRequest {
  readonly runId: string;
  readonly flags: WorkFlags & { readonly allowChanged?: boolean };
}

/** `sluice resume`: the run goes on as it was started; what is given here wins. */
export async function resume(
  { runId, flags }: ResumeRequest,
  context: CommandContext,
  projects: Projects = projectsHere(flags, context),
  said: Pick<Work, "answered"> = {},
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "resume");
  const at = await projects.place();
  const soFar = await withStore(at, (host) => readRun(host, at, runId));
  return await goOn({ runId, flags }, soFar, { at, projects }, context, said);
}

/** Goes on with a recorded run, or with a fork of it: where it worked, as it was started, under the trust it needs. */
export async function goOn(
  { runId, flags, from }: ResumeRequest & Pick<ResumeWish, "from">,
  soFar: RunSoFar,
  { at, projects }: { readonly at: Place; readonly projects: Projects },
  context: CommandContext,
  said: Pick<Work, "told" | "beside" | "answered"> = {},
): Promise<number> {
  const place = placeOfRun(soFar, flags, at, context.here);
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
    const { exitCode } = await work({ place, flags, plan, host, past, open, ...said }, context);
    return exitCode;
  } finally {
    await host.close();
  }
}
