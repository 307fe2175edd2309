import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, extname, join, resolve, sep } from "node:path";
import { didYouMean, SluiceError } from "@sluice/core";
import { bundledPipelines, type PipelineSource } from "@sluice/stages";
import { digestOfFile, isPipeline, type LoadedPipeline, loadFile } from "./load.ts";
import { pipelinesFolder } from "./trust.ts";

export interface FoundPipeline {
  /** What the user calls it. */
  readonly name: string;
  readonly pipeline: LoadedPipeline;
  readonly source: PipelineSource;
  /** Something the user should know about where it came from. */
  readonly note?: string;
}

export interface Finding {
  /** The workspace. */
  readonly cwd: string;
  /** Where the user stands: paths start here. */
  readonly here: string;
  /** Asks whether the project's pipelines may be loaded. Throws when they may not. */
  requireTrust(folder: string): Promise<void>;
}

const EXTENSIONS = [".ts", ".mts", ".js", ".mjs"];
const FILE = /^(?<file>.*\.m?[jt]s)(?:#(?<name>[\w$]+))?$/s;

/** Finds a pipeline by name, in the project and then among the bundled ones, or by its file's path. */
export async function findPipeline(name: string, finding: Finding): Promise<FoundPipeline> {
  const { file, name: wanted } = FILE.exec(name)?.groups ?? {};
  if (file !== undefined) return await fromFile(name, existing(resolve(finding.here, file)), wanted);
  if (name.includes("/") || name.includes(sep)) {
    throw new SluiceError(
      "Validation",
      "pipeline_not_found",
      `${name} is no pipeline file; those end in ${EXTENSIONS.join(", ")}`,
    );
  }
  const [stem = "", exported] = name.split("#", 2);
  const own = projectFiles(finding.cwd);
  const candidates = own.filter((path) => stemOf(path) === stem);
  if (candidates.length > 1) {
    throw new SluiceError(
      "Validation",
      "pipeline_ambiguous",
      `${stem} is the name of ${candidates.map((path) => basename(path)).join(" and ")}; rename one, or give the path`,
    );
  }
  const [only] = candidates;
  const bundled: unknown = bundledPipelines().get(name);
  if (only !== undefined) {
    await finding.requireTrust(pipelinesFolder(finding.cwd));
    const found = await fromFile(name, realpathSync(only), exported);
    return bundled === undefined
      ? found
      : { ...found, note: `${name} is this project's (${only}), not the bundled one` };
  }
  if (isPipeline(bundled)) return { name, pipeline: bundled, source: { kind: "bundled", name } };
  throw unknown(name, own.map(stemOf));
}

/** Finds the pipeline of an earlier run again, from what that run recorded. */
export async function findAgain(
  source: PipelineSource,
  runId: string,
  finding: Finding & { readonly trusted: boolean },
): Promise<FoundPipeline> {
  switch (source.kind) {
    case "programmatic":
      throw new SluiceError(
        "Validation",
        "run_programmatic",
        `run ${runId} was started by a program, which alone knows its pipeline; resume it there: await session.resume(pipeline, ${JSON.stringify(runId)})`,
      );
    case "bundled": {
      const bundled: unknown = bundledPipelines().get(source.name);
      if (isPipeline(bundled)) return { name: source.name, pipeline: bundled, source };
      throw unknown(source.name, []);
    }
    case "file": {
      const file = existing(source.file);
      const folder = pipelinesFolder(finding.cwd);
      if (file.startsWith(realOr(folder) + sep)) await finding.requireTrust(folder);
      else if (digestOfFile(file) !== source.digest && !finding.trusted) {
        throw new SluiceError(
          "Validation",
          "pipeline_untrusted",
          `${file} was changed since run ${runId} started; look at it, then resume with --trust to load it as it is now`,
        );
      }
      return await fromFile(source.file, file, source.export);
    }
  }
}

async function fromFile(name: string, file: string, wanted: string | undefined): Promise<FoundPipeline> {
  const { pipelines, digest } = await loadFile(file);
  const names = [...pipelines.keys()];
  const exported = wanted ?? (names.length === 1 ? names[0] : undefined);
  const pipeline = exported === undefined ? undefined : pipelines.get(exported);
  if (pipeline !== undefined && exported !== undefined) {
    return { name, pipeline, source: { kind: "file", file, export: exported, digest } };
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

function projectFiles(cwd: string): readonly string[] {
  const folder = pipelinesFolder(cwd);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => EXTENSIONS.includes(extname(name)) && !name.endsWith(".d.ts") && !name.endsWith(".d.mts"))
    .sort()
    .map((name) => join(folder, name));
}

function stemOf(path: string): string {
  return basename(path, extname(path));
}

function existing(path: string): string {
  if (existsSync(path) && statSync(path).isFile()) return realpathSync(path);
  throw new SluiceError("Validation", "pipeline_not_found", `there is no pipeline file ${path}`);
}

function realOr(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function unknown(name: string, project: readonly string[]): SluiceError {
  const bundled = [...bundledPipelines().keys()];
  const close = didYouMean(name, [...project, ...bundled]);
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  const own = project.length === 0 ? "" : `, in this project ${project.join(", ")}`;
  return new SluiceError(
    "Validation",
    "pipeline_not_found",
    `there is no pipeline ${name}.${hint} Bundled: ${bundled.join(", ")}${own}; a file is named by its path.`,
    {
      detail: { known: [...project, ...bundled] },
    },
  );
}
