import { readSettings, refuseInsideRun } from "../project/environment.ts";
import { type Place, storeOpener } from "../project/place.ts";
import type { CommandContext } from "../work/context.ts";
import { withStore } from "../work/lookup.ts";
import type { Projects } from "../work/projects.ts";
import { planResume, readRun, refuseAdoptedFile, workspaceOfRun } from "../work/resume-plan.ts";
import type { WorkFlags } from "./flags.ts";
import { projectsHere } from "./projects-here.ts";
import { work } from "./work.ts";

export interface ResumeRequest {
  readonly runId: string;
  readonly flags: WorkFlags & { readonly allowChanged?: boolean };
}

/** `sluice resume`: the run goes on as it was started; what is given here wins. */
export async function resume(
  { runId, flags }: ResumeRequest,
  context: CommandContext,
  projects: Projects = projectsHere(flags, context),
): Promise<number> {
  const { env, here } = context;
  refuseInsideRun(readSettings(env), "resume");
  const at = await projects.place();
  const soFar = await withStore(at, (host) => readRun(host, at, runId));
  const cwd = workspaceOfRun(soFar, flags, at, here);
  const place: Place = { ...at, cwd, usualStore: at.usualStore && cwd === at.cwd };
  // Before the store is adopted: afterwards it is as good as any.
  refuseAdoptedFile(soFar, flags);
  // The store says which file to load, so it has to be this machine's own before anything is loaded.
  const host = (await storeOpener(at, { adopt: flags.adoptStore === true }))();
  try {
    const plan = await planResume({ runId, flags }, soFar, { projects, cwd }, context);
    const { past, open } = soFar;
    const { exitCode } = await work({ place, flags, plan, host, past, open }, context);
    return exitCode;
  } finally {
    await host.close();
  }
}
