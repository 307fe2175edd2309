import { realpathSync } from "node:fs";
import { SluiceError } from "@sluice/core";
import { sha256 } from "@sluice/core/runtime";
import { diskFiles, type LoadedWorkflow, loadWorkflow, renderText } from "@sluice/workflows";
import { isPipeline, type LoadedFile } from "./load.ts";
import type { Admit } from "./modules.ts";

/** The path of the project's workflow of a name. */
export type FindWorkflow = (name: string) => string | undefined;

/** Reads a workflow after `admit` has accepted each of its files, with its mistakes. Throws the error of `admit`. */
export async function readWorkflowFile(path: string, admit: Admit, find: FindWorkflow): Promise<LoadedWorkflow> {
  let refused: Error | undefined;
  const loaded = await loadWorkflow(path, {
    ...diskFiles,
    read: async (relative) => {
      const file = realpathSync(relative);
      const text = await diskFiles.read(file);
      try {
        admit({ file, digest: sha256(text), late: false });
      } catch (thrown) {
        if (thrown instanceof Error) refused ??= thrown;
        throw thrown;
      }
      return text;
    },
    find: async (name) => find(name),
  });
  // Loading reports what it cannot read as a mistake of the file; a file without trust is none.
  if (refused !== undefined) throw refused;
  return loaded;
}

/** Loads the pipeline of a workflow file, or of a folder of stages. Throws Validation `workflow_invalid` with all mistakes. */
export async function loadWorkflowFile(path: string, admit: Admit, find: FindWorkflow): Promise<LoadedFile> {
  const { id, pipeline, diagnostics, files: read } = await readWorkflowFile(path, admit, find);
  const textOf = (file: string): string | undefined => read.find((one) => one.path === file)?.text;
  // Its input is checked by the session, as that of every loaded pipeline.
  const loaded: unknown = pipeline;
  if (!isPipeline(loaded)) {
    const errors = diagnostics.filter(({ severity }) => severity === "error");
    throw new SluiceError("Validation", "workflow_invalid", `${path} cannot run:\n${renderText(errors, textOf)}`);
  }
  const files = new Map(read.map(({ path: file, digest }) => [realpathSync(file), digest]));
  const warnings = diagnostics.length === 0 ? {} : { warnings: renderText(diagnostics, textOf) };
  return { pipelines: new Map([[id, loaded]]), files, deciding: new Set(files.keys()), ...warnings };
}
