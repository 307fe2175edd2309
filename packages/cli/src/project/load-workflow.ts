import { realpathSync } from "node:fs";
import { SluiceError } from "@sluice/core";
import { sha256 } from "@sluice/core/runtime";
import { diskFiles, type LoadedWorkflow, loadWorkflow, renderText } from "@sluice/workflows";
import { isPipeline, type LoadedFile } from "./load/load.ts";
import type { Admit } from "./modules.ts";

/** What a workflow may name outside of its files. */
export interface WorkflowSurroundings {
  /** The path of the project's workflow of a name. */
  find(name: string): string | undefined;
  /** The names of all tools; undefined if they are not known before a run. */
  readonly tools: readonly string[] | undefined;
}

/** Reads a workflow after `admit` has accepted each of its files, with its mistakes. Throws the error of `admit`. */
export async function readWorkflowFile(
  path: string,
  admit: Admit,
  { find, tools }: WorkflowSurroundings,
): Promise<LoadedWorkflow> {
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
    ...(tools === undefined ? {} : { tools }),
  });
  // Loading reports what it cannot read as a mistake of the file; a file without trust is none.
  if (refused !== undefined) throw refused;
  return loaded;
}

/** Loads the pipeline of a workflow file, or of a folder of stages. Throws Validation `workflow_invalid` with all mistakes. */
export async function loadWorkflowFile(
  path: string,
  admit: Admit,
  surroundings: WorkflowSurroundings,
): Promise<LoadedFile> {
  const { id, pipeline, diagnostics, files: read } = await readWorkflowFile(path, admit, surroundings);
  const textOf = (file: string): string | undefined => read.find((one) => one.path === file)?.text;
  // Its input is checked by the session, as that of every loaded pipeline.
  const loaded: unknown = pipeline;
  if (!isPipeline(loaded)) {
    const errors = diagnostics.filter(({ severity }) => severity === "error");
    throw new SluiceError(
      "Validation",
      "workflow_invalid",
      `${path} cannot run:\n${renderText(errors, textOf).trimEnd()}`,
    );
  }
  const files = new Map(read.map(({ path: file, digest }) => [realpathSync(file), digest]));
  // In a folder of stages, another document may be put in the place of the one that was read.
  const deciding = new Set([realpathSync(path), ...files.keys()]);
  const warnings = diagnostics.length === 0 ? {} : { warnings: renderText(diagnostics, textOf).trimEnd() };
  return { pipelines: new Map([[id, loaded]]), files, deciding, ...warnings };
}
