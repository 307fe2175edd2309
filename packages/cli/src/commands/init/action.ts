import { realpathSync } from "node:fs";
import { relative } from "node:path";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { type Answered, usageError, write } from "../../output/output.ts";
import { isPipelineName } from "../../project/code.ts";
import { commandName, shellWord, workspaceOf } from "../../project/project-paths.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { initProject } from "./project.ts";
import { initWorkflow } from "./workflow.ts";

interface InitFlags extends CommonFlags {
  readonly name?: string;
  readonly workflow?: string | true;
  /** False writes no workflow for CI. */
  readonly ci?: boolean;
  readonly dryRun?: boolean;
}

/** `sluice init`: writes what a project starts with, or with `--workflow` a workflow. Existing files stay as they are. */
export async function init(context: CommandContext, flags: InitFlags): Promise<number> {
  const { terminal, env, here } = context;
  // A run could otherwise write what later runs follow.
  refuseInsideRun(readSettings(env), "init");
  const root = workspaceOf(flags, here);
  const given = flags.workflow ?? flags.name;
  const name = given === undefined || given === true ? "first" : given;
  if (!isPipelineName(name))
    throw usageError(`${name} is not a valid name: use a letter, then up to 63 letters, digits, _ or -`);
  const answered =
    flags.workflow === undefined ? projectAnswer(root, name, flags, context) : workflowAnswer(root, name, flags);
  write(flags.outputFormat, terminal, answered);
  return EXIT.completed;
}

function workflowAnswer(root: string, name: string, { name: other, dryRun }: InitFlags): Answered {
  if (other !== undefined) throw usageError("--workflow takes the name itself: sluice init --workflow <name>");
  if (dryRun === true) throw usageError("--dry-run is for sluice init without --workflow");
  const { workflow, script } = initWorkflow(root, name);
  const [shownWorkflow, shownScript] = [relative(root, workflow), relative(root, script)];
  return {
    json: { workflow, script },
    text: () => [
      `Wrote ${shownWorkflow} and ${shownScript}`,
      "",
      `Check it:               sluice check ${name}`,
      `Run it without a model: sluice run ${name} "write a note" --trust --model scripted:${shownScript}`,
      `Run it:                 sluice run ${name} "<what to do>" --model <provider/model>`,
    ],
  };
}

function projectAnswer(
  root: string,
  name: string,
  { ci, dryRun = false }: InitFlags,
  context: CommandContext,
): Answered {
  const project = initProject(root, { name, ci: ci !== false, dryRun });
  const { written, kept, notes, script } = project;
  return {
    json: { root, name, written, kept, notes, dryRun, ...(script === undefined ? {} : { script }) },
    text: () => [
      ...listed(dryRun ? "Would write:" : "Wrote:", written, root),
      ...listed("Kept as they are:", kept, root),
      ...notes.flatMap((note) => ["", oneLine(note, 1_000)]),
      "",
      ...nextLines(root, name, script, context),
    ],
  };
}

function listed(title: string, files: readonly string[], root: string): readonly string[] {
  return files.length === 0 ? [] : [title, ...files.map((file) => `  ${oneLine(relative(root, file), 400)}`)];
}

/** The next commands, as they work in the current folder. */
function nextLines(
  root: string,
  name: string,
  script: string | undefined,
  { env, here }: CommandContext,
): readonly string[] {
  const sluice = commandName(env).join(" ");
  const place = root === realpathSync(here) ? "" : ` --cwd ${shellWord(root)}`;
  const model = script === undefined ? undefined : shellWord(`scripted:${relative(realpathSync(here), script)}`);
  return [
    `Check the pipeline:     ${sluice} check ${name} --trust${place}`,
    ...(model === undefined
      ? []
      : [`Run it without a model: ${sluice} run ${name} "write a note" --trust --model ${model}${place}`]),
    `Run it:                 ${sluice} run ${name} "<what to do>" --model <provider/model>${place}`,
  ];
}
