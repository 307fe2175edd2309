import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError } from "@sluice/core";
import type { FileDigest } from "@sluice/stages";
import { type Admit, addressesIn, digestOf, MODULES, specifiersIn } from "./modules.ts";

// The code of a project: found by the names of files, and in their imports, without loading any.

/** The code that a folder holds. */
export interface ProjectCode {
  /** The workspace, links resolved. Parent folders are not searched. */
  readonly root: string;
  /** `sluice.config.*` files; more than one is an error. */
  readonly configs: readonly string[];
  /** Files that look like a config but have an unsupported extension. */
  readonly unread: readonly string[];
  /** The folder of the project's pipelines, which may not exist. */
  readonly pipelinesFolder: string;
  readonly pipelines: readonly string[];
  /** The folder of the project's workflow files, which may not exist. */
  readonly workflowsFolder: string;
  /** Workflow files, and folders of Markdown stages. */
  readonly workflows: readonly string[];
}

/** What trust covers: the SHA-256 of each file when it was read, by absolute path. */
export type CodeDigests = ReadonlyMap<string, string>;

/** Code of a folder that may be loaded. */
export interface TrustedCode {
  readonly digests: CodeDigests;
  /** Throws Validation `folder_untrusted` for a file that is not part of it, or changed. */
  readonly admit: Admit;
}

/** Digests as a run records them, sorted by file so that equal code compares as equal. */
export function fileDigests(digests: CodeDigests): readonly FileDigest[] {
  return [...digests].map(([file, digest]) => ({ file, digest })).sort((a, b) => (a.file < b.file ? -1 : 1));
}

export const CODE_EXTENSIONS = [".ts", ".mts", ".js", ".mjs"];
export const WORKFLOW_EXTENSIONS = [".json", ".yaml", ".yml"];
/** The file that makes a folder a workflow. */
const FOLDER_ENTRIES = WORKFLOW_EXTENSIONS.map((extension) => `pipeline${extension}`);
const CONFIG = /^sluice\.config\.m?[jt]s$/;
const OTHER_CONFIG = /^sluice\.config\.(?:c[jt]s|[jt]sx|json[c5]?|ya?ml|toml)$/i;

/** Whether a file of this name in the workspace is a config. */
export function isConfigName(name: string): boolean {
  return CONFIG.test(name);
}

export function findCode(root: string): ProjectCode {
  const names = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .sort();
  const pipelinesFolder = join(root, ".sluice", "pipelines");
  const workflowsFolder = join(root, ".sluice", "workflows");
  return {
    root,
    configs: names.filter(isConfigName).map((name) => join(root, name)),
    unread: names.filter((name) => OTHER_CONFIG.test(name)).map((name) => join(root, name)),
    pipelinesFolder,
    pipelines: pipelineFiles(pipelinesFolder),
    workflowsFolder,
    workflows: workflowFiles(workflowsFolder),
  };
}

function workflowFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter(isWorkflow)
    .sort();
}

/** Whether a path is that of a workflow: a file by its name, a folder by what it holds. */
export function isWorkflow(path: string): boolean {
  if (WORKFLOW_EXTENSIONS.includes(extname(path))) return true;
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder && FOLDER_ENTRIES.some((name) => existsSync(join(path, name)));
}

function pipelineFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => CODE_EXTENSIONS.includes(extname(name)) && !/\.d\.m?ts$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * Reads the files that trust begins with: configs, and every file below the folders of pipelines and workflows, since they load from there.
 * Throws Validation `folder_untrusted` for a link, whose target could change unnoticed.
 */
export function digestCode({ configs, pipelinesFolder, workflowsFolder }: ProjectCode): CodeDigests {
  const digests = new Map<string, string>();
  for (const config of configs) {
    if (lstatSync(config).isSymbolicLink()) throw isLink(config);
    digests.set(realpathSync(config), digestOf(readFileSync(config)));
  }
  for (const folder of [pipelinesFolder, workflowsFolder].filter((path) => existsSync(path))) {
    const entries = readdirSync(realpathSync(folder), { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isSymbolicLink()) throw isLink(path);
      if (entry.isFile()) digests.set(path, digestOf(readFileSync(path)));
    }
  }
  return digests;
}

/** Files of these extensions are searched for imports. */
const READ = [...CODE_EXTENSIONS, ".cts", ".cjs"];

/**
 * The files that code imports outside of installed packages, with their digests, found in its text without running it: also imports
 * that a function makes later. A name that the code computes is not found. A comment may add a file, which then counts as code.
 */
export function importedFiles(entries: Iterable<string>): CodeDigests {
  const found = new Map<string, string>();
  const waiting = [...entries];
  const seen = new Set(waiting);
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const bytes = readFileSync(file);
    found.set(file, digestOf(bytes));
    if (!READ.includes(extname(file))) continue;
    const text = bytes.toString("utf8");
    const located = [...specifiersIn(text)].map((specifier) => MODULES.locate(specifier, file));
    for (const imported of [...located, ...[...addressesIn(text)].map((address) => codeAt(address, file))]) {
      if (imported === undefined || seen.has(imported) || !isFile(imported)) continue;
      seen.add(imported);
      waiting.push(imported);
    }
  }
  return found;
}

/** The code that a relative address means, such as that of a worker; data that a run may write does not count. */
function codeAt(address: string, from: string): string | undefined {
  const { protocol, href } = URL.parse(address, pathToFileURL(from).href) ?? {};
  return protocol === "file:" && href !== undefined && READ.includes(extname(address))
    ? MODULES.locate(href, from)
    : undefined;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** A name without line breaks, for use in a message. */
export function inLine(name: string): string {
  return name.replaceAll("\n", "\\n");
}

function isLink(path: string): SluiceError {
  return untrustedFolder(`${inLine(path)} is a link, and trust cannot cover its target; replace it with a file`);
}

export function untrustedFolder(message: string): SluiceError {
  return new SluiceError("Validation", "folder_untrusted", message);
}

/** The name of the pipeline in a file, or in a folder of stages. */
export function fileStem(path: string): string {
  const extension = extname(path);
  return basename(path, [...CODE_EXTENSIONS, ...WORKFLOW_EXTENSIONS].includes(extension) ? extension : "");
}

/** Whether a pipeline may have this name. */
export function isPipelineName(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name);
}

/** Trusted code as it was when it was read, and nothing else. */
export function asTrusted(digests: CodeDigests, root: string): TrustedCode {
  const admit: Admit = ({ file, digest, late }) => {
    const known = digests.get(file);
    if (known === digest) return;
    if (known !== undefined) throw untrustedFolder(`${inLine(file)} changed after it was trusted; ${REVIEW}`);
    throw untrustedFolder(
      late
        ? `${inLine(file)} is imported during the run, and trust in ${root} does not cover it; import it at the top of a file, or by a name that is written out`
        : `it imports ${inLine(file)}, which trust in ${root} does not cover; ${REVIEW}`,
    );
  };
  return { digests, admit };
}

const REVIEW = "review it, then use --trust";
