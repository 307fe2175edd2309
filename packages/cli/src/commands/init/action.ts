import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { ownFile } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { usageError, write } from "../../output/output.ts";
import { writeWhole } from "../../output/output-file.ts";
import { fileStem, findCode, isPipelineName } from "../../project/code.ts";
import { isWithin, realPath, workspaceOf } from "../../project/project-paths.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

/** `sluice init`: writes a workflow to start from. Existing files stay as they are. */
export async function init(
  { terminal, env, here }: CommandContext,
  flags: CommonFlags & { readonly workflow?: string | true },
): Promise<number> {
  // A run could otherwise write what later runs follow.
  refuseInsideRun(readSettings(env), "init");
  if (flags.workflow === undefined) throw usageError("say what to write: sluice init --workflow [name]");
  const name = flags.workflow === true ? "first" : flags.workflow;
  if (!isPipelineName(name))
    throw usageError(`${name} is not a valid name: use a letter, then up to 63 letters, digits, _ or -`);
  const root = workspaceOf(flags, here);
  const code = findCode(root);
  const other = [...code.workflows, ...code.pipelines].find((path) => fileStem(path) === name);
  if (other !== undefined) throw exists(root, other);
  const workflow = join(code.workflowsFolder, `${name}.yaml`);
  const script = join(root, ".sluice", "scripts", `${name}.json`);
  if (existsSync(script)) throw exists(root, script);
  writeNew(root, script, sampleOf("workflow-script.json", name));
  writeNew(root, workflow, sampleOf("workflow.yaml", name));
  const [shownWorkflow, shownScript] = [relative(root, workflow), relative(root, script)];
  write(flags.outputFormat, terminal, {
    json: { workflow, script },
    text: () => [
      `Wrote ${shownWorkflow} and ${shownScript}`,
      "",
      `Check it:               sluice check ${name}`,
      `Run it without a model: sluice run ${name} "write a note" --trust --model scripted:${shownScript}`,
      `Run it:                 sluice run ${name} "<what to do>" --model <provider/model>`,
    ],
  });
  return EXIT.completed;
}

function sampleOf(sample: string, name: string): string {
  return readFileSync(ownFile(`sample/${sample}`), "utf8").replaceAll("__name__", name);
}

function writeNew(root: string, file: string, text: string): void {
  const folder = dirname(file);
  // A cloned folder could lead elsewhere by a link.
  if (!isWithin(realPath(folder), root)) throw usageError(`${folder} is a link that leads out of ${root}`);
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw usageError(`${folder} cannot be made: ${messageOf(cause)}`, { cause });
  }
  if (writeWhole(file, [text], { force: false, shared: true }) === undefined) throw exists(root, file);
}

function exists(root: string, file: string) {
  return usageError(`${relative(root, file)} exists and stays as it is; choose another name`);
}
