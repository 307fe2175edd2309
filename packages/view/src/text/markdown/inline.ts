import type { MarkedToken, Token, Tokens } from "marked";
import { clean, cleanInline } from "../clean.ts";
import type { Line, Span, Style } from "../line.ts";

/** Depth of nested emphasis beyond which the source is shown. */
const DEEPEST = 8;

/** Parsed inline Markdown as lines, one for each line of the source. */
export function inlineLines(tokens: readonly Token[] | undefined, style: Style): readonly Line[] {
  return splitLines(spansOf(tokens ?? [], style, 0));
}

/** Unparsed text as lines. */
export function textLines(text: string, style: Style = "plain"): readonly Line[] {
  return splitLines([{ text: clean(text), style }]);
}

function spansOf(tokens: readonly Token[], style: Style, depth: number): readonly Span[] {
  return tokens.flatMap((token) => spansOfOne(token, style, depth));
}

function spansOfOne(token: Token, style: Style, depth: number): readonly Span[] {
  if (depth > DEEPEST) return [{ text: clean(token.raw), style }];
  const children = "tokens" in token ? (token.tokens ?? []) : [];
  const inside = (inner: Style): readonly Span[] => spansOf(children, inner, depth + 1);
  if (isOf(token, "strong")) return inside(style === "heading" ? style : "strong");
  if (isOf(token, "em")) return inside(style === "plain" ? "emphasis" : style);
  if (isOf(token, "del")) return [{ text: "~~", style: "dim" }, ...inside("dim"), { text: "~~", style: "dim" }];
  if (isOf(token, "codespan")) return [{ text: cleanInline(token.text), style: "code" }];
  if (isOf(token, "br")) return [{ text: "\n", style }];
  if (isOf(token, "link")) return linkSpans(token, inside("link"));
  if (isOf(token, "image")) {
    return [{ text: `[image: ${clean(token.text)}]`, style: "link" }, ...target(token.href)];
  }
  if (isOf(token, "escape")) return [{ text: clean(token.text), style }];
  if (isOf(token, "text")) {
    return token.tokens === undefined ? [{ text: clean(decoded(token.text)), style }] : inside(style);
  }
  if (token.type === "checkbox") return [];
  return [{ text: /^<br\s*\/?>$/i.test(token.raw) ? "\n" : clean(token.raw), style }];
}

/** A link shows its address, unless its text is the address. */
function linkSpans(token: Tokens.Link, shown: readonly Span[]): readonly Span[] {
  const text = shown.map((span) => span.text).join("");
  const same = [token.href, token.href.replace(/^mailto:/, ""), token.href.replace(/^http:\/\//, "")].includes(text);
  return same ? shown : [...shown, ...target(token.href)];
}

function target(href: string): readonly Span[] {
  return href === "" ? [] : [{ text: ` (${cleanInline(href)})`, style: "dim" }];
}

function splitLines(spans: readonly Span[]): readonly Line[] {
  const lines: Span[][] = [[]];
  for (const span of spans) {
    for (const [at, text] of span.text.split("\n").entries()) {
      if (at > 0) lines.push([]);
      if (text !== "") lines.at(-1)?.push({ ...span, text });
    }
  }
  return lines;
}

/** A type guard: the parser's types allow every name for tokens of extensions, so comparing names does not narrow. */
export function isOf<T extends MarkedToken["type"]>(
  token: Token,
  type: T,
): token is Extract<MarkedToken, { readonly type: T }> {
  return token.type === type;
}

/** Decodes entities, which the parser leaves in text. */
function decoded(text: string): string {
  return text.includes("&")
    ? text.replaceAll(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity)
    : text;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": " ",
};
