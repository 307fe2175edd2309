import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, resolve, sep } from "node:path";
import { didYouMean, SluiceError } from "@sluice/core";
import { bundledPipelines, type PipelineSource } from "@sluice/stages";
import { CODE_EXTENSIONS, type CodeDigests, fileDigests, type ProjectCode } from "./code.ts";
import { isPipeline, type LoadedPipeline, loadFile } from "./load.ts";
import { asTrusted, fileStem, type LoadedConfig } from "./load-config.ts";
import type { Admit } from "./modules.ts";
import type { NamedFiles } from "./trust.ts";

export interface FoundPipeline {
  /** What the user calls it. */
  readonly name: string;
  readonly pipeline: LoadedPipeline;
  readonly source: PipelineSource;
  /** Absolute paths that decide what is loaded the next time, which no run may write. */
  readonly code: readonly string[];
  /** Something the user should know about where it came from. */
  readonly note?: string;
}

type FileSource = Extract<PipelineSource, { kind: "file" }>;

export interface Finding {
  /** What the workspace holds. */
  readonly code: ProjectCode;
  /** Where the user stands: paths start here. */
  readonly here: string;
  /** The project's config, where it was loaded. */
  readonly config: LoadedConfig | undefined;
  /** Why there is a config and it was not loaded. */
  readonly withoutConfig?: string | undefined;
  /** Asks whether the project's pipelines may be loaded, and says as what. Throws when they may not. */
  requireTrust(): Promise<CodeDigests>;
  /** Files that the user named here. */
  readonly named: NamedFiles;
}

const FILE = /^(?<file>.*\.m?[jt]s)(?:#(?<name>[\w$]+))?$/s;

/** Finds a pipeline by name, in the project and then among the bundled ones, or by its file's path. */
export async function findPipeline(name: string, finding: Finding): Promise<FoundPipeline> {
  return withConfig(await findByName(name, finding), finding.config);
}

async function findByName(name: string, finding: Finding): Promise<FoundPipeline> {
  const { code, here, config } = finding;
  const { file, name: wanted } = FILE.exec(name)?.groups ?? {};
  if (file !== undefined) return await fromNamed(name, existing(resolve(here, file)), wanted, finding);
  if (name.includes("/") || name.includes(sep)) {
    throw new SluiceError(
      "Validation",
      "pipeline_not_found",
      `${name} is no pipeline file; those end in ${CODE_EXTENSIONS.join(", ")}`,
    );
  }
  const [stem = "", exported] = name.split("#", 2);
  const files = code.pipelines.filter((path) => fileStem(path) === stem);
  const configured = config?.settings.pipelines.get(name);
  const places = [...files.map((path) => basename(path)), ...(configured === undefined ? [] : [configName(config)])];
  if (places.length > 1) {
    throw new SluiceError(
      "Validation",
      "pipeline_ambiguous",
      `${stem} is the name of a pipeline in ${places.join(" and ")}; rename one, or give the path`,
    );
  }
  const loadBundled = bundledPipelines().get(name);
  const found =
    config !== undefined && configured !== undefined
      ? fromConfig(name, configured, config)
      : files[0] === undefined
        ? undefined
        : await fromFile(name, realpathSync(files[0]), exported, asTrusted(await finding.requireTrust(), code.root));
  if (found !== undefined) {
    const place = configured === undefined ? files[0] : config?.file;
    return loadBundled === undefined
      ? found
      : { ...found, note: `${name} is this project's (${place}), not the bundled one` };
  }
  const bundled: unknown = await loadBundled?.();
  if (isPipeline(bundled)) return { name, pipeline: bundled, source: { kind: "bundled", name }, code: [] };
  throw unknown(name, [...code.pipelines.map(fileStem), ...(config?.settings.pipelines.keys() ?? [])], finding);
}

export interface FindingAgain extends Finding {
  /** Whether a file is loaded as it is now because the record names it. */
  readonly trusted: boolean;
  /** What the user does to have another file loaded than one that was named here. */
  readonly orElse?: string;
}

/** Finds the pipeline of an earlier run again, from what that run recorded. */
export async function findAgain(source: PipelineSource, runId: string, finding: FindingAgain): Promise<FoundPipeline> {
  return withConfig(await findRecorded(source, runId, finding), finding.config);
}

async function findRecorded(source: PipelineSource, runId: string, finding: FindingAgain): Promise<FoundPipeline> {
  const { code, config, orElse = "give --trust" } = finding;
  switch (source.kind) {
    case "programmatic":
      throw new SluiceError(
        "Validation",
        "run_programmatic",
        `run ${runId} was started by a program, which alone knows its pipeline; resume it there: await session.resume(pipeline, ${JSON.stringify(runId)})`,
      );
    case "bundled": {
      const bundled: unknown = await bundledPipelines().get(source.name)?.();
      if (isPipeline(bundled)) return { name: source.name, pipeline: bundled, source, code: [] };
      throw unknown(source.name, [], finding);
    }
    case "config": {
      const configured = config?.settings.pipelines.get(source.name);
      if (config !== undefined && configured !== undefined) return fromConfig(source.name, configured, config);
      throw unknown(source.name, [...(config?.settings.pipelines.keys() ?? [])], finding);
    }
    case "file": {
      const file = existing(source.file, finding.orElse);
      if (!file.startsWith(realOr(code.pipelinesFolder) + sep)) {
        if (finding.trusted) return await fromNamed(source.file, file, source.export, finding);
        requireNamed(file, source, runId, { ...finding, orElse });
        return await fromFile(source.file, file, source.export, asRecorded(source, runId, orElse));
      }
      return await fromFile(source.file, file, source.export, asTrusted(await finding.requireTrust(), code.root));
    }
  }
}

function fromConfig(name: string, pipeline: LoadedPipeline, { source }: LoadedConfig): FoundPipeline {
  return { name, pipeline, source: { kind: "config", name, config: source }, code: [] };
}

/** Whatever a run's pipeline is, the config it runs under is part of what it is made of. */
function withConfig(found: FoundPipeline, config: LoadedConfig | undefined): FoundPipeline {
  if (config === undefined) return found;
  const { source } = found;
  const code = [...found.code, ...config.code];
  if (source.kind === "programmatic") return { ...found, code };
  return { ...found, code, source: { ...source, config: config.source } };
}

function configName(config: LoadedConfig | undefined): string {
  return basename(config?.file ?? "");
}

/** Naming a file is trust in all it imports as it is loaded, not in what a run may have written meanwhile. */
const asNamed: Admit = ({ file, late }) => {
  if (!late) return;
  throw new SluiceError(
    "Validation",
    "pipeline_untrusted",
    `${file} is imported while the run is at work, which may have changed it; import it at the top of the pipeline's file`,
  );
};

/** What the run was started with, and nothing else. */
function asRecorded(source: FileSource, runId: string, orElse: string): Admit {
  const known = new Map(source.files.map(({ file, digest }) => [file, digest]));
  return (module) => {
    asNamed(module);
    if (known.get(module.file) === module.digest) return;
    const what = known.has(module.file) ? "was changed" : "is imported anew";
    throw new SluiceError(
      "Validation",
      "pipeline_untrusted",
      `${module.file} ${what} since run ${runId} started; look at it, then ${orElse} to load it as it is now`,
    );
  };
}

async function fromNamed(
  name: string,
  file: string,
  wanted: string | undefined,
  { named }: Finding,
): Promise<FoundPipeline> {
  const found = await fromFile(name, file, wanted, asNamed);
  if (found.source.kind === "file") named.remember(file, found.source.files);
  return found;
}

/** A store may come from anywhere: that it names a file does not mean that the user ever did. */
function requireNamed(
  file: string,
  { files }: FileSource,
  runId: string,
  { named, orElse }: Required<Pick<FindingAgain, "named" | "orElse">>,
): void {
  if (named.holds(file, files)) return;
  throw new SluiceError(
    "Validation",
    "pipeline_untrusted",
    `run ${runId} says it was started from ${file}, and nobody named that file here as it was then; look at it, then ${orElse} to load it`,
  );
}

async function fromFile(name: string, file: string, wanted: string | undefined, admit: Admit): Promise<FoundPipeline> {
  const { pipelines, files, deciding } = await loadFile(file, admit);
  const names = [...pipelines.keys()];
  const exported = wanted ?? (names.length === 1 ? names[0] : undefined);
  const pipeline = exported === undefined ? undefined : pipelines.get(exported);
  if (pipeline !== undefined && exported !== undefined) {
    const source = { kind: "file", file, export: exported, files: fileDigests(files) } as const;
    return { name, pipeline, source, code: [...deciding] };
  }
  if (names.length === 0)
    throw new SluiceError(
      "Validation",
      "pipeline_not_found",
      `${file} exports no pipeline; export what pipeline({ … }) returns`,
    );
  const choice = names.map((one) => `${file}#${one}`).join(", ");
  const why = wanted === undefined ? "exports several pipelines" : `exports no pipeline ${wanted}`;
  throw new SluiceError("Validation", "pipeline_not_found", `${file} ${why}; name one: ${choice}`);
}

function existing(path: string, orElse?: string): string {
  if (existsSync(path) && statSync(path).isFile()) return realpathSync(path);
  const mend = orElse === undefined ? "" : `; ${orElse} to load another`;
  throw new SluiceError("Validation", "pipeline_not_found", `there is no pipeline file ${path}${mend}`);
}

function realOr(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function unknown(name: string, project: readonly string[], { withoutConfig }: Finding): SluiceError {
  const bundled = [...bundledPipelines().keys()];
  const close = didYouMean(name, [...project, ...bundled]);
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  const unread = withoutConfig === undefined ? "" : ` ${withoutConfig}.`;
  const own = project.length === 0 ? "" : `, in this project ${project.join(", ")}`;
  // Nobody calls a pipeline so: it is a task, and this folder has no pipeline that would take it.
  const fault = /\s/.test(name)
    ? `no pipeline is named, and this folder has no default one: write one before the task, as in sluice run ${bundled[0]} "<what to do>".`
    : `there is no pipeline ${name}.${hint}`;
  return new SluiceError(
    "Validation",
    "pipeline_not_found",
    `${fault} Bundled: ${bundled.join(", ")}${own}; a file is named by its path.${unread}`,
    {
      detail: { known: [...project, ...bundled] },
    },
  );
}
