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
const BLANK = new Set([" ", "\t"]);
/** Characters that end a word in bash. No other character does, whatever Unicode says. */
const ENDS_WORD = new Set([" ", "\t", "\n", ";", "&", "|", "<", ">", "(", ")"]);
const RESERVED = new Set(
  "if then else elif fi case esac for select while until do done in function time coproc { } ! [[ ]]".split(" "),
);
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
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

  /** Skips blanks, joined lines and comments, and newlines where a command may continue on the next line. */
  #skip(newlines: boolean): void {
    for (;;) {
      const next = this.#peek();
      if (BLANK.has(next) || (newlines && next === "\n")) this.#at += 1;
      else if (next === "\\" && this.#peek(1) === "\n") this.#at += 2;
      else if (next === "#") {
        const end = this.#text.indexOf("\n", this.#at);
        this.#at = end === -1 ? this.#text.length : end;
      } else return;
    }
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
    let negated = false;
    let timed = false;
    if (this.#keyword("time")) timed = true;
    if (this.#keyword("!")) negated = true;
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

  /** Consumes a reserved word. */
  #keyword(word: string): boolean {
    const end = this.#at + word.length;
    if (!this.#text.startsWith(word, this.#at) || !BLANK.has(this.#text.charAt(end))) return false;
    this.#at = end;
    this.#skip(false);
    return true;
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
    for (this.#skip(false); this.#atRedirect(); this.#skip(false)) redirects.push(this.#redirect());
    const next = this.#peek();
    if (next !== "" && !"\n;&|)".includes(next)) throw outside("words after a subshell");
    return { kind: "subshell", list, redirects };
  }

  #simple(): SimpleCommand {
    const assignments: Assignment[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (this.#skip(false); ; this.#skip(false)) {
      if (this.#atRedirect()) {
        redirects.push(this.#redirect());
        continue;
      }
      const next = this.#peek();
      if (next === "(") throw outside("a parenthesis inside a command");
      if (ENDS_WORD.has(next) || next === "") break;
      const word = this.#word();
      if (this.#atRedirect(true) && isText(word, /^\{/)) throw outside("a descriptor in a variable");
      const first = words.length === 0;
      if (first && isText(word, ASSIGNED)) assignments.push(assignment(word));
      else if (first && RESERVED.has(plainText(word) ?? "")) throw outside(`the shell keyword ${plainText(word)}`);
      else words.push(word);
    }
    if (words.length === 0 && (assignments.length === 0 || redirects.length > 0)) throw outside("an empty command");
    return { kind: "simple", assignments, words, redirects };
  }

  /** Digits before `<` or `>` are a descriptor only if they form a whole word. */
  #atRedirect(joined = false): boolean {
    const rest = this.#text.slice(this.#at, this.#at + 8);
    return (joined ? /^[<>]/ : /^(?:[0-9]*[<>]|&>)/).test(rest);
  }

  #redirect(): Redirect {
    const digits = /^[0-9]*/.exec(this.#text.slice(this.#at, this.#at + 8))?.[0] ?? "";
    this.#at += digits.length;
    if (digits === "" && this.#takes("&>")) {
      if (this.#peek() === "&") throw outside("a redirection of an unusual form");
      return { from: "both", to: this.#file(this.#takes(">") ? "append" : "write") };
    }
    if (this.#takes(">&")) {
      const descriptor = this.#peek();
      const after = this.#peek(1);
      if ((descriptor !== "1" && descriptor !== "2") || (after !== "" && !ENDS_WORD.has(after)))
        throw outside("a redirection of an unusual form");
      this.#at += 1;
      return { from: outputOf(digits), to: { kind: "descriptor", descriptor: descriptor === "1" ? 1 : 2 } };
    }
    if (this.#takes(">>")) return { from: outputOf(digits), to: this.#file("append") };
    if (this.#takes(">")) return { from: outputOf(digits), to: this.#file("write") };
    if (digits !== "" && digits !== "0") throw outside("a redirection of an unusual form");
    this.#at += 1;
    if (this.#peek() === "<") throw outside("a here-document or here-string");
    return { from: 0, to: this.#file("read") };
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
    for (;;) {
      const next = this.#peek();
      if (next === "" || ENDS_WORD.has(next)) break;
      if (next === "'") parts.push(this.#singleQuoted());
      else if (next === '"') parts.push(...this.#doubleQuoted());
      else if (next === "\\") this.#escaped(parts);
      else if (next === "`") throw outside("a command substitution");
      else if (next === "$") parts.push(this.#dollar(false));
      else {
        let end = this.#at + 1;
        while (end < this.#text.length && !/[\s;&|<>()'"\\`$]/.test(this.#text.charAt(end))) end += 1;
        parts.push({ kind: "text", text: this.#text.slice(this.#at, end), quoted: false });
        this.#at = end;
      }
    }
    return parts;
  }

  #singleQuoted(): WordPart {
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end === -1) throw outside("a quote that is not closed");
    const text = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    return { kind: "text", text, quoted: true };
  }

  #escaped(parts: WordPart[]): void {
    const next = this.#peek(1);
    // Bash joins lines before it parses them, even within an operator or a name.
    if (next === "" || next === "\n") throw outside("a line that ends in a backslash without a blank before it");
    this.#at += 2;
    parts.push({ kind: "text", text: next, quoted: true });
  }

  #doubleQuoted(): readonly WordPart[] {
    this.#at += 1;
    const parts: WordPart[] = [];
    let text = "";
    for (;;) {
      const next = this.#peek();
      if (next === "") throw outside("a quote that is not closed");
      if (next === '"') break;
      if (next === "`") throw outside("a command substitution");
      if (next === "$") {
        if (text !== "") parts.push({ kind: "text", text, quoted: true });
        text = "";
        parts.push(this.#dollar(true));
        continue;
      }
      if (next === "\\" && '$`"\\\n'.includes(this.#peek(1)) && this.#peek(1) !== "") {
        if (this.#peek(1) !== "\n") text += this.#peek(1);
        this.#at += 2;
        continue;
      }
      text += next;
      this.#at += 1;
    }
    this.#at += 1;
    return [...parts, { kind: "text", text, quoted: true }];
  }

  #dollar(quoted: boolean): WordPart {
    this.#at += 1;
    const braced = this.#peek() === "{";
    if (braced) this.#at += 1;
    NAME.lastIndex = this.#at;
    const name = NAME.exec(this.#text)?.[0];
    if (name !== undefined) {
      this.#at += name.length;
      if (this.#text.startsWith("\\\n", this.#at)) throw outside("a name that continues on the next line");
      if (braced && !this.#takes("}")) throw outside("a parameter expansion");
      return { kind: "variable", name, quoted, braced };
    }
    if (braced) throw outside("a parameter expansion");
    if (this.#takes("?")) return { kind: "variable", name: "?", quoted, braced: true };
    const next = this.#peek();
    if (this.#text.startsWith("\\\n", this.#at)) throw outside("a name that continues on the next line");
    const isPlain = quoted ? next !== "" && /[\s"\\|/.,;:%=^&)<>+~\]}]/.test(next) : next === "" || ENDS_WORD.has(next);
    if (isPlain && next !== "(") return { kind: "text", text: "$", quoted: true };
    throw outside(`${next === "(" || next === "[" ? "a substitution" : `$${next}`}`);
  }
}

function outputOf(digits: string): 1 | 2 {
  if (digits !== "" && digits !== "1" && digits !== "2") throw outside("a redirection of an unusual form");
  return digits === "2" ? 2 : 1;
}

function assignment(word: Word): Assignment {
  const [first, ...rest] = word;
  const text = first?.kind === "text" ? first.text : "";
  const equals = text.indexOf("=");
  const name = text.slice(0, equals);
  if (equals === -1 || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw outside("an assignment of an unusual form");
  const value: Word = [{ kind: "text", text: text.slice(equals + 1), quoted: false }, ...rest];
  return { name, value };
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
