import { lstatSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Clock } from "@sluice/core";
import { contains, entriesIn, realPath } from "../tools/files/paths.ts";
import { readSmallFile } from "../tools/search/gitignore.ts";

/** Programs and libraries of version and package managers, below the home folder: no settings, no keys. */
const IN_HOME = (
  ".pyenv .rbenv .asdf .volta .rustup .nvm/versions .cargo/bin .cargo/registry .cargo/git .bun/bin .deno/bin " +
  ".sdkman/candidates .m2/repository .local/bin .local/lib .local/share/uv .local/share/mise .local/share/pnpm " +
  ".local/share/pipx .local/share/fnm .cache/node/corepack go/bin go/pkg/mod"
).split(" ");

/** The same where a variable names another folder. */
const BY_VARIABLE: Readonly<Record<string, readonly string[]>> = {
  CARGO_HOME: ["bin", "registry", "git"],
  RUSTUP_HOME: [""],
  PYENV_ROOT: [""],
  RBENV_ROOT: [""],
  NVM_DIR: ["versions"],
  VOLTA_HOME: [""],
  ASDF_DATA_DIR: [""],
  MISE_DATA_DIR: [""],
  PNPM_HOME: [""],
  UV_PYTHON_INSTALL_DIR: [""],
  GOROOT: [""],
  GOPATH: ["bin", "pkg/mod"],
  JAVA_HOME: [""],
};

/** Git needs the author's name; files that look as if they hold a key are left out. */
const GIT_SETTINGS = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];
const LIKE_A_KEY = /extraheader|:\/\/[^/\s]*:[^/\s]*@|token|passw|secret/i;
/** Folders of the system with programs and their settings. */
export const SYSTEM_FOLDERS = ["/usr", "/etc", "/opt", "/nix/store", "/gnu/store", "/run/current-system"];
/** Folders that belong to no single user. */
const SHARED = ["/", "/tmp", "/var", "/var/tmp", "/home", "/srv", "/mnt"];
/** Links that are followed in one folder. */
const MOST_LINKS = 1_000;

/** How long known roots stay valid. */
const KNOWN_MS = 10_000;

export interface ToolPaths {
  readonly root: string;
  /** Real path. */
  readonly home: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Hidden paths: no folder that contains one is mounted. */
  readonly absent: readonly string[];
}

/** A folder or file that is mounted read-only. */
export interface ToolRoot {
  readonly from: string;
  readonly at: string;
}

/** Finds tool roots, and keeps the result for a while: tools are not installed between two commands. */
export function knownToolRoots(clock: Clock): (paths: ToolPaths) => readonly ToolRoot[] {
  const known = new Map<string, { readonly roots: readonly ToolRoot[]; readonly at: number }>();
  return (paths) => {
    const key = JSON.stringify([paths.root, paths.home, paths.absent, Object.entries(paths.env).filter(namesFolder)]);
    const before = known.get(key);
    if (before !== undefined && clock.now() - before.at < KNOWN_MS) return before.roots;
    const roots = toolRoots(paths);
    known.clear();
    known.set(key, { roots, at: clock.now() });
    return roots;
  };
}

function namesFolder([name]: readonly [string, string]): boolean {
  return name === "HOME" || name === "PATH" || Object.hasOwn(BY_VARIABLE, name);
}

/** The files that callable programs consist of, outside the system's folders and the workspace. */
function toolRoots(paths: ToolPaths): readonly ToolRoot[] {
  const { home, env, root } = paths;
  const inHome = home === undefined ? [] : [...IN_HOME, ...GIT_SETTINGS.filter((name) => isPlain(join(home, name)))];
  const named = Object.entries(BY_VARIABLE).flatMap(([variable, inside]) => {
    const folder = env[variable];
    return folder === undefined || !isAbsolute(folder) ? [] : inside.map((name) => join(folder, name));
  });
  // Folders of the workspace on PATH do not show where programs are installed.
  const entries = (env.PATH ?? "").split(":").filter((entry) => isAbsolute(entry) && !contains(root, resolve(entry)));
  const found = [
    ...inHome.map((name) => join(home ?? "/", name)),
    ...named,
    ...entries.flatMap((entry) => [entry, ...prefixOf(entry), ...linkTargets(entry, paths)]),
    ...ownNode(),
    ...linkedModules(root),
  ];
  const roots = new Map<string, string>();
  for (const at of found) {
    const from = realPath(at);
    if (from === undefined) continue;
    for (const path of new Set([from, inRealHome(at, paths)])) if (mayBeBound(path, from, paths)) roots.set(path, from);
  }
  const all = [...roots].map(([at, from]) => ({ at, from }));
  const isShown = ({ at, from }: ToolRoot): boolean => {
    const others = all.filter((other) => other.at !== at && other.at === other.from);
    return [at, from].every((path) => others.some((other) => contains(other.at, path)));
  };
  return all.filter((root) => !isShown(root));
}

/** Never the workspace, a hidden path or the home folder, nor a folder around them; nor what is mounted anyway. */
function mayBeBound(at: string, from: string, { root, home, absent }: ToolPaths): boolean {
  const precious = [root, ...absent];
  return [at, from].every(
    (path) =>
      !SHARED.includes(path) &&
      ![...precious, ...(home === undefined ? [] : [home])].some((one) => contains(path, one)) &&
      ![...precious, ...SYSTEM_FOLDERS, "/proc", "/sys", "/dev", "/run"].some((one) => contains(one, path)),
  );
}

function inRealHome(path: string, { home, env }: ToolPaths): string {
  const spelled = env.HOME;
  const isBelow = home !== undefined && spelled !== undefined && contains(spelled, path);
  return isBelow ? join(home, relative(spelled, path)) : path;
}

/** The installation around a `bin` folder, unless it is a project. */
function prefixOf(entry: string): readonly string[] {
  const prefix = dirname(realPath(entry) ?? entry);
  const names = new Set(entriesIn(prefix).map(({ name }) => name));
  if (basename(prefix) === "node_modules") return [prefix];
  const isPrefix = ["lib", "libexec", "pyvenv.cfg"].some((name) => names.has(name));
  // `.local/share` also holds keys.
  const isOther = basename(prefix) === ".local" || [".git", ".env", "package.json"].some((name) => names.has(name));
  return isPrefix && !isOther ? [prefix] : [];
}

/** The targets of programs that are links, as installers create them. */
function linkTargets(entry: string, { root }: ToolPaths): readonly string[] {
  if (contains(root, entry) || /^\/(?:usr|bin|sbin)(?:\/|$)/.test(entry)) return [];
  return linksIn(entry).map(outermostModules);
}

function ownNode(): readonly string[] {
  const node = realPath(process.execPath) ?? process.execPath;
  return [node, ...prefixOf(dirname(node))];
}

/** Packages that the workspace links to, and the `node_modules` of the folders above it. */
function linkedModules(root: string): readonly string[] {
  const modules = join(root, "node_modules");
  const scopes = entriesIn(modules).filter((entry) => entry.name.startsWith("@") && entry.isDirectory());
  const links = [modules, ...scopes.map(({ name }) => join(modules, name))].flatMap(linksIn);
  const above: string[] = [];
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    above.push(join(folder, "node_modules"));
    if (folder === dirname(folder)) break;
  }
  // The workspace controls these links, so only packages outside hidden folders are shown.
  const packages = links.filter((target) => !contains(root, target) && isPackage(target)).map(outermostModules);
  return [...new Set(packages)].slice(0, MOST_LINKED).concat(above);
}

/** More than any workspace links to. */
const MOST_LINKED = 100;

function isPackage(folder: string): boolean {
  const isHidden = folder.split(sep).some((name) => name.startsWith(".") && name !== ".pnpm" && name !== ".local");
  const manifest = lstatSync(join(folder, "package.json"), { throwIfNoEntry: false });
  return !isHidden && manifest?.isFile() === true;
}

function linksIn(folder: string): readonly string[] {
  const links = entriesIn(folder).filter((entry) => entry.isSymbolicLink());
  return links.slice(0, MOST_LINKS).flatMap(({ name }) => realPath(join(folder, name)) ?? []);
}

/** The outermost `node_modules` around a path, since dependencies of a package lie beside it. */
function outermostModules(path: string): string {
  return /^.*?\/node_modules(?=\/|$)/s.exec(path)?.[0] ?? path;
}

function isPlain(file: string): boolean {
  const text = readSmallFile(file);
  return text !== undefined && !LIKE_A_KEY.test(text);
}
