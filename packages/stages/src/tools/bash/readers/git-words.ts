import { relative, resolve } from "node:path";
import { exists } from "../../files/paths.ts";
import type { Options } from "./options.ts";

const NAME = String.raw`(?:@|[\p{L}\p{N}_][\p{L}\p{N}_./+#=,%@-]*)`;
const SUFFIX = String.raw`(?:[~^][0-9]*|@\{(?:-?[0-9]+|u|upstream|push)\}|\^\{(?:commit|tree|tag)?\})`;
const SINGLE = new RegExp(`^(?:${NAME}|(?=@\\{))${SUFFIX}*$`, "u");
const WITH_PATH = new RegExp(`^(${NAME}${SUFFIX}*):([^:\\0]*)$`, "su");

/** A word that names commits, or a path in one of them. */
export interface Revision {
  /** As written. */
  readonly text: string;
  /** The same, but an error for anything except commits; undefined if that cannot be expressed. */
  readonly commit: string | undefined;
  /** In `REV:path`; relative to the top of the work tree unless it begins with a dot. */
  readonly path: string | undefined;
}

/** Parses names with `~N`, `^N`, `@{N}`, `@{upstream}` and `^{commit}`, their ranges, and `REV:path`; no searches or dates. */
export function parseRevision(text: string): Revision | undefined {
  const range = /^(.*?)(\.\.\.?)(.*)$/s.exec(text);
  const path = WITH_PATH.exec(text)?.[2];
  if (path !== undefined && (range === null || range.index + (range[1] ?? "").length > text.indexOf(":")))
    return { text, commit: undefined, path };
  if (range !== null) {
    const [, from = "", dots = "", to = ""] = range;
    const ends = [from, to].map((end) => (end === "" ? { commit: "" } : single(end)));
    if (text === dots || ends.includes(undefined)) return undefined;
    const [first, second] = ends.map((end) => end?.commit);
    const known = first !== undefined && second !== undefined;
    return { text, commit: known ? `${first}${dots}${second}` : undefined, path: undefined };
  }
  if (text.startsWith("^"))
    return single(text.slice(1)) === undefined ? undefined : { text, commit: text, path: undefined };
  return single(text);
}

function single(text: string): Revision | undefined {
  if (!SINGLE.test(text) || text.includes("..")) return undefined;
  const commit = text.endsWith("^{commit}") ? text : /\^\{(?:tree|tag)?\}$/.test(text) ? undefined : `${text}^{commit}`;
  return { text, commit, path: undefined };
}

/** Operands of a git command that git reads in the same way when `--` separates them. */
export interface GitOperands {
  readonly revisions: readonly Revision[];
  readonly pathspecs: readonly string[];
  /** The pathspecs that are not exclusions. */
  readonly named: readonly string[];
}

/** Before `--` only revisions are allowed; without it, existing files and words that cannot be revisions are paths. */
export function splitOperands(operands: readonly string[], options: Options, cwd: string): GitOperands | string {
  const revisions: Revision[] = [];
  const pathspecs: string[] = [];
  const firstAfter = operands.length - options.afterDashes;
  for (const [at, word] of operands.entries()) {
    const isPath = at >= firstAfter || (!options.hasDashes && (pathspecs.length > 0 || looksLikePath(word, cwd)));
    if (isPath) {
      if (word === "" || (word.startsWith(":") && !isExclusion(word))) return `the pathspec ${word} is not plain`;
      pathspecs.push(word);
      continue;
    }
    const revision = parseRevision(word);
    if (revision === undefined) return `${word} is neither a plain revision nor an existing file`;
    revisions.push(revision);
  }
  return { revisions, pathspecs, named: pathspecs.filter((one) => !isExclusion(one)) };
}

function looksLikePath(word: string, cwd: string): boolean {
  if (/[*?[]/.test(word) || isExclusion(word)) return true;
  return !word.includes("\0") && exists(resolve(cwd, word));
}

/** Exclusions can only reduce what is shown. */
function isExclusion(pathspec: string): boolean {
  return /^:(?:[!^]|\(exclude(?:,(?:top|literal|icase))*\))/.test(pathspec);
}

/** The path that a pathspec covers. Git reads `..` as text, so links before it are not followed. */
export function pathOf(pathspec: string, cwd: string, from: string): string {
  const plain = cwd === from && !pathspec.split("/").includes("..") ? pathspec : resolve(cwd, pathspec);
  const magic = plain.search(/[*?[\\]/);
  return magic === -1 ? plain : plain.slice(0, plain.lastIndexOf("/", magic) + 1) || ".";
}

/** The pathspec of a folder, relative to another. */
export function pathspecOf(folder: string, cwd: string): string {
  return relative(cwd, folder) || ".";
}
