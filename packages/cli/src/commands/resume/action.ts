import type { RunEnd } from "@sluice/core";
import { readOutcome, visible } from "@sluice/core/runtime";
import { finished } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { reduceRun } from "@sluice/view";
import { eventsOf, readRunStarted } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { exitCodeOf } from "../../output/exit-codes.ts";
import { deniedLine, writeReport } from "../../output/reporter.ts";
import { type RunTotals, reportOf, totalsOf } from "../../output/run-report.ts";
import { commandLine } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";
import { executeRun, type RunExecution } from "../../runs/execute-run.ts";
import { sleepNotice } from "../../runs/follow-run.ts";
import { requireRun, withStore, withWritableStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import { prepareResume, type ResumePlanRequest, readRun } from "../../runs/resume-plan.ts";
import { type ExecuteFlags, type KeptFlags, keptFlags } from "../../runs/run-flags.ts";

export type ResumeFlags = ExecuteFlags & { readonly allowChanged?: boolean };

/** `sluice resume`: continues a run as it was started, except for the flags. */
export async function resume(context: CommandContext, runId: string, flags: ResumeFlags): Promise<number> {
  return await resumeIn(projectsHere(flags, context), context, runId, flags);
}

/** The same in projects that are known already. */
export async function resumeIn(
  projects: Projects,
  context: CommandContext,
  named: string,
  flags: ResumeFlags,
  extras: Pick<RunExecution, "answered"> = {},
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "resume");
  const at = await projects.place();
  const found = await withStore(at, async (host) => {
    const known = await requireRun(host, at, named);
    const { runId, end } = known;
    if (end === undefined) return { runId, snapshot: await readRun(host, at, runId) };
    const kept = keptFlags(await readRunStarted(host, runId));
    return { runId, end, kept, totals: totalsOf(reduceRun(runId, await eventsOf(host, runId)).view()) };
  });
  const { runId } = found;
  if (found.end !== undefined) return reportFinished(found, flags, context);
  return await resumeRun({ runId, flags, snapshot: found.snapshot, at, projects }, context, extras);
}

interface FinishedRun {
  readonly runId: string;
  readonly end: RunEnd;
  readonly kept: KeptFlags;
  readonly totals: RunTotals;
}

/** A finished run has nothing left to do: its result is printed as it was, with the exit code that it had. */
function reportFinished(
  { runId, end, kept, totals }: FinishedRun,
  { outputFormat, failOnDenied = kept.failOnDenied }: ResumeFlags,
  { terminal }: CommandContext,
): number {
  const report = reportOf(finished(runId, readOutcome(end)), totals, "");
  terminal.err(
    `sluice: run ${visible(runId)} is already ${end.status}; sluice fork continues from an earlier point of it\n`,
  );
  writeReport(outputFormat, terminal, report);
  const denied = deniedLine(report);
  if (denied !== "") terminal.err(`sluice: ${denied}\n`);
  return exitCodeOf(report.status, failOnDenied === true && report.denied.length > 0, undefined);
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
    snapshot.wakeAt === undefined || (flags.suspendSleeps ?? keptFlags(snapshot.data).suspendSleeps) === true
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
