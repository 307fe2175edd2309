/**
 * Parses the plain command language: the subset of bash whose meaning is certain. Any construct that is not listed here is
 * outside the language. Nothing is expanded.
 */

import {
  type AndOr,
  type Assignment,
  type Command,
  type List,
  outside,
  type Pipeline,
  type Redirect,
  type SimpleCommand,
  type Subshell,
  type Word,
  type WordPart,
} from "./line.ts";

const MAX_DEPTH = 8;
const MAX_COMMANDS = 32;
/** Characters that end a word in bash. No other character does, whatever Unicode says. */
const ENDS_WORD = new Set([" ", "\t", "\n", ";", "&", "|", "<", ">", "(", ")"]);
const RESERVED = new Set(
  "if then else elif fi case esac for select while until do done in function time coproc { } ! [[ ]]".split(" "),
);

// What may stand at a position of a line.
const BLANKS = /(?:[ \t]+|\\\n|#[^\n]*)*/y;
const BLANKS_AND_NEWLINES = /(?:[ \t\n]+|\\\n|#[^\n]*)*/y;
/** Digits before `<` or `>` are a descriptor only if they form a whole word. */
const REDIRECTION = /([0-9]*)(>>|>&|>|<)|(&>>?)/y;
const LETTERS = /[^ \t\n;&|<>()'"\\`$]+/y;
const SINGLE_QUOTED = /'([^']*)'/y;
const IN_DOUBLE_QUOTES = /(?:[^"\\`$]+|\\.)+/sy;
/** Bash joins lines before it parses them, even within an operator or a name. */
const ESCAPED = /\\([^\n])/y;
const VARIABLE = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}|\?)/y;

const ASSIGNED = /^[A-Za-z_][A-Za-z0-9_]*(?:=|\+=|\[)/;

/** Parses a line. Throws OutsideLanguage. */
export function readLine(text: string): List {
  return new LineReader(text).line();
}

class LineReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #commands = 0;

  constructor(text: string) {
    this.#text = text;
  }

  line(): List {
    const list = this.#list();
    if (this.#at < this.#text.length) throw outside(`an unexpected ${this.#peek()}`);
    return list;
  }

  #peek(ahead = 0): string {
    return this.#text.charAt(this.#at + ahead);
  }

  #takes(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  #sees(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.#text);
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? undefined;
    this.#at += found?.[0].length ?? 0;
    return found;
  }

  /** Skips blanks, joined lines and comments, and newlines where a command may continue on the next line. */
  #skip(newlines: boolean): void {
    this.#match(newlines ? BLANKS_AND_NEWLINES : BLANKS);
  }

  #list(): List {
    const list: AndOr[] = [];
    for (;;) {
      this.#skip(true);
      if (this.#at >= this.#text.length || this.#peek() === ")") break;
      list.push(this.#andOr());
      this.#skip(false);
      if (this.#peek() === "\n") continue;
      if (!this.#takes(";")) break;
      this.#skip(false);
      if (this.#peek() === ";") throw outside("an empty command");
    }
    if (list.length === 0) throw outside("no command");
    return list;
  }

  #andOr(): AndOr {
    const parts: AndOr[number][] = [{ pipeline: this.#pipeline() }];
    for (;;) {
      this.#skip(false);
      const operator = this.#takes("&&") ? "&&" : this.#takes("||") ? "||" : undefined;
      if (operator === undefined) break;
      this.#skip(true);
      parts.push({ operator, pipeline: this.#pipeline() });
    }
    if (this.#peek() === "&") throw outside("a background process");
    return parts;
  }

  #pipeline(): Pipeline {
    const timed = this.#match(/time[ \t]/y) !== undefined;
    this.#skip(false);
    const negated = this.#match(/![ \t]/y) !== undefined;
    this.#skip(false);
    const commands: Pipeline["commands"][number][] = [];
    for (;;) {
      const command = this.#command();
      this.#skip(false);
      const isPipe = this.#peek() === "|" && this.#peek(1) !== "|";
      if (isPipe) this.#at += 1;
      const withErrors = isPipe && this.#takes("&");
      commands.push({ command, withErrors });
      if (!isPipe) return { negated, timed, commands };
      this.#skip(true);
    }
  }

  #command(): Command {
    this.#commands += 1;
    if (this.#commands > MAX_COMMANDS) throw outside(`more than ${MAX_COMMANDS} commands`);
    return this.#peek() === "(" ? this.#subshell() : this.#simple();
  }

  #subshell(): Subshell {
    this.#at += 1;
    if (this.#peek() === "(" || this.#peek() === "\\") throw outside("arithmetic");
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw outside("too many nested subshells");
    const list = this.#list();
    if (!this.#takes(")")) throw outside("a parenthesis that is not closed");
    this.#depth -= 1;
    const redirects: Redirect[] = [];
    for (this.#skip(false); this.#sees(REDIRECTION); this.#skip(false)) redirects.push(this.#redirect());
    const next = this.#peek();
    if (next !== "" && !"\n;&|)".includes(next)) throw outside("words after a subshell");
    return { kind: "subshell", list, redirects };
  }

  #simple(): SimpleCommand {
    const assignments: Assignment[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (this.#skip(false); ; this.#skip(false)) {
      if (this.#sees(REDIRECTION)) {
        redirects.push(this.#redirect());
        continue;
      }
      const next = this.#peek();
      if (next === "(") throw outside("a parenthesis inside a command");
      if (ENDS_WORD.has(next) || next === "") break;
      const word = this.#word();
      if (this.#sees(/[<>]/y) && isText(word, /^\{/)) throw outside("a descriptor in a variable");
      const first = words.length === 0;
      if (first && isText(word, ASSIGNED)) assignments.push(assignment(word));
      else if (first && RESERVED.has(plainText(word) ?? "")) throw outside(`the shell keyword ${plainText(word)}`);
      else words.push(word);
    }
    if (words.length === 0 && (assignments.length === 0 || redirects.length > 0)) throw outside("an empty command");
    return { kind: "simple", assignments, words, redirects };
  }

  #redirect(): Redirect {
    const [, digits = "", plain, both = ""] = this.#match(REDIRECTION) ?? [];
    const operator = plain ?? both;
    const isUsual = operator === "<" ? digits === "" || digits === "0" : /^[12]?$/.test(digits);
    if (!isUsual) throw outside("a redirection of an unusual form");
    if (operator === "<") {
      if (this.#peek() === "<") throw outside("a here-document or here-string");
      return { from: 0, to: this.#file("read") };
    }
    const from = digits === "2" ? 2 : 1;
    if (operator === ">&") {
      const descriptor = this.#match(/[12](?![^ \t\n;&|<>()])/y)?.[0];
      if (descriptor === undefined) throw outside("a redirection of an unusual form");
      return { from, to: { kind: "descriptor", descriptor: descriptor === "1" ? 1 : 2 } };
    }
    const to = this.#file(operator.endsWith(">>") ? "append" : "write");
    return { from: plain === undefined ? "both" : from, to };
  }

  #file(how: "read" | "write" | "append"): Redirect["to"] {
    if (this.#peek() === "(") throw outside("a process substitution");
    if ("|&<>".includes(this.#peek()) && this.#peek() !== "") throw outside("a redirection of an unusual form");
    this.#skip(false);
    if (this.#peek() === "" || ENDS_WORD.has(this.#peek())) throw outside("a redirection to nothing");
    return { kind: "file", word: this.#word(), how };
  }

  #word(): Word {
    const parts: WordPart[] = [];
    for (let next = this.#peek(); next !== "" && !ENDS_WORD.has(next); next = this.#peek()) {
      if (next === "'") parts.push(text(this.#match(SINGLE_QUOTED)?.[1], true, "a quote that is not closed"));
      else if (next === '"') parts.push(...this.#doubleQuoted());
      else if (next === "\\")
        parts.push(text(this.#match(ESCAPED)?.[1], true, "a line that ends in a backslash without a blank before it"));
      else if (next === "`") throw outside("a command substitution");
      else if (next === "$") parts.push(this.#dollar(false));
      else parts.push(text(this.#match(LETTERS)?.[0], false, `an unexpected ${next}`));
    }
    return parts;
  }

  #doubleQuoted(): readonly WordPart[] {
    this.#at += 1;
    const parts: WordPart[] = [];
    while (!this.#takes('"')) {
      if (this.#peek() === "`") throw outside("a command substitution");
      if (this.#peek() === "$") parts.push(this.#dollar(true));
      else {
        const letters = this.#match(IN_DOUBLE_QUOTES)?.[0].replace(/\\(?:([$`"\\])|\n)/g, "$1");
        parts.push(text(letters, true, "a quote that is not closed"));
      }
    }
    return parts.length === 0 ? [{ kind: "text", text: "", quoted: true }] : parts;
  }

  #dollar(quoted: boolean): WordPart {
    const found = this.#match(VARIABLE);
    if (found === undefined) this.#at += 1;
    const [, plain, braced] = found ?? [];
    if (this.#text.startsWith("\\\n", this.#at) && (found === undefined || plain !== undefined))
      throw outside("a name that continues on the next line");
    if (found !== undefined)
      return { kind: "variable", name: plain ?? braced ?? "?", quoted, braced: plain === undefined };
    const next = this.#peek();
    if (next === "{") throw outside("a parameter expansion");
    const isPlain = quoted ? next !== "" && /[\s"\\|/.,;:%=^&)<>+~\]}]/.test(next) : next === "" || ENDS_WORD.has(next);
    if (isPlain && next !== "(") return { kind: "text", text: "$", quoted: true };
    throw outside(next === "(" || next === "[" ? "a substitution" : `$${next}`);
  }
}

/** A part of a word; throws if there is no text. */
function text(found: string | undefined, quoted: boolean, otherwise: string): WordPart {
  if (found === undefined) throw outside(otherwise);
  return { kind: "text", text: found, quoted };
}

function assignment([first, ...rest]: Word): Assignment {
  const found = first?.kind === "text" ? /^([A-Za-z_]\w*)=(.*)$/s.exec(first.text) : null;
  if (found === null) throw outside("an assignment of an unusual form");
  const [, name = "", value = ""] = found;
  return { name, value: [{ kind: "text", text: value, quoted: false }, ...rest] };
}

/** The text of a word without quotes, backslashes and variables; undefined if it has any. */
function plainText(word: Word): string | undefined {
  return word.every((part) => part.kind === "text" && !part.quoted)
    ? word.map((part) => (part.kind === "text" ? part.text : "")).join("")
    : undefined;
}

/** Whether a word begins with unquoted text of this shape. */
function isText([first]: Word, shape: RegExp): boolean {
  return first?.kind === "text" && !first.quoted && shape.test(first.text);
}
