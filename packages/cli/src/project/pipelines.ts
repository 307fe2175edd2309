import { existsSync, realpathSync, statSync } from "node:fs";
import { extname, relative, resolve, sep } from "node:path";
import { type JsonObject, SluiceError } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import type { PipelineSource } from "@sluice/stages";
import { builtinTools } from "@sluice/stages/runtime";
import { bundled } from "./bundled.ts";
import {
  CODE_EXTENSIONS,
  type CodeDigests,
  fileDigests,
  fileStem,
  importedFiles,
  isWorkflow,
  type ProjectCode,
  type TrustedCode,
  WORKFLOW_EXTENSIONS,
} from "./code.ts";
import { isPipeline, type LoadedFile, type LoadedPipeline, loadFile } from "./load/load.ts";
import type { LoadedConfig } from "./load-config.ts";
import type { WorkflowSurroundings } from "./load-workflow.ts";
import type { Admit } from "./modules.ts";
import { realPath } from "./project-paths.ts";
import type { NamedFiles } from "./trust.ts";

export interface FoundPipeline {
  /** The name that the user gave. */
  readonly name: string;
  readonly pipeline: LoadedPipeline;
  readonly source: PipelineSource;
  /** Absolute paths that determine what is loaded next time; no run may write them. */
  readonly code: readonly string[];
  /** A notice for the user about its origin. */
  readonly note?: string;
}

type FileSource = Extract<PipelineSource, { kind: "file" }>;

/** Where pipelines are searched, and under which trust. */
export interface Finding {
  readonly code: ProjectCode;
  /** The current folder, to which paths are relative. */
  readonly here: string;
  /** The project's config, if it was loaded. */
  readonly config: LoadedConfig | undefined;
  /** Why an existing config was not loaded. */
  readonly withoutConfig?: string | undefined;
  /** Moves away what commands of killed processes left since the project was opened. Throws `sandbox_failed`. */
  moveLeftAway(): Promise<void>;
  /** The project's trusted code. Throws Validation `folder_untrusted`. */
  requireTrust(): Promise<TrustedCode>;
  /** Files that the user has named on this machine. */
  readonly named: NamedFiles;
}

const FILE = /^(?<file>.*\.m?[jt]s)(?:#(?<name>[\w$]+))?$/s;

/** The names of the project's pipelines, in files and in its config. */
export function projectPipelines({ code, config }: Pick<Finding, "code" | "config">): readonly string[] {
  return [...[...code.pipelines, ...code.workflows].map(fileStem), ...(config?.settings.pipelines.keys() ?? [])];
}

/** What the project's workflows may name: each other, and tools. */
export function workflowSurroundings({ code, config }: Pick<Finding, "code" | "config">): WorkflowSurroundings {
  const { tools = [], mcpServers = {} } = config?.settings ?? {};
  const known = [...builtinTools(), ...tools].map(({ name }) => name);
  return {
    find: (name) => {
      const found = code.workflows.filter((path) => fileStem(path) === name);
      return found.length === 1 ? found[0] : undefined;
    },
    // MCP servers start only with a run.
    tools: Object.keys(mcpServers).length === 0 ? known : undefined,
  };
}

/** Whether a name is that of a workflow's file or folder, and not one to be looked up. */
export function isWorkflowPath(name: string, here: string): boolean {
  const isPath = name.includes("/") || name.includes(sep) || WORKFLOW_EXTENSIONS.includes(extname(name));
  return isPath && isWorkflow(resolve(here, name));
}

/** The path of a workflow that was named by it. Throws Validation `workflow_not_found`. */
export function requireWorkflow(name: string, { code, here }: Pick<Finding, "code" | "here">): string {
  const path = resolve(here, name);
  if (existsSync(path)) return path;
  const stem = fileStem(path);
  const own = code.workflows.some((file) => fileStem(file) === stem);
  const hint = own ? `; did you mean ${stem}, which is in .sluice/workflows/?` : "";
  throw new SluiceError("Validation", "workflow_not_found", `there is no workflow file ${path}${hint}`);
}

/** Finds a pipeline by name, first in the project, then among the bundled ones, or by the path of its file. */
export async function findPipeline(name: string, finding: Finding): Promise<FoundPipeline> {
  await finding.moveLeftAway();
  return withConfig(await findByName(name, finding), finding.config);
}

async function findByName(name: string, finding: Finding): Promise<FoundPipeline> {
  const { code, here, config } = finding;
  const { file, name: wanted } = FILE.exec(name)?.groups ?? {};
  if (file !== undefined) return await fromNamed(name, existing(resolve(here, file)), wanted, finding);
  if (isWorkflowPath(name, here))
    return await fromNamed(name, existing(requireWorkflow(name, finding)), undefined, finding);
  if (name.includes("/") || name.includes(sep)) {
    const endings = [...CODE_EXTENSIONS, ...WORKFLOW_EXTENSIONS].join(", ");
    throw notFound(`${name} is not a pipeline file; those end in ${endings}, or are folders with a pipeline.yaml`);
  }
  const [stem = "", exported] = name.split("#", 2);
  const files = [...code.pipelines, ...code.workflows].filter((path) => fileStem(path) === stem);
  const configured = config?.settings.pipelines.get(name);
  const origins = [...files, ...(config === undefined || configured === undefined ? [] : [config.file])];
  if (origins.length > 1) {
    throw new SluiceError(
      "Validation",
      "pipeline_ambiguous",
      `${stem} is defined in ${origins.map((path) => relative(code.root, path)).join(" and ")}; rename one, or use the path`,
    );
  }
  const [origin] = origins;
  if (origin === undefined) return await fromBundled(name, projectPipelines(finding), finding);
  const found =
    config !== undefined && configured !== undefined
      ? fromConfig(name, configured, config)
      : await fromFile(name, realpathSync(origin), exported, {
          trusted: await finding.requireTrust(),
          finding,
        });
  if (!bundled().has(name)) return found;
  return { ...found, note: `${name} is the project's pipeline (${origin}), not the bundled one` };
}

/** A bundled pipeline; `others` are the names of the project's. */
async function fromBundled(name: string, others: readonly string[], finding: Finding): Promise<FoundPipeline> {
  const pipeline: unknown = await bundled().get(name)?.();
  if (isPipeline(pipeline)) return { name, pipeline, source: { kind: "bundled", name }, code: [] };
  throw unknown(name, others, finding);
}

export interface FindingAgain extends Finding {
  /** Whether a recorded file is loaded although it changed or was never named here. */
  readonly trusted: boolean;
  /** How the user can load a file that is refused. */
  readonly orElse?: string;
}

/** Finds the pipeline of an earlier run from that run's record. */
export async function findAgain(source: PipelineSource, runId: string, finding: FindingAgain): Promise<FoundPipeline> {
  await finding.moveLeftAway();
  return withConfig(await findRecorded(source, runId, finding), finding.config);
}

async function findRecorded(source: PipelineSource, runId: string, finding: FindingAgain): Promise<FoundPipeline> {
  const { code, config, orElse = "use --trust" } = finding;
  switch (source.kind) {
    case "programmatic":
      throw new SluiceError(
        "Validation",
        "run_programmatic",
        `run ${runId} was started by a program, which has its pipeline; resume it there: await session.resume(pipeline, ${JSON.stringify(runId)})`,
      );
    case "bundled":
      return { ...(await fromBundled(source.name, [], finding)), source };
    case "config": {
      const configured = config?.settings.pipelines.get(source.name);
      if (config !== undefined && configured !== undefined) return fromConfig(source.name, configured, config);
      throw unknown(source.name, [...(config?.settings.pipelines.keys() ?? [])], finding);
    }
    case "file": {
      const file = existing(source.file, finding.orElse);
      if ([code.pipelinesFolder, code.workflowsFolder].some((folder) => file.startsWith(realPath(folder) + sep))) {
        return await fromFile(source.file, file, source.export, { trusted: await finding.requireTrust(), finding });
      }
      if (finding.trusted) return await fromNamed(source.file, file, source.export, finding);
      // A store can come from elsewhere and refer to any file.
      if (!finding.named.holds(file, source.files))
        throw untrustedFile(
          `run ${runId} refers to ${file}, but that version of the file was never named here; review it, then ${orElse} to load it`,
        );
      const admit = asRecorded(source, runId, orElse);
      return await fromFile(source.file, file, source.export, {
        trusted: named(file, admit),
        recordsAll: true,
        finding,
      });
    }
  }
}

function fromConfig(name: string, pipeline: LoadedPipeline, { source }: LoadedConfig): FoundPipeline {
  return { name, pipeline, source: { kind: "config", name, config: source }, code: [] };
}

export function untrustedFile(message: string): SluiceError {
  return new SluiceError("Validation", "pipeline_untrusted", message);
}

/** Adds the config to the code of a pipeline, since runs depend on it. */
function withConfig(found: FoundPipeline, config: LoadedConfig | undefined): FoundPipeline {
  if (config === undefined) return found;
  const { source } = found;
  const code = [...found.code, ...config.code];
  if (source.kind === "programmatic") return { ...found, code };
  return { ...found, code, source: { ...source, config: config.source } };
}

/** The code of a file that was named: what it imports, also later, as it is now. */
function named(file: string, admit: (imported: CodeDigests) => Admit): TrustedCode {
  const digests = isWorkflow(file) ? new Map<string, string>() : importedFiles([file]);
  return { digests, admit: admit(digests) };
}

/**
 * Naming a file trusts everything that it imports when it is loaded. Imports during the run, which may have written to them, are
 * trusted as they were then, if their names are written out.
 */
const asNamed =
  (imported: CodeDigests): Admit =>
  ({ file, digest, late }) => {
    if (!late || imported.get(file) === digest) return;
    throw untrustedFile(
      imported.has(file)
        ? `${file} is imported during the run, and has changed since the run began; import it at the top of the pipeline's file`
        : `${file} is imported during the run by a name that the code computes; import it at the top of the pipeline's file, or write its name out`,
    );
  };

/** Admits only the code that the run was started with. */
function asRecorded(source: FileSource, runId: string, orElse: string) {
  const known = new Map(source.files.map(({ file, digest }) => [file, digest]));
  return (): Admit => (module) => {
    if (known.get(module.file) === module.digest) return;
    const what = known.has(module.file) ? "has changed" : "is a new import";
    throw untrustedFile(
      `${module.file} ${what} since run ${runId} started; review it, then ${orElse} to load the current version`,
    );
  };
}

async function fromNamed(name: string, file: string, wanted: string | undefined, finding: Finding) {
  const found = await fromFile(name, file, wanted, { trusted: named(file, asNamed), recordsAll: true, finding });
  finding.named.remember(file, found.source.files);
  return found;
}

interface FileLoading {
  readonly trusted: TrustedCode;
  /** Whether a run records all of this code, and not only what was loaded before it began. */
  readonly recordsAll?: boolean;
  readonly finding: Finding;
}

async function fromFile(
  name: string,
  file: string,
  wanted: string | undefined,
  { trusted, recordsAll = false, finding }: FileLoading,
): Promise<FoundPipeline & { readonly source: FileSource }> {
  const { digests, admit } = trusted;
  const { pipelines, files, deciding, warnings } = await loadPipelines(file, admit, finding);
  const names = [...pipelines.keys()];
  // A workflow file has one pipeline, whose id may have changed since it was recorded.
  const exported = (isWorkflow(file) ? undefined : wanted) ?? (names.length === 1 ? names[0] : undefined);
  const pipeline = exported === undefined ? undefined : pipelines.get(exported);
  if (pipeline !== undefined && exported !== undefined) {
    const recorded = fileDigests(recordsAll ? new Map([...digests, ...files]) : files);
    const source = { kind: "file", file, export: exported, files: recorded } as const;
    return {
      name,
      pipeline,
      source,
      code: [...deciding, ...digests.keys()],
      ...(warnings === undefined ? {} : { note: warnings }),
    };
  }
  if (names.length === 0) throw notFound(`${file} exports no pipeline; export the result of pipeline({ … })`);
  const choice = names.map((one) => `${file}#${one}`).join(", ");
  const why = wanted === undefined ? "exports several pipelines" : `exports no pipeline ${wanted}`;
  throw notFound(`${file} ${why}; use one of ${choice}`);
}

/** Workflow files need their reader, which other commands do not load. */
async function loadPipelines(file: string, admit: Admit, finding: Finding): Promise<LoadedFile> {
  if (!isWorkflow(file)) return await loadFile(file, admit);
  const { loadWorkflowFile } = await import("./load-workflow.ts");
  return await loadWorkflowFile(file, admit, workflowSurroundings(finding));
}

function existing(path: string, orElse?: string): string {
  if (existsSync(path) && (statSync(path).isFile() || isWorkflow(path))) return realpathSync(path);
  const fix = orElse === undefined ? "" : `; ${orElse} to load another`;
  throw notFound(`there is no pipeline file ${path}${fix}`);
}

/** The path of a workflow of this name in the current folder, as the user would write it. */
function workflowHere(name: string, here: string): string | undefined {
  const names = [name, ...WORKFLOW_EXTENSIONS.map((extension) => `${name}${extension}`)];
  const found = names.find((one) => isWorkflow(resolve(here, one)) && existsSync(resolve(here, one)));
  return found === undefined ? undefined : `./${found}`;
}

function unknown(name: string, project: readonly string[], { here, withoutConfig }: Finding): SluiceError {
  const names = [...bundled().keys()];
  const close = workflowHere(name, here) ?? didYouMean(name, [...project, ...names]);
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  const unread = withoutConfig === undefined ? "" : ` ${withoutConfig}.`;
  const own = project.length === 0 ? "" : `, in this project ${project.join(", ")}`;
  // A name with spaces is a task, but this folder has no default pipeline for it.
  const fault = /\s/.test(name)
    ? `no pipeline is named, and this folder has no default pipeline: name one before the task, as in sluice run ${names[0]} "<task>".`
    : `there is no pipeline ${name}.${hint}`;
  return notFound(`${fault} Bundled: ${names.join(", ")}${own}; use the path of a file for others.${unread}`, {
    known: [...project, ...names],
  });
}

function notFound(message: string, detail?: JsonObject): SluiceError {
  return new SluiceError("Validation", "pipeline_not_found", message, detail === undefined ? {} : { detail });
}
