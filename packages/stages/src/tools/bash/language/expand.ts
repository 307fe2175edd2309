import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { entriesIn } from "../../files/paths.ts";
import { withFallback } from "../../files/results.ts";
import { matchWildcards } from "../../search/glob-match.ts";
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
    return alternative.some(isGlobCharacter) && !isBracketCommand(alternative)
      ? expandGlob(alternative, scene)
      : [textOf(alternative)];
  });
  if (words.length > MOST_WORDS) throw outside(`a word that stands for more than ${MOST_WORDS}`);
  return words;
}

/** Expands the word of a redirection or an assignment, where bash allows neither braces nor several words. */
export function expandSingle(word: Word, scene: ExpansionScene): string {
  const tokens = word.flatMap((part) => tokensOf(part, scene));
  if (tokens.some((token) => token.text === EXIT_CODE)) throw outside("$? in an unusual position");
  if (tokens.some((token) => isGlobCharacter(token) || (!token.plain && /[{}~]/.test(token.text))))
    throw outside("an expansion in a redirection or assignment");
  return textOf(tokens);
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

function environmentValue(name: string, { env, changed }: ExpansionScene): string {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value === undefined || changed.has(name) || SET_BY_BASH.test(name))
    throw outside(`the value of $${name}, which is known only when the line runs`);
  if (value.includes("\0") || value.includes(EXIT_CODE)) throw outside(`the value of $${name}`);
  return value;
}

function refuseTilde(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    if (token.plain || token.text !== "~") continue;
    const before = tokens[at - 1];
    if (before === undefined || (!before.plain && (before.text === "=" || before.text === ":")))
      throw outside("a tilde; write the whole path");
  }
}

function isGlobCharacter(token: Token): boolean {
  return !token.plain && (token.text === "*" || token.text === "?" || token.text === "[");
}

/** Whether a word is the command `[`. */
function isBracketCommand(tokens: readonly Token[]): boolean {
  return tokens.length === 1 && tokens[0]?.text === "[";
}

function textOf(tokens: readonly Token[]): string {
  return tokens.map((token) => token.text).join("");
}

/** Expands braces to one or more words. Ranges are refused, since their length is unbounded. */
function braces(tokens: readonly Token[], depth = 0): readonly (readonly Token[])[] {
  if (depth > 16) throw outside("too many braces");
  const open = tokens.findIndex(isOpen);
  if (open === -1) return [tokens];
  const close = closing(tokens, open);
  if (close === undefined) {
    if (tokens.slice(open + 1).some((token) => isOpen(token) || isComma(token)))
      throw outside("braces that do not close");
    return [tokens];
  }
  const parts = split(tokens.slice(open + 1, close));
  const inside = textOf(tokens.slice(open + 1, close));
  if (parts.length === 1) {
    if (inside.includes("..") || tokens.slice(open + 1).some((token) => isOpen(token) || isComma(token)))
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

function isOpen(token: Token): boolean {
  return !token.plain && token.text === "{";
}
function isComma(token: Token): boolean {
  return !token.plain && token.text === ",";
}

function closing(tokens: readonly Token[], open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    const token = tokens[at];
    if (token === undefined || token.plain) continue;
    if (token.text === "{") depth += 1;
    if (token.text === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return undefined;
}

function split(tokens: readonly Token[]): readonly (readonly Token[])[] {
  const parts: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (!token.plain && token.text === "{") depth += 1;
    if (!token.plain && token.text === "}") depth -= 1;
    if (depth === 0 && isComma(token)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

/** One piece of a name's pattern. */
type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "any" }
  | { readonly kind: "one"; readonly fits: (character: string) => boolean };

/** The files that a glob matches, sorted by bytes; the pattern itself if there is none, as in bash. */
function expandGlob(tokens: readonly Token[], scene: ExpansionScene): readonly string[] {
  const components = foldersOf(tokens);
  let paths: string[] = [""];
  for (const [at, component] of components.entries()) {
    const last = at === components.length - 1;
    const tail = last ? "" : "/";
    if (!component.some(isGlobCharacter)) {
      const name = textOf(component);
      paths = paths.map((path) => path + name + tail);
      continue;
    }
    const pieces = piecesOf(component);
    paths = paths.flatMap((path) => matching(path, pieces, scene).map((name) => path + name + tail));
    if (paths.length > MOST_WORDS) throw outside(`a glob that matches more than ${MOST_WORDS} files`);
  }
  const found = paths.filter((path) => isThere(resolve(scene.cwd, path), path.endsWith("/")));
  if (found.some((path) => path.startsWith("-")))
    throw outside("a glob that matches a name which begins with -; put ./ before it");
  return found.length === 0 ? [textOf(tokens)] : found.sort(byCharacters);
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

function piecesOf(component: readonly Token[]): readonly Piece[] {
  if (component.length > MAX_NAME) throw outside("a glob that is longer than any file name");
  const pieces: Piece[] = [];
  for (let at = 0; at < component.length; at++) {
    const token = component[at];
    if (token === undefined) break;
    if (token.plain || !isGlobCharacter(token)) pieces.push({ kind: "text", text: token.text });
    else if (token.text === "*") pieces.push({ kind: "any" });
    else if (token.text === "?") pieces.push({ kind: "one", fits: () => true });
    else {
      const end = component.findIndex((one, index) => index > at + 1 && one.text === "]");
      const inside = component.slice(at + 1, end);
      if (end === -1) throw outside("a bracket of an unusual form");
      pieces.push({ kind: "one", fits: setOf(inside) });
      at = end;
    }
  }
  const first = component[0];
  // It depends on the version of bash whether `.*` matches `.` and `..`.
  if (first?.text.startsWith(".") === true && /^\.?$/.test(textOf(component.slice(1)).replace(/[*?]/g, "")))
    throw outside("a glob that may match . and ..");
  return pieces;
}

/** `[abc]`, `[a-z]` and `[!a]` of letters, digits and a few signs; all else depends on locale and version. */
function setOf(tokens: readonly Token[]): (character: string) => boolean {
  const text = textOf(tokens);
  if (tokens.some((token) => token.plain)) throw outside("a bracket of an unusual form");
  const [, negated, body] = /^([!^]?)((?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_.,])+)$/.exec(text) ?? [];
  if (body === undefined) throw outside("a bracket of an unusual form");
  const ranges = [...body.matchAll(/(.)-(.)|(.)/g)].map(([, from, to, one]) => [from ?? one ?? "", to ?? one ?? ""]);
  if (ranges.some(([from = "", to = ""]) => kindOf(from) !== kindOf(to) || from > to))
    throw outside("a bracket of an unusual form");
  return (character) =>
    ranges.some(([from = "", to = ""]) => character >= from && character <= to) !== (negated !== "");
}

function kindOf(character: string): string {
  if (/[0-9]/.test(character)) return "digit";
  if (/[A-Z]/.test(character)) return "upper";
  return /[a-z]/.test(character) ? "lower" : character;
}

function matching(parent: string, pieces: readonly Piece[], scene: ExpansionScene): readonly string[] {
  const [first] = pieces;
  const showsHidden = first?.kind === "text" && first.text.startsWith(".");
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
    const odd = name.includes("\uFFFD") || (/[^\0-\x7f]/.test(name) && pieces.some(({ kind }) => kind === "one"));
    if (odd || /\p{Cc}/u.test(name)) throw outside("a glob over names that are not plain text");
    if (fits(name, pieces)) names.push(name);
  }
  return names;
}

function fits(name: string, pieces: readonly Piece[]): boolean {
  const characters = [...name];
  return matchWildcards(
    pieces.length,
    characters.length,
    (at) => pieces[at]?.kind === "any",
    (at, index) => {
      const piece = pieces[at];
      const character = characters[index] ?? "";
      if (piece?.kind === "text") return piece.text === character;
      return piece?.kind === "one" && piece.fits(character);
    },
  );
}

function byCharacters(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function isThere(path: string, asFolder: boolean): boolean {
  return withFallback(() => lstatSync(asFolder ? `${path}/.` : path) !== undefined, false);
}
