import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { exists, namesBetween } from "../files/paths.ts";
import { withFallback } from "../files/results.ts";
import type { Turns } from "../turns.ts";
import { compilePath, type PathMatcher } from "./glob-match.ts";

const MAX_BYTES = 1024 * 1024;
const MAX_RULE = 1_000;
/** Characters of all rules that apply in one folder; each rule is tried on every entry. */
const MAX_RULES = 64 * 1024;

interface Rule {
  readonly negated: boolean;
  readonly foldersOnly: boolean;
  readonly match: PathMatcher;
  /** Characters of its pattern. */
  readonly length: number;
}

/** The rules of one file, which apply below its folder. */
interface Scope {
  /** Number of names from the top to that folder. */
  readonly depth: number;
  readonly rules: readonly Rule[];
}

/** The ignore rules that apply in a folder. Paths are names from the top of the repository. */
export interface Ignores {
  readonly top: string;
  readonly scopes: readonly Scope[];
  /** Characters left for further rules. */
  readonly room: number;
}

function parseRule(line: string): Rule | undefined {
  // Spaces at the end do not count unless they are quoted.
  let pattern = line.replace(/(\\.)| +$/g, "$1");
  if (pattern === "" || pattern.startsWith("#")) return undefined;
  const negated = pattern.startsWith("!");
  if (negated) pattern = pattern.slice(1);
  const foldersOnly = pattern.endsWith("/");
  if (foldersOnly) pattern = pattern.slice(0, -1);
  // Git never matches a pattern that ends in an unpaired backslash.
  if (pattern === "" || /(?:^|[^\\])(?:\\\\)*\\$/.test(pattern)) return undefined;
  const anchored = pattern.includes("/");
  const names = pattern.replace(/^\//, "").split("/");
  if (names.includes("")) return undefined;
  const { length } = pattern;
  if (anchored) return { negated, foldersOnly, length, match: compilePath(names) };
  const matchName = compilePath([pattern]);
  return { negated, foldersOnly, length, match: (path) => matchName(path.slice(-1)) };
}

/** Whether git ignores this entry, given that it does not ignore its folder. */
export async function isIgnored(
  ignores: Ignores,
  names: readonly string[],
  isFolder: boolean,
  turns: Turns,
): Promise<boolean> {
  for (const scope of ignores.scopes.toReversed()) {
    const path = names.slice(scope.depth);
    const pathLength = path.join("/").length;
    for (const rule of scope.rules.toReversed()) {
      if (rule.foldersOnly && !isFolder) continue;
      const turn = turns.spend(rule.length * pathLength);
      if (turn !== undefined) await turn;
      if (rule.match(path)) return !rule.negated;
    }
  }
  return false;
}

/** The rules that apply in `folder`: those of the enclosing repository, down to the folder's own. */
export function ignoresAt(folder: string, workspaceRoot: string): Ignores {
  const top = repositoryTop(workspaceRoot) ?? workspaceRoot;
  const exclude = readSmallFile(join(top, ".git", "info", "exclude"));
  let ignores = ignoresIn(top, withRules({ top, scopes: [], room: MAX_RULES }, exclude, 0), 0);
  let current = top;
  for (const [index, name] of namesBetween(top, folder).entries()) {
    current = join(current, name);
    ignores = ignoresIn(current, ignores, index + 1);
  }
  return ignores;
}

/** Adds the rules of the folder's own .gitignore. */
export function ignoresIn(folder: string, around: Ignores, depth: number): Ignores {
  return withRules(around, readSmallFile(join(folder, ".gitignore")), depth);
}

function withRules(around: Ignores, text: string | undefined, depth: number): Ignores {
  if (text === undefined) return around;
  const rules: Rule[] = [];
  let { room } = around;
  for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
    const rule = line.length > MAX_RULE ? undefined : parseRule(line.replace(/\r$/, ""));
    if (rule === undefined) continue;
    if (rule.length > room) break;
    room -= rule.length;
    rules.push(rule);
  }
  return { top: around.top, scopes: [...around.scopes, { depth, rules }], room };
}

/** The nearest folder upwards that contains `.git`. */
export function repositoryTop(from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (exists(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** The text of a regular file of at most 1 MB; undefined otherwise, so links and pipes are never followed. */
export function readSmallFile(path: string): string | undefined {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const fd = withFallback(() => openSync(path, flags), undefined);
  if (fd === undefined) return undefined;
  try {
    const stats = fstatSync(fd);
    return stats.isFile() && stats.size <= MAX_BYTES ? readFileSync(fd, "utf8") : undefined;
  } finally {
    closeSync(fd);
  }
}
