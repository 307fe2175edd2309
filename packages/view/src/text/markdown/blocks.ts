import { clean, headOf } from "../clean.ts";

/** Maximum UTF-16 units and lines of a parsed block: the parser's time grows faster than its text. */
const LONGEST_BLOCK = 16_000;
const MOST_BLOCK_LINES = 300;
/** The same for a list, which can be cut between items, so that rendering an unfinished one repeatedly stays cheap. */
const LONG_LIST = 4_000;
const MANY_ITEMS = 100;
/** UTF-16 units of a line; longer ones are split. */
const LONGEST_LINE = 8_000;

/** A part of a Markdown text that can be rendered alone. */
export type Piece =
  /** Blocks to parse. `joined` continues the list before it. */
  | { readonly kind: "source"; readonly text: string; readonly joined: boolean }
  /** A line of a block too large to parse. */
  | { readonly kind: "plain"; readonly text: string; readonly first: boolean }
  | { readonly kind: "fence"; readonly language: string }
  /** A line inside a fence. */
  | { readonly kind: "code"; readonly text: string };

const FENCE = /^( {0,3})(`{3,}|~{3,})(.*)$/;
const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)/;
const TOP_ITEM = /^ ?(?:[-*+]|\d{1,9}[.)])(?: |$)/;

interface Fence {
  readonly indent: number;
  readonly mark: string;
}

/**
 * Splits streamed Markdown at blank lines outside of lists and fences, and at every line inside a fence. The pieces do not
 * depend on how the text was chunked.
 */
export class MarkdownBlocks {
  #partial = "";
  #lineCount = 0;
  #lines: string[] = [];
  #size = 0;
  #isList = false;
  #isJoined = false;
  #isPlain = false;
  /** Blank lines inside a list, which the next line continues or ends. */
  #blankLines = 0;
  #fence: Fence | undefined;

  /** Lines of the text that were read. */
  get lineCount(): number {
    return this.#lineCount;
  }

  /** Appends text; yields the pieces that became final. */
  *push(text: string): Generator<Piece> {
    let from = 0;
    for (;;) {
      const end = text.indexOf("\n", from);
      const room = LONGEST_LINE - this.#partial.length;
      const here = (end === -1 ? text.length : end) - from;
      if (here > room) {
        const part = this.#partial + text.slice(from, from + room);
        const whole = headOf(part, LONGEST_LINE - 1);
        this.#partial = part.slice(whole.length);
        from += room;
        yield* this.#raw(whole);
        continue;
      }
      if (end === -1) break;
      const line = this.#partial + text.slice(from, end);
      this.#partial = "";
      from = end + 1;
      yield* this.#raw(line);
    }
    this.#partial += text.slice(from);
  }

  /** The other pieces, as if the text ended here. Changes no state. */
  *rest(): Generator<Piece> {
    const copy = new MarkdownBlocks();
    copy.#lines = [...this.#lines];
    copy.#size = this.#size;
    copy.#isList = this.#isList;
    copy.#isJoined = this.#isJoined;
    copy.#isPlain = this.#isPlain;
    copy.#blankLines = this.#blankLines;
    copy.#fence = this.#fence;
    if (this.#partial !== "") yield* copy.#raw(this.#partial);
    yield* copy.#flush();
  }

  *#raw(raw: string): Generator<Piece> {
    this.#lineCount += 1;
    const text = clean(raw.endsWith("\r") ? raw.slice(0, -1) : raw);
    for (const line of text.split("\n")) yield* this.#line(line);
  }

  *#line(line: string): Generator<Piece> {
    if (this.#fence !== undefined) {
      if (closes(line, this.#fence)) this.#fence = undefined;
      else yield { kind: "code", text: unindented(line, this.#fence.indent) };
      return;
    }
    if (line.trim() === "") {
      if (this.#isList && this.#lines.length > 0) this.#blankLines += 1;
      else yield* this.#flush();
      return;
    }
    const opened = FENCE.exec(line);
    const indent = line.length - line.trimStart().length;
    if (opened !== null && !(this.#isList && indent >= 2) && isFence(opened)) {
      yield* this.#flush();
      const [, space = "", mark = "", info = ""] = opened;
      this.#fence = { indent: space.length, mark };
      yield { kind: "fence", language: info.trim().split(/[\s{,]/, 1)[0] ?? "" };
      return;
    }
    if (this.#blankLines > 0 && indent < 2) yield* this.#flush();
    yield* this.#add(line);
  }

  *#add(line: string): Generator<Piece> {
    if (this.#isPlain) {
      yield { kind: "plain", text: line, first: false };
      return;
    }
    const size = this.#size + line.length;
    const lines = this.#lines.length + this.#blankLines + 1;
    // A long list is split into several.
    if (this.#isList && (size > LONG_LIST || lines > MANY_ITEMS) && TOP_ITEM.test(line)) {
      yield* this.#flush();
      this.#isJoined = true;
    } else if (size > LONGEST_BLOCK || lines > MOST_BLOCK_LINES) {
      yield* this.#asPlain(line);
      return;
    }
    for (; this.#blankLines > 0; this.#blankLines -= 1) this.#lines.push("");
    this.#lines.push(line);
    this.#size += line.length + 1;
    this.#isList ||= LIST_ITEM.test(line);
  }

  *#asPlain(line: string): Generator<Piece> {
    let first = true;
    for (const text of [...this.#lines, line]) {
      if (text !== "") yield { kind: "plain", text, first };
      first = false;
    }
    this.#reset();
    this.#isPlain = true;
  }

  *#flush(): Generator<Piece> {
    if (this.#lines.length > 0) yield { kind: "source", text: this.#lines.join("\n"), joined: this.#isJoined };
    this.#reset();
  }

  #reset(): void {
    this.#lines = [];
    this.#size = 0;
    this.#isList = false;
    this.#isJoined = false;
    this.#isPlain = false;
    this.#blankLines = 0;
  }
}

function isFence([, , mark = "", info = ""]: readonly string[]): boolean {
  return !mark.startsWith("`") || !info.includes("`");
}

function closes(line: string, { mark }: Fence): boolean {
  const [, , found = "", info = ""] = FENCE.exec(line) ?? [];
  return found.length >= mark.length && found.startsWith(mark.charAt(0)) && info.trim() === "";
}

function unindented(line: string, indent: number): string {
  let at = 0;
  while (at < indent && line.charCodeAt(at) === 0x20) at += 1;
  return line.slice(at);
}
