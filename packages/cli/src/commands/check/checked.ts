import { isAbsolute, relative, resolve } from "node:path";
import type { PipelineSpec } from "@sluice/core";
import { count } from "@sluice/view/words";
import { checkWorkflow, type Diagnostic, renderText } from "@sluice/workflows";
import { fileStem } from "../../project/code.ts";
import { readWorkflowFile } from "../../project/load-workflow.ts";
import {
  type Finding,
  findPipeline,
  isWorkflowPath,
  requireWorkflow,
  workflowSurroundings,
} from "../../project/pipelines.ts";
import { isWithin, realPath } from "../../project/project-paths.ts";
import type { Projects } from "../../project/projects.ts";

/** A workflow or a pipeline, as far as it could be read without running it. */
export interface Checked {
  readonly kind: "workflow" | "pipeline";
  /** As the user named it, or its path. */
  readonly name: string;
  /** Absent if it has errors. */
  readonly spec?: PipelineSpec;
  readonly diagnostics: readonly Diagnostic[];
  /** The text of a file that diagnostics name; undefined for files outside of the workspace, which a workflow may only name. */
  textOf(file: string): string | undefined;
}

/**
 * Reads workflows by path or name, by default all of the project, and pipelines by name. Workflows are data and need no trust; the
 * code of a pipeline does. Throws Validation `workflow_not_found`, or what keeps a pipeline from loading.
 */
export async function readChecked(
  names: readonly string[],
  projects: Projects,
  root: string,
): Promise<readonly Checked[]> {
  const project = await projects.look(root);
  const checked: Checked[] = [];
  if (names.length === 0)
    for (const path of project.code.workflows) checked.push(await readWorkflow(path, path, project));
  for (const name of names) {
    const path = workflowAt(name, project);
    checked.push(
      path === undefined
        ? await readPipeline(name, await projects.open(root))
        : await readWorkflow(name, path, project),
    );
  }
  return checked;
}

/** The path of a workflow; undefined for the name of a pipeline. */
function workflowAt(name: string, project: Finding): string | undefined {
  const { code, here } = project;
  if (isWorkflowPath(name, here)) return requireWorkflow(name, project);
  const [found, ...others] = [...code.workflows, ...code.pipelines].filter((path) => fileStem(path) === name);
  return others.length === 0 && found !== undefined && code.workflows.includes(found) ? found : undefined;
}

async function readWorkflow(name: string, path: string, project: Finding): Promise<Checked> {
  const surroundings = workflowSurroundings(project);
  // A config that is not loaded may define tools.
  const tools = project.code.configs.length > 0 && project.config === undefined ? undefined : surroundings.tools;
  const loaded = await readWorkflowFile(path, () => undefined, { ...surroundings, tools });
  const own = [project.code.root, realPath(resolve(path, ".."))];
  const isShown = (file: string): boolean => own.some((folder) => isWithin(realPath(file), folder));
  const texts = new Map(loaded.files.filter((file) => isShown(file.path)).map((file) => [file.path, file.text]));
  return {
    kind: "workflow",
    name,
    ...(loaded.pipeline === undefined ? {} : { spec: loaded.pipeline.spec }),
    diagnostics: loaded.diagnostics,
    textOf: (file) => texts.get(file),
  };
}

/** A pipeline's code is its own check; what is doubtful about it has a place in its definition only. */
async function readPipeline(name: string, project: Finding): Promise<Checked> {
  const { pipeline, source } = await findPipeline(name, project);
  const file = source.kind === "file" ? source.file : name;
  const diagnostics = checkWorkflow(pipeline.spec).map(
    (finding): Diagnostic => ({
      ...finding,
      message: `${finding.path}: ${finding.message}`,
      file,
      line: 1,
      column: 1,
      length: 1,
    }),
  );
  return { kind: "pipeline", name, spec: pipeline.spec, diagnostics, textOf: () => undefined };
}

/** Everything that was found, and the counts, as lines; names of files as seen from a folder. Safe to print. */
export function checkedLines(checked: readonly Checked[], here: string): readonly string[] {
  const diagnostics = checked.flatMap((each) => each.diagnostics);
  const counts = `${count(countOf(diagnostics, "error"), "error")}, ${count(countOf(diagnostics, "warning"), "warning")}`;
  const kinds = (["workflow", "pipeline"] as const)
    .map((kind) => ({ kind, found: checked.filter((each) => each.kind === kind).length }))
    .filter(({ kind, found }) => found > 0 || (kind === "workflow" && checked.length === 0))
    .map(({ kind, found }) => count(found, kind));
  return [...checked.flatMap((each) => diagnosticLines(each, here)), `${kinds.join(" and ")}: ${counts}`];
}

/** The mistakes of one workflow as lines. */
export function diagnosticLines({ diagnostics, textOf }: Checked, here: string): readonly string[] {
  const absolute = new Map(diagnostics.map(({ file }) => [relativeName(here, file), file]));
  const text = renderText(relativeTo(here, diagnostics), (file) => textOf(absolute.get(file) ?? file));
  return text.split("\n").slice(0, -1);
}

export function countOf(diagnostics: readonly Diagnostic[], severity: Diagnostic["severity"]): number {
  return diagnostics.filter((one) => one.severity === severity).length;
}

/** Diagnostics with the names of files relative to a folder that holds them. */
export function relativeTo(folder: string, diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return diagnostics.map((diagnostic) => ({ ...diagnostic, file: relativeName(folder, diagnostic.file) }));
}

function relativeName(folder: string, file: string): string {
  return isAbsolute(file) && isWithin(file, folder) ? relative(folder, file) : file;
}
