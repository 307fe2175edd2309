import { visible } from "@sluice/core/runtime";
import type { CommandContext } from "../../command-context.ts";
import { readInput } from "../../project/input.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import { executeRun } from "../../runs/execute-run.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";
import { planRun, type RunPlanRequest, refuseFlagsInsideRun } from "../../runs/run-plan.ts";

export interface RunRequest extends RunPlanRequest {
  readonly flags: ExecuteFlags & { readonly input?: readonly string[] };
}

/** `sluice run`: checks everything before the store is created. */
export async function run(request: RunRequest, context: CommandContext): Promise<number> {
  const { flags } = request;
  const { terminal, env, here } = context;
  refuseFlagsInsideRun("run", flags, env);
  const projects = projectsHere(flags, context);
  const project = await projects.open(workspaceOf(flags, here));
  const plan = await planRun(request, project, context, (task) => readInput(task, flags.input ?? [], terminal.input));
  if (plan.note !== undefined) terminal.err(`sluice: ${visible(plan.note)}\n`);
  const place = await projects.place();
  const { exitCode } = await executeRun({ place, flags, plan }, context);
  return exitCode;
}
