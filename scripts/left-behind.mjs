// Lists files that tests could leave behind: in the user's home and in this folder.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Folders of a home in which programs keep files. */
const HOMES = ["", ".config", ".local", ".local/share", ".local/state", ".cache"];
/** Files of package managers and tools that checks run, and parent folders. */
const USUAL = new Set([
  ...HOMES,
  ".npm",
  ".cache/node",
  ".cache/pnpm",
  ".cache/biome",
  ".local/share/pnpm",
  ".local/state/pnpm",
]);
/** Files that checks create in this folder: packages, builds and reports. */
const MADE = /^(?:\.git|\.reports|node_modules|packages\/[^/]+\/(?:node_modules|dist)|packed|coverage)$|\.tsbuildinfo$/;

/** Every path that a test could leave, relative to `home` and `root`. */
export function pathsNow(root, home) {
  const ofHome = HOMES.flatMap((folder) => namesIn(join(home, folder)).map((name) => join(folder, name)));
  const own = ofHome.filter((path) => /sluice/i.test(path)).flatMap((path) => below(home, path, () => true));
  const kept = [...ofHome, ...own].filter((path) => !USUAL.has(path));
  return new Set([
    ...kept.map((path) => `~/${path}`),
    ...below(root, "", (path) => !MADE.test(path)).map((path) => `./${path}`),
  ]);
}

/** New paths; of a new folder, only the folder. */
export function appeared(before, now) {
  const fresh = [...now].filter((path) => !before.has(path)).sort((a, b) => (a < b ? -1 : 1));
  return fresh.filter((path) => !fresh.some((other) => path.startsWith(`${other}/`)));
}

function below(base, folder, wanted) {
  return entriesIn(join(base, folder)).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!wanted(path)) return [];
    return entry.isDirectory() ? [path, ...below(base, path, wanted)] : [path];
  });
}

function namesIn(folder) {
  return entriesIn(folder).map(({ name }) => name);
}

function entriesIn(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    // A file, or missing: a folder can disappear meanwhile.
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(thrown.code)) return [];
    throw thrown;
  }
}
