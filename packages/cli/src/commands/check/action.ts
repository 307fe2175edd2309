import { resolve } from "node:path";
import { SluiceError } from "@sluice/core";
import { count } from "@sluice/view/words";
import { type Diagnostic, renderJson, renderSarif, renderText } from "@sluice/workflows";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { findCode, isWorkflow } from "../../project/code.ts";
import { readWorkflowFile } from "../../project/load-workflow.ts";
import { workflowNamed } from "../../project/pipelines.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

/** `sluice check`: reads workflow files, which needs no trust, since nothing of them runs. */
export async function check(
  { terminal, here }: CommandContext,
  files: readonly string[],
  flags: CommonFlags & { readonly sarif?: boolean },
): Promise<number> {
  const code = findCode(workspaceOf(flags, here));
  const find = (name: string): string | undefined => workflowNamed(name, code);
  const paths = files.length === 0 ? code.workflows : files.map((file) => pathOf(file, here, find));
  const diagnostics: Diagnostic[] = [];
  const texts = new Map<string, string>();
  for (const path of paths) {
    const loaded = await readWorkflowFile(path, () => undefined, find);
    for (const { path: file, text } of loaded.files) texts.set(file, text);
    diagnostics.push(...loaded.diagnostics);
  }
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  if (flags.sarif === true) terminal.out(`${JSON.stringify(renderSarif(diagnostics, ownVersion()), null, 2)}\n`);
  else {
    const shown = renderText(diagnostics, (file) => texts.get(file));
    const sum = `${count(paths.length, "workflow")}: ${count(errors, "error")}, ${count(diagnostics.length - errors, "warning")}`;
    write(flags.outputFormat, terminal, {
      json: { workflows: paths.length, errors, diagnostics: renderJson(diagnostics) },
      text: () => [...shown.split("\n").slice(0, -1), sum],
    });
  }
  return errors === 0 ? EXIT.completed : EXIT.failed;
}

function pathOf(file: string, here: string, find: (name: string) => string | undefined): string {
  const path = resolve(here, file);
  const found = isWorkflow(path) ? path : find(file);
  if (found !== undefined) return found;
  const message = `there is no workflow ${file}: name a .json or .yaml file, a folder with a pipeline.yaml, or a workflow of .sluice/workflows/`;
  throw new SluiceError("Validation", "workflow_not_found", message);
}
