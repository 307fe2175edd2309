// What changed in a git repository, independent of its index, its filters and its settings.
import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "./programs.mjs";
import { JobError, oneLine } from "./runner.mjs";

// Settings of the repository that run programs or change what is read.
const PLAIN = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["core.attributesFile", "/dev/null"],
  ["core.autocrlf", "false"],
  ["core.safecrlf", "false"],
].flatMap(([name, value]) => ["-c", `${name}=${value}`]);

/** The top folder of the repository that holds a folder. */
export async function repositoryOf(folder) {
  const { code, stdout, stderr } = await runProgram(["git", "-C", folder, "rev-parse", "--show-toplevel"]);
  if (code === 0) return stdout.replace(/\n$/, "");
  throw new JobError(
    `git does not know ${folder} as part of a repository, so no one could see what the run changes: check it out first (${oneLine(stderr, 300)})`,
  );
}

/**
 * Snapshots of the files of a repository, as trees in a store of their own: the repository's index and objects stay as they are.
 * `folder` holds that store.
 */
export async function snapshotsOf(repository, folder) {
  const objects = join(folder, "objects");
  mkdirSync(objects, { recursive: true });
  const at = ["-C", repository, ...PLAIN];
  const plain = async (...args) => (await git([...at, ...args], {})).trim();
  const own = await plain("rev-parse", "--path-format=absolute", "--git-path", "objects");
  const emptyTree = await plain("hash-object", "-t", "tree", "/dev/null");
  const env = {
    GIT_INDEX_FILE: join(folder, "index"),
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: own,
    ...(await withoutFilters(at)),
    GIT_NO_LAZY_FETCH: "1",
    GIT_LITERAL_PATHSPECS: "1",
  };
  const here = (...args) => git([...at, ...args], env);
  return {
    /** The tree of the last commit; the empty tree if there is none. */
    committed: async () => {
      const { code, stdout } = await runProgram(["git", ...at, "rev-parse", "--verify", "--quiet", "HEAD^{tree}"]);
      return code === 0 ? stdout.trim() : emptyTree;
    },
    /** A tree of all files that git tracks or does not ignore; those of `base` count as tracked. */
    take: async (base) => {
      await here("read-tree", base === emptyTree ? "--empty" : base);
      await leaveSubmodules(here);
      await here("add", "--all");
      return (await here("write-tree")).trim();
    },
    /** The changed paths with A, M, D or T, and how many lines were added and removed; null for a binary file. */
    changed: async (before, after) => {
      const statuses = (await here("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after)).split(
        "\0",
      );
      const counts = await here("diff-tree", "-r", "-z", "--no-renames", "--numstat", before, after);
      const lines = new Map(counts.split("\0").filter(Boolean).map(countsOf));
      const files = [];
      for (let at = 0; at + 1 < statuses.length; at += 2) {
        const path = statuses[at + 1];
        files.push({ path, status: statuses[at], ...(lines.get(path) ?? { added: null, removed: null }) });
      }
      return files;
    },
    /** Writes the difference as a patch for `git apply`. */
    writePatch: async (before, after, file) => {
      const output = openSync(file, "w", 0o600);
      try {
        const how = ["--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
        await git([...at, "diff-tree", "-r", "-p", ...how, before, after], env, output);
      } finally {
        closeSync(output);
      }
    },
  };
}

/** Git looks into a submodule with the settings of that repository, which can name programs. */
async function leaveSubmodules(here) {
  const entries = (await here("ls-files", "--stage", "-z")).split("\0");
  const paths = entries
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));
  // A command line has a limited length.
  for (let at = 0; at < paths.length; at += 100)
    await here("update-index", "--skip-worktree", "--", ...paths.slice(at, at + 100));
}

/** Variables that turn off the filters of a repository: each would run its program on every file that it is for. */
async function withoutFilters(at) {
  const { code, stdout } = await runProgram([
    "git",
    ...at,
    "config",
    "-z",
    "--name-only",
    "--get-regexp",
    "^filter\\.",
  ]);
  const names = new Set(code === 0 ? stdout.split("\0").filter(Boolean) : []);
  const filters = new Set([...names].map((name) => name.slice(0, name.lastIndexOf("."))));
  const settings = [...filters].flatMap((filter) => [
    ...["clean", "smudge", "process"].map((program) => [`${filter}.${program}`, ""]),
    [`${filter}.required`, "false"],
  ]);
  const entries = settings.flatMap(([name, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, name],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(settings.length), ...Object.fromEntries(entries) };
}

async function git(args, env, output) {
  const { code, stdout, stderr } = await runProgram(["git", ...args], output === undefined ? { env } : { env, output });
  if (code !== 0) throw new JobError(`git cannot read the changes: ${oneLine(stderr, 500)}`);
  return stdout;
}

function countsOf(entry) {
  const [added, removed, ...path] = entry.split("\t");
  const number = (text) => (text === "-" ? null : Number(text));
  return [path.join("\t"), { added: number(added), removed: number(removed) }];
}
