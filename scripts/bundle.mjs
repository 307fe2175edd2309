// Bundles the packages: one file an entry, and chunks for what entries share or load later. Packages are external to each other.
import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { root } from "./setup.mjs";

/** Files that a package starts or loads by their path, beside the entries that its manifest exports. */
const STARTED = { cli: ["src/main.ts"] };
/** Files that run in a thread of their own, and must load nothing else. */
const THREADS = { stages: ["src/tools/search/grep-worker.ts"] };
/**
 * Chunks of modules that several files of a package need, by the entries that load them at once; the first that fits counts. The
 * first ones are of entries that must load little. Few files load faster than many small ones, but nothing may load what another
 * entry loads later.
 */
const CHUNKS = {
  cli: [
    ["start", ["main", "commands/app/options"]],
    ["looks", ["commands/runs/action"]],
    ["runs", ["runs/execute-run"]],
  ],
  core: [["shared", ["index", "host", "gate", "machine", "runtime"]]],
  stages: [
    ["secrets", ["environment-secrets"]],
    ["shared", ["index"]],
    ["command", ["runtime"]],
  ],
  view: [
    ["words", ["words"]],
    ["shared", ["index"]],
    ["lines", ["text"]],
  ],
  tui: [
    ["settings", ["user"]],
    ["shared", ["index"]],
  ],
};
/** Node decodes text that is all ASCII much faster; in strings and patterns an escape means the same. */
const asciiOnly = {
  name: "ascii-only",
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle))
      if (file.type === "chunk") file.code = file.code.replaceAll(/[^\0-\x7f]/g, escaped);
  },
};
const STAMP = ".bundled";
const packages = readdirSync(join(root, "packages")).filter((name) =>
  existsSync(join(root, "packages", name, "package.json")),
);

const stale = packages
  .map((name) => ({ name, stamp: stampOf(name) }))
  .filter((one) => readStamp(one.name) !== one.stamp);
if (stale.length > 0) await Promise.all(stale.map(bundle));

async function bundle({ name, stamp }) {
  const folder = join(root, "packages", name);
  const dist = join(folder, "dist");
  rmSync(join(dist, STAMP), { force: true });
  const threads = (THREADS[name] ?? []).map((file) => [file]);
  const written = await Promise.all([entriesOf(name), ...threads].map((files) => write(name, files)));
  removeOthers(folder, new Set(written.flat()));
  writeFileSync(join(dist, STAMP), stamp);
}

/** Bundles entries together, and returns the names of the files it wrote. */
async function write(name, files) {
  const { rolldown } = await import("rolldown");
  const folder = join(root, "packages", name);
  const built = await rolldown({
    cwd: folder,
    input: Object.fromEntries(files.map((file) => [basename(file, ".ts"), join(folder, file)])),
    // Only relative imports are a package's own; Windows has paths such as `C:\x`.
    external: /^(?![./]|[A-Za-z]:[\\/])/,
    platform: "node",
    transform: { target: "es2024" },
    onLog: (level, log) => {
      // Whether a module is loaded late is the business of who imports it.
      if (level === "warn" && log.code !== "INEFFECTIVE_DYNAMIC_IMPORT")
        throw new Error(`@sluice/${name}: ${log.message}`);
    },
  });
  const { output } = await built.write({
    dir: join(folder, "dist"),
    format: "esm",
    // Chunks lie beside the entries, because some find files of the package relative to themselves.
    entryFileNames: "[name].js",
    chunkFileNames: ({ name, moduleIds }) => `${chunkName(name, moduleIds)}-[hash].js`,
    codeSplitting: { groups: chunksOf(name) },
    // Comments are in the sources and the declarations; every process that loads a bundle would read them.
    comments: { jsdoc: false },
    plugins: [asciiOnly],
    sourcemap: true,
    // The package brings its sources.
    sourcemapExcludeSources: true,
  });
  await built.close();
  return output.map(({ fileName }) => fileName);
}

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The groups of modules that become chunks. A module is in the first group that has it, with everything that it imports. */
function chunksOf(name) {
  const chunks = CHUNKS[name] ?? [];
  return chunks.map(([chunk, entries], at) => {
    const files = entries.map((entry) => join(root, "packages", name, "src", `${entry}.ts`));
    const reached = new Set();
    const visit = (id, context) => {
      if (reached.has(id)) return;
      reached.add(id);
      for (const next of context.getModuleInfo(id)?.importedIds ?? []) visit(next, context);
    };
    const nameOf = (id, context) => {
      for (const file of files) visit(file, context);
      return reached.has(id) ? chunk : null;
    };
    return { debugName: chunk, name: nameOf, minShareCount: 2, priority: chunks.length - at };
  });
}

function entriesOf(name) {
  const { exports } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  const exported = Object.values(exports).flatMap((target) => target["@sluice/source"] ?? []);
  return [...exported, ...(STARTED[name] ?? [])];
}

/** Many commands have files of the same name. */
function chunkName(name, files) {
  const file = files.findLast((one) => basename(one).startsWith(`${name}.`));
  return name === "action" || name === "options" ? `${basename(dirname(file ?? "any"))}-${name}` : name;
}

/** Removes what an earlier build left: chunks, and declarations of sources that are gone. */
function removeOthers(folder, written) {
  const sources = new Set(
    globSync("**/*.{ts,tsx}", { cwd: join(folder, "src") }).map((file) => file.replace(/\.tsx?$/, "")),
  );
  for (const file of globSync("**/*.{js,js.map,d.ts,d.ts.map}", { cwd: join(folder, "dist") })) {
    const [, stem] = /^(.*)\.d\.ts(?:\.map)?$/.exec(file) ?? [];
    const isCurrent = stem === undefined ? written.has(file) : sources.has(stem);
    if (!isCurrent) rmSync(join(folder, "dist", file));
  }
}

/** Changes with every file that a bundle depends on. */
function stampOf(name) {
  const folder = join(root, "packages", name);
  const sources = globSync("src/**/*.{ts,tsx}", { cwd: folder }).sort();
  const files = [
    join(root, "package.json"),
    import.meta.filename,
    ...["package.json", "tsconfig.json", ...sources].map((file) => join(folder, file)),
  ];
  const hash = createHash("sha256");
  for (const file of files) hash.update(`\0${relative(root, file)}\0`).update(readFileSync(file));
  return hash.digest("hex");
}

function readStamp(name) {
  const file = join(root, "packages", name, "dist", STAMP);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}
