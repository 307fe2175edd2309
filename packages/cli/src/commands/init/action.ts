import { relative } from "node:path";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { type Answered, usageError, write } from "../../output/output.ts";
import { isPipelineName } from "../../project/code.ts";
import { shellWord, workspaceOf } from "../../project/project-paths.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { type InitialProject, initProject } from "./project.ts";
import { initWorkflow } from "./workflow.ts";

interface InitFlags extends CommonFlags {
  readonly name?: string;
  readonly workflow?: string | true;
  /** False writes no workflow for CI. */
  readonly ci?: boolean;
  readonly dryRun?: boolean;
}

/** `sluice init`: writes what a project starts with, or with `--workflow` a workflow. Existing files stay as they are. */
export async function init({ terminal, env, here }: CommandContext, flags: InitFlags): Promise<number> {
  // A run could otherwise write what later runs follow.
  refuseInsideRun(readSettings(env), "init");
  const root = workspaceOf(flags, here);
  const given = flags.workflow ?? flags.name;
  const name = given === undefined || given === true ? "first" : given;
  if (!isPipelineName(name))
    throw usageError(`${name} is not a valid name: use a letter, then up to 63 letters, digits, _ or -`);
  const answered = flags.workflow === undefined ? projectAnswer(root, name, flags) : workflowAnswer(root, name, flags);
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

function projectAnswer(root: string, name: string, { ci, dryRun = false }: InitFlags): Answered {
  const project = initProject(root, { name, ci: ci !== false, dryRun });
  const { written, kept, notes, script } = project;
  return {
    json: { root, name, written, kept, notes, dryRun, ...(script === undefined ? {} : { script }) },
    text: () => projectLines(root, name, project, dryRun),
  };
}

function projectLines(
  root: string,
  name: string,
  { written, kept, notes, script }: InitialProject,
  dryRun: boolean,
): readonly string[] {
  const listed = (title: string, files: readonly string[]): readonly string[] =>
    files.length === 0 ? [] : [title, ...files.map((file) => `  ${oneLine(relative(root, file), 400)}`)];
  const shownScript = script === undefined ? undefined : shellWord(relative(root, script));
  return [
    ...listed(dryRun ? "Would write:" : "Wrote:", written),
    ...listed("Kept as they are:", kept),
    ...notes.flatMap((note) => ["", oneLine(note, 1_000)]),
    "",
    `Check the pipeline:     sluice check ${name} --trust`,
    ...(shownScript === undefined
      ? []
      : [`Run it without a model: sluice run ${name} "write a note" --trust --model scripted:${shownScript}`]),
    `Run it:                 sluice run ${name} "<what to do>" --model <provider/model>`,
  ];
}
