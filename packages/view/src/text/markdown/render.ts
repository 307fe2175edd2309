import { Lexer, type Token, type Tokens } from "marked";
import { cleanInline } from "../clean.ts";
import type { Line, Span, Style } from "../line.ts";
import { cut, pad, widthOf, wrap } from "../width.ts";
import { inlineLines, isOf, textLines } from "./inline.ts";
import { tableLines } from "./table.ts";

/** Depth of nested quotes and lists beyond which the source is shown. */
const DEEPEST = 8;
/** The same, checked before parsing, which needs a stack frame and a copy per level. */
const TOO_DEEP = /^(?:[ ]*(?:>|[-*+] |\d{1,9}[.)] )){9}|^ {33,}(?:[-*+]|\d{1,9}[.)]) /m;
/** Maximum marks of one text, and sum of their squares in one piece: the parser's time grows faster than their number. */
const MOST_MARKS = 100;
const MOST_INLINE_WORK = 40_000;
const INLINE_MARK = /[*_~`[<@)&]|https?:|www\./gi;
const LONGEST_INLINE = 8_000;
const MOST_RULE = 60;
const MOST_CODE_ROWS = 40;

/** Blocks of Markdown as rows of at most `width` columns; the source if it is too complex to parse. */
export function sourceLines(source: string, width: number): readonly Line[] {
  const tokens = parsedBlocks(source);
  const lines = tokens === undefined ? plainLines(source, width) : blocks(tokens, width, 0);
  return lines.map((line) => cut(line, width));
}

/** Unparsed text as rows. */
function plainLines(text: string, width: number): readonly Line[] {
  return textLines(text).flatMap((line) => wrap(line, width));
}

export function codeHead(language: string, width: number): readonly Line[] {
  return language === "" ? [] : [cut([{ text: `┌ ${cleanInline(language)}`, style: "dim" }], width)];
}

/** One line of code behind a bar; a long one continues in the next row. */
export function codeLines(text: string, width: number): readonly Line[] {
  return wrap([{ text: cleanInline(text) }], Math.max(2, width - 2), MOST_CODE_ROWS).map((row, at) =>
    cut([{ text: at === 0 ? "│ " : "┊ ", style: "dim" }, ...row], width),
  );
}

/** The tokens of Markdown, in bounded time; undefined if it is too complex to parse. */
export function parsedBlocks(source: string): readonly Token[] | undefined {
  if (TOO_DEEP.test(source)) return undefined;
  try {
    const lexer = new Lexer({ gfm: true });
    const tokens = lexer.blockTokens(source, []);
    let work = 0;
    for (const { src, tokens: into } of lexer.inlineQueue) {
      const marks = src.match(INLINE_MARK)?.length ?? 0;
      work += marks * marks;
      if (src.length > LONGEST_INLINE || marks > MOST_MARKS || work > MOST_INLINE_WORK)
        into.push({ type: "text", raw: src, text: src });
      else lexer.inlineTokens(src, into);
    }
    return tokens;
  } catch (thrown) {
    // The caller shows the source instead.
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
}

function blocks(tokens: readonly Token[], width: number, depth: number): readonly Line[] {
  const lines: Line[] = [];
  for (const token of tokens) {
    const block = blockLines(token, width, depth);
    if (block.length === 0) continue;
    if (lines.length > 0) lines.push([]);
    lines.push(...block);
  }
  return lines;
}

function blockLines(token: Token, width: number, depth: number): readonly Line[] {
  if (depth > DEEPEST) return plainLines(token.raw, width);
  if (isOf(token, "heading")) return flowing(token.tokens, token.depth > 2 ? "strong" : "heading", width);
  if (isOf(token, "paragraph") || isOf(token, "text")) {
    return token.tokens === undefined ? plainLines(token.text, width) : flowing(token.tokens, "plain", width);
  }
  if (isOf(token, "code")) {
    const language = (token.lang ?? "").split(/[\s{,]/, 1)[0] ?? "";
    return [...codeHead(language, width), ...token.text.split("\n").flatMap((line) => codeLines(line, width))];
  }
  if (isOf(token, "blockquote")) {
    const bar: Span = { text: "│ ", style: "dim" };
    return blocks(token.tokens, Math.max(2, width - 2), depth + 1).map((line) => [bar, ...line]);
  }
  if (isOf(token, "list")) return listLines(token, width, depth);
  if (isOf(token, "table")) return tableLines(token, width);
  if (token.type === "hr") return [[{ text: "─".repeat(Math.max(0, Math.min(width, MOST_RULE))), style: "dim" }]];
  if (token.type === "space" || token.type === "checkbox") return [];
  return plainLines(token.raw.trimEnd(), width);
}

function flowing(tokens: readonly Token[], style: Style, width: number): readonly Line[] {
  return inlineLines(tokens, style).flatMap((line) => wrap(line, width));
}

function listLines(list: Tokens.List, width: number, depth: number): readonly Line[] {
  const first = list.start === "" ? 1 : list.start;
  const last = String(first + list.items.length - 1);
  const lines: Line[] = [];
  for (const [at, item] of list.items.entries()) {
    const sign = list.ordered ? `${String(first + at).padStart(last.length)}. ` : `${bulletOf(depth)} `;
    const box = item.task ? (item.checked === true ? "[x] " : "[ ] ") : "";
    const mark: Line = [{ text: sign, style: "accent" }, ...(box === "" ? [] : [{ text: box }])];
    const indent = widthOf(sign);
    const content = itemLines(item, Math.max(2, width - indent - box.length), depth);
    if (at > 0 && list.loose) lines.push([]);
    const space = pad([], indent + box.length);
    for (const [row, line] of (content.length === 0 ? [[]] : content).entries()) {
      lines.push(line.length === 0 && row > 0 ? [] : [...(row === 0 ? mark : space), ...line]);
    }
  }
  return lines;
}

/** The content of an item; in a tight list no blank line separates text and nested list. */
function itemLines(item: Tokens.ListItem, width: number, depth: number): readonly Line[] {
  if (item.loose) return blocks(item.tokens, width, depth + 1);
  return item.tokens.flatMap((token) => blockLines(token, width, depth + 1));
}

function bulletOf(depth: number): string {
  return ["•", "◦", "▪"][depth % 3] ?? "•";
}
