import { visible } from "@sluice/core/runtime";
import type { CommandContext } from "../../command-context.ts";
import { readInput } from "../../project/input.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import { executeRun } from "../../runs/execute-run.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";
import { planRun, refuseFlagsInsideRun } from "../../runs/run-plan.ts";

/** `sluice run`: checks everything before the store is created. */
export async function run(
  context: CommandContext,
  pipeline: string | undefined,
  task: readonly string[],
  flags: ExecuteFlags & { readonly input?: readonly string[] },
): Promise<number> {
  const { terminal, env, here } = context;
  refuseFlagsInsideRun("run", flags, env);
  const projects = projectsHere(flags, context);
  const project = await projects.open(workspaceOf(flags, here));
  const plan = await planRun({ pipeline, task, flags }, project, context, (words) =>
    readInput(words, flags.input ?? [], terminal.input),
  );
  if (plan.note !== undefined) terminal.err(`sluice: ${visible(plan.note)}\n`);
  const place = await projects.place();
  const { exitCode } = await executeRun({ place, flags, plan }, context);
  return exitCode;
}
