import { replaceUnseen } from "@sluice/core/runtime";
import type { Token, Tokens } from "marked";
import { headOf } from "../../text/clean.ts";
import type { Style } from "../../text/line.ts";
import { MarkdownBlocks, type Piece } from "../../text/markdown/blocks.ts";
import { inlineLines, isOf } from "../../text/markdown/inline.ts";
import { parsedBlocks } from "../../text/markdown/render.ts";
import { count } from "../../words/words.ts";
import { html, joined, type Markup, NOTHING } from "./markup.ts";
import { cutNote, printedLines } from "./texts.ts";

/** Depth of nested blocks beyond which the source is shown. */
const DEEPEST = 8;
/** Characters that join the parts of an emoji. */
const JOINERS: ReadonlySet<string> = new Set(["\u200d", "\ufe0f"]);

/** A model's Markdown as HTML. Markup in its text is escaped, and a link is its text and its address. */
export function prose(text: string, most: number): Markup {
  const shown = headOf(text, most);
  const left = text.length - shown.length;
  const blocks = new MarkdownBlocks();
  const source = replaceUnseen(shown.replaceAll("\r\n", "\n"), written);
  const body = pieces([...blocks.push(source), ...blocks.rest()]);
  return html`<div class="prose" dir="auto">${body}${left === 0 ? undefined : html`<p>${cutNote(count(left, "character"))}</p>`}</div>`;
}

/** Makes invisible characters visible before the Markdown is parsed. */
function written(character: string): string {
  if (character === "\t" || JOINERS.has(character)) return character;
  return `·U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function pieces(all: readonly Piece[]): Markup {
  const parts: Markup[] = [];
  let code: string[] = [];
  for (const [at, piece] of all.entries()) {
    if (piece.kind === "source") parts.push(sourceBlocks(piece.text));
    else if (piece.kind === "code") code.push(piece.text);
    else if (piece.language !== "") parts.push(html`<p class="lang">${piece.language}</p>`);
    if (code.length === 0 || all[at + 1]?.kind === "code") continue;
    parts.push(codeBlock(code.join("\n")));
    code = [];
  }
  return joined(parts);
}

function codeBlock(text: string): Markup {
  return html`<pre tabindex="0">${printedLines(text)}</pre>`;
}

/** Blocks of Markdown; the source if it is too complex to parse. */
function sourceBlocks(source: string): Markup {
  const tokens = parsedBlocks(source);
  return tokens === undefined ? codeBlock(source) : blockList(tokens, 0);
}

function blockList(tokens: readonly Token[], depth: number): Markup {
  return joined(tokens.map((token) => block(token, depth)));
}

function block(token: Token, depth: number): Markup {
  if (depth > DEEPEST) return codeBlock(token.raw);
  // Headings of a model must not appear among the headings of the page.
  if (isOf(token, "heading")) return html`<p class="h">${inline(token.tokens)}</p>`;
  if (isOf(token, "paragraph")) return html`<p>${inline(token.tokens)}</p>`;
  if (isOf(token, "text"))
    return token.tokens === undefined ? html`<p>${printedLines(token.text)}</p>` : inline(token.tokens);
  if (isOf(token, "code")) return codeBlock(token.text);
  if (isOf(token, "blockquote")) return html`<blockquote>${blockList(token.tokens, depth + 1)}</blockquote>`;
  if (isOf(token, "list")) return list(token, depth);
  if (isOf(token, "table")) return table(token);
  if (token.type === "hr") return html`<hr>`;
  if (token.type === "space" || token.type === "checkbox") return NOTHING;
  return html`<p>${printedLines(token.raw.trimEnd())}</p>`;
}

function list(token: Tokens.List, depth: number): Markup {
  const items = token.items.map((item) => {
    const box = item.task ? (item.checked === true ? "[x] " : "[ ] ") : "";
    return html`<li>${box}${blockList(item.tokens, depth + 1)}</li>`;
  });
  if (!token.ordered) return html`<ul>${items}</ul>`;
  return html`<ol start="${token.start === "" ? 1 : token.start}">${items}</ol>`;
}

function table({ header, rows }: Tokens.Table): Markup {
  const head = header.map(({ tokens }) => html`<th scope="col">${inline(tokens)}</th>`);
  const body = rows.map((row) => html`<tr>${row.map(({ tokens }) => html`<td>${inline(tokens)}</td>`)}</tr>`);
  return html`<div class="scroll" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

const TAGS: Partial<Readonly<Record<Style, (text: Markup) => Markup>>> = {
  strong: (text) => html`<strong>${text}</strong>`,
  emphasis: (text) => html`<em>${text}</em>`,
  code: (text) => html`<code>${text}</code>`,
  link: (text) => html`<span class="link">${text}</span>`,
  dim: (text) => html`<span class="faint">${text}</span>`,
};

/** Text in a line as on the terminal: a page has no outgoing links, so the address of a link is text. */
function inline(tokens: readonly Token[] | undefined): Markup {
  const lines = inlineLines(tokens, "plain").map((line) =>
    joined(line.map(({ text, style = "plain" }) => TAGS[style]?.(printedLines(text)) ?? printedLines(text))),
  );
  return joined(lines, html`<br>`);
}
