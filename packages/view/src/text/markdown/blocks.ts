import { clean, headOf } from "../clean.ts";

/** Maximum UTF-16 units and lines of a parsed block: the parser's time grows faster than its text. */
const LONGEST_BLOCK = 16_000;
const MOST_BLOCK_LINES = 300;
/** The same for a list, which is cut between items, so that rendering an unfinished one repeatedly stays cheap. */
const LONG_LIST = 4_000;
const MANY_ITEMS = 100;
/** UTF-16 units of a line; longer ones are split. */
const LONGEST_LINE = 8_000;

/** A part of a Markdown text that can be rendered alone. */
export type Piece =
  /** Blocks to parse. A block that is too large comes in parts; all but the first are `joined`. */
  | { readonly kind: "source"; readonly text: string; readonly joined: boolean }
  | { readonly kind: "fence"; readonly language: string }
  /** A line inside a fence. */
  | { readonly kind: "code"; readonly text: string };

/** What follows backticks must not contain any. */
const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)$/;
const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)/;
const TOP_ITEM = /^ ?(?:[-*+]|\d{1,9}[.)])(?: |$)/;

interface Fence {
  readonly indent: number;
  readonly mark: string;
}

/** Lines that are not a piece yet. */
interface Block {
  readonly lines: readonly string[];
  readonly isList: boolean;
  /** Whether it continues the piece before it. */
  readonly isPart: boolean;
}

const NO_BLOCK: Block = { lines: [], isList: false, isPart: false };

/**
 * Splits streamed Markdown at blank lines outside of lists and fences, and at every line inside a fence. The pieces do not
 * depend on how the text was chunked.
 */
export class MarkdownBlocks {
  #partial = "";
  #lineCount = 0;
  #block = NO_BLOCK;
  #fence: Fence | undefined;

  /** Lines of the text that were read. */
  get lineCount(): number {
    return this.#lineCount;
  }

  /** Appends text; yields the pieces that became final. */
  *push(text: string): Generator<Piece> {
    const lines = `${this.#partial}${text}`.split("\n");
    this.#partial = "";
    for (const [at, line] of lines.entries()) {
      let rest = line;
      while (rest.length > LONGEST_LINE) {
        const part = headOf(rest, LONGEST_LINE);
        rest = rest.slice(part.length);
        yield* this.#raw(part);
      }
      if (at < lines.length - 1) yield* this.#raw(rest);
      else this.#partial = rest;
    }
  }

  /** The other pieces, as if the text ended here. Changes no state. */
  *rest(): Generator<Piece> {
    const copy = new MarkdownBlocks();
    copy.#block = this.#block;
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
    const indent = line.length - line.trimStart().length;
    if (this.#fence !== undefined) {
      if (closes(line, this.#fence)) this.#fence = undefined;
      else yield { kind: "code", text: line.slice(Math.min(indent, this.#fence.indent)) };
      return;
    }
    const { lines, isList } = this.#block;
    if (line.trim() === "") {
      // The next line continues or ends a list.
      if (isList && lines.length < MOST_BLOCK_LINES) this.#block = { ...this.#block, lines: [...lines, ""] };
      else yield* this.#flush();
      return;
    }
    const opened = FENCE.exec(line);
    if (opened !== null && !(isList && indent >= 2)) {
      yield* this.#flush();
      const [, space = "", mark = "", info = ""] = opened;
      this.#fence = { indent: space.length, mark };
      yield { kind: "fence", language: info.trim().split(/[\s{,]/, 1)[0] ?? "" };
      return;
    }
    if (lines.at(-1) === "" && indent < 2) yield* this.#flush();
    yield* this.#add(line);
  }

  *#add(line: string): Generator<Piece> {
    const { lines, isList } = this.#block;
    const size = lines.reduce((sum, { length }) => sum + length + 1, line.length);
    const isLongList = isList && (size > LONG_LIST || lines.length >= MANY_ITEMS) && TOP_ITEM.test(line);
    if (isLongList || size > LONGEST_BLOCK || lines.length >= MOST_BLOCK_LINES) {
      yield* this.#flush();
      this.#block = { ...NO_BLOCK, isPart: true };
    }
    const { lines: before, ...block } = this.#block;
    this.#block = { ...block, lines: [...before, line], isList: block.isList || LIST_ITEM.test(line) };
  }

  *#flush(): Generator<Piece> {
    const { lines, isPart } = this.#block;
    this.#block = NO_BLOCK;
    const text = lines.join("\n").trimEnd();
    if (text !== "") yield { kind: "source", text, joined: isPart };
  }
}

function closes(line: string, { mark }: Fence): boolean {
  const [, , found = "", info = ""] = FENCE.exec(line) ?? [];
  return found.length >= mark.length && found.startsWith(mark.charAt(0)) && info.trim() === "";
}
