import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { systemCode } from "../files/results.ts";
import type { Turns } from "../turns.ts";
import { compilePath, type PathMatcher } from "./glob-match.ts";

const MAX_BYTES = 1024 * 1024;
const MAX_RULE = 1_000;
/** Characters of all the rules that hold in one folder, far beyond any real project: each is tried on every entry. */
const MAX_RULES = 64 * 1024;

interface Rule {
  readonly negated: boolean;
  readonly foldersOnly: boolean;
  readonly match: PathMatcher;
  /** Characters of its pattern. */
  readonly length: number;
}

/** The rules of one file, for everything below its folder. */
interface Scope {
  /** Names from the top to that folder. */
  readonly depth: number;
  readonly rules: readonly Rule[];
}

/** What git would ignore at one place of a tree. Paths are names from the top of the repository. */
export interface Ignores {
  readonly top: string;
  readonly scopes: readonly Scope[];
  /** Characters of further rules that are still taken. */
  readonly room: number;
}

function parseGitignore(text: string, room: number): readonly Rule[] {
  const rules: Rule[] = [];
  let left = room;
  for (const line of text.replace(/^\uFEFF/, "").split("\n")) {
    const rule = line.length > MAX_RULE ? undefined : parseRule(line.replace(/\r$/, ""));
    if (rule === undefined) continue;
    left -= rule.length;
    if (left < 0) break;
    rules.push(rule);
  }
  return rules;
}

function parseRule(line: string): Rule | undefined {
  let pattern = withoutTrailingSpaces(line);
  if (pattern === "" || pattern.startsWith("#")) return undefined;
  const negated = pattern.startsWith("!");
  if (negated) pattern = pattern.slice(1);
  const foldersOnly = pattern.endsWith("/");
  if (foldersOnly) pattern = pattern.slice(0, -1);
  // A lone backslash at the end quotes nothing: git never matches such a pattern.
  if (pattern === "" || /(?:^|[^\\])(?:\\\\)*\\$/.test(pattern)) return undefined;
  const anchored = pattern.includes("/");
  const names = pattern.replace(/^\//, "").split("/");
  if (names.includes("")) return undefined;
  const { length } = pattern;
  if (anchored) return { negated, foldersOnly, length, match: compilePath(names) };
  const matchName = compilePath([pattern]);
  return { negated, foldersOnly, length, match: (path) => matchName(path.slice(-1)) };
}

function withoutTrailingSpaces(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === " ") {
    let quotes = 0;
    while (line[end - 2 - quotes] === "\\") quotes += 1;
    if (quotes % 2 === 1) break;
    end -= 1;
  }
  return line.slice(0, end);
}

/** Whether git would leave out this entry, given that it does not leave out the folder it is in. */
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

/** The rules that hold in `folder`: those of the repository around the workspace, down to and with its own. */
export function ignoresAt(folder: string, workspaceRoot: string): Ignores {
  const top = repositoryTop(workspaceRoot) ?? workspaceRoot;
  const exclude = readSmallFile(join(top, ".git", "info", "exclude"));
  let ignores = withRules({ top, scopes: [], room: MAX_RULES }, exclude, 0);
  const names = relative(top, folder)
    .split(sep)
    .filter((name) => name !== "");
  let at = top;
  ignores = ignoresIn(at, ignores, 0);
  for (const [index, name] of names.entries()) {
    at = join(at, name);
    ignores = ignoresIn(at, ignores, index + 1);
  }
  return ignores;
}

/** The rules around, with those of the folder's own .gitignore. */
export function ignoresIn(folder: string, around: Ignores, depth: number): Ignores {
  return withRules(around, readSmallFile(join(folder, ".gitignore")), depth);
}

function withRules(around: Ignores, text: string | undefined, depth: number): Ignores {
  if (text === undefined) return around;
  const rules = parseGitignore(text, around.room);
  const room = rules.reduce((left, rule) => left - rule.length, around.room);
  return { top: around.top, scopes: [...around.scopes, { depth, rules }], room };
}

/** The nearest folder upwards that holds `.git`. */
export function repositoryTop(from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (exists(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

function exists(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}

/** A regular file of moderate size, or undefined: links, pipes and what cannot be read give no rules. */
export function readSmallFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  }
  try {
    const stats = fstatSync(fd);
    return stats.isFile() && stats.size <= MAX_BYTES ? readFileSync(fd, "utf8") : undefined;
  } finally {
    closeSync(fd);
  }
}
