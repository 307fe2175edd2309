import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, extname, join, resolve, sep } from "node:path";
import { didYouMean, SluiceError } from "@sluice/core";
import { bundledPipelines, type PipelineSource } from "@sluice/stages";
import { isPipeline, type LoadedPipeline, loadFile } from "./load.ts";
import type { Admit } from "./modules.ts";
import { pipelinesFolder } from "./trust.ts";

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
  if (file !== undefined) return await fromFile(name, existing(resolve(finding.here, file)), wanted, asNamed);
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
    const folder = pipelinesFolder(finding.cwd);
    await finding.requireTrust(folder);
    const found = await fromFile(name, realpathSync(only), exported, within(realpathSync(folder)));
    return bundled === undefined
      ? found
      : { ...found, note: `${name} is this project's (${only}), not the bundled one` };
  }
  if (isPipeline(bundled)) return { name, pipeline: bundled, source: { kind: "bundled", name }, code: [] };
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
      if (isPipeline(bundled)) return { name: source.name, pipeline: bundled, source, code: [] };
      throw unknown(source.name, []);
    }
    case "file": {
      const file = existing(source.file);
      const folder = pipelinesFolder(finding.cwd);
      const real = realOr(folder);
      if (!file.startsWith(real + sep))
        return await fromFile(source.file, file, source.export, finding.trusted ? asNamed : asRecorded(source, runId));
      await finding.requireTrust(folder);
      return await fromFile(source.file, file, source.export, within(real));
    }
  }
}

/** Trust covers a folder: code from elsewhere would be loaded without it. */
function within(folder: string): Admit {
  return ({ file }) => {
    if (file.startsWith(folder + sep)) return;
    throw new SluiceError(
      "Validation",
      "folder_untrusted",
      `it imports ${file}, which trust in ${folder} does not cover; move it into that folder or into an installed package`,
    );
  };
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
function asRecorded(source: Extract<PipelineSource, { kind: "file" }>, runId: string): Admit {
  const known = new Map(Object.entries(source.files));
  return (module) => {
    asNamed(module);
    if (known.get(module.file) === module.digest) return;
    const what = known.has(module.file) ? "was changed" : "is imported anew";
    throw new SluiceError(
      "Validation",
      "pipeline_untrusted",
      `${module.file} ${what} since run ${runId} started; look at it, then resume with --trust to load it as it is now`,
    );
  };
}

async function fromFile(name: string, file: string, wanted: string | undefined, admit: Admit): Promise<FoundPipeline> {
  const { pipelines, files, deciding } = await loadFile(file, admit);
  const names = [...pipelines.keys()];
  const exported = wanted ?? (names.length === 1 ? names[0] : undefined);
  const pipeline = exported === undefined ? undefined : pipelines.get(exported);
  if (pipeline !== undefined && exported !== undefined) {
    const source = { kind: "file", file, export: exported, files: Object.fromEntries(files) } as const;
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
