import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { SluiceError } from "@sluice/core";

/** The initial content of a test workspace. */
export interface WorkspaceOptions {
  /** A folder that is copied into the workspace first; a relative path starts at the process's working directory. */
  readonly folder?: string | URL;
  /** Files by path relative to the workspace. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface FileChange {
  /** Relative to the workspace, with forward slashes. */
  readonly path: string;
  readonly kind: "created" | "changed" | "removed";
  /** As UTF-8; absent if the file did not exist. */
  readonly before?: string;
  readonly after?: string;
}

/** A temporary workspace. */
export interface TestWorkspace {
  readonly root: string;
  /** All changed files, sorted by path, except in `.git` and `.sluice`. */
  changes(): readonly FileChange[];
  remove(): void;
}

/** Throws Validation `test_file_outside`. */
export function makeWorkspace({ folder, files = {} }: WorkspaceOptions): TestWorkspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "sluice-test-")));
  const remove = (): void => rmSync(root, { recursive: true, force: true });
  try {
    if (folder !== undefined) cpSync(pathOf(folder), root, { recursive: true });
    for (const [path, content] of Object.entries(files)) {
      const file = join(root, path);
      if (!file.startsWith(root + sep)) {
        const message = `the test file ${path} is outside the workspace; use a relative path`;
        throw new SluiceError("Validation", "test_file_outside", message);
      }
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
    const before = contentsOf(root);
    return { root, remove, changes: () => changesBetween(before, contentsOf(root)) };
  } catch (thrown) {
    remove();
    throw thrown;
  }
}

export function pathOf(file: string | URL): string {
  return typeof file === "string" ? file : fileURLToPath(file);
}

function contentsOf(root: string): ReadonlyMap<string, Buffer> {
  const contents = new Map<string, Buffer>();
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      const name = relative(root, path).replaceAll(sep, "/");
      if (entry.isDirectory()) {
        if (name !== ".git" && name !== ".sluice") walk(path);
      } else if (entry.isFile()) contents.set(name, readFileSync(path));
      else if (entry.isSymbolicLink()) contents.set(name, Buffer.from(`-> ${readlinkSync(path)}`));
    }
  };
  walk(root);
  return contents;
}

function changesBetween(
  before: ReadonlyMap<string, Buffer>,
  after: ReadonlyMap<string, Buffer>,
): readonly FileChange[] {
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((path): FileChange[] => {
    const [was, is] = [before.get(path), after.get(path)];
    if (was !== undefined && is !== undefined)
      return was.equals(is) ? [] : [{ path, kind: "changed", before: was.toString(), after: is.toString() }];
    if (is !== undefined) return [{ path, kind: "created", after: is.toString() }];
    return was === undefined ? [] : [{ path, kind: "removed", before: was.toString() }];
  });
}
