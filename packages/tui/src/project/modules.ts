import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename, dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

type Hooks = Parameters<typeof registerHooks>[0];
type Resolve = NonNullable<Hooks["resolve"]>;

const OURS: ReadonlySet<string> = new Set(["@sluice/core", "@sluice/stages", "@sluice/sqlite", "@sluice/tui"]);

/** A file that a pipeline or a config is made of; those of installed packages are no such files. */
export interface ModuleFile {
  /** Absolute, links resolved. */
  readonly file: string;
  /** SHA-256 of its bytes. */
  readonly digest: string;
  /** Whether it was asked for only after the pipeline was loaded: a run may have written it. */
  readonly late: boolean;
}

/** Throws what keeps a file from being evaluated. */
export type Admit = (file: ModuleFile) => void;

/** The code that a pipeline or a config is made of, as far as it was loaded. */
export interface WatchedModules {
  /** Digests of its own files, by path. */
  readonly files: ReadonlyMap<string, string>;
  /** Absolute paths which decide what is loaded the next time: every file, and where packages would be looked for. */
  readonly deciding: ReadonlySet<string>;
  /** Everything is loaded: what is imported from now on is late. */
  close(): void;
}

/**
 * Asks `admit` about every file that is imported from `entry` on, before any of them is evaluated. Stays for the life of the
 * process: a pipeline's functions may import later.
 */
export function watchModules(entry: URL, admit: Admit): WatchedModules {
  const own = new Set([addressOf(entry.href)]);
  const isInstalled = installedBeside(fileURLToPath(entry));
  let start = "";
  const files = new Map<string, string>();
  const deciding = new Set<string>();
  let late = false;

  const resolve: Resolve = (specifier, context, next) => {
    const from = context.parentURL;
    const found = resolveOurs(specifier, context, next);
    const address = addressOf(found.url);
    // Where a link took the entry's place, what that leads to is what would be evaluated.
    if (specifier === entry.href) start = address;
    else if (from === undefined || !own.has(addressOf(from)) || isOurs(specifier)) return found;
    // Code in an address of its own is part of the text it stands in, but what it imports is not.
    if (!/^(?:file|data):/.test(address)) return found;
    own.add(address);
    // A name is looked up in packages, or in the manifest that gives the importing file its names.
    if (!/^(?:[./]|file:|data:)/.test(specifier) && from?.startsWith("file:") === true)
      for (const folder of foldersAbove(fileURLToPath(from))) {
        deciding.add(join(folder, "node_modules"));
        if (!isInstalled(fileURLToPath(address))) deciding.add(join(folder, "package.json"));
      }
    return found;
  };
  const load: NonNullable<Hooks["load"]> = (url, context, next) => {
    const address = addressOf(url);
    if (!own.has(address) || !address.startsWith("file:")) return next(url, context);
    const file = fileURLToPath(address);
    deciding.add(file);
    if (address !== start && isInstalled(file)) return next(url, context);
    const bytes = readFileSync(file);
    const digest = hash("sha256", bytes);
    admit({ file, digest, late });
    files.set(file, digest);
    const { source, ...loaded } = next(url, context);
    // What was admitted is what is evaluated, also when the file was changed in between.
    if (typeof source === "string") return { ...loaded, source: bytes.toString("utf8") };
    return { ...loaded, source: source == null ? source : bytes };
  };
  registerHooks({ resolve, load });
  return {
    files,
    deciding,
    close: () => {
      late = true;
    },
  };
}

function isOurs(specifier: string): boolean {
  return OURS.has(specifier);
}

/**
 * A pipeline works with the Sluice that runs it, whether its project has one installed or not: two copies would not know each
 * other's errors. Zod is lent where the project has none.
 */
const resolveOurs: Resolve = (specifier, context, next) => {
  if (isOurs(specifier)) return next(specifier, { ...context, parentURL: import.meta.url });
  try {
    return next(specifier, context);
  } catch (thrown) {
    if (specifier !== "zod" && !specifier.startsWith("zod/")) throw thrown;
    return next(specifier, { ...context, parentURL: import.meta.resolve("@sluice/stages") });
  }
};

/** What a module is told apart by here: a query makes two modules of a file, and `require` forgets it. */
function addressOf(url: string): string {
  return url.replace(/[?#].*$/s, "");
}

/** Whether a file is of an installed package, for an entry that may lie in one itself: then its own package is none. */
function installedBeside(entry: string): (file: string) => boolean {
  const [, own = ""] = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+[\\/])/s.exec(entry) ?? [];
  return (file) => (file.startsWith(own) ? file.slice(own.length) : file).split(sep).includes("node_modules");
}

function foldersAbove(file: string): readonly string[] {
  const folders: string[] = [];
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    // Packages are not looked for below a folder of packages.
    if (basename(folder) !== "node_modules") folders.push(folder);
    if (folder === dirname(folder)) return folders;
  }
}
