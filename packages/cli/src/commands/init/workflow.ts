import { join, relative } from "node:path";
import { usageError } from "../../output/output.ts";
import { fileStem, findCode } from "../../project/code.ts";
import { isEntry, type NewFile, refuseLinksOutside, sampleOf, writeNew } from "./files.ts";

export interface InitialWorkflow {
  /** Absolute paths. */
  readonly workflow: string;
  readonly script: string;
}

/**
 * Writes a workflow to start from, and a script with which it runs without a model. Throws Validation `usage` if one of them, or
 * another pipeline of that name, exists.
 */
export function initWorkflow(root: string, name: string): InitialWorkflow {
  const code = findCode(root);
  const other = [...code.workflows, ...code.pipelines].find((path) => fileStem(path) === name);
  if (other !== undefined) throw exists(root, other);
  const workflow = join(code.workflowsFolder, `${name}.yaml`);
  const script = join(root, ".sluice", "scripts", `${name}.json`);
  if (isEntry(script)) throw exists(root, script);
  const files: readonly NewFile[] = [
    { path: script, text: sampleOf("workflow-script.json", { name }), within: root },
    { path: workflow, text: sampleOf("workflow.yaml", { name }), within: root },
  ];
  refuseLinksOutside(files);
  for (const file of files) if (!writeNew(file)) throw exists(root, file.path);
  return { workflow, script };
}

function exists(root: string, file: string) {
  return usageError(`${relative(root, file)} exists and stays as it is; choose another name`);
}
