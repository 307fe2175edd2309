import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { commandLine } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";
import { executeRun, type RunExecution } from "../../runs/execute-run.ts";
import { sleepNotice } from "../../runs/follow-run.ts";
import { withStore, withWritableStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import { prepareResume, type ResumePlanRequest, readRun } from "../../runs/resume-plan.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";

export type ResumeFlags = ExecuteFlags & { readonly allowChanged?: boolean };

/** `sluice resume`: continues a run as it was started, except for the flags. */
export async function resume(context: CommandContext, runId: string, flags: ResumeFlags): Promise<number> {
  return await resumeIn(projectsHere(flags, context), context, runId, flags);
}

/** The same in projects that are known already. */
export async function resumeIn(
  projects: Projects,
  context: CommandContext,
  runId: string,
  flags: ResumeFlags,
  extras: Pick<RunExecution, "answered"> = {},
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "resume");
  const at = await projects.place();
  const snapshot = await withStore(at, (host) => readRun(host, at, runId));
  return await resumeRun({ runId, flags, snapshot, at, projects }, context, extras);
}

/** Continues a recorded run or a fork of it. */
export async function resumeRun(
  request: ResumePlanRequest & { readonly flags: ResumeFlags },
  context: CommandContext,
  extras: Pick<RunExecution, "notices" | "extraJson" | "answered"> = {},
): Promise<number> {
  const { flags, at, snapshot } = request;
  const { place, plan } = prepareResume(request, context);
  const { here, env } = context;
  const asleep =
    snapshot.wakeAt === undefined || flags.suspendSleeps === true
      ? undefined
      : sleepNotice(snapshot.wakeAt, (words) => commandLine(words, place, here, env));
  // Before code is loaded: the store names it, so it must belong to this machine.
  return await withWritableStore(at, flags.adoptStore, async (host) => {
    const { past, open } = snapshot;
    const notices = [...(extras.notices ?? []), ...(asleep === undefined ? [] : [asleep])];
    const execution = { place, flags, plan: await plan(), host, past, open, ...extras, notices };
    return (await executeRun(execution, context)).exitCode;
  });
}
