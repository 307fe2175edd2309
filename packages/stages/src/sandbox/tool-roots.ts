import { lstatSync, readdirSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { Clock } from "@sluice/core";
import { contains, realPath } from "../tools/files/paths.ts";
import { systemCode } from "../tools/files/results.ts";
import { readSmallFile } from "../tools/search/gitignore.ts";

/** Where version managers and package managers keep programs and libraries, below the home folder: no settings, no keys. */
const IN_HOME = [
  ".pyenv",
  ".rbenv",
  ".asdf",
  ".volta",
  ".rustup",
  ".nvm/versions",
  ".cargo/bin",
  ".cargo/registry",
  ".cargo/git",
  ".bun/bin",
  ".deno/bin",
  ".sdkman/candidates",
  ".m2/repository",
  ".local/bin",
  ".local/lib",
  ".local/share/uv",
  ".local/share/mise",
  ".local/share/pnpm",
  ".local/share/pipx",
  ".local/share/fnm",
  ".cache/node/corepack",
  "go/bin",
  "go/pkg/mod",
];

/** The same where a variable says that they are elsewhere. */
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

/** Git has to know who commits; what stands in these is no key, or they are left out. */
const GIT_SETTINGS = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];
const LIKE_A_KEY = /extraheader|:\/\/[^/\s]*:[^/\s]*@|token|passw|secret/i;
/** Folders of the system that hold programs and their settings. */
export const SYSTEM_FOLDERS = ["/usr", "/etc", "/opt", "/nix/store", "/gnu/store", "/run/current-system"];
/** Anybody's. */
const SHARED = ["/", "/tmp", "/var", "/var/tmp", "/home", "/srv", "/mnt"];
/** Links of one folder that are followed. */
const MOST_LINKS = 1_000;

const KNOWN_MS = 10_000;

export interface ToolPaths {
  readonly root: string;
  /** With links resolved. */
  readonly home: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Folders that nothing may show: no folder that holds one of them is bound. */
  readonly absent: readonly string[];
}

/** A folder or file that is bound read-only: where it is, and where it can be seen. */
export interface ToolRoot {
  readonly from: string;
  readonly at: string;
}

/** The same for some time: nobody installs a tool for every command. */
export function knownToolRoots(clock: Clock): (places: ToolPaths) => readonly ToolRoot[] {
  const known = new Map<string, { readonly roots: readonly ToolRoot[]; readonly at: number }>();
  return (places) => {
    const key = JSON.stringify([places.root, places.home, places.absent, Object.entries(places.env).filter(isPlace)]);
    const before = known.get(key);
    if (before !== undefined && clock.now() - before.at < KNOWN_MS) return before.roots;
    const roots = toolRoots(places);
    known.clear();
    known.set(key, { roots, at: clock.now() });
    return roots;
  };
}

function isPlace([name]: readonly [string, string]): boolean {
  return name === "HOME" || name === "PATH" || Object.hasOwn(BY_VARIABLE, name);
}

/** What programs that can be called from here are made of, outside of the system's folders and of the workspace. */
function toolRoots(places: ToolPaths): readonly ToolRoot[] {
  const { home, env } = places;
  const inHome = home === undefined ? [] : [...IN_HOME, ...GIT_SETTINGS.filter((name) => isPlain(join(home, name)))];
  const named = Object.entries(BY_VARIABLE).flatMap(([variable, inside]) => {
    const folder = env[variable];
    return folder === undefined || !isAbsolute(folder) ? [] : inside.map((name) => join(folder, name));
  });
  // What the workspace puts into PATH says nothing of where programs live.
  const entries = (env.PATH ?? "")
    .split(":")
    .filter((entry) => isAbsolute(entry) && !contains(places.root, resolve(entry)));
  const found = [
    ...inHome.map((name) => join(home ?? "/", name)),
    ...named,
    ...entries.flatMap((entry) => [entry, ...prefixOf(entry), ...linkTargets(entry, places)]),
    ...ownNode(),
    ...linkedModules(places.root),
  ];
  const roots = new Map<string, string>();
  for (const at of found) {
    const from = realPath(at);
    if (from === undefined) continue;
    for (const path of new Set([from, inRealHome(at, places)]))
      if (mayBeBound(path, from, places)) roots.set(path, from);
  }
  const all = [...roots].map(([at, from]) => ({ at, from }));
  return all.filter(
    (one) =>
      !isShown(
        one,
        all.filter(({ at }) => at !== one.at),
      ),
  );
}

/** Whether a path that one root binds is there with the others already, as it is outside: also by a link that they show. */
function isShown({ at, from }: ToolRoot, others: readonly ToolRoot[]): boolean {
  const asItIs = others.filter((other) => other.at === other.from);
  return [at, from].every((path) => asItIs.some((other) => contains(other.at, path)));
}

/** Never the workspace, nor what holds it, the home folder or something that is to be absent; and not what is there anyway. */
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
  return home === undefined || spelled === undefined || !contains(spelled, path)
    ? path
    : join(home, relative(spelled, path));
}

/** An installation is more than its programs: what stands beside `bin` belongs to it, unless it is somebody's project. */
function prefixOf(entry: string): readonly string[] {
  const prefix = dirname(realPath(entry) ?? entry);
  const names = new Set(namesIn(prefix).map((one) => one.name));
  if (basename(prefix) === "node_modules") return [prefix];
  const isPrefix = ["lib", "libexec", "pyvenv.cfg"].some((name) => names.has(name));
  // Beside programs that a person installed, `.local/share` holds keys.
  const isOther = basename(prefix) === ".local" || [".git", ".env", "package.json"].some((name) => names.has(name));
  return isPrefix && !isOther ? [prefix] : [];
}

/** A program that is a link to another place, as installers make them. */
function linkTargets(entry: string, { root }: ToolPaths): readonly string[] {
  if (contains(root, entry) || /^\/(?:usr|bin|sbin)(?:\/|$)/.test(entry)) return [];
  return linksIn(entry).map(outermostModules);
}

function ownNode(): readonly string[] {
  const node = realPath(process.execPath) ?? process.execPath;
  return [node, ...prefixOf(dirname(node))];
}

/** Packages that are links out of the workspace, and those that folders above it share with it. */
function linkedModules(root: string): readonly string[] {
  const modules = join(root, "node_modules");
  const scopes = namesIn(modules).filter((one) => one.name.startsWith("@") && one.isDirectory());
  const links = [modules, ...scopes.map(({ name }) => join(modules, name))].flatMap(linksIn);
  const above: string[] = [];
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    above.push(join(folder, "node_modules"));
    if (folder === dirname(folder)) break;
  }
  // A link is the workspace's to make: only a package that it leads to is shown, and nothing of hidden folders.
  const packages = links.filter((target) => !contains(root, target) && isPackage(target)).map(outermostModules);
  return [...new Set(packages)].slice(0, MOST_LINKED).concat(above);
}

/** More packages outside of the workspace than any has. */
const MOST_LINKED = 100;

function isPackage(folder: string): boolean {
  const isHidden = folder.split(sep).some((name) => name.startsWith(".") && name !== ".pnpm" && name !== ".local");
  const manifest = lstatSync(join(folder, "package.json"), { throwIfNoEntry: false });
  return !isHidden && manifest?.isFile() === true;
}

function linksIn(folder: string): readonly string[] {
  const links = namesIn(folder).filter((one) => one.isSymbolicLink());
  return links.slice(0, MOST_LINKS).flatMap(({ name }) => realPath(join(folder, name)) ?? []);
}

/** What a package needs stands beside it. */
function outermostModules(path: string): string {
  const at = path.split(sep).indexOf("node_modules");
  return at === -1
    ? path
    : path
        .split(sep)
        .slice(0, at + 1)
        .join(sep);
}

function isPlain(file: string): boolean {
  const text = readSmallFile(file);
  return text !== undefined && !LIKE_A_KEY.test(text);
}

function namesIn(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return [];
  }
}
