import type { Assignment, DoubleQuotedChild, Word, WordPart } from "unbash";
import { excerpt, unsupported } from "./refusal.ts";

/** One word of a command line, as far as its text tells. */
export interface ShellWord {
  /** After quote removal; in a dynamic word the expansions stand as they were written. */
  readonly text: string;
  /** Holds an expansion, so what it becomes is only known when it runs. */
  readonly dynamic: boolean;
  /** Literal text that every word it can become begins with; for a literal word, all of it. */
  readonly head: string;
  /** Becomes exactly one word, whatever its expansions give. */
  readonly single: boolean;
  /** The folder below which every path it can become lies (before links); absent when the text does not tell. */
  readonly within?: string;
  /** A pipe that bash makes for `<(…)`: a path, but none that a reader of the text has to judge. */
  readonly pipe: boolean;
  /** Bash may put names of files in its place: it holds a glob, or an unquoted expansion that may become one. */
  readonly lists?: true;
}

/** Globs show which files there are, even to a command that only prints its words. */
export function listed(words: readonly ShellWord[]): readonly ShellWord[] {
  return words.filter((word) => word.lists === true);
}

export function literalWord(text: string): ShellWord {
  return { text, dynamic: false, head: text, single: true, pipe: false };
}

/** A word nobody can know before it runs; it may become any number of words. */
export function unknownWord(text: string): ShellWord {
  return { text, dynamic: true, head: "", single: false, pipe: false };
}

/** Whether the command it is given to could take it for an option. */
export function mayBeOption(word: ShellWord): boolean {
  return word.dynamic && (word.head === "" || word.head.startsWith("-"));
}

/** What follows the first `length` characters, which must be literal. */
export function tail(word: ShellWord, length: number): ShellWord {
  const text = word.text.slice(length);
  if (!word.dynamic) return literalWord(text);
  const lists = word.lists === true ? { lists: word.lists } : {};
  return { text, dynamic: true, head: word.head.slice(length), single: word.single, pipe: false, ...lists };
}

type Kind = "literal" | "glob" | "expansion";
interface Piece {
  readonly text: string;
  readonly kind: Kind;
  readonly many: boolean;
  /** It is quoted, or becomes a number. */
  readonly plain?: true;
}

/** Expansions that become digits: neither of these is ever a glob. */
const NUMBER = /^\$(?:[?#$!]|\{#\w+\}|\(\([\s\S]*\)\))$/;
const BRACES_ONLY = /^[^*?[$`~\\]*$/;

const literal = (text: string): Piece => ({ text, kind: "literal", many: false });

export function readWord(word: Word): ShellWord {
  const parts = word.parts;
  if (parts === undefined) return assemble(bare(word.text, true, false));
  if (parts.map((part) => part.text).join("") !== word.text) throw unsupported(`the word ${excerpt(word.text)}`);
  const only = parts[0];
  if (parts.length === 1 && only?.type === "ProcessSubstitution") {
    return { text: word.text, dynamic: true, head: "/", single: true, pipe: true };
  }
  const braces = /[,]|\.\./.test(word.text);
  return assemble(parts.flatMap((part, index) => pieces(part, index === 0, index + 1 < parts.length, braces)));
}

/** `export A=b`: the assignment as the one word the command receives. */
export function readAssignmentWord(assignment: Assignment): ShellWord {
  const value = assignment.value;
  if (value.type === "ArrayValue" || assignment.index !== undefined) return unknownWord(assignment.text);
  const name = `${assignment.name}${assignment.append === true ? "+=" : "="}`;
  const read = readWord(value);
  return { ...read, text: name + read.text, head: name + read.head, pipe: false };
}

function pieces(part: WordPart, first: boolean, followed: boolean, braces: boolean): readonly Piece[] {
  switch (part.type) {
    case "Literal":
      return bare(part.text, first, followed, braces);
    case "SingleQuoted":
      return [literal(part.text.slice(1, -1))];
    case "DoubleQuoted":
      return part.parts.map((child, index) => quoted(child, index + 1 < part.parts.length));
    case "AnsiCQuoted":
      return [ansi(part.text)];
    case "Glob": {
      const plain = part.parts === undefined || part.parts.every((inner) => inner.type === "Literal");
      return [{ text: part.text, kind: plain ? "glob" : "expansion", many: true }];
    }
    case "ExtendedGlob":
      // Bash without extglob, which is how it starts, reads the parentheses as syntax.
      throw unsupported(`the extended pattern ${excerpt(part.text)}`);
    case "LocaleString":
      return [{ text: part.text, kind: "expansion", many: true, plain: true }];
    case "SimpleExpansion":
    case "ParameterExpansion":
    case "CommandExpansion":
    case "ArithmeticExpansion":
    case "ProcessSubstitution":
    case "BraceExpansion": {
      const plain = (part.type === "BraceExpansion" ? BRACES_ONLY : NUMBER).test(part.text);
      return [{ text: part.text, kind: "expansion", many: true, ...(plain ? { plain } : {}) }];
    }
  }
}

function quoted(child: DoubleQuotedChild, followed: boolean): Piece {
  if (child.type !== "Literal") {
    // "$@" and "${a[@]}" become as many words as they hold, also between quotes.
    return { text: child.text, kind: "expansion", many: /[@!]/.test(child.text), plain: true };
  }
  const value = child.text.replace(/\\([$`"\\\n])/g, (_, escaped: string) => (escaped === "\n" ? "" : escaped));
  const plain = child.text.replace(/\\[\s\S]/g, "");
  if (value !== child.value || /\$[A-Za-z0-9_@*#?$!{([-]|`/.test(plain) || (followed && plain.endsWith("$"))) {
    throw unsupported(`the quoted text ${excerpt(child.text)}`);
  }
  return literal(value);
}

/** Only the escapes that every version of bash reads alike; any other leaves the word unknown. */
function ansi(text: string): Piece {
  const body = text.slice(2, -1);
  if (!/^(?:[^\\]|\\[nt\\'"])*$/.test(body)) return { text, kind: "expansion", many: false, plain: true };
  const named: Readonly<Record<string, string>> = { n: "\n", t: "\t" };
  return literal(body.replace(/\\([\s\S])/g, (_, escaped: string) => named[escaped] ?? escaped));
}

/** Unquoted text: backslashes, and the expansions that have no sign of their own (`~`, globs, braces). */
function bare(text: string, first: boolean, followed: boolean, braces = /[,]|\.\./.test(text)): readonly Piece[] {
  const found: Piece[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    const next = text.charAt(at + 1);
    if (character === "\\") {
      at++;
      if (next !== "\n") found.push(literal(next === "" ? "\\" : next));
      continue;
    }
    if (/[\s'"`()<>|&;]/.test(character)) throw unsupported(`the word ${excerpt(text)}`);
    if (character === "$" && (next === "" ? followed : /[A-Za-z0-9_@*#?$!{(['"-]/.test(next))) {
      throw unsupported(`the word ${excerpt(text)}`);
    }
    const tilde = character === "~" && (at === 0 ? first : /[:=]/.test(text.charAt(at - 1)));
    if (tilde || (character === "{" && braces))
      found.push({ text: character, kind: "expansion", many: true, plain: true });
    else if (/[*?[]/.test(character) && text !== "[") found.push({ text: character, kind: "glob", many: true });
    else found.push(literal(character));
  }
  return found;
}

function assemble(found: readonly Piece[]): ShellWord {
  const text = found.map((piece) => piece.text).join("");
  const firstDynamic = found.findIndex((piece) => piece.kind !== "literal");
  if (firstDynamic === -1) return literalWord(text);
  const dynamic = found.filter((piece) => piece.kind !== "literal");
  const known = found
    .slice(0, firstDynamic)
    .map((piece) => piece.text)
    .join("");
  const onlyGlobs = dynamic.every((piece) => piece.kind === "glob");
  // Unquoted expansions are split, and only the first of the words they become begins with the text before them.
  const head = onlyGlobs || !dynamic.some((piece) => piece.many) ? known : "";
  const within = onlyGlobs ? folderOf(text, known) : undefined;
  return {
    text,
    dynamic: true,
    head,
    single: !dynamic.some((piece) => piece.many),
    pipe: false,
    ...(within === undefined ? {} : { within }),
    ...(dynamic.every((piece) => piece.plain === true) ? {} : { lists: true }),
  };
}

/** The folder a pattern stays under: none when a later part climbs out, or could match `..`. */
function folderOf(text: string, known: string): string | undefined {
  const slash = known.lastIndexOf("/");
  const rest = text.slice(slash + 1).split("/");
  if (rest.some((name) => name === ".." || (name.startsWith(".") && /[*?[]/.test(name)))) return undefined;
  if (slash === -1) return ".";
  return slash === 0 ? "/" : known.slice(0, slash);
}
