import { existsSync, lstatSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { field, isJsonObject, type Json, parseJson } from "@sluice/core";
import { usageError } from "../../output/output.ts";
import { fileStem, findCode, type ProjectCode } from "../../project/code.ts";
import { foldersAbove, isWithin } from "../../project/project-paths.ts";
import { addedLine, append, isEntry, type NewFile, refuseLinksOutside, sampleOf, writeNew } from "./files.ts";

export interface InitialProject {
  /** Absolute paths of what was written, or with `dryRun`, of what would be. */
  readonly written: readonly string[];
  /** Absolute paths of what exists and stays as it is. */
  readonly kept: readonly string[];
  /** What the user may have to do by hand. */
  readonly notes: readonly string[];
  /** The script with which the pipeline runs without a model; absent if the pipeline was there. */
  readonly script?: string;
}

interface InitOptions {
  /** Of the pipeline. */
  readonly name: string;
  /** Whether to write a workflow for GitHub Actions. */
  readonly ci: boolean;
  readonly dryRun: boolean;
}

/** What git must not track: the journals hold model output and tool results. */
const IGNORED = ".sluice/store/";

/**
 * Writes what a project starts with: a config, a pipeline with a tool of its own, a script for it, a line of .gitignore, and a
 * workflow for CI. Throws Validation `usage` if a workflow file has the name, or a file cannot be written.
 */
export function initProject(root: string, { name, ci, dryRun }: InitOptions): InitialProject {
  const code = findCode(root);
  const workflow = code.workflows.find((path) => fileStem(path) === name);
  if (workflow !== undefined)
    throw usageError(`${relative(root, workflow)} is a workflow of that name; choose another with --name`);
  const repository = repositoryOf(root);
  const { files, kept, script } = filesOf(code, { name, repository: ci ? repository : undefined });
  const fresh = files.filter(({ path }) => !isEntry(path));
  const ignore = ignoreOf(root);
  const added = ignore.line === undefined ? [] : [ignore.file];
  refuseLinksOutside(fresh);
  if (!dryRun) {
    for (const file of fresh) if (!writeNew(file)) throw usageError(`${file.path} appeared meanwhile; run it again`);
    if (ignore.line !== undefined) ignore.write(ignore.line);
  }
  return {
    written: [...fresh.map(({ path }) => path), ...added],
    kept: [...kept, ...files.filter((file) => !fresh.includes(file)).map(({ path }) => path)],
    notes: [
      ...configNotes(root, kept, files),
      ...typesNotes(root, files),
      ...ignore.notes,
      ...(ci && repository === undefined
        ? ["This folder is not in a git repository: no workflow for CI is written."]
        : []),
    ],
    ...(script === undefined ? {} : { script }),
  };
}

interface Wanted {
  readonly name: string;
  /** The repository that gets a workflow for CI. */
  readonly repository: string | undefined;
}

/** The files of a project that has none of them, and what it has in their place. */
function filesOf(code: ProjectCode, { name, repository }: Wanted) {
  const { root } = code;
  const language = languageOf(root);
  const values = { name, extension: language.extension };
  const pipeline = code.pipelines.find((path) => fileStem(path) === name);
  const configs = [...code.configs, ...code.unread];
  const path = (...names: readonly string[]): string => join(root, ...names);
  const inRoot = (file: string, sample: string): NewFile => ({
    path: file,
    text: sampleOf(`project/${sample}`, values),
    within: root,
  });
  const script = path(".sluice", "scripts", `${name}.json`);
  const config = inRoot(path(`sluice.config.${language.extension}`), "config.sample");
  const sample = inRoot(join(code.pipelinesFolder, `${name}.${language.extension}`), "pipeline.sample");
  const tool = inRoot(join(code.pipelinesFolder, "lib", `count-words.${language.extension}`), "tool.sample");
  const files: readonly NewFile[] = [
    ...(configs.length === 0 ? [config] : []),
    ...(pipeline === undefined ? [sample] : []),
    ...(configs.length === 0 || pipeline === undefined ? [tool] : []),
    ...(pipeline === undefined ? [inRoot(script, "script.json")] : []),
    ...(language.typed ? [inRoot(path(".sluice", "tsconfig.json"), "tsconfig.json")] : []),
    ...(repository === undefined ? [] : [ciWorkflow(root, repository, name)]),
  ];
  const kept = [...configs, ...(pipeline === undefined ? [] : [pipeline])];
  return { files, kept, ...(pipeline === undefined ? { script } : {}) };
}

/** GitHub reads workflows only at the top of a repository, so the one of a folder below names the folder. */
function ciWorkflow(root: string, repository: string, name: string): NewFile {
  const below = relative(repository, root).split(sep).join("/");
  // Without the quotes of JSON, the name of a folder could be read as other YAML.
  const cwd = JSON.stringify(below === "" ? "project" : `project/${below}`).replaceAll("${{", "$\\u007b{");
  return {
    path: join(repository, ".github", "workflows", "sluice.yml"),
    text: sampleOf("project/github.yml", { name, cwd }),
    within: repository,
  };
}

/** The folder of the git repository that holds a folder. */
function repositoryOf(root: string): string | undefined {
  return foldersAbove(root).find((folder) => existsSync(join(folder, ".git")));
}

interface Language {
  readonly extension: "ts" | "mts" | "mjs";
  readonly typed: boolean;
}

/** JavaScript only in a project that has a package.json and no TypeScript. Both must load as ES modules there. */
function languageOf(root: string): Language {
  const above = foldersAbove(root);
  const manifest = above.map((folder) => join(folder, "package.json")).find((path) => existsSync(path));
  const { type, typescript } = factsOf(manifest);
  const top = repositoryOf(root) ?? root;
  const configured = above.some((folder) => isWithin(folder, top) && existsSync(join(folder, "tsconfig.json")));
  if (manifest !== undefined && !typescript && !configured) return { extension: "mjs", typed: false };
  return { extension: type === "module" ? "ts" : "mts", typed: true };
}

function factsOf(manifest: string | undefined): { readonly type: Json | undefined; readonly typescript: boolean } {
  const parsed = manifest === undefined ? undefined : parseJson(readFileSync(manifest, "utf8"));
  if (parsed?.ok !== true || !isJsonObject(parsed.value)) return { type: undefined, typescript: false };
  const { type } = parsed.value;
  const lists = ["dependencies", "devDependencies", "peerDependencies"].map((list) => field(parsed.value, list));
  return { type, typescript: lists.some((list) => field(list, "typescript") !== undefined) };
}

/** A config that stays as it is may not know the tool; another tsconfig.json may compile the config that was written. */
function configNotes(root: string, kept: readonly string[], files: readonly NewFile[]): readonly string[] {
  const tool = files.find(({ path }) => path.includes("count-words"));
  const [config] = kept.filter((path) => path.startsWith(join(root, "sluice.config.")));
  const notes: string[] = [];
  if (config !== undefined && tool !== undefined && !imports(config, "count-words"))
    notes.push(
      `The pipeline uses a tool: import countWords from ./${relative(root, tool.path)} in ${relative(root, config)}, and add it to tools.`,
    );
  const written = files.find(({ path }) => path.startsWith(join(root, "sluice.config.")));
  if (written !== undefined && existsSync(join(root, "tsconfig.json")))
    notes.push(
      `.sluice/tsconfig.json covers ${relative(root, written.path)}. If tsconfig.json covers it too and reports it, add it to "exclude" there.`,
    );
  return notes;
}

/** The command brings its packages to the files that it runs; an editor and tsc find only those of the project. */
function typesNotes(root: string, files: readonly NewFile[]): readonly string[] {
  if (!files.some(({ path }) => path === join(root, ".sluice", "tsconfig.json"))) return [];
  const folders = foldersAbove(root).map((folder) => join(folder, "node_modules"));
  const missing = ["@sluice/core", "@sluice/cli", "zod", "typescript", "@types/node"].filter(
    (name) => !folders.some((folder) => existsSync(join(folder, name))),
  );
  return missing.length === 0
    ? []
    : [
        `The files run as they are. For types in an editor and for tsc -p .sluice, the project needs ${missing.join(", ")}; docs/install.md of Sluice shows how to install its packages.`,
      ];
}

/** A link may lead nowhere. */
function imports(config: string, name: string): boolean {
  return existsSync(config) && readFileSync(config, "utf8").includes(name);
}

interface Ignore {
  readonly file: string;
  /** What to append; undefined if nothing is missing or the file cannot be extended. */
  readonly line?: string;
  write(line: string): void;
  readonly notes: readonly string[];
}

function ignoreOf(root: string): Ignore {
  const file = join(root, ".gitignore");
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (stat === undefined) {
    const write = (text: string): void => {
      if (!writeNew({ path: file, text, within: root })) throw usageError(`${file} appeared meanwhile; run it again`);
    };
    return { file, line: `${IGNORED}\n`, write, notes: [] };
  }
  const write = (text: string): void => append(file, text);
  const byHand = { file, write, notes: [`Add ${IGNORED} to .gitignore: it is a link or no text, and stays as it is.`] };
  if (!stat.isFile()) return byHand;
  const bytes = readFileSync(file);
  if (bytes.includes(0)) return byHand;
  const text = bytes.toString("utf8");
  const entries = text.split(/\r?\n/).map((line) => line.trim().replace(/^\//, "").replace(/\/$/, ""));
  if (entries.includes(".sluice"))
    return {
      file,
      write,
      notes: [`.gitignore ignores all of .sluice, so git does not track the pipeline; ignore ${IGNORED} only.`],
    };
  if (entries.includes(".sluice/store")) return { file, write, notes: [] };
  return { file, line: addedLine(text, IGNORED), write, notes: [] };
}
