import { visible } from "@sluice/core/runtime";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../output/output.ts";
import { readInput } from "../../project/input.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import { executeRun } from "../../runs/execute-run.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";
import { planRun, type RunPlanRequest, refuseFlagsInsideRun } from "../../runs/run-plan.ts";

interface StartFlags {
  readonly input?: readonly string[];
  readonly from?: string;
  readonly runInput?: readonly string[];
}

/** With --from, --input is the input of that state, and --run-input that of the pipeline. */
async function readStart(
  { input, from: state, runInput }: StartFlags,
  stdin: NodeJS.ReadableStream,
): Promise<{ readonly inputs: readonly string[]; readonly from?: RunPlanRequest["from"] }> {
  if (state === undefined) {
    if (runInput !== undefined)
      throw usageError("--run-input needs --from; without it, --input is the pipeline's input");
    return { inputs: input ?? [] };
  }
  const inputs = runInput ?? [];
  if (input === undefined) return { inputs, from: { state } };
  if (input.includes("-") && inputs.includes("-"))
    throw usageError("--input - and --run-input -: stdin can be read only once");
  return { inputs, from: { state, input: await readInput([], input, stdin) } };
}

/** `sluice run`: checks everything before the store is created. */
export async function run(
  context: CommandContext,
  pipeline: string | undefined,
  task: readonly string[],
  flags: ExecuteFlags & StartFlags,
): Promise<number> {
  const { terminal, env, here } = context;
  refuseFlagsInsideRun("run", flags, env);
  const projects = projectsHere(flags, context);
  const project = await projects.open(workspaceOf(flags, here));
  const { inputs, from } = await readStart(flags, terminal.input);
  const plan = await planRun(
    { pipeline, task, flags, ...(from === undefined ? {} : { from }) },
    project,
    context,
    (words) => readInput(words, inputs, terminal.input),
  );
  if (plan.note !== undefined) terminal.err(`sluice: ${visible(plan.note)}\n`);
  const place = await projects.place();
  const { exitCode } = await executeRun({ place, flags, plan }, context);
  return exitCode;
}
