import { hash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { createRequire, isBuiltin, registerHooks } from "node:module";
import { basename, dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { SluiceError } from "@sluice/core";
import { foldersAbove } from "./project-paths.ts";

type Hooks = Parameters<typeof registerHooks>[0];
type Resolve = NonNullable<Hooks["resolve"]>;
type Load = NonNullable<Hooks["load"]>;

const OURS = /^@sluice\/(?:core|stages|sqlite|view|workflows|gateway|tui|cli)(?:\/[a-z-]+)?$/;

/** The conditions of `import` in the manifests of packages. */
const AS_IMPORT = ["node", "import", "module-sync", "node-addons"];

/** A file of a pipeline's or a config's own code; files of installed packages do not count. */
export interface ModuleFile {
  /** Absolute, links resolved. */
  readonly file: string;
  /** SHA-256. */
  readonly digest: string;
  /** Whether it was imported only after the pipeline was loaded: a run may have written it. */
  readonly late: boolean;
}

/** Throws for a file that must not be evaluated. */
export type Admit = (file: ModuleFile) => void;

/** The loaded code of a pipeline or a config. */
export interface WatchedModules {
  /** Digests of its own files, by path. */
  readonly files: ReadonlyMap<string, string>;
  /** Absolute paths that determine what is loaded next time: every file, and where packages are searched. */
  readonly deciding: ReadonlySet<string>;
}

/** One import of an entry file, with all its imports. */
interface Loading {
  /** The unique specifier of the entry. */
  readonly specifier: string;
  readonly admit: Admit;
  readonly isInstalled: (file: string) => boolean;
  readonly files: Map<string, string>;
  readonly deciding: Set<string>;
  /** Modules that were admitted or evaluated for this entry. */
  readonly modules: Set<string>;
  /** The entry, links resolved. */
  start: string;
  /** Whether loading has finished: later imports are late. */
  finished: boolean;
}

/** An evaluated module. */
interface KnownModule {
  /** Absent for `data:` modules. */
  readonly file?: string;
  /** Of the evaluated bytes; absent for files of installed packages. */
  readonly digest?: string;
  /** Addresses of its imports. */
  readonly imports: Set<string>;
  /** Where its imported packages and names were searched. */
  readonly lookedIn: Set<string>;
  /** CommonJS: `require` caches by file name and always returns the first version. */
  readonly once?: boolean;
}

/**
 * The user code that this process has loaded: one instance per process, since Node evaluates each address, and calls its hooks
 * for it, once per process.
 */
class LoadedCode {
  readonly #known = new Map<string, KnownModule>();
  /** The address of the latest evaluation, by the address on disk. */
  readonly #newest = new Map<string, string>();
  /** The same by file, without a query. */
  readonly #lastOf = new Map<string, string>();
  /** Addresses on disk that Node knows: each means its first evaluation. */
  readonly #taken = new Set<string>();
  /** The latest import of a module, by its address. */
  readonly #owners = new Map<string, Loading>();
  #count = 0;
  #entering: Loading | undefined;
  #turn: Promise<unknown> | undefined;
  #registered = false;
  /** Whether `locate` is running. */
  #locating = false;

  /**
   * Imports a file with `run`, and calls `admit` for each file of its code before it is evaluated, also for files that this
   * process evaluated earlier. A file is evaluated again if it or one of its imports changed. Imports that a pipeline's functions
   * make later are admitted, too, for the life of the process.
   */
  async import<T>(
    entry: URL,
    admit: Admit,
    run: (specifier: string) => Promise<T>,
  ): Promise<{ readonly exports: T; readonly modules: WatchedModules }> {
    this.#register();
    // Imports run one after the other, so that each module is attributed to its import.
    const previous = this.#turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#turn = promise;
    await previous;
    const loading: Loading = {
      specifier: this.#marked(entry.href),
      admit,
      isInstalled: installedBeside(fileURLToPath(entry)),
      files: new Map(),
      deciding: new Set(),
      modules: new Set(),
      start: "",
      finished: false,
    };
    this.#entering = loading;
    const known = new Set(this.#known.keys());
    try {
      const exports = await run(loading.specifier);
      return { exports, modules: loading };
    } catch (thrown) {
      // Evaluate failed modules again next time: they may have been fixed.
      for (const address of loading.modules)
        if (!known.has(address) && this.#known.get(address)?.once !== true) this.#newest.delete(onDisk(address));
      throw thrown;
    } finally {
      loading.finished = true;
      this.#entering = undefined;
      resolve();
    }
  }

  /**
   * The file that a specifier in a file's code means; undefined if there is none, for Sluice itself, and for installed packages.
   * Nothing is loaded.
   */
  locate(specifier: string, from: string): string | undefined {
    this.#register();
    if (isBuiltin(specifier) || OURS.test(specifier)) return undefined;
    this.#locating = true;
    try {
      const file = specifier.startsWith("file:")
        ? realpathSync(fileURLToPath(withoutFragment(ofFile(specifier))))
        : createRequire(from).resolve(ofFile(withoutFragment(specifier)));
      return installedBeside(from)(file) ? undefined : file;
    } catch {
      // The import fails, too, or is refused because trust does not cover it.
      return undefined;
    } finally {
      this.#locating = false;
    }
  }

  #register(): void {
    if (this.#registered) return;
    this.#registered = true;
    registerHooks({ resolve: this.#resolve, load: this.#load });
  }

  readonly #resolve: Resolve = (specifier, context, next) => {
    if (this.#locating) return resolveOurs(specifier, { ...context, conditions: AS_IMPORT }, next);
    // Node 22 gives `require` a set.
    const required = new Set(context.conditions).has("require");
    const from = context.parentURL === undefined ? undefined : this.#parent(context.parentURL, required);
    const isEntry = specifier === this.#entering?.specifier;
    const loading = isEntry ? this.#entering : from === undefined ? undefined : this.#owners.get(from);
    if (loading === undefined) return next(specifier, context);
    const found = resolveOurs(specifier, context, next);
    if (!isEntry && OURS.test(specifier) && found.url === ownUrl(specifier)) return found;
    const address = onDisk(found.url);
    if (!/^(?:file|data):/.test(address)) return found;
    // Node runs an addon from its file, without the bytes that were admitted.
    if (address.endsWith(".node") && !loading.isInstalled(fileURLToPath(address))) throw addonOutside(address);
    // If the entry is a link, its target is evaluated.
    if (isEntry) loading.start = address;
    else this.#noteSearch(specifier, from, address, loading);
    const url = this.#addressFor(address, loading, required);
    if (from !== undefined && !isEntry) this.#known.get(from)?.imports.add(url);
    return { ...found, url };
  };

  /** A query makes two modules of a file; `require` and CommonJS ignore it and mean the latest one. */
  #parent(url: string, required: boolean): string {
    const address = withoutFragment(url);
    const byFile = required || !this.#owners.has(address) ? this.#lastOf.get(ofFile(address)) : undefined;
    return byFile ?? address;
  }

  /** Notes where a bare specifier is searched: in packages, or in the manifest of the importing file. */
  #noteSearch(specifier: string, from: string | undefined, address: string, { deciding, isInstalled }: Loading): void {
    if (!isBare(specifier) || from?.startsWith("file:") !== true) return;
    const lookedIn = this.#known.get(from)?.lookedIn;
    for (const path of searched(fileURLToPath(from), !isInstalled(fileURLToPath(address)))) {
      deciding.add(path);
      lookedIn?.add(path);
    }
  }

  /** The address to import a file from: that of its latest evaluation if nothing changed since, else a new one. */
  #addressFor(address: string, loading: Loading, required: boolean): string {
    const newest = this.#newest.get(address);
    if (newest !== undefined && (loading.modules.has(newest) || this.#isUnchanged(newest))) {
      this.#admit(newest, loading);
      return newest;
    }
    const again = this.#taken.has(address) && !this.#isFixed(address, loading);
    this.#taken.add(address);
    if (again && required) throw onlyOnce(address);
    const url = again ? this.#marked(address) : address;
    this.#owners.set(url, loading);
    // A `data:` module is part of the file that contains it, but its imports are not.
    if (address.startsWith("data:") && !this.#known.has(url)) this.#record(url, {}, loading);
    return url;
  }

  readonly #load: Load = (url, context, next) => {
    const address = withoutFragment(url);
    const loading = this.#owners.get(address);
    if (loading === undefined || !address.startsWith("file:")) return next(url, context);
    const file = fileURLToPath(address);
    loading.deciding.add(file);
    if (this.#isFixed(onDisk(address), loading)) {
      this.#record(address, { file }, loading);
      return next(url, context);
    }
    const bytes = readFileSync(file);
    const digest = digestOf(bytes);
    loading.admit({ file, digest, late: loading.finished });
    loading.files.set(file, digest);
    const { source, ...loaded } = next(url, context);
    const once = loaded.format?.startsWith("commonjs") === true;
    if (once && address !== onDisk(address)) throw onlyOnce(address);
    this.#record(address, { file, digest, once }, loading);
    // A package that a function imports later is searched then, and no run may write it before.
    if ([...importsIn(bytes.toString("utf8"))].some(isOfAPackage))
      for (const path of searched(file, false)) {
        loading.deciding.add(path);
        this.#known.get(address)?.lookedIn.add(path);
      }
    // Evaluate the admitted bytes, even if the file has changed since.
    if (typeof source === "string") return { ...loaded, source: bytes.toString("utf8") };
    return { ...loaded, source: source == null ? source : bytes };
  };

  #record(address: string, of: Omit<KnownModule, "imports" | "lookedIn">, loading: Loading): void {
    this.#known.set(address, { ...of, imports: new Set(), lookedIn: new Set() });
    this.#newest.set(onDisk(address), address);
    this.#lastOf.set(ofFile(address), address);
    this.#owners.set(address, loading);
    loading.modules.add(address);
  }

  /** Admits a module that was evaluated earlier, and all its imports. */
  #admit(address: string, loading: Loading): void {
    const entry = this.#known.get(address);
    if (loading.modules.has(address) || entry === undefined) return;
    const { file, digest, imports, lookedIn } = entry;
    if (file !== undefined && digest !== undefined) {
      loading.admit({ file, digest, late: loading.finished });
      loading.files.set(file, digest);
    }
    loading.modules.add(address);
    this.#owners.set(address, loading);
    for (const path of file === undefined ? lookedIn : [file, ...lookedIn]) loading.deciding.add(path);
    for (const one of imports) this.#admit(one, loading);
  }

  #isUnchanged(address: string, seen = new Set<string>()): boolean {
    if (seen.has(address)) return true;
    seen.add(address);
    const entry = this.#known.get(address);
    if (entry === undefined) return false;
    const { file, digest, imports } = entry;
    if (file !== undefined && digest !== undefined && digestNow(file) !== digest) return false;
    return [...imports].every((one) => this.#isUnchanged(one, seen));
  }

  /** Files of installed packages are neither digested nor evaluated twice, except an entry in one. */
  #isFixed(address: string, { start, isInstalled }: Loading): boolean {
    return address !== start && address.startsWith("file:") && isInstalled(fileURLToPath(address));
  }

  #marked(address: string): string {
    this.#count += 1;
    return `${address}${address.includes("?") ? "&" : "?"}sluice-load=${this.#count}`;
  }
}

export const MODULES = new LoadedCode();

function isBare(specifier: string): boolean {
  return !/^(?:[./]|file:|data:)/.test(specifier);
}

/** Whether a name means an installed package, other than those that Sluice brings. */
function isOfAPackage(specifier: string): boolean {
  return isBare(specifier) && !specifier.startsWith("#") && !isBuiltin(specifier) && !OURS.test(specifier);
}

/** Where Node searches a package that a file imports, with the manifests if a name in one may be meant. */
function searched(file: string, withManifests: boolean): readonly string[] {
  return foldersAbove(dirname(file))
    .filter((folder) => basename(folder) !== "node_modules") // Node searches none inside of one.
    .flatMap((folder) => [join(folder, "node_modules"), ...(withManifests ? [join(folder, "package.json")] : [])]);
}

function onlyOnce(address: string): SluiceError {
  return new SluiceError(
    "Validation",
    "pipeline_load_failed",
    `${fileURLToPath(address)} is CommonJS, and it or one of its imports changed since it was loaded; CommonJS loads once per process: restart sluice`,
  );
}

function addonOutside(address: string): SluiceError {
  const message = `${fileURLToPath(address)} is a native addon, which trust cannot cover; use it from an installed package`;
  return new SluiceError("Validation", "folder_untrusted", message);
}

/** The digest of a file's content. */
export function digestOf(bytes: Buffer): string {
  return hash("sha256", bytes);
}

/** The digest of a file as it is now; undefined if there is none. */
export function digestNow(file: string): string | undefined {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? digestOf(readFileSync(file)) : undefined;
}

function withoutFragment(url: string): string {
  return url.replace(/#.*$/s, "");
}

/** An address without the marker of its evaluation. */
function onDisk(url: string): string {
  return withoutFragment(url).replace(/[?&]sluice-load=\d+$/, "");
}

function ofFile(address: string): string {
  return address.replace(/\?.*$/s, "");
}

/** Where this Sluice finds one of its own packages. `require` ignores the parent that `resolveOurs` sets, and may find another. */
function ownUrl(specifier: string): string | undefined {
  try {
    return import.meta.resolve(specifier);
  } catch {
    // A name that this Sluice cannot resolve is not one of its own.
    return undefined;
  }
}

/**
 * A pipeline uses the Sluice that runs it, even if its project has one installed: two copies would not recognise each other's
 * errors. It uses Sluice's Zod if the project has none.
 */
const resolveOurs: Resolve = (specifier, context, next) => {
  if (OURS.test(specifier)) return next(specifier, { ...context, parentURL: import.meta.url });
  try {
    return next(specifier, context);
  } catch (thrown) {
    const source = sourceOf(specifier, context.parentURL);
    if (source !== undefined) return next(source, context);
    if (specifier !== "zod" && !specifier.startsWith("zod/")) throw thrown;
    return next(specifier, { ...context, parentURL: import.meta.resolve("@sluice/stages") });
  }
};

/** The endings that a file may have where an import names it without one. */
const UNNAMED = [".ts", ".mts", ".js", ".mjs", "/index.ts", "/index.js"];

/**
 * The TypeScript source that a relative import means, as bundlers and tsc find it: `./tool` and `./tool.js` may stand for
 * `./tool.ts`. Undefined in installed packages, whose files are as they were published.
 */
function sourceOf(specifier: string, parent: string | undefined): string | undefined {
  if (!/^\.\.?(?:\/|$)/.test(specifier) || parent?.startsWith("file:") !== true) return undefined;
  const from = fileURLToPath(ofFile(withoutFragment(parent)));
  if (from.split(sep).includes("node_modules")) return undefined;
  const named = specifier.replace(/\.(?<kind>[mc]?)js$/, ".$<kind>ts");
  const candidates = named === specifier ? UNNAMED.map((ending) => `${specifier}${ending}`) : [named];
  return candidates.find((one) => statSync(join(dirname(from), one), { throwIfNoEntry: false })?.isFile() === true);
}

/** Whether a file belongs to an installed package; the package of the entry itself does not count. */
function installedBeside(entry: string): (file: string) => boolean {
  const [, own = ""] = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+[\\/])/s.exec(entry) ?? [];
  return (file) => (file.startsWith(own) ? file.slice(own.length) : file).split(sep).includes("node_modules");
}

/** A type-only import or export, which is not loaded. Its length is limited, so that no text takes long to search. */
const TYPES_ONLY = /\b(?:import|export)\s+type\s+(?!from\b)[\w${*][^;"'`]{0,2000}?\bfrom\s*(["'])[^"'\n]*\1/g;
/** The name in `from "…"`, `import "…"`, `import("…")`, `require("…")`, `resolve("…")` and `register("…")`. */
const SPECIFIERS =
  /\b(?:from|import)\s*(["'])(?<stated>[^"'\n]+)\1|\b(?<by>import|require|resolve|register)\s*\(\s*(["'`])(?<called>[^"'`$\n]+)\4/g;

/** The name in a `new URL("…", …)` that is relative to the code, by which workers are started. */
const ADDRESSES = /\bnew\s+URL\s*\(\s*(["'`])(?<address>[^"'`$\n]+)\1\s*,\s*import\s*\.\s*meta\s*\.\s*url\b/g;

/** The names in imports, without those of types only. */
export function specifiersIn(text: string): ReadonlySet<string> {
  const loaded = text.replaceAll(TYPES_ONLY, "");
  return new Set([...loaded.matchAll(SPECIFIERS)].map(({ groups }) => groups?.stated ?? groups?.called ?? ""));
}

/** The same without `resolve("…")`, which other code has too. */
function importsIn(text: string): ReadonlySet<string> {
  const loaded = text.replaceAll(TYPES_ONLY, "");
  const found = [...loaded.matchAll(SPECIFIERS)].filter(({ groups }) => groups?.by !== "resolve");
  return new Set(found.map(({ groups }) => groups?.stated ?? groups?.called ?? ""));
}

/** Names of files that are relative to the code's own. */
export function addressesIn(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(ADDRESSES)].map(({ groups }) => groups?.address ?? ""));
}
