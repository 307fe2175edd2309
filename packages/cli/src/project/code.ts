import { hash } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { extname, join } from "node:path";
import { SluiceError } from "@sluice/core";
import type { FileDigest } from "@sluice/stages";

/** What a folder holds that would be run: found by name, and nothing of it is loaded. */
export interface ProjectCode {
  /** The workspace, links resolved. Only this folder is looked at, none above it. */
  readonly root: string;
  /** `sluice.config.*` files; more than one is a mistake. */
  readonly configs: readonly string[];
  /** Files that look like a config in a form which is not read. */
  readonly unread: readonly string[];
  /** The folder of the project's pipelines, whether it is there or not. */
  readonly pipelinesFolder: string;
  /** The pipeline files in it. */
  readonly pipelines: readonly string[];
}

/** What trust is about: SHA-256 by absolute path, as the files were when they were looked at. */
export type CodeDigests = ReadonlyMap<string, string>;

/** Digests as a run records them, in an order of their own: two loads that found the same compare as the same. */
export function fileDigests(digests: CodeDigests): readonly FileDigest[] {
  return [...digests].map(([file, digest]) => ({ file, digest })).sort((a, b) => (a.file < b.file ? -1 : 1));
}

export const CODE_EXTENSIONS = [".ts", ".mts", ".js", ".mjs"];
const CONFIG = /^sluice\.config\.m?[jt]s$/;
const OTHER_CONFIG = /^sluice\.config\.(?:c[jt]s|[jt]sx|json[c5]?|ya?ml|toml)$/i;

/** Whether a file of this name is a config where it lies in the workspace. */
export function isConfigName(name: string): boolean {
  return CONFIG.test(name);
}

export function findCode(root: string): ProjectCode {
  const names = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .sort();
  const pipelinesFolder = join(root, ".sluice", "pipelines");
  return {
    root,
    configs: names.filter(isConfigName).map((name) => join(root, name)),
    unread: names.filter((name) => OTHER_CONFIG.test(name)).map((name) => join(root, name)),
    pipelinesFolder,
    pipelines: pipelineFiles(pipelinesFolder),
  };
}

function pipelineFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => CODE_EXTENSIONS.includes(extname(name)) && !/\.d\.m?ts$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * Reads all that trust covers: configs, and every file below the pipelines' folder, since they import their neighbours.
 * Throws Validation `folder_untrusted` for a link, whose target could change unseen.
 */
export function digestCode({ configs, pipelinesFolder }: ProjectCode): CodeDigests {
  const digests = new Map<string, string>();
  for (const config of configs) {
    if (lstatSync(config).isSymbolicLink()) throw isLink(config);
    digests.set(realpathSync(config), digestOf(config));
  }
  if (!existsSync(pipelinesFolder)) return digests;
  const real = realpathSync(pipelinesFolder);
  const entries = readdirSync(real, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isSymbolicLink()) throw isLink(path);
    if (entry.isFile()) digests.set(path, digestOf(path));
  }
  return digests;
}

function digestOf(file: string): string {
  return hash("sha256", readFileSync(file));
}

/** A name as part of a sentence: it cannot begin a line of its own. */
export function inLine(name: string): string {
  return name.replaceAll("\n", "\\n");
}

function isLink(path: string): SluiceError {
  return new SluiceError(
    "Validation",
    "folder_untrusted",
    `${inLine(path)} is a link, and trust cannot cover what it points to; put a file in its place`,
  );
}
