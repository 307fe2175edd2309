import { hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename, dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { SluiceError } from "@sluice/core";

type Hooks = Parameters<typeof registerHooks>[0];
type Resolve = NonNullable<Hooks["resolve"]>;
type Load = NonNullable<Hooks["load"]>;

const OURS: ReadonlySet<string> = new Set(
  ["core", "stages", "sqlite", "view", "tui", "cli"].map((name) => `@sluice/${name}`),
);

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
}

/**
 * Imports a file by `run`, and asks `admit` about every file that it is made of before that is evaluated; files that were
 * evaluated here earlier are asked about, too. One is evaluated again when it, or anything it imports, is not what it was.
 * Goes on asking for the life of the process: a pipeline's functions may import later.
 */
export async function importWatched<T>(
  entry: URL,
  admit: Admit,
  run: (specifier: string) => Promise<T>,
): Promise<{ readonly exports: T; readonly modules: WatchedModules }> {
  return await MODULES.import(entry, admit, run);
}

/** One import of a file, with all it leads to. */
interface Loading {
  /** What the entry is asked for by: no other import has it. */
  readonly specifier: string;
  readonly admit: Admit;
  readonly isInstalled: (file: string) => boolean;
  readonly files: Map<string, string>;
  readonly deciding: Set<string>;
  /** Modules that were admitted or evaluated for it. */
  readonly has: Set<string>;
  /** The entry, links resolved. */
  start: string;
  /** Everything is loaded: what is imported from now on is late. */
  over: boolean;
}

/** A module that was evaluated. */
interface Kept {
  /** None for code in an address of its own. */
  readonly file?: string;
  /** Of the bytes that were evaluated; none for files of installed packages, which stay as they are. */
  readonly digest?: string;
  /** Addresses of what it imports. */
  readonly imports: Set<string>;
  /** Where packages and names that it imports were looked for. */
  readonly lookedIn: Set<string>;
  /** CommonJS: `require` knows code by its file's name alone, and hands out what that held first. */
  readonly once?: boolean;
}

/**
 * What this process has loaded of users' code. Node evaluates an address once in the life of a process, and its hooks hear of
 * it that once: so this is one for a process, too.
 */
class LoadedCode {
  readonly #kept = new Map<string, Kept>();
  /** The address that a file was evaluated at last, by the one it has on the disk. */
  readonly #newest = new Map<string, string>();
  /** The same by its file alone. */
  readonly #lastOf = new Map<string, string>();
  /** Addresses on the disk that Node was given: each names what was evaluated there first. */
  readonly #taken = new Set<string>();
  /** Who asked for a module last, by its address. */
  readonly #owners = new Map<string, Loading>();
  #count = 0;
  #entering: Loading | undefined;
  #turn: Promise<unknown> | undefined;

  /** One after the other: what is imported meanwhile belongs to whoever imports. */
  async import<T>(entry: URL, admit: Admit, run: (specifier: string) => Promise<T>) {
    if (this.#turn === undefined) registerHooks({ resolve: this.#resolve, load: this.#load });
    const before = this.#turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#turn = promise;
    await before;
    const loading = this.#begin(entry, admit);
    const known = new Set(this.#kept.keys());
    try {
      const exports = await run(loading.specifier);
      return { exports, modules: { files: loading.files, deciding: loading.deciding } };
    } catch (thrown) {
      // What failed is evaluated again the next time, when it may be mended.
      for (const address of loading.has)
        if (!known.has(address) && this.#kept.get(address)?.once !== true) this.#newest.delete(onDisk(address));
      throw thrown;
    } finally {
      // What it would go on to import is late, whenever that is.
      loading.over = true;
      this.#entering = undefined;
      resolve();
    }
  }

  #begin(entry: URL, admit: Admit): Loading {
    const loading: Loading = {
      specifier: this.#marked(entry.href),
      admit,
      isInstalled: installedBeside(fileURLToPath(entry)),
      files: new Map(),
      deciding: new Set(),
      has: new Set(),
      start: "",
      over: false,
    };
    this.#entering = loading;
    return loading;
  }

  readonly #resolve: Resolve = (specifier, context, next) => {
    const required = context.conditions.includes("require");
    const from = context.parentURL === undefined ? undefined : this.#parent(context.parentURL, required);
    const isEntry = specifier === this.#entering?.specifier;
    const loading = isEntry ? this.#entering : from === undefined ? undefined : this.#owners.get(from);
    if (loading === undefined) return next(specifier, context);
    const found = resolveOurs(specifier, context, next);
    if (!isEntry && isOurs(specifier)) return found;
    const address = onDisk(found.url);
    if (!/^(?:file|data):/.test(address)) return found;
    // Where a link took the entry's place, what that leads to is what would be evaluated.
    if (isEntry) loading.start = address;
    else this.#lookedFor(specifier, from, address, loading);
    const url = this.#place(address, loading, required);
    if (from !== undefined && !isEntry) this.#kept.get(from)?.imports.add(url);
    return { ...found, url };
  };

  /** A query makes two modules of a file; `require` and CommonJS forget it, and mean the one that was loaded last. */
  #parent(url: string, required: boolean): string {
    const address = withoutFragment(url);
    const byFile = required || !this.#owners.has(address) ? this.#lastOf.get(ofFile(address)) : undefined;
    return byFile ?? address;
  }

  /** A name is looked up in packages, or in the manifest that gives the importing file its names. */
  #lookedFor(specifier: string, from: string | undefined, address: string, { deciding, isInstalled }: Loading): void {
    if (/^(?:[./]|file:|data:)/.test(specifier) || from?.startsWith("file:") !== true) return;
    const lookedIn = this.#kept.get(from)?.lookedIn;
    for (const folder of foldersAbove(fileURLToPath(from))) {
      const places = [join(folder, "node_modules")];
      if (!isInstalled(fileURLToPath(address))) places.push(join(folder, "package.json"));
      for (const place of places) {
        deciding.add(place);
        lookedIn?.add(place);
      }
    }
  }

  /** The address to evaluate a file at: where that was done, while it and its imports are as they were, else a new one. */
  #place(address: string, loading: Loading, required: boolean): string {
    const newest = this.#newest.get(address);
    if (newest !== undefined && (loading.has.has(newest) || this.#isAsItWas(newest))) {
      this.#admit(newest, loading);
      return newest;
    }
    const again = this.#taken.has(address) && !this.#isFixed(address, loading);
    this.#taken.add(address);
    if (again && required) throw onlyOnce(address);
    const url = again ? this.#marked(address) : address;
    this.#owners.set(url, loading);
    // Code in an address of its own is part of the text it stands in, but what it imports is not.
    if (address.startsWith("data:") && !this.#kept.has(url)) this.#keep(url, {}, loading);
    return url;
  }

  readonly #load: Load = (url, context, next) => {
    const address = withoutFragment(url);
    const loading = this.#owners.get(address);
    if (loading === undefined || !address.startsWith("file:")) return next(url, context);
    const file = fileURLToPath(address);
    loading.deciding.add(file);
    if (this.#isFixed(onDisk(address), loading)) {
      this.#keep(address, { file }, loading);
      return next(url, context);
    }
    const bytes = readFileSync(file);
    const digest = hash("sha256", bytes);
    loading.admit({ file, digest, late: loading.over });
    loading.files.set(file, digest);
    const { source, ...loaded } = next(url, context);
    const once = loaded.format?.startsWith("commonjs") === true;
    if (once && address !== onDisk(address)) throw onlyOnce(address);
    this.#keep(address, { file, digest, once }, loading);
    // What was admitted is what is evaluated, also when the file was changed in between.
    if (typeof source === "string") return { ...loaded, source: bytes.toString("utf8") };
    return { ...loaded, source: source == null ? source : bytes };
  };

  #keep(address: string, of: Omit<Kept, "imports" | "lookedIn">, loading: Loading): void {
    this.#kept.set(address, { ...of, imports: new Set(), lookedIn: new Set() });
    this.#newest.set(onDisk(address), address);
    this.#lastOf.set(ofFile(address), address);
    this.#owners.set(address, loading);
    loading.has.add(address);
  }

  /** Asks about a module that was evaluated earlier, and about all that it imports. */
  #admit(address: string, loading: Loading): void {
    const kept = this.#kept.get(address);
    if (loading.has.has(address) || kept === undefined) return;
    const { file, digest, imports, lookedIn } = kept;
    if (file !== undefined && digest !== undefined) {
      loading.admit({ file, digest, late: loading.over });
      loading.files.set(file, digest);
    }
    loading.has.add(address);
    this.#owners.set(address, loading);
    for (const path of file === undefined ? lookedIn : [file, ...lookedIn]) loading.deciding.add(path);
    for (const one of imports) this.#admit(one, loading);
  }

  #isAsItWas(address: string, seen = new Set<string>()): boolean {
    if (seen.has(address)) return true;
    seen.add(address);
    const kept = this.#kept.get(address);
    if (kept === undefined) return false;
    const { file, digest, imports } = kept;
    if (file !== undefined && digest !== undefined && digestNow(file) !== digest) return false;
    return [...imports].every((one) => this.#isAsItWas(one, seen));
  }

  /** Files of installed packages are neither digested nor evaluated twice; the entry may lie in one. */
  #isFixed(address: string, { start, isInstalled }: Loading): boolean {
    return address !== start && address.startsWith("file:") && isInstalled(fileURLToPath(address));
  }

  #marked(address: string): string {
    this.#count += 1;
    return `${address}${address.includes("?") ? "&" : "?"}sluice-load=${this.#count}`;
  }
}

const MODULES = new LoadedCode();

function onlyOnce(address: string): SluiceError {
  return new SluiceError(
    "Validation",
    "pipeline_load_failed",
    `${fileURLToPath(address)} is CommonJS, and that or something it requires was changed since it was loaded; such code is loaded once in a process: start sluice again`,
  );
}

function digestNow(file: string): string | undefined {
  return existsSync(file) ? hash("sha256", readFileSync(file)) : undefined;
}

function withoutFragment(url: string): string {
  return url.replace(/#.*$/s, "");
}

/** An address without what tells one time it was evaluated from another. */
function onDisk(url: string): string {
  return withoutFragment(url).replace(/[?&]sluice-load=\d+$/, "");
}

function ofFile(address: string): string {
  return address.replace(/\?.*$/s, "");
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
