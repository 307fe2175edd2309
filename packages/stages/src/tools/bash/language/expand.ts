import { resolve } from "node:path";
import type { TextMask } from "@sluice/core";
import { entriesIn, exists } from "../../files/paths.ts";
import { compilePath } from "../../search/glob-match.ts";
import { outside, type Word, type WordPart } from "./line.ts";

/** Words of a line, after globs and braces are expanded. */
export const MOST_WORDS = 1_000;
/** Names that all globs of a line may look at. */
const MOST_ENTRIES = 10_000;
/** Folders that all globs of a line may read, which is slower than looking at a name. */
const MOST_FOLDERS = 200;
/** Characters of a file name on all common systems. */
const MAX_NAME = 255;

/** Represents `$?`, a number of up to three digits. Only builtins that print or compare it may have it. */
export const EXIT_CODE = "\u0002";

/** What words are expanded with. */
export interface ExpansionScene {
  /** Absolute folder in which the command runs. */
  readonly cwd: string;
  /** The environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables whose values must not be recorded, and so cannot be expanded. */
  readonly unrecorded: readonly string[];
  /** Finds known secrets, which must not be recorded either. */
  readonly secrets: Pick<TextMask, "text">;
  /** Variables that the line has set, whose values in `env` are outdated. */
  readonly changed: ReadonlySet<string>;
  /** Called with each folder that a glob lists; throws if it must not be listed. */
  readonly listed: (folder: string) => void;
  /** Entries and folders that globs have looked at. */
  readonly seen: { entries: number; folders: number };
}

/** One character; `plain` if it has no special meaning, such as a quoted one or part of a variable's value. */
interface Token {
  readonly text: string;
  readonly plain: boolean;
}

/** Expands braces, variables and globs in bash's order. Throws OutsideLanguage. */
export function expandWord(word: Word, scene: ExpansionScene): readonly string[] {
  const tokens = word.flatMap((part) => tokensOf(part, scene));
  const quotedEmpty = word.some((part) => part.quoted);
  const alternatives = braces(tokens);
  // Bash expands braces first, as text, so an unbraced variable name could become longer.
  if (alternatives.length > 1 && word.some((part) => part.kind === "variable" && !part.braced))
    throw outside("a variable beside braces");
  const words = alternatives.flatMap((alternative) => {
    if (alternative.length === 0 && (!quotedEmpty || alternatives.length > 1))
      throw outside("a word that may be empty");
    refuseTilde(alternative);
    // The command `[` is not a pattern.
    return alternative.some(isWildcard) && textOf(alternative) !== "["
      ? expandGlob(alternative, scene)
      : [textOf(alternative)];
  });
  if (words.length > MOST_WORDS) throw outside(`a word that stands for more than ${MOST_WORDS}`);
  for (const one of words) refuseSecret(one, scene);
  return words;
}

/** Throws for a text that must not be recorded, whatever it was made of: variables, names of files, quoted parts. */
export function refuseSecret(text: string, { secrets }: Pick<ExpansionScene, "secrets">): void {
  if (secrets.text(text) !== text) throw outside("a word or a path that holds a known secret");
}

/** Expands the word of a redirection or an assignment, where bash allows neither braces nor several words. */
export function expandSingle(word: Word, scene: ExpansionScene): string {
  const tokens = word.flatMap((part) => tokensOf(part, scene));
  if (tokens.some((token) => token.text === EXIT_CODE)) throw outside("$? in an unusual position");
  if (tokens.some((token) => isSpecial(token, "*?[{}~"))) throw outside("an expansion in a redirection or assignment");
  const text = textOf(tokens);
  refuseSecret(text, scene);
  return text;
}

function tokensOf(part: WordPart, scene: ExpansionScene): readonly Token[] {
  if (part.kind === "text") return [...part.text].map((text) => ({ text, plain: part.quoted }));
  if (part.name === "?") return [{ text: EXIT_CODE, plain: true }];
  const value = environmentValue(part.name, scene);
  // Unquoted, it could expand to several words, file names, or nothing.
  if (!part.quoted && !/^[^\s*?[\]\\{}~]+$/.test(value)) throw outside(`$${part.name} without quotes`);
  return [...value].map((text) => ({ text, plain: true }));
}

/** Variables whose values bash sets or changes before the line runs. */
const SET_BY_BASH =
  /^(?:_|BASH\w*|COMP_\w+|COPROC|DIRSTACK|EPOCH\w+|E?UID|FUNCNAME|GROUPS|HISTCMD|HOST(?:NAME|TYPE)|IFS|LINENO|LINES|COLUMNS|MACHTYPE|MAPFILE|OLDPWD|OPT(?:ARG|IND|ERR)|OSTYPE|PIPESTATUS|POSIXLY_CORRECT|PPID|PS\d|S?RANDOM|READLINE_\w+|REPLY|SECONDS|SHELLOPTS|SHLVL)$/;

function environmentValue(name: string, { env, changed, unrecorded, secrets }: ExpansionScene): string {
  if (unrecorded.includes(name))
    throw outside(`$${name}, whose value the stage sets; programs find it in their environment`);
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value === undefined || changed.has(name) || SET_BY_BASH.test(name))
    throw outside(`the value of $${name}, which is known only when the line runs`);
  if (secrets.text(value) !== value)
    throw outside(`$${name}, whose value holds a known secret; programs find it in their environment`);
  if (value.includes("\0") || value.includes(EXIT_CODE)) throw outside(`the value of $${name}`);
  return value;
}

function refuseTilde(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1];
    if (isSpecial(token, "~") && (before === undefined || isSpecial(before, "=:")))
      throw outside("a tilde; write the whole path");
  }
}

/** Whether a token is one of these signs, with its special meaning. */
function isSpecial(token: Token, signs: string): boolean {
  return !token.plain && signs.includes(token.text);
}

function isWildcard(token: Token): boolean {
  return isSpecial(token, "*?[");
}

function textOf(tokens: readonly Token[]): string {
  return tokens.map((token) => token.text).join("");
}

/** Expands braces to one or more words. Ranges are refused, since their length is unbounded. */
function braces(tokens: readonly Token[], depth = 0): readonly (readonly Token[])[] {
  if (depth > 16) throw outside("too many braces");
  const open = tokens.findIndex((token) => isSpecial(token, "{"));
  if (open === -1) return [tokens];
  const found = partsFrom(tokens, open);
  const isNested = tokens.slice(open + 1).some((token) => isSpecial(token, "{,"));
  if (found === undefined && isNested) throw outside("braces that do not close");
  if (found === undefined) return [tokens];
  const { parts, close } = found;
  if (parts.length === 1) {
    if (isNested || textOf(tokens.slice(open, close)).includes(".."))
      throw outside("a range or braces of an unusual form");
    return [tokens];
  }
  const before = tokens.slice(0, open);
  const after = braces(tokens.slice(close + 1), depth + 1);
  const words: (readonly Token[])[] = [];
  for (const part of parts)
    for (const middle of braces(part, depth + 1))
      for (const rest of after) {
        words.push([...before, ...middle, ...rest]);
        if (words.length > MOST_WORDS) throw outside(`a word that stands for more than ${MOST_WORDS}`);
      }
  return words;
}

/** What stands between the commas of a brace, and where it closes; undefined if it does not. */
function partsFrom(
  tokens: readonly Token[],
  open: number,
): { readonly parts: readonly (readonly Token[])[]; readonly close: number } | undefined {
  const parts: Token[][] = [[]];
  let depth = 1;
  for (let close = open + 1; close < tokens.length; close++) {
    const token = tokens[close];
    if (token === undefined) break;
    if (isSpecial(token, "{")) depth += 1;
    if (isSpecial(token, "}")) depth -= 1;
    if (depth === 0) return { parts, close };
    if (depth === 1 && isSpecial(token, ",")) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return undefined;
}

/** The files that a glob matches, sorted by bytes; the pattern itself if there is none, as in bash. */
function expandGlob(tokens: readonly Token[], scene: ExpansionScene): readonly string[] {
  const components = foldersOf(tokens);
  let paths: string[] = [""];
  for (const [at, component] of components.entries()) {
    const tail = at === components.length - 1 ? "" : "/";
    const namesIn = component.some(isWildcard) ? matcher(component, scene) : () => [textOf(component)];
    paths = paths.flatMap((path) => namesIn(path).map((name) => path + name + tail));
    if (paths.length > MOST_WORDS) throw outside(`a glob that matches more than ${MOST_WORDS} files`);
  }
  const found = paths.filter((path) => exists(resolve(scene.cwd, path) + (path.endsWith("/") ? "/." : "")));
  if (found.some((path) => path.startsWith("-")))
    throw outside("a glob that matches a name which begins with -; put ./ before it");
  if (found.length === 0) return [textOf(tokens)];
  return found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function foldersOf(tokens: readonly Token[]): readonly (readonly Token[])[] {
  const components: Token[][] = [[]];
  for (const token of tokens) {
    if (token.text === "/") components.push([]);
    else components.at(-1)?.push(token);
  }
  // After a link, `..` leads elsewhere than the text says.
  const names = components.map(textOf);
  if (names.some((name, at) => name === ".." && names.slice(0, at).some((before) => before !== "..")))
    throw outside("a glob with .. after a name");
  if (names.slice(1, -1).includes("")) throw outside("a glob that contains //");
  return components;
}

/** A pattern of one name in which only what bash does not read as text is special. */
function patternOf(component: readonly Token[]): string {
  if (component.length > MAX_NAME) throw outside("a glob that is longer than any file name");
  let pattern = "";
  for (let at = 0; at < component.length; at++) {
    const token = component[at];
    if (token === undefined) break;
    if (!isWildcard(token)) pattern += `\\${token.text}`;
    else if (token.text !== "[") pattern += token.text;
    else {
      const end = component.findIndex((one, index) => index > at + 1 && one.text === "]");
      const inside = component.slice(at + 1, end);
      if (end === -1 || !isPlainSet(inside)) throw outside("a bracket of an unusual form");
      pattern += `[${textOf(inside)}]`;
      at = end;
    }
  }
  // It depends on the version of bash whether `.*` matches `.` and `..`.
  if (/^\.[*?]*\.?[*?]*$/.test(textOf(component))) throw outside("a glob that may match . and ..");
  return pattern;
}

/** `[abc]`, `[a-z]` and `[!a]` of letters, digits and a few signs; all else depends on locale and version. */
function isPlainSet(tokens: readonly Token[]): boolean {
  const text = textOf(tokens);
  const isPlain = /^[!^]?(?:[0-9]-[0-9]|[A-Z]-[A-Z]|[a-z]-[a-z]|[A-Za-z0-9_.,])+$/.test(text);
  const isOrdered = [...text.matchAll(/(.)-(.)/g)].every(([, from = "", to = ""]) => from <= to);
  return isPlain && isOrdered && !tokens.some((token) => token.plain);
}

/** Lists the names in a folder that fit a component of a glob. */
function matcher(component: readonly Token[], scene: ExpansionScene): (folder: string) => readonly string[] {
  const fits = compilePath([patternOf(component)]);
  const showsHidden = component[0]?.text === ".";
  const takesOne = component.some((token) => isSpecial(token, "?["));
  return (parent) => {
    const names: string[] = [];
    const folder = resolve(scene.cwd, parent === "" ? "." : parent);
    scene.listed(folder);
    scene.seen.folders += 1;
    if (scene.seen.folders > MOST_FOLDERS) throw outside("globs that have to look at too many folders");
    for (const { name } of entriesIn(folder)) {
      scene.seen.entries += 1;
      if (scene.seen.entries > MOST_ENTRIES) throw outside("globs that have to look at too many files");
      if (name.startsWith(".") && !showsHidden) continue;
      // Bytes that are not text, or letters whose length depends on the locale.
      const isOdd = name.includes("\uFFFD") || (takesOne && /[^\0-\x7f]/.test(name));
      if (isOdd || /\p{Cc}/u.test(name)) throw outside("a glob over names that are not plain text");
      if (fits([name])) names.push(name);
    }
    return names;
  };
}
