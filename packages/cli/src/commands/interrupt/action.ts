import { field, type RunHost, type RunSummary } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { interruptRun } from "@sluice/stages";
import { readSettings, refuseInsideRun, userName } from "@sluice/tui/user";
import { readRunStarted, textAt } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { resumeWords } from "../../output/run-report.ts";
import { commandLine } from "../../project/project-paths.ts";
import { requireRun, withStore, withWritableStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

/** How long to wait for the owner to carry it out. */
const OWNER_TIMEOUT_MS = 10_000;

type InterruptFlags = CommonFlags & { readonly reason?: string; readonly adoptStore?: boolean };

/** `sluice interrupt`: stops what a run does now, through the process that executes it. */
export async function interrupt(context: CommandContext, named: string, flags: InterruptFlags): Promise<number> {
  const { terminal, env, here } = context;
  refuseInsideRun(readSettings(env), "interrupt");
  const place = await projectsHere(flags, context).place();
  const { runId } = await withStore(place, (host) => requireRun(host, place, named));
  return await withWritableStore(place, flags.adoptStore, async (host) => {
    const secrets = await secretsToward(host, runId, env);
    await interruptRun(host, runId, secrets.text(flags.reason ?? ""), secrets.text(userName()));
    const run = await stoppedWithin(host, runId);
    const status = run?.status ?? "running";
    const interrupted = status === "suspended" && run?.suspended === "interrupted";
    const isOpen = (await host.requests(runId)).length > 0;
    const agent = textAt(field(await readRunStarted(host, runId), "agent"), "name");
    const resume = commandLine(resumeWords({ runId, isOpen, agent }), place, here, env);
    const json = { runId, status, interrupted, ...(interrupted ? { resume } : {}) };
    write(flags.outputFormat, terminal, { json, text: () => [visible(messageOf(runId, status, interrupted, resume))] });
    return interrupted || status === "running" || status === "suspended" ? EXIT.completed : EXIT.failed;
  });
}

function messageOf(runId: string, status: string, interrupted: boolean, resume: string): string {
  if (interrupted) return `run ${runId} is interrupted; resume it with: ${resume}`;
  if (status === "running") return `asked the owner of run ${runId} to interrupt it, which has not ended yet`;
  if (status === "suspended") return `run ${runId} is suspended, and is interrupted when it continues`;
  return `run ${runId} is ${status}: it ended before it could be interrupted`;
}

/** The run once no process executes it, or as it is after the time limit. */
async function stoppedWithin(host: RunHost, runId: string): Promise<RunSummary | undefined> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, OWNER_TIMEOUT_MS);
  let run = await host.get(runId);
  const look = async (): Promise<void> => {
    run = await host.get(runId);
    if (run?.status !== "running") resolve();
  };
  const stopListening = host.onChange(() => void look().catch(resolve));
  try {
    await look();
    await promise;
    return run;
  } finally {
    clearTimeout(timer);
    stopListening();
  }
}
